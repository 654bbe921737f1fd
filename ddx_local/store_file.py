"""A store as a file: its mode, who works on a run now, and what goes wrong with it in one sentence. It knows no tables."""

import errno
import fcntl
import hashlib
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ddx_local.errors import StoreError

_FLOCK = "hhxxxxqqixxxx"
"""`struct flock` of a 64-bit Linux: type, whence, start, length, pid (0 for locks of an open file)."""


def connect(
    path: Path | None, check: Callable[[sqlite3.Connection], object] | None = None, *, timeout: float = 30
) -> sqlite3.Connection:
    """Open a database that only its owner may read, in WAL mode; it is made where it is not there.

    Args:
        path: The file; None for one in memory.
        check: Reads the tables, and raises for a file that is not ours; nothing in the file or of its mode changes before it.
        timeout: Seconds to wait for another process's lock, here and later.

    Raises:
        OSError, sqlite3.Error: It cannot be made or opened, or is another kind of file; that is left as it is. `explained`
            says it in a sentence.
    """
    if path is not None:
        _make_private(path)
    connection = sqlite3.connect(
        ":memory:" if path is None else str(path), timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA schema_version")  # another kind of file is refused here
        if check is not None:
            check(connection)
        _into_wal(connection, timeout)
        if path is not None:
            path.chmod(0o600)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make the file with its mode, so that it is never readable by others, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Never opened where it is there: closing it would free the locks that SQLite's other connections in this process hold.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    # SQLite says of either no more than "unable to open database file".
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _into_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Turn the file to WAL mode, waiting for others: SQLite tells one of two that do so at once "locked" without waiting."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(cursor: sqlite3.Cursor) -> Iterator[None]:
    """One transaction, whole or not at all."""
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        if cursor.connection.in_transaction:  # a full disk has already rolled back
            cursor.execute("ROLLBACK")
        raise


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
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            raise StoreError(
                f"{path} is no {what} but another kind of file, or a damaged one", "Give another --store."
            ) from error
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StoreError(f"the {what} {path or '(memory)'} cannot be used: {reason}") from error
