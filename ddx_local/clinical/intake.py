"""From files to cases: text, Markdown and JSON. The text is kept as it is (a byte order mark aside): quotes point into it."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError

MOST_BYTES = 1_000_000
"""A case file's size at most; the longest case that any supported context holds is far shorter."""

SUFFIXES = (".txt", ".md", ".json", ".jsonl")

LONGEST_ID = 100
"""Characters of a case's id."""

_BEGINS_LIKE_JSON = re.compile(r"""\s*(\{\s*["}]|\[\s*[{\[\]"])""")
"""Of a source without a suffix. A note may begin with a bracket: `[Chief complaint] ...` is a text."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_cases(sources: Sequence[str]) -> tuple[Case, ...]:
    """All cases of files, folders and `-` (standard input), with distinct ids.

    Args:
        sources: Paths; a folder stands for its case files, by name.

    Raises:
        InputError: A source that is missing, empty, binary, not UTF-8, too large, or JSON without a case text.
    """
    cases = [case for source in sources for case in _read(source)]
    if not cases:
        raise InputError("no case was given", "Give a file, a folder, or - for standard input.")
    return _distinct(cases)


def _read(source: str) -> Iterable[Case]:
    if source == "-":
        if sys.stdin is None:
            raise InputError("standard input: is closed", "Give a file, or `- < FILE`.")
        return _parse("stdin", _decode("standard input", sys.stdin.buffer.read(MOST_BYTES + 1)), "")
    path = Path(source)
    try:
        if not path.is_dir():
            return _read_file(path)
        # A name that begins with a dot is no one's case, but what another system keeps beside one.
        names = sorted(item for item in path.iterdir() if not item.name.startswith("."))
        files = [item for item in names if item.suffix.lower() in SUFFIXES and item.is_file()]
    except OSError as error:
        raise InputError(*_unreadable(source, error)) from None
    if not files:
        raise InputError(f"folder {path}: holds no case file ({', '.join(SUFFIXES)})")
    return [case for file in files for case in _read_file(file)]


def _unreadable(source: str, error: OSError) -> tuple[str, str]:
    """Message and hint; what looks like a case text rather than a path is not repeated."""
    if len(source.split()) > 8 or "\n" in source or len(Path(source).name) > 255:
        return (
            "the argument CASE is a text, not the path of a file",
            "Save it as a file, or give it on standard input: `ddx-local diagnose - < FILE`.",
        )
    return f"{source}: cannot be read: {error.strerror}", "Check the path and its permissions."


def _read_file(path: Path) -> Iterable[Case]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(*_unreadable(str(path), error)) from None
    return _parse(path.stem, _decode(str(path), data), path.suffix.lower(), str(path))


def _decode(name: str, data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise InputError(
            f"{name}: is larger than {MOST_BYTES:,} bytes, which no model's context holds",
            "Give the part that matters: history, findings and results of this episode.",
        )
    if data.startswith(_UTF16):
        raise InputError(f"{name}: is UTF-16, not UTF-8", "Save it as UTF-8 text.")
    if b"\0" in data:
        raise InputError(f"{name}: is a binary file, not a text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start})", "Save it as UTF-8 text.") from None


def _parse(stem: str, text: str, suffix: str, name: str = "standard input") -> list[Case]:
    if suffix == ".jsonl":
        # Split at line feeds alone: JSON strings may hold the other line separators of Unicode as they are.
        lines = [(f"{name}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        found = [_case(_json(line, where), f"{stem}-{number}", where) for number, (where, line) in enumerate(lines, 1)]
    elif suffix == ".json" or (suffix == "" and _BEGINS_LIKE_JSON.match(text)):
        data = _json(text, name)
        items = data if isinstance(data, list) else [data]
        ids = [stem] if len(items) == 1 else [f"{stem}-{number}" for number in range(1, len(items) + 1)]
        found = [_case(item, case_id, name) for item, case_id in zip(items, ids, strict=True)]
    else:
        found = [Case(_case_id(stem, "case"), text)]
    for case in found:
        if not case.text.strip():
            raise InputError(f"{name}: is empty")
        if any("\ud800" <= letter <= "\udfff" for letter in case.text) or "\0" in case.text:
            raise InputError(f"{name}: its text holds characters that are no text (lone surrogates or NUL)")
    if not found:
        raise InputError(f"{name}: is empty")
    return found


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        raise InputError(f"{name}: is not valid JSON ({place})") from None
    except RecursionError:
        raise InputError(f"{name}: its JSON is nested too deeply") from None


def _case(item: Any, fallback: str, name: str) -> Case:
    text = item.get("text", item.get("case")) if isinstance(item, dict) else None
    if not isinstance(text, str):
        raise InputError(f"{name}: has no text field `text`")
    return Case(_case_id(item.get("id"), _case_id(fallback, "case")), text)


def _case_id(given: Any, fallback: str) -> str:
    """An id that can be stored and shown anywhere: printable, not empty, not long."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        return fallback
    shown = "".join(letter if letter.isprintable() else "_" for letter in str(given)[:LONGEST_ID])
    return shown.strip() or fallback


def _distinct(cases: Sequence[Case]) -> tuple[Case, ...]:
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        case_id = case.id
        while case_id in seen:
            seen[case.id] += 1
            case_id = f"{case.id}-{seen[case.id]}"
        seen[case_id] = 1
        found.append(Case(case_id, case.text))
    return tuple(found)
