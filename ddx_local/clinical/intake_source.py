"""Where case texts come from: files, folders, standard input. It knows bytes and names, not what a text says.

A text is UTF-8, and kept as it is (a byte order mark aside).
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ddx_local.clinical.taken import Remark, shown
from ddx_local.errors import InputError

MOST_BYTES = 1_000_000
"""A case text's size at most; the longest case that any supported context holds is far shorter."""

MOST_BYTES_STRUCTURED = 50_000_000
"""Size at most of what holds many cases, or a case among much else: JSON, JSON Lines, tables, bundles."""

SUFFIXES = (".txt", ".md", ".json", ".jsonl", ".ndjson", ".csv", ".tsv")

_STRUCTURED = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")

BEGINS_LIKE_JSON = re.compile(r"""\s*(\{\s*["}]|\[\s*[{\[\]"])""")
"""Of a source without a suffix. A note may begin with a bracket: `[Chief complaint] ...` is a text."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")

_NO_TEXTS = (
    (re.compile(r"%PDF-\d"), "a PDF file"),
    (re.compile(r"\{\\rtf"), "an RTF file"),
    (re.compile(r"<\?xml[^>]*>\s*<|<(?:[\w-]+:)?(?:ClinicalDocument|Bundle|Patient)\b"), "an XML file"),
    (re.compile(r"<!doctype html|<html\b", re.IGNORECASE), "an HTML file"),
)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and where it comes from: the stem of a file's name, its suffix in small letters, its name for errors."""

    stem: str
    text: str
    suffix: str
    name: str


def texts(source: str) -> list[SourceText]:
    """The texts of a file, of a folder's case files, or of standard input (`-`).

    Raises:
        InputError: Missing, not readable, binary, not UTF-8, too large, or of a kind that is no text.
    """
    if source == "-":
        if sys.stdin is None:
            raise InputError("standard input: is closed", "Give a file, or `- < FILE`.")
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES and BEGINS_LIKE_JSON.match(data[:200].decode("utf-8-sig", "replace")):
            data += sys.stdin.buffer.read(MOST_BYTES_STRUCTURED + 1 - len(data))
            return [SourceText("stdin", _decode("standard input", data, MOST_BYTES_STRUCTURED), "", "standard input")]
        return [SourceText("stdin", _decode("standard input", data, MOST_BYTES), "", "standard input")]
    if not source.strip():  # an empty path is the current folder, which nobody named
        raise InputError("the argument CASE is empty", "Give a file, a folder, or - for standard input.")
    path = Path(source)
    try:
        if not path.is_dir():
            return [_read_file(path)]
        files = [item for item in _visible(path) if _is_case_file(item)]
    except OSError as error:
        raise InputError(*_unreadable(source, error)) from None
    if not files:
        raise InputError(f"folder {path}: holds no case file ({', '.join(SUFFIXES)})")
    return [_read_file(file) for file in files]


def left_out(source: str) -> list[Remark]:
    """What a folder holds beside its case files, by kind: a file's name may be a patient's. Nothing for any other source."""
    path = Path(source)
    if source == "-" or not path.is_dir():
        return []
    folder = shown(str(path))
    return [
        Remark("left out", f"a folder in {folder}", "folders in a folder are not read")
        if item.is_dir()
        else Remark(
            "left out",
            f"a file `{shown(f'*{item.suffix}')}` in {folder}",
            f"a case file ends in {', '.join(SUFFIXES)}" if item.suffix.lower() not in SUFFIXES else "it is no file",
        )
        for item in _visible(path)
        if not _is_case_file(item)
    ]


def _visible(folder: Path) -> Sequence[Path]:
    """By name. A name that begins with a dot is no one's case, but what another system keeps beside one."""
    return sorted(item for item in folder.iterdir() if not item.name.startswith("."))


def _is_case_file(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _unreadable(source: str, error: OSError) -> tuple[str, str]:
    """Message and hint; what looks like a case text rather than a path is not repeated."""
    if len(source.split()) > 8 or "\n" in source or len(Path(source).name) > 255:
        return (
            "the argument CASE is a text, not the path of a file",
            "Save it as a file, or give it on standard input: `ddx-local diagnose - < FILE`.",
        )
    return f"{source}: cannot be read: {error.strerror}", "Check the path and its permissions."


def _read_file(path: Path) -> SourceText:
    suffix = path.suffix.lower()
    most = MOST_BYTES_STRUCTURED if suffix in _STRUCTURED else MOST_BYTES
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(*_unreadable(str(path), error)) from None
    return SourceText(path.stem, _decode(str(path), data, most), suffix, str(path))


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
