"""The bench record: one SQLite file beside the run store that says which runs make up a benchmark, and what they are scored by.

The runs themselves, with all events, are ordinary runs of the ordinary store. Golds lie here and never there: nothing that
drives a method opens this file. It holds case texts and golds, so it is private like the store (0600).
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import StoreError, UsageError, nearest
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.store_file import connect, explained, transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS benches (
    bench_id TEXT PRIMARY KEY, created_at TEXT NOT NULL, suite TEXT NOT NULL, status TEXT NOT NULL, body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS bench_runs (
    bench_id TEXT NOT NULL REFERENCES benches(bench_id) ON DELETE CASCADE, place INTEGER NOT NULL, run_id TEXT NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (bench_id, place)
);
CREATE TABLE IF NOT EXISTS bench_cases (
    bench_id TEXT NOT NULL REFERENCES benches(bench_id) ON DELETE CASCADE, place INTEGER NOT NULL, case_id TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (bench_id, place)
);
CREATE TABLE IF NOT EXISTS bench_scores (
    bench_id TEXT NOT NULL REFERENCES benches(bench_id) ON DELETE CASCADE, matcher TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (bench_id, matcher)
);
CREATE TABLE IF NOT EXISTS verdicts (
    judge TEXT NOT NULL, prediction TEXT NOT NULL, gold TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (judge, prediction, gold)
);
PRAGMA user_version = 1;
"""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a benchmark: which arm, model and seed, with what options, over which of the cases."""

    run_id: str
    arm: str
    model: str
    seed: int
    options: Mapping[str, Any]
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchRow:
    bench_id: str
    created_at: str
    suite: str
    status: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A recorded benchmark. `body`: the suite, the data's name and digest, prompts, fingerprints and notes, as JSON."""

    row: BenchRow
    body: Mapping[str, Any]
    runs: tuple[PlannedRun, ...]
    cases: tuple[LabelledCase, ...]


def beside(store: Path | None) -> Path | None:
    """The record's file beside a run store; None with a store in memory."""
    return None if store is None else store.with_name(f"{store.stem}-bench.sqlite")


