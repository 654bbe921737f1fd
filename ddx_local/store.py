"""The run store: one SQLite file (WAL) that holds runs, their events, and each text once under its sha256.

Events are appended in a transaction of their own before anything depends on them, so that a run killed at any moment loses
no finished call. A killed process loses nothing; a power cut may lose the last moments, never the file. The file is 0600,
and its folder 0700 where it is made here: it holds clinical texts.
"""

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ddx_local.errors import StoreError, UsageError, nearest
from ddx_local.events import Event, RunFinished, RunStarted, from_json, sha256, to_json
from ddx_local.store_file import claimed, connect, explained, transaction

VERSION = 1
"""Of the tables; a file of a later one is refused."""

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, created_at TEXT NOT NULL, method TEXT NOT NULL, model TEXT NOT NULL,
    cases INTEGER NOT NULL, status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS events (
    run_id TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE, sequence INTEGER NOT NULL, case_id TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (run_id, sequence)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_of_case ON events (run_id, case_id, sequence);
CREATE TABLE IF NOT EXISTS texts (
    run_id TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE, address TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (run_id, address)
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
COMMIT;
"""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the history. `status`: running (or killed), finished, cancelled."""

    run_id: str
    created_at: str
    method: str
    model: str
    cases: int
    status: str


class Store:
    """An open store. `path` None keeps everything in memory (`--no-store`)."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        with explained(path):
            self._connection = connect(path, self._is_made)
            # What SQLite sorts or rewrites for a moment stays in memory: no clinical text in a folder for temporary files.
            for setting in ("temp_store = MEMORY", "synchronous = NORMAL", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {setting}")
            self._connection.execute("PRAGMA secure_delete = ON")
            if not self._is_made(self._connection):
                self._connection.executescript(_SCHEMA)

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Whether our tables are there; raises `StoreError` for another program's file, or a later version's."""
        # Tables before the version: another process may be making both now, in one transaction.
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if tables and not {"runs", "events", "texts"} <= tables:
            raise StoreError(f"{self.path} is a database, but no run store", "Give another --store.")
        if found > VERSION:
            raise StoreError(
                f"the run store {self.path} was made by a later version of ddx-local (tables {found}, here {VERSION})",
                "Use that version, or another --store.",
            )
        return found == VERSION

    def append(self, run_id: str, events: Sequence[Event], texts: Sequence[str] = ()) -> None:
        """Add events, and the texts that they refer to, in one transaction."""
        with self._transaction() as cursor:
            row = cursor.execute("SELECT max(sequence) FROM events WHERE run_id = ?", (run_id,)).fetchone()
            sequence = (row[0] or 0) + 1
            for event in events:
                if isinstance(event, RunStarted):
                    cursor.execute(
                        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, 'running')",
                        (run_id, event.at, event.method, event.model, len(event.cases)),
                    )
                elif isinstance(event, RunFinished):
                    cursor.execute("UPDATE runs SET status = ? WHERE run_id = ?", (event.status, run_id))
            cursor.executemany(
                "INSERT OR IGNORE INTO texts VALUES (?, ?, ?)",
                [(run_id, sha256(text), zlib.compress(text.encode(errors="surrogatepass"))) for text in texts],
            )
            cursor.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?)",
                [
                    (run_id, sequence + offset, event.case_id, zlib.compress(json.dumps(to_json(event)).encode()))
                    for offset, event in enumerate(events)
                ],
            )

    def events(self, run_id: str, case_id: str | None = None) -> tuple[Event, ...]:
        """The events of a run, or of one case of it, in the order in which they happened."""
        query, values = "SELECT body FROM events WHERE run_id = ?", [run_id]
        if case_id is not None:
            query, values = query + " AND case_id = ?", [run_id, case_id]
        with self._reading() as cursor:
            rows = cursor.execute(query + " ORDER BY sequence", values).fetchall()
        return tuple(_event(run_id, row[0]) for row in rows)

    def text(self, run_id: str, address: str) -> str:
        """A text by its sha256; the empty address is the empty text. Raises `StoreError` where it is not there."""
        return self.texts(run_id, [address])[address]

    def texts(self, run_id: str, addresses: Sequence[str]) -> Mapping[str, str]:
        """Several texts by their addresses. Raises `StoreError` where one is not there or no longer what was stored."""
        found = {"": ""}
        with self._reading() as cursor:
            for address in addresses:
                if address in found:
                    continue
                row = cursor.execute(
                    "SELECT body FROM texts WHERE run_id = ? AND address = ?", (run_id, address)
                ).fetchone()
                if row is None:
                    raise StoreError(f"run {run_id}: the text {address[:12]} is not in the store")
                found[address] = _text(run_id, address, row[0])
        return found

    def all_texts(self, run_id: str) -> Iterator[tuple[str, str]]:
        """All texts of a run with their addresses."""
        with self._reading() as cursor:
            rows = cursor.execute("SELECT address, body FROM texts WHERE run_id = ?", (run_id,)).fetchall()
        return ((address, _text(run_id, address, body)) for address, body in rows)

    def runs(self) -> tuple[RunRow, ...]:
        """All runs, the newest first."""
        with self._reading() as cursor:
            rows = cursor.execute("SELECT * FROM runs ORDER BY created_at DESC, run_id DESC").fetchall()
        return tuple(RunRow(*row) for row in rows)

    def ended(self, run_id: str) -> tuple[int, int]:
        """How many cases of a run are finished, and how many failed, as of its last end; (0, 0) before that."""
        ends = [event for event in self.events(run_id, "") if isinstance(event, RunFinished)]
        return (ends[-1].finished, ends[-1].failed) if ends else (0, 0)

    def find(self, name: str) -> RunRow:
        """The run of that id or unique beginning of an id; `last` is the newest. Raises `UsageError` otherwise."""
        rows = self.runs()
        if name == "last" and rows:
            return rows[0]
        matches = [row for row in rows if row.run_id == name]
        if not matches and name:
            matches = [row for row in rows if row.run_id.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"run `{name}`: {len(matches)} runs begin with that", "Give more of the id.")
        known = nearest(name, [row.run_id for row in rows][:5]) if rows else "the store is empty"
        raise UsageError(f"no run `{name}`: {known}", "See `ddx-local runs list`.")

    def remove(self, run_id: str) -> None:
        """Delete a run with its events and texts, so that no trace of them is left in the files.

        Raises:
            StoreError: Another process works on the run, or reads the store, so that traces would be left.
        """
        with self.claim(run_id), self._transaction() as cursor:
            cursor.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        self._clear_traces(f"run {run_id} is")

    def remove_all(self, run_ids: Sequence[str]) -> tuple[str, ...]:
        """Delete several runs as `remove` does, clearing the files once; returns those that were deleted.

        A run that another process works on now is left.

        Raises:
            StoreError: Another process reads the store, so that traces would be left.
        """
        gone = []
        for run_id in run_ids:
            with ExitStack() as held:
                try:
                    held.enter_context(self.claim(run_id))
                except StoreError:
                    continue
                with self._transaction() as cursor:
                    cursor.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
                gone.append(run_id)
        if gone:
            self._clear_traces(f"{len(gone)} runs are")
        return tuple(gone)

    def _clear_traces(self, what: str) -> None:
        if self.path is None:
            return
        with self._reading() as cursor:
            try:
                # secure_delete overwrites what is deleted, not what was left behind when a cell moved to another page before.
                cursor.execute("VACUUM")
                (busy, _, _) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                reason = "another process reads it" if busy else ""
            except sqlite3.Error as error:
                reason = str(error)
        if reason:
            raise StoreError(
                f"{what} deleted, but traces of it are left in {self.path} or its -wal file: {reason}",
                "End what else uses the store and delete any other run: that clears both files.",
            )

    @contextmanager
    def claim(self, run_id: str) -> Iterator[None]:
        """Hold a run, so that no other process works on it too. Raises `StoreError` where another one holds it."""
        if self.path is None:
            yield
            return
        with claimed(self.path, run_id):
            yield

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        with self._reading() as cursor, transaction(cursor):
            yield cursor

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        with self._lock, explained(self.path), closing(self._connection.cursor()) as cursor:
            yield cursor


def _event(run_id: str, body: bytes) -> Event:
    try:
        return from_json(json.loads(zlib.decompress(body)))
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"run {run_id}: an event in the store is damaged ({type(error).__name__})") from None


def _text(run_id: str, address: str, body: bytes) -> str:
    try:
        text = zlib.decompress(body).decode(errors="surrogatepass")
    except (zlib.error, ValueError):
        text = ""
    if sha256(text) != address:
        raise StoreError(f"run {run_id}: the text {address[:12]} is damaged or was changed since it was stored")
    return text
