"""A store as a file: its mode, who works on a run now, and what goes wrong with it in one sentence. It knows no tables."""

import fcntl
import hashlib
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ddx_local.errors import StoreError

_FLOCK = "hhxxxxqqixxxx"
"""`struct flock` of a 64-bit Linux: type, whence, start, length, pid (0 for locks of an open file)."""

_DATABASE = b"SQLite format 3\0"


def make_private(path: Path) -> None:
    """Make the file with its mode, so that it is never readable by others, not even for a moment.

    Raises:
        OSError: It cannot be made or opened.
        StoreError: Something else is there; it is left as it is.
    """
    with private_file(path) as file:
        start = file.read(len(_DATABASE))
        if start and start != _DATABASE:
            raise StoreError(f"{path} is no run store but another kind of file", "Give another --store.")
        os.fchmod(file.fileno(), 0o600)


def private_file(path: Path) -> BinaryIO:
    """Open a file, made with its mode where it is not there, its folder too. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "rb")


@contextmanager
def claimed(path: Path, run_id: str) -> Iterator[None]:
    """Hold a run of the store; the system frees it when the process ends, however it ends.

    Raises:
        StoreError: It is held already, by another process or by this one.
    """
    with explained(path):
        held = os.open(f"{path}-lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        # One byte of the lock file for each run.
        place = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4], "big")
        try:
            # Of the open file, not of the process: closing one run's handle must not free the other runs of a server.
            fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
        except OSError:
            raise StoreError(
                f"another process works on run {run_id} now", "Wait for it to end, or stop it with Ctrl-C."
            ) from None
        yield
    finally:
        os.close(held)


@contextmanager
def explained(path: Path | None, what: str = "run store") -> Iterator[None]:
    """Turn what SQLite and the file system say into one sentence that names the file and the reason."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StoreError(f"the {what} {path or '(memory)'} cannot be used: {reason}") from error
