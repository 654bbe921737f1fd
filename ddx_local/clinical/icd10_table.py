"""The ICD-10-CM table with an index of its names: made once (seconds), kept in a file of the user's cache folder, then read from it.

The file holds the public classification and nothing else. It is made anew where the classification, our names or the way in
which names are read have changed; where it is not there or damaged, the table is made in memory. It knows codes, their names and
parents, and which codes go by a name. It does not know which of several to take.
"""

import hashlib
import json
import os
import re
import sqlite3
import tempfile
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache, cached_property
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Final

from ddx_local.clinical.icd10_rows import CATEGORY, EXTENSION, Named, Rows, rows

_CODE: Final = re.compile(r"[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?")
_SOURCES: Final = ("icd10_", "label", "synonyms")
"""Files of this folder that decide what is in the table."""


class Table:
    """The table, over a database that `_write` made."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def code(self, written: str) -> str | None:
        """A code as it is in the classification, however written (`i219` is I21.9); None if there is no such code.

        Chapters and blocks (A00-A09) are no codes.
        """
        bare = written.strip().upper()
        if not _CODE.fullmatch(bare):
            return None
        plain = bare.replace(".", "")
        dotted = f"{plain[:CATEGORY]}.{plain[CATEGORY:]}" if len(plain) > CATEGORY else plain
        return dotted if self._row("SELECT code FROM codes WHERE code = ?", dotted) else None

    def name(self, code: str) -> str:
        """The classification's own name of a code that is there."""
        return self._known(code)[0]

    def ancestors(self, code: str) -> tuple[str, ...]:
        """The codes above a code, the nearest first, up to the category."""
        found: list[str] = []
        while above := self._known(code)[1]:
            found.append(above)
            code = above
        return tuple(found)

    def without_extension(self, code: str) -> str:
        """The code that says the diagnosis: the same, or the one above an extension."""
        above = (code, *self.ancestors(code))
        return next(item for item in above if len(item.replace(".", "")) < EXTENSION)

    def named(self, words: frozenset[str]) -> tuple[Named, ...]:
        """The codes that go by a name with these comparable words; none where there is no such name."""
        row = self._row("SELECT hits FROM names WHERE words = ?", " ".join(sorted(words)))
        return tuple(Named(*hit) for hit in json.loads(row[0])) if row else ()

    @cached_property
    def texts(self) -> Mapping[str, frozenset[str]]:
        """Words of all names as text -> the words, for comparing by spelling."""
        with self._lock:
            found = self._connection.execute("SELECT words FROM names").fetchall()
        return {text: frozenset(text.split(" ")) for (text,) in found}

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of a name."""
        return frozenset().union(*self.texts.values())

    def save(self, path: Path) -> None:
        """Write the file whole or not at all; a process that does the same meanwhile writes the same. Raises `OSError`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        os.close(handle)
        try:
            with self._lock, closing(sqlite3.connect(name)) as target:
                self._connection.backup(target)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _known(self, code: str) -> tuple[str, str]:
        row = self._row("SELECT name, above FROM codes WHERE code = ?", code)
        if row is None:
            raise KeyError(code)
        return row[0], row[1]

    def _row(self, query: str, value: str) -> tuple[str, ...] | None:
        with self._lock:
            found: tuple[str, ...] | None = self._connection.execute(query, (value,)).fetchone()
        return found


@cache
def table() -> Table:
    """The table; it takes seconds where it has to be made. It writes nothing: `keep` does."""
    path = _path()
    with suppress(sqlite3.Error, OSError):
        if path.is_file():
            return Table(_opened(path))
    return Table(_write(sqlite3.connect(":memory:", check_same_thread=False), rows()))


@cache
def keep() -> None:
    """Keep the table in its file, where it is not there yet and can be written."""
    path = _path()
    with suppress(sqlite3.Error, OSError):
        if not path.is_file():
            table().save(path)


def _path() -> Path:
    return _folder() / f"icd10cm-{_digest()[:16]}.sqlite"


def _folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("ddx-local")


def _opened(path: Path) -> sqlite3.Connection:
    """The file, read only; raises `sqlite3.Error` where it is damaged."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    connection.execute("SELECT name FROM codes LIMIT 1").fetchone()
    connection.execute("SELECT hits FROM names LIMIT 1").fetchone()
    return connection


def _write(connection: sqlite3.Connection, made: Rows) -> sqlite3.Connection:
    with connection:
        connection.execute("CREATE TABLE codes (code TEXT PRIMARY KEY, name TEXT, above TEXT) WITHOUT ROWID")
        connection.execute("CREATE TABLE names (words TEXT PRIMARY KEY, hits TEXT) WITHOUT ROWID")
        connection.executemany(
            "INSERT INTO codes VALUES (?, ?, ?)", ((code, name, above) for code, (name, above) in made.codes.items())
        )
        connection.executemany(
            "INSERT INTO names VALUES (?, ?)",
            (
                (" ".join(sorted(words)), json.dumps([[hit.code, hit.how, hit.reading] for hit in hits]))
                for words, hits in made.index.items()
            ),
        )
    return connection


def _digest() -> str:
    """Of everything that decides what is in the table."""
    whole = hashlib.sha256(version("simple-icd-10-cm").encode())
    for file in sorted(files("ddx_local.clinical").iterdir(), key=lambda item: item.name):
        if file.name.startswith(_SOURCES) and file.is_file():
            whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()