class Record:
    """An open record; `path` None keeps it in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        with explained(path, "bench record"):
            self._connection = connect(path)
            for setting in ("foreign_keys = ON", "secure_delete = ON", "temp_store = MEMORY"):
                self._connection.execute(f"PRAGMA {setting}")
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def add(
        self, row: BenchRow, body: Mapping[str, Any], runs: Sequence[PlannedRun], cases: Sequence[LabelledCase]
    ) -> None:
        """Write a new benchmark, whole, before anything of it runs."""
        with self._transaction() as cursor:
            cursor.execute(
                "INSERT INTO benches VALUES (?, ?, ?, ?, ?)",
                (row.bench_id, row.created_at, row.suite, row.status, _packed(body)),
            )
            cursor.executemany(
                "INSERT INTO bench_cases VALUES (?, ?, ?, ?)",
                [(row.bench_id, place, case.id, _packed(_case_json(case))) for place, case in enumerate(cases)],
            )
            _add_runs(cursor, row.bench_id, 0, runs)

    def add_runs(self, bench_id: str, runs: Sequence[PlannedRun]) -> None:
        """Add runs whose options were only known later (equal budget)."""
        with self._transaction() as cursor:
            first = cursor.execute("SELECT count(*) FROM bench_runs WHERE bench_id = ?", (bench_id,)).fetchone()[0]
            _add_runs(cursor, bench_id, first, runs)

    def update(self, bench_id: str, *, status: str | None = None, body: Mapping[str, Any] | None = None) -> None:
        with self._transaction() as cursor:
            if status is not None:
                cursor.execute("UPDATE benches SET status = ? WHERE bench_id = ?", (status, bench_id))
            if body is not None:
                cursor.execute("UPDATE benches SET body = ? WHERE bench_id = ?", (_packed(body), bench_id))

    def rows(self) -> tuple[BenchRow, ...]:
        """All benchmarks, the newest first."""
        with explained(self.path, "bench record"):
            found = self._connection.execute(
                "SELECT bench_id, created_at, suite, status FROM benches ORDER BY created_at DESC, bench_id DESC"
            ).fetchall()
        return tuple(BenchRow(*item) for item in found)

    def find(self, name: str) -> str:
        """The id of that name or unique beginning; `last` is the newest. Raises `UsageError` otherwise."""
        ids = [row.bench_id for row in self.rows()]
        if name == "last" and ids:
            return ids[0]
        matches = [item for item in ids if item == name] or [item for item in ids if name and item.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"benchmark `{name}`: {len(matches)} begin with that", "Give more of the id.")
        known = nearest(name, ids[:20]) if ids else "none was run yet"
        raise UsageError(f"no benchmark `{name}`: {known}", "See `ddx-local bench list`.")

    def load(self, bench_id: str) -> Bench:
        """A benchmark with its runs and labelled cases."""
        with explained(self.path, "bench record"):
            row = self._connection.execute("SELECT * FROM benches WHERE bench_id = ?", (bench_id,)).fetchone()
            if row is None:
                raise StoreError(f"benchmark {bench_id} is not in {self.path}")
            runs = self._connection.execute(
                "SELECT run_id, body FROM bench_runs WHERE bench_id = ? ORDER BY place", (bench_id,)
            ).fetchall()
            cases = self._connection.execute(
                "SELECT body FROM bench_cases WHERE bench_id = ? ORDER BY place", (bench_id,)
            ).fetchall()
        planned = [(run_id, json.loads(body)) for run_id, body in runs]
        return Bench(
            BenchRow(*row[:4]),
            _unpacked(row[4]),
            tuple(PlannedRun(run_id, **{**body, "cases": tuple(body["cases"])}) for run_id, body in planned),
            tuple(_case(_unpacked(body)) for (body,) in cases),
        )

    def save_scores(self, bench_id: str, matcher: str, body: Mapping[str, Any]) -> None:
        with self._transaction() as cursor:
            cursor.execute("INSERT OR REPLACE INTO bench_scores VALUES (?, ?, ?)", (bench_id, matcher, _packed(body)))

    def scores(self, bench_id: str) -> dict[str, Any]:
        """Saved scores by matcher, in the order in which they were first saved."""
        with explained(self.path, "bench record"):
            found = self._connection.execute(
                "SELECT matcher, body FROM bench_scores WHERE bench_id = ? ORDER BY rowid", (bench_id,)
            ).fetchall()
        return {matcher: _unpacked(body) for matcher, body in found}

    def verdicts(self, judge: str) -> dict[tuple[str, str], list[Any]]:
        """What a judge said before: (prediction, gold) -> [outcome, probability, again]."""
        with explained(self.path, "bench record"):
            found = self._connection.execute(
                "SELECT prediction, gold, body FROM verdicts WHERE judge = ?", (judge,)
            ).fetchall()
        return {(prediction, gold): json.loads(body) for prediction, gold, body in found}

    def save_verdicts(self, judge: str, verdicts: Mapping[tuple[str, str], Sequence[Any]]) -> None:
        with self._transaction() as cursor:
            cursor.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)",
                [(judge, p, g, json.dumps(list(value))) for (p, g), value in verdicts.items()],
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        with explained(self.path, "bench record"), closing(self._connection.cursor()) as cursor, transaction(cursor):
            yield cursor


def _add_runs(cursor: sqlite3.Cursor, bench_id: str, first: int, runs: Sequence[PlannedRun]) -> None:
    cursor.executemany(
        "INSERT INTO bench_runs VALUES (?, ?, ?, ?)",
        [
            (bench_id, first + place, run.run_id, json.dumps(
                {"arm": run.arm, "model": run.model, "seed": run.seed, "options": dict(run.options), "cases": run.cases}
            ))
            for place, run in enumerate(runs)
        ],
    )  # fmt: skip


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode())


def _unpacked(body: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(body))
    except (zlib.error, ValueError):
        raise StoreError(
            "the bench record holds something that cannot be read", "Restore the file from a backup."
        ) from None


def _case_json(case: LabelledCase) -> dict[str, Any]:
    return {
        "id": case.id, "text": case.case.text, "gold": list(case.gold), "groups": dict(case.groups),
        "weights": dict(case.weights), "severe": sorted(case.severe),
        "evidence": {name: list(quotes) for name, quotes in case.evidence.items()},
    }  # fmt: skip


def _case(body: Mapping[str, Any]) -> LabelledCase:
    evidence = {name: tuple(quotes) for name, quotes in body["evidence"].items()}
    return LabelledCase(
        Case(body["id"], body["text"]), tuple(body["gold"]), evidence, body["groups"], body["weights"],
        frozenset(body["severe"]),
    )  # fmt: skip
