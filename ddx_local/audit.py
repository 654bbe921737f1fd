"""The audit chain: one record for everything that was done, each carrying the hash of the one before it.

A record says when, who (a key's id, or `local`), what, on which object, how it ended, and counts; it never holds a case, a
prompt, an answer, a name, a key or an error's text. It is kept in a SQLite file beside the run store, apart from it, so that
deleting a run deletes no record. A changed, missing or reordered record breaks the chain at its place; records cut off at
the end show against a head that was noted elsewhere (`verify` prints it).
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ddx_local.errors import StoreError
from ddx_local.store_file import connect, explained, transaction

FIRST = "0" * 64
"""What the first record carries in place of a hash."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (
    sequence INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL,
    outcome TEXT NOT NULL, facts TEXT NOT NULL, before TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS audit_is_append_only_1 BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER IF NOT EXISTS audit_is_append_only_2 BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `facts` are short: model, digests, counts, a request's id."""

    sequence: int
    at: str
    actor: str
    action: str
    object: str
    outcome: str
    facts: Mapping[str, Any]
    before: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: how many records hold, the hash of the last, and the first that does not hold, if any."""

    records: int
    head: str
    broken_at: int | None = None
    reason: str = ""


def beside(store: Path | None) -> Path | None:
    """The audit file of a run store; None for a store in memory."""
    return None if store is None else store.with_name("audit.sqlite")


class Audit:
    """An open audit file; `path` None keeps the chain in memory. Several processes may write to one file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        with explained(path, "audit file"):
            self._connection = connect(path, timeout=10)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)

    def append(self, actor: str, action: str, object_id: str = "", outcome: str = "ok", **facts: Any) -> Record:
        """Add a record; it is in the file when this returns.

        Args:
            actor: A key's id, or `local`.
            action: What was done, such as `chat` or `run.delete`.
            object_id: A run's id, or '': never a case's own name.
            outcome: `ok`, an HTTP status, or a kind of failure.
            facts: Short values, such as counts and digests.

        Raises:
            StoreError: It cannot be written; what was asked for must then not be done.
        """
        with (
            self._lock,
            explained(self.path, "audit file"),
            closing(self._connection.cursor()) as cursor,
            transaction(cursor),
        ):
            last = cursor.execute("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1").fetchone()
            sequence, before = (last[0] + 1, last[1]) if last else (1, FIRST)
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            body = (sequence, at, actor, action, object_id, outcome, json.dumps(facts, sort_keys=True), before)
            record = (*body, _hash(body))
            cursor.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", record)
        return _record(record)

    def records(self, after: int = 0) -> Iterator[Record]:
        """All records behind a sequence number, the oldest first."""
        while True:
            with self._lock, explained(self.path, "audit file"), closing(self._connection.cursor()) as cursor:
                query = "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT 1000"
                rows = cursor.execute(query, (after,)).fetchall()
            if not rows:
                return
            for row in rows:
                try:
                    yield _record(row)
                except ValueError:
                    raise StoreError(f"audit file {self.path}: record {row[0]} is damaged") from None
            after = rows[-1][0]

    def verify(self) -> Verdict:
        """Work the chain out again from its first record."""
        count, before = 0, FIRST
        with self._lock, explained(self.path, "audit file"), closing(self._connection.cursor()) as cursor:
            for row in cursor.execute("SELECT * FROM audit ORDER BY sequence"):
                reason = ""
                if row[0] != count + 1:
                    reason = f"record {count + 1} is missing"
                elif row[7] != before:
                    reason = "it does not carry the hash of the record before it"
                elif row[8] != _hash(row[:8]):
                    reason = "its content is not what was recorded"
                if reason:
                    return Verdict(count, before, count + 1, reason)
                count, before = count + 1, row[8]
        return Verdict(count, before)

    def close(self) -> None:
        self._connection.close()


def _hash(body: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def _record(row: tuple[Any, ...]) -> Record:
    return Record(row[0], row[1], row[2], row[3], row[4], row[5], json.loads(row[6]), row[7], row[8])
