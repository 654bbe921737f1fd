"""From files to cases: text, Markdown, JSON, JSON Lines, tables, the section form, FHIR R4 bundles.

It knows which form an input has. Where it comes from is known to `intake_source`, what a form means to `intake_object`,
`intake_table` and `fhir`. A text is kept as it is (a byte order mark aside): quotes point into it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical import intake_json
from ddx_local.clinical.intake_object import LONGEST_ID as LONGEST_ID
from ddx_local.clinical.intake_object import from_object, printable
from ddx_local.clinical.intake_object import parse_columns as parse_columns
from ddx_local.clinical.intake_source import BEGINS_LIKE_JSON, MOST_BYTES, left_out, texts
from ddx_local.clinical.intake_table import rows
from ddx_local.clinical.section_headings import OTHER, headings
from ddx_local.clinical.taken import Reading, Remark, Taken, counted, is_text, shown
from ddx_local.errors import InputError, UsageError

PLAIN = Reading()
"""Nothing said of columns; no diagnoses of a bundle."""

_ANSWER_HEADING = re.compile("diagnos|answer|تشخيص", re.IGNORECASE)


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
    found = []
    for source in sources:
        read = [
            replace(taken, source=text.name)
            for text in texts(source)
            for taken in _parse(text.stem, text.text, text.suffix, reading, text.name)
        ]
        # What a folder holds beside its cases belongs to none of them; the first one tells of it.
        found += [replace(read[0], remarks=counted([*read[0].remarks, *left_out(source)])), *read[1:]]
    if not found:
        raise InputError("no case was given", "Give a file, a folder, or - for standard input.")
    return _distinct(found)


def _parse(stem: str, text: str, suffix: str, reading: Reading, name: str) -> list[Taken]:
    if suffix == "":
        suffix = _like(text, reading)
    if suffix in (".jsonl", ".ndjson"):
        # Split at line feeds alone: JSON strings may hold the other line separators of Unicode as they are.
        lines = [(f"{name}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        found = _objects(
            [(intake_json.parse(line, where), where) for where, line in lines], stem, name, reading, "JSON Lines"
        )
    elif suffix == ".json":
        data = intake_json.parse(text, name)
        several = data if isinstance(data, list) else [data]
        items = [(item, f"{name}, case {at}" if len(several) > 1 else name) for at, item in enumerate(several, 1)]
        found = _objects(items, stem, name, reading, "JSON", numbered=len(items) > 1)
    elif suffix in (".csv", ".tsv"):
        table = [(row, f"{name}, line {number}") for number, row in rows(text, name)]
        if not table and text.strip():
            raise InputError(f"{name}: has a header but no row", "Each line below the header is a case.")
        found = _objects(table, stem, name, reading, "table")
    else:
        if reading.columns:
            raise UsageError(f"--column: {name} is a text and has no columns", "Leave --column out.")
        found = [_sound(Taken(Case(_case_id("", stem), text), "Markdown" if suffix == ".md" else "text"), name)]
    if not found:
        raise InputError(f"{name}: is empty")
    return [_warned(taken) for taken in found]


def _sound(taken: Taken, where: str) -> Taken:
    """The same, where its text can be a case at all; raises `InputError`, which names the file and the place in it."""
    text = taken.case.text
    if not text.strip():
        raise InputError(f"{where}: is empty")
    if not is_text(text):
        raise InputError(f"{where}: its text holds characters that are no text (lone surrogates or NUL)")
    if not any(letter.isalnum() for letter in text):
        raise InputError(f"{where}: holds no word, only marks and blanks")
    if len(text) > MOST_BYTES:
        raise InputError(
            f"{where}: a case text is longer than {MOST_BYTES:,} characters, which no model's context holds",
            "Give the part that matters: history, findings and results of this episode.",
        )
    return taken


def _like(text: str, reading: Reading) -> str:
    """The suffix that fits a text which has none: JSON by its beginning, a line for each object, or named columns."""
    if not BEGINS_LIKE_JSON.match(text):
        return ".csv" if reading.columns else ""
    lines = text.strip().split("\n")
    alone = len(lines) > 1 and all(
        line.startswith("{") and line.rstrip().endswith("}") for line in lines if line.strip()
    )
    return ".jsonl" if alone else ".json"


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
        taken = _sound(_one(item, where, reading, form), where)
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
    words = dict.fromkeys(mark.words.strip() for mark in headings(taken.case.text) if mark.section == OTHER)
    found = [
        Remark("warning", f"heading `{shown(name)}`", "what stands under it is case text, and may be the answer")
        for name in words
        if _ANSWER_HEADING.search(name)
    ]
    return replace(taken, remarks=(*taken.remarks, *found)) if found else taken


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
