"""Label probabilities that were computed once, by key: shared by runs and processes, in one SQLite file (WAL).

It holds hashes, numbers and the names of models, no clinical text, and knows no engine: who asks makes the key of all that
decides a score. The cache saves time and nothing else: where it cannot be read or written a run goes on without it. Only
damage is an error, because it might give wrong numbers.
"""

import math
import sqlite3
import struct
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ddx_local.errors import StoreError
from ddx_local.score_file import FORGET, WHAT, connected, emptied, explained
from ddx_local.store_file import transaction


class Score(NamedTuple):
    """A label's logprob in nats over `tokens` tokens, and by how many nats the number format may move it."""

    logprob: float
    tokens: int
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelStats:
    """What is kept of one model, and how often a score was there (`hits`) or not (`misses`), in all processes."""

    name: str
    entries: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The cache in numbers; `hits_here` and `misses_here` are of this object alone, `bytes` is the size of the file."""

    entries: int
    bytes: int
    hits: int
    misses: int
    hits_here: int
    misses_here: int
    models: tuple[ModelStats, ...]


class ScoreCache:
    """An open cache. `path` None keeps everything in memory.

    Raises:
        StoreError: The file cannot be used, is damaged, or is another program's.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._hits, self._misses = Counter[str](), Counter[str]()
        self._counted = Counter[str](), Counter[str]()
        self._given_up = False
        with explained(path):
            self._connection = connected(path)

    @classmethod
    def for_run(cls, path: Path | None) -> "ScoreCache":
        """As a run opens it: where the file cannot be written (no space, no permission) in memory, with a warning.

        Raises:
            StoreError: It is damaged, or another program's.
        """
        try:
            return cls(path)
        except StoreError as error:
            if not isinstance(error.__cause__, OSError | sqlite3.OperationalError):
                raise
            _warn(error)
            return cls(None)

    def get_many(self, model: str, keys: Sequence[bytes]) -> dict[bytes, Score]:
        """The scores that are there. Raises `StoreError` where the file is damaged."""
        found: dict[bytes, Score] = {}

        def read(cursor: sqlite3.Cursor) -> None:
            for key in keys:
                row = cursor.execute("SELECT logprob, tokens, noise, checksum FROM scores WHERE key = ?", (key,))
                for values in row:
                    found[key] = self._whole(key, values)

        self._try(read)
        with self._lock:
            self._hits[model] += len(found)
            self._misses[model] += len(keys) - len(found)
        return found

    def put_many(self, model: str, items: Mapping[bytes, Score]) -> None:
        """Keep scores in one transaction. What is there stays as it is; a number that is not finite is not kept.

        Raises:
            StoreError: The file is damaged.
        """
        finite = {key: score for key, score in items.items() if all(map(math.isfinite, score))}

        def write(cursor: sqlite3.Cursor) -> None:
            with transaction(cursor):
                cursor.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (model,))
                (number,) = cursor.execute("SELECT id FROM models WHERE name = ?", (model,)).fetchone()
                rows = [(key, number, *score, _checksum(key, score)) for key, score in finite.items()]
                cursor.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?)", rows)
                self._count(cursor)

        self._try(write)

    def stats(self) -> Stats:
        """The cache in numbers. Raises `StoreError` where the file cannot be read."""
        with self._cursor() as cursor:
            if self._uncounted():
                with transaction(cursor):
                    self._count(cursor)
            rows = cursor.execute(
                "SELECT name, count(key), hits, misses FROM models LEFT JOIN scores ON model = id GROUP BY id ORDER BY name"
            ).fetchall()
            (pages,) = cursor.execute("PRAGMA page_count").fetchone()
            (page,) = cursor.execute("PRAGMA page_size").fetchone()
        models = tuple(ModelStats(*row) for row in rows)
        return Stats(
            entries=sum(item.entries for item in models),
            bytes=pages * page,
            hits=sum(item.hits for item in models),
            misses=sum(item.misses for item in models),
            hits_here=self._hits.total(),
            misses_here=self._misses.total(),
            models=models,
        )

    def clear(self) -> int:
        """Forget all scores and counts; returns how many scores. For a damaged file see `score_file.clear`."""
        with self._cursor() as cursor:
            self._counted = Counter(self._hits), Counter(self._misses)
            return emptied(cursor)

    def close(self) -> None:
        """Write what was counted, and end."""
        if self._uncounted():

            def write(cursor: sqlite3.Cursor) -> None:
                with transaction(cursor):
                    self._count(cursor)

            self._try(write)
        self._connection.close()

    def _uncounted(self) -> bool:
        return self._counted != (self._hits, self._misses)

    def _count(self, cursor: sqlite3.Cursor) -> None:
        """Add to the file what was looked up since the last time."""
        hits, misses = self._counted
        for model in self._hits.keys() | self._misses.keys():
            fresh = (self._hits[model] - hits[model], self._misses[model] - misses[model])
            cursor.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (model,))
            cursor.execute("UPDATE models SET hits = hits + ?, misses = misses + ? WHERE name = ?", (*fresh, model))
        self._counted = Counter(self._hits), Counter(self._misses)

    def _whole(self, key: bytes, values: tuple[Any, ...]) -> Score:
        score = Score(*values[:3])
        if _checksum(key, score) != values[3]:
            raise StoreError(f"the {WHAT} {self.path} is damaged: a number does not fit its checksum", FORGET)
        return score

    def _try(self, work: Callable[[sqlite3.Cursor], None]) -> None:
        """Do a run's work; what fails is left undone, with one warning, and is not tried again. Damage is raised."""
        if self._given_up:
            return
        try:
            with self._cursor() as cursor:
                work(cursor)
        except StoreError as error:
            if not isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            self._given_up = True
            _warn(error)

    @contextmanager
    def _cursor(self) -> Iterator[sqlite3.Cursor]:
        with self._lock, explained(self.path), closing(self._connection.cursor()) as cursor:
            yield cursor


def _checksum(key: bytes, score: Score) -> int:
    """Of a row, so that a bit that flipped on the disk is no probability; -1 where the row holds no numbers."""
    try:
        # SQLite gives -0.0 back as 0.0.
        return zlib.crc32(key + struct.pack(">dqd", score.logprob + 0.0, score.tokens, score.noise + 0.0))
    except (struct.error, TypeError):
        return -1


def _warn(error: StoreError) -> None:
    with suppress(OSError, ValueError):  # standard error may be what is broken
        print(
            f"ddx-local: {error.message}; the run goes on, and what it scores from now on is not kept", file=sys.stderr
        )
