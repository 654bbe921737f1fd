"""CSV tables: rows as objects. It knows delimiters and headers, not what a column holds."""

import csv
import io
from collections.abc import Iterator

from ddx_local.errors import InputError

DELIMITERS = ",;\t|"


def rows(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with a header, each with the number of the line where it ends; blank rows are none.

    The delimiter is the one that the header holds most of.

    Raises:
        InputError: No header, a column without a name or twice, a row of another length, a quote that never ends.
    """
    header_line = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    try:
        for fields in reader:
            if not any(field.strip() for field in fields):
                continue
            if not header:
                header = _header(fields, name)
                continue
            if len(fields) != len(header):
                raise InputError(
                    f"{name}, line {reader.line_num}: has {len(fields)} fields, but the header has {len(header)}",
                    'Put a text that holds the delimiter or a line feed in quotes: "...".',
                )
            yield reader.line_num, dict(zip(header, fields, strict=True))
    except csv.Error:
        raise InputError(
            f"{name}, line {reader.line_num}: is not valid CSV, or a field is longer than {csv.field_size_limit():,} characters",
            'Double a quote inside a quoted text: "".',
        ) from None


def _header(fields: list[str], name: str) -> list[str]:
    header = [field.strip() for field in fields]
    if not all(header) or len(set(header)) < len(header):
        raise InputError(
            f"{name}: its first line is no header: a column has no name, or two have the same",
            "The first line of a table names its columns.",
        )
    return header
