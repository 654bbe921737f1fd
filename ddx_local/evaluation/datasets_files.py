"""Rows of JSON, JSON lines, csv and xlsx files, and text repaired from mojibake. It knows no data set."""

import ast
import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddx_local.errors import InputError

Row = dict[str, Any]

_CONTROL = re.compile(r"_x00[01][0-9A-Fa-f]_")
"""How a workbook writes a control character."""

_FOREIGN = re.compile(r"[^\x00-\x7f]+")


def rows(path: Path) -> list[Row]:
    """The rows of a file by its suffix: json (a list, or an object of objects), jsonl, csv, tsv, xlsx.

    Raises:
        InputError: The file cannot be read as that.
    """
    suffix = path.suffix.lower()
    readers = {
        ".jsonl": _jsonl,
        ".json": _json,
        ".csv": lambda p: _csv(p, ","),
        ".tsv": lambda p: _csv(p, "\t"),
        ".xlsx": _xlsx,
    }
    if suffix not in readers:
        raise InputError(f"{path}: unknown kind of file `{suffix}`", f"Known: {', '.join(readers)}.")
    try:
        return readers[suffix](path)
    except (UnicodeDecodeError, csv.Error, OSError, KeyError) as error:
        raise InputError(f"{path}: cannot be read as {suffix} ({type(error).__name__})", "Save it as UTF-8.") from None


def _jsonl(path: Path) -> list[Row]:
    found = []
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{path}, line {number}: is not JSON", "Each line must be one JSON object.") from None
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number}: is no JSON object", "Each line must be one JSON object.")
            found.append(row)
    return found


def _json(path: Path) -> list[Row]:
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InputError(f"{path}: is not JSON", "Check that the file is whole.") from None
    if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
        return [{"_key": key, **item} for key, item in value.items()]
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise InputError(f"{path}: is no list of JSON objects", "Check that it is the data set's own file.")


def _csv(path: Path, delimiter: str) -> list[Row]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [dict(row) for row in csv.DictReader(file, delimiter=delimiter)]


def _xlsx(path: Path) -> list[Row]:
    import zipfile

    import openpyxl

    try:
        sheet = openpyxl.load_workbook(path, read_only=True).active
    except (zipfile.BadZipFile, openpyxl.utils.exceptions.InvalidFileException):
        raise InputError(f"{path}: is no xlsx workbook", "Get the publisher's file again.") from None
    lines = sheet.iter_rows(values_only=True)
    head = [str(cell) for cell in next(lines)]
    return [dict(zip(head, line, strict=False)) for line in lines if any(cell is not None for cell in line)]


def need(path: Path, row: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Raise `InputError` where a layout's column is missing; what is there is named."""
    if missing := [name for name in columns if name not in row]:
        raise InputError(
            f"{path}: has no column `{missing[0]}`; it has {', '.join(sorted(map(str, row))[:12])}",
            "Check that it is the data set's own file, or use `jsonl` or `csv` with a column map.",
        )


def literal(path: Path, value: Any, where: str) -> Any:
    """A Python or JSON literal in a cell; raises `InputError`."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise InputError(f"{path}, {where}: cannot be read as a list or object") from None


def repaired(text: str) -> str:
    """Text whose UTF-8 was once read as MacRoman, put right, up to twice; a workbook's control characters are left out."""
    text = _CONTROL.sub("", text)
    for _ in range(2):
        fixed = _FOREIGN.sub(lambda match: _once(match[0]), text)
        if fixed == text:
            break
        text = fixed
    return text


def _once(piece: str) -> str:
    try:
        return piece.encode("mac_roman").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return piece
