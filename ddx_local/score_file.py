"""The file of kept label probabilities: its tables, how it is opened and emptied, and what is damage. It knows no cache."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ddx_local import store_file
from ddx_local.errors import StoreError

VERSION = 1
"""Of the tables; a file of a later one is refused."""

WHAT = "probability cache"
FORGET = "Delete it: `ddx-local cache clear` (with the run's --store, if it had one); nothing is lost but saved time."

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS models (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, hits INTEGER NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS scores (
    key BLOB PRIMARY KEY, model INTEGER NOT NULL, logprob REAL NOT NULL, tokens INTEGER NOT NULL, noise REAL NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
COMMIT;
"""


def beside(store: Path | None) -> Path | None:
    """Where the probabilities of a run store's runs are kept; None (in memory) for a store in memory."""
    return store.with_name("scores.sqlite") if store else None


def connected(path: Path | None) -> sqlite3.Connection:
    """A connection to the file, which is made with its tables where it is not there; to memory for None.

    Raises:
        OSError, sqlite3.Error: It cannot be opened.
        StoreError: It is another program's database, or a later version's.
    """
    connection = store_file.connect(path, lambda connection: _is_made(connection, path), timeout=10)
    try:
        if not _is_made(connection, path):
            connection.executescript(_SCHEMA)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_made(connection: sqlite3.Connection, path: Path | None) -> bool:
    # Tables before the version: another process may be making both now, in one transaction.
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if tables and not {"models", "scores"} <= tables:
        raise StoreError(f"{path} is a database, but no {WHAT}", "Move it away, or give another --store.")
    if found > VERSION:
        raise StoreError(
            f"the {WHAT} {path} was made by a later version of ddx-local (tables {found}, here {VERSION})",
            "Use that version, or another --store.",
        )
    return found == VERSION


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """As `store_file.explained`, and for damage what to do about it."""
    with store_file.explained(path, WHAT):
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            raise StoreError(f"the {WHAT} {path} is damaged: {error}", FORGET) from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file is not whole, or no database at all."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def clear(path: Path) -> int:
    """Forget everything in a file; one that is damaged is deleted.

    Returns:
        How many probabilities were forgotten; 0 for a damaged file.

    Raises:
        StoreError: The file is another program's database, or cannot be written.
    """
    with store_file.explained(path, WHAT):
        try:
            with closing(connected(path)) as connection, closing(connection.cursor()) as cursor:
                return emptied(cursor)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            for file in files(path):
                file.unlink()
            return 0


def emptied(cursor: sqlite3.Cursor) -> int:
    """Delete all rows; returns how many probabilities there were."""
    with store_file.transaction(cursor):
        removed = cursor.execute("DELETE FROM scores").rowcount
        cursor.execute("DELETE FROM models")
    with suppress(sqlite3.OperationalError):  # somebody reads: the space is used again later
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return removed


def files(path: Path) -> list[Path]:
    """The file, and what SQLite keeps beside it."""
    return [file for ending in ("", "-wal", "-shm") if (file := Path(f"{path}{ending}")).exists()]
