"""The ICD-10-CM table with an index of its names, built once from the installed package at the first question.

It knows codes, their names and parents, and which codes go by a name. It does not know which of several to take.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ddx_local.clinical.icd10_names import readings, uncomplicated
from ddx_local.clinical.label_lexicon import key

_CODE: Final = re.compile(r"[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?")
_EXTENSION: Final = 7
"""Characters of a code with an extension (initial encounter ...), which says nothing of the diagnosis."""
_CATEGORY: Final = 3
_CIRCUMSTANCES: Final = frozenset("VWXY")
"""Chapters of what happened to somebody: no diagnoses."""

OURS, DESCRIPTION, TERM, INCLUDED, PLAIN = range(5)
"""How a code goes by a name, the best first: by our list; its own; one listed under it, or under its category; its own
where it is uncomplicated."""

_MANIFESTATION: Final = "classified elsewhere"
"""In names of what a disease does, which is coded after the disease; what is listed under them is no name of theirs."""


@dataclass(frozen=True, slots=True)
class Named:
    """A code that goes by a name: how (see `DESCRIPTION`), and the name as it was read."""

    code: str
    how: int
    reading: str


@dataclass(frozen=True, slots=True)
class Table:
    """The table.

    Args:
        index: Comparable words of a name -> the codes that go by it.
        texts: Words of the index as text -> the words, for comparing by spelling.
        words: Every word of the index.
    """

    index: Mapping[frozenset[str], tuple[Named, ...]]
    texts: Mapping[str, frozenset[str]]
    words: frozenset[str]

    def code(self, written: str) -> str | None:
        """A code as it is in the classification, however written (`i219` is I21.9); None if there is no such code.

        Chapters and blocks (A00-A09) are no codes.
        """
        bare = written.strip().upper()
        if not _CODE.fullmatch(bare):
            return None
        plain = bare.replace(".", "")
        dotted = f"{plain[:_CATEGORY]}.{plain[_CATEGORY:]}" if len(plain) > _CATEGORY else plain
        return dotted if _classification().is_category_or_subcategory(dotted) else None

    def name(self, code: str) -> str:
        """The classification's own name of a code that is there."""
        return str(_classification().get_description(code))

    def ancestors(self, code: str) -> tuple[str, ...]:
        """The codes above a code, the nearest first, up to the category."""
        found: list[str] = []
        while len(code) > _CATEGORY:
            code = str(_classification().get_parent(code))
            found.append(code)
        return tuple(found)

    def without_extension(self, code: str) -> str:
        """The code that says the diagnosis: the same, or the one above an extension."""
        above = (code, *self.ancestors(code))
        return next(item for item in above if len(item.replace(".", "")) < _EXTENSION)


def _classification() -> Any:
    import simple_icd_10_cm

    return simple_icd_10_cm


@cache
def table() -> Table:
    """The table; it takes about two seconds the first time."""
    cm = _classification()
    index: dict[frozenset[str], dict[str, Named]] = {}

    def add(code: str, name: str, how: int) -> None:
        for reading in readings(name):
            _enter(index, Named(code, how, reading))
            if how == DESCRIPTION and (shorter := uncomplicated(reading)):
                _enter(index, Named(code, PLAIN, shorter))

    for code in cm.get_all_codes(with_dots=True):
        # A category that is a block of its own (B99) is a code too, so that "neither chapter nor block" would be wrong.
        if (
            len(code.replace(".", "")) >= _EXTENSION
            or code[0] in _CIRCUMSTANCES
            or not cm.is_category_or_subcategory(code)
        ):
            continue
        name = cm.get_description(code)
        add(code, name, DESCRIPTION)
        if _MANIFESTATION in name or _MANIFESTATION in cm.get_description(code[:_CATEGORY]):
            continue
        for term in cm.get_inclusion_term(code):
            add(code, term, TERM)
        for term in cm.get_includes(code):
            add(code, term, INCLUDED)
    for code, others in _own_names().items():
        for name in others:
            add(code, name, OURS)
    return Table(
        index={words: tuple(found.values()) for words, found in index.items()},
        texts={" ".join(sorted(words)): words for words in index},
        words=frozenset(word for words in index for word in words),
    )


def _enter(index: dict[frozenset[str], dict[str, Named]], named: Named) -> None:
    words = key(named.reading)
    if words:
        found = index.setdefault(words, {})
        if named.code not in found or named.how < found[named.code].how:
            found[named.code] = named


def _own_names() -> Mapping[str, tuple[str, ...]]:
    """Code -> names in use that the table lacks (icd10_names.txt)."""
    text = files("ddx_local.clinical").joinpath("icd10_names.txt").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    rows = [line.split(" = ") for line in lines if line and not line.startswith("#")]
    return {code: tuple(names) for code, *names in rows}
