"""From files to cases: text, Markdown, JSON, JSON Lines, tables, the section form, FHIR R4 bundles.

It knows where inputs come from and which form they have; what a form means is known to `intake_object`, `intake_table` and
`fhir`. A text is kept as it is (a byte order mark aside): quotes point into it.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical.intake_object import LONGEST_ID as LONGEST_ID
from ddx_local.clinical.intake_object import PARTS, from_object, printable
from ddx_local.clinical.intake_table import rows
from ddx_local.clinical.section_headings import OTHER, headings
from ddx_local.clinical.taken import Reading, Remark, Taken, holds_answer, shown
from ddx_local.errors import InputError, UsageError, nearest

PLAIN = Reading()
"""Nothing said of columns; no diagnoses of a bundle."""

MOST_BYTES = 1_000_000
"""A case text's size at most; the longest case that any supported context holds is far shorter."""

MOST_BYTES_STRUCTURED = 50_000_000
"""Size at most of what holds many cases, or a case among much else: JSON, JSON Lines, tables, bundles."""

SUFFIXES = (".txt", ".md", ".json", ".jsonl", ".ndjson", ".csv", ".tsv")

_STRUCTURED = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")

_BEGINS_LIKE_JSON = re.compile(r"""\s*(\{\s*["}]|\[\s*[{\[\]"])""")
"""Of a source without a suffix. A note may begin with a bracket: `[Chief complaint] ...` is a text."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")

_NO_TEXTS = (
    (re.compile(r"%PDF-\d"), "a PDF file"),
    (re.compile(r"\{\\rtf"), "an RTF file"),
    (re.compile(r"<\?xml[^>]*>\s*<|<(?:[\w-]+:)?(?:ClinicalDocument|Bundle|Patient)\b"), "an XML file"),
    (re.compile(r"<!doctype html|<html\b", re.IGNORECASE), "an HTML file"),
)


def read_cases(sources: Sequence[str], reading: Reading = PLAIN) -> tuple[Case, ...]:
    """All cases of files, folders and `-` (standard input), with distinct ids; see `read_all`."""
    return tuple(taken.case for taken in read_all(sources, reading))


def read_all(sources: Sequence[str], reading: Reading = PLAIN) -> tuple[Taken, ...]:
    """All cases of files, folders and `-` (standard input), with what of them did not become case text.

    Args:
        sources: Paths; a folder stands for its case files, by name.
        reading: How to read them.

    Raises:
        InputError: A source that is missing, empty, binary, not UTF-8, too large, or holds no case.
        UsageError: `reading` names what is not there or holds an answer.
    """
    found = [taken for source in sources for taken in _read(source, reading)]
    if not found:
        raise InputError("no case was given", "Give a file, a folder, or - for standard input.")
    return _distinct(found)


def parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    """`--column text=NAME,id=NAME` as part -> column.

    Raises:
        UsageError: Not of this form, an unknown part, a part twice, or a text beside sections.
    """
    found: dict[str, str] = {}
    for pair in (part for value in pairs for part in value.split(",")):
        part, mark, column = (word.strip() for word in pair.partition("="))
        if not mark or not column:
            raise UsageError(
                f"--column {shown(pair)}: is not of the form PART=COLUMN", "For example --column text=note,id=case."
            )
        if part not in PARTS:
            raise UsageError(f"--column: no part `{shown(part)}` of a case: {nearest(part, list(PARTS))}")
        if part in found:
            raise UsageError(f"--column: `{part}` is given twice")
        found[part] = column
    if found and "text" in found and set(found) - {"text", "id"}:
        raise UsageError("--column: a case has either a text or sections", "Leave `text` out, or the sections.")
    if found and not set(found) - {"id"}:
        raise UsageError("--column: names no column for the text", "Add text=NAME, or a section's name.")
    return found


def _read(source: str, reading: Reading) -> Iterable[Taken]:
    if source == "-":
        if sys.stdin is None:
            raise InputError("standard input: is closed", "Give a file, or `- < FILE`.")
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES and _BEGINS_LIKE_JSON.match(data[:200].decode("utf-8-sig", "replace")):
            data += sys.stdin.buffer.read(MOST_BYTES_STRUCTURED + 1 - len(data))
            return _parse("stdin", _decode("standard input", data, MOST_BYTES_STRUCTURED), "", reading)
        return _parse("stdin", _decode("standard input", data, MOST_BYTES), "", reading)
    path = Path(source)
    try:
        if not path.is_dir():
            return _read_file(path, reading)
        # A name that begins with a dot is no one's case, but what another system keeps beside one.
        names = sorted(item for item in path.iterdir() if not item.name.startswith("."))
        files = [item for item in names if item.suffix.lower() in SUFFIXES and item.is_file()]
    except OSError as error:
        raise InputError(*_unreadable(source, error)) from None
    if not files:
        raise InputError(f"folder {path}: holds no case file ({', '.join(SUFFIXES)})")
    return [taken for file in files for taken in _read_file(file, reading)]


def _unreadable(source: str, error: OSError) -> tuple[str, str]:
    """Message and hint; what looks like a case text rather than a path is not repeated."""
    if len(source.split()) > 8 or "\n" in source or len(Path(source).name) > 255:
        return (
            "the argument CASE is a text, not the path of a file",
            "Save it as a file, or give it on standard input: `ddx-local diagnose - < FILE`.",
        )
    return f"{source}: cannot be read: {error.strerror}", "Check the path and its permissions."


def _read_file(path: Path, reading: Reading) -> Iterable[Taken]:
    suffix = path.suffix.lower()
    most = MOST_BYTES_STRUCTURED if suffix in _STRUCTURED else MOST_BYTES
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(*_unreadable(str(path), error)) from None
    return _parse(path.stem, _decode(str(path), data, most), suffix, reading, str(path))


def _decode(name: str, data: bytes, most: int) -> str:
    if len(data) > most:
        raise InputError(
            f"{name}: is larger than {most:,} bytes, which no model's context holds",
            "Give the part that matters: history, findings and results of this episode.",
        )
    if data.startswith(_UTF16):
        raise InputError(f"{name}: is UTF-16, not UTF-8", "Save it as UTF-8 text.")
    if b"\0" in data:
        raise InputError(f"{name}: is a binary file, not a text")
    start = data[:500].decode("utf-8-sig", "replace").lstrip()
    kind = next((kind for pattern, kind in _NO_TEXTS if pattern.match(start)), None)
    if kind:
        raise InputError(f"{name}: is {kind}, not a text", "Save it as plain text, or export FHIR as JSON.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start})", "Save it as UTF-8 text.") from None


def _parse(stem: str, text: str, suffix: str, reading: Reading, name: str = "standard input") -> list[Taken]:
    if suffix in (".jsonl", ".ndjson"):
        # Split at line feeds alone: JSON strings may hold the other line separators of Unicode as they are.
        lines = [(f"{name}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        found = _objects([(_json(line, where), where) for where, line in lines], stem, name, reading, "JSON Lines")
    elif suffix == ".json" or (suffix == "" and _BEGINS_LIKE_JSON.match(text)):
        data = _json(text, name)
        items = [(item, name) for item in (data if isinstance(data, list) else [data])]
        found = _objects(items, stem, name, reading, "JSON", numbered=len(items) > 1)
    elif suffix in (".csv", ".tsv"):
        table = [(row, f"{name}, line {number}") for number, row in rows(text, name)]
        found = _objects(table, stem, name, reading, "table")
    else:
        if reading.columns:
            raise UsageError(f"--column: {name} is a text and has no columns", "Leave --column out.")
        found = [Taken(Case(_case_id("", stem), text), "Markdown" if suffix == ".md" else "text")]
    for taken in found:
        if not taken.case.text.strip():
            raise InputError(f"{name}: is empty")
        if any("\ud800" <= letter <= "\udfff" for letter in taken.case.text) or "\0" in taken.case.text:
            raise InputError(f"{name}: its text holds characters that are no text (lone surrogates or NUL)")
        if len(taken.case.text) > MOST_BYTES:
            raise InputError(
                f"{name}: a case text is longer than {MOST_BYTES:,} characters, which no model's context holds",
                "Give the part that matters: history, findings and results of this episode.",
            )
    if not found:
        raise InputError(f"{name}: is empty")
    return [_warned(taken) for taken in found]


def _objects(
    items: Sequence[tuple[Any, str]], stem: str, name: str, reading: Reading, form: str, *, numbered: bool = True
) -> list[Taken]:
    """Each object as a case; loose FHIR resources (an NDJSON export) together as one bundle."""
    kinds = [item.get("resourceType") if isinstance(item, dict) else None for item, _ in items]
    if kinds and all(isinstance(kind, str) and kind != "Bundle" for kind in kinds) and len(kinds) > 1:
        entries = [{"resource": item} for item, _ in items]
        items, numbered = [({"resourceType": "Bundle", "type": "collection", "entry": entries}, name)], False
    found = []
    for number, (item, where) in enumerate(items, 1):
        taken = _one(item, where, reading, form)
        fallback = f"{stem}-{number}" if numbered else stem
        found.append(replace(taken, case=Case(_case_id(taken.case.id, fallback), taken.case.text)))
    return found


def _one(item: Any, where: str, reading: Reading, form: str) -> Taken:
    if isinstance(item, dict) and "resourceType" in item:
        if reading.columns:
            raise UsageError(f"--column: {where} is a FHIR bundle and has no columns", "Leave --column out.")
        from ddx_local.clinical.fhir import from_bundle  # pydantic's models take a moment

        return from_bundle(item, where, reading)
    return from_object(item, where, reading, form)


def _warned(taken: Taken) -> Taken:
    """With a remark where the text itself has a heading for the answer: it is read as it is."""
    named = {
        mark.words.strip(): None
        for mark in headings(taken.case.text)
        if mark.section == OTHER and (holds_answer(mark.words) and not _is_harmless(mark.words))
    }
    found = [
        Remark("warning", f"heading `{shown(words)}`", "what stands under it is case text, and may be the answer")
        for words in named
    ]
    return replace(taken, remarks=(*taken.remarks, *found)) if found else taken


def _is_harmless(words: str) -> bool:
    return "diagnos" not in words.casefold() and "answer" not in words.casefold() and "تشخيص" not in words


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        raise InputError(f"{name}: is not valid JSON ({place})") from None
    except RecursionError:
        raise InputError(f"{name}: its JSON is nested too deeply") from None


def _case_id(given: str, fallback: str) -> str:
    """An id that can be stored and shown anywhere: printable, not empty, not long."""
    return given or printable(fallback) or "case"


def _distinct(found: Sequence[Taken]) -> tuple[Taken, ...]:
    seen: dict[str, int] = {}
    distinct = []
    for taken in found:
        case_id = taken.case.id
        while case_id in seen:
            seen[taken.case.id] += 1
            case_id = f"{taken.case.id}-{seen[taken.case.id]}"
        seen[case_id] = 1
        distinct.append(replace(taken, case=Case(case_id, taken.case.text)))
    return tuple(distinct)
