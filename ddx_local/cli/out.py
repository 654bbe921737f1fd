"""Results on their way out: JSON on standard output, and files that only their owner may read, whole or not at all."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.errors import UsageError


@dataclass(frozen=True, slots=True)
class Out:
    """Where results go: JSON to a file or `-`, a report to a file, and whether people are told nothing."""

    json: str | None = None
    html: str | None = None
    quiet: bool = False

    def check(self, keep: Iterable[str] = ()) -> None:
        """Find out before the work, not after it, that a result cannot be written; raises `UsageError`.

        Args:
            keep: Files that the command reads, which a result must not replace.
        """
        if self.json not in (None, "-"):
            check_writable(Path(str(self.json)), "--json", keep)
        if self.html == "-":
            raise UsageError("--html -: a report goes to a file", "Give a file's name; /dev/stdout is one, too.")
        if self.html is not None:
            check_writable(Path(self.html), "--html", keep)
            if self.json is not None and _same_file(Path(self.json), Path(self.html)):
                raise UsageError(f"--json and --html: both name {self.html}", "Give each a file of its own.")


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """JSON for people and programs, with a line feed at its end."""
    return json.dumps(value, ensure_ascii=ascii_only, indent=2) + "\n"


def print_json(value: Any) -> None:
    """On standard output, in any encoding that a terminal may have; raises `UsageError` where it cannot be written."""
    text = json_text(value, ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}", "See `ddx-local runs list`.") from None


def one_or_list(documents: Any) -> Any:
    """One result document by itself, several as a list."""
    return documents[0] if len(documents) == 1 else list(documents)


def check_writable(path: Path, flag: str, keep: Iterable[str] = ()) -> None:
    """Find out before the work, not after it, that a result cannot be written; raises `UsageError`.

    What is refused beside a folder that is not there: a file of `keep` (what the command reads), and any SQLite file, such
    as the run store, since writing replaces what was there.
    """
    target = _target(path)
    if not _is_special(target) and any(target == _target(Path(kept)) for kept in keep):
        raise UsageError(f"{flag} {path}: is a file that is read here, and would be replaced", "Give another file.")
    if _is_database(target):
        raise UsageError(
            f"{flag} {path}: is a database, such as the run store, and would be replaced", "Give another file."
        )
    folder = target.parent
    fits = os.access(target, os.W_OK) if _is_special(target) else folder.is_dir() and os.access(folder, os.W_OK)
    if target.is_dir() or not fits:
        raise UsageError(f"{flag} {path}: cannot be written", "Give a file in a folder that exists and is writable.")


def write_report(path: Path, documents: Sequence[Mapping[str, Any]], texts: Mapping[str, str], hint: str) -> None:
    """Write the report of some result documents; raises `UsageError` where it cannot be written."""
    from ddx_local.report.html import report

    write_private(path, report(documents, texts), "--html", hint)


def write_private(path: Path, text: str, flag: str, hint: str) -> None:
    """Write a text that quotes a case: readable by its owner alone from the start, and never half a file.

    Args:
        path: The file; a pipe or a device is written as it is.
        text: What to write.
        flag: Which option named the file, for the error.
        hint: What is left to do if it fails.

    Raises:
        UsageError: It cannot be written.
    """
    target = _target(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    data = text.encode(errors="backslashreplace")
    try:
        if _is_special(target):
            with target.open("wb") as file:
                file.write(data)
            return
        try:
            with os.fdopen(os.open(scratch, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{flag} {path}: cannot be written: {error.strerror}", hint) from None


def _same_file(one: Path, other: Path) -> bool:
    return not _is_special(one) and _target(one) == _target(other)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") if path.is_file() else contextlib.nullcontext() as file:
            return file is not None and file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False  # not readable: whether it is writable is asked next


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _target(path: Path) -> Path:
    """Through links, so that what a link names is replaced and not the link; a pipe's own name stays."""
    return path if _is_special(path) else path.resolve()
