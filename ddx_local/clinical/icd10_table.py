"""The ICD-10-CM table with an index of its names, built once from the installed package at the first question.

It knows codes, their names and parents, and which codes go by a name. It does not know which of several to take.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

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
        names: Code -> its name, with every code there is, extensions included; chapters and blocks are no codes.
        parents: Code -> the code above it; categories have none.
        index: Comparable words of a name -> the codes that go by it.
        texts: Words of the index as text -> the words, for comparing by spelling.
        words: Every word of the index.
    """

    names: Mapping[str, str]
    parents: Mapping[str, str]
    index: Mapping[frozenset[str], tuple[Named, ...]]
    texts: Mapping[str, frozenset[str]]
    words: frozenset[str]

    def code(self, written: str) -> str | None:
        """A code as it is in the table, however written (`i219` is I21.9); None if there is no such code."""
        bare = written.strip().upper()
        if not _CODE.fullmatch(bare):
            return None
        plain = bare.replace(".", "")
        dotted = f"{plain[:3]}.{plain[3:]}" if len(plain) > 3 else plain
        return dotted if dotted in self.names else None

    def ancestors(self, code: str) -> tuple[str, ...]:
        """The codes above a code, the nearest first."""
        found: list[str] = []
        while (parent := self.parents.get(code)) is not None:
            found.append(parent)
            code = parent
        return tuple(found)

    def without_extension(self, code: str) -> str:
        """The code that says the diagnosis: the same, or the one above an extension."""
        while len(code.replace(".", "")) >= _EXTENSION:
            code = self.parents[code]
        return code


@cache
def table() -> Table:
    """The table; it takes about two seconds the first time."""
    import simple_icd_10_cm as cm

    # A category that is a block of its own (B99) is a code too, so that "neither chapter nor block" would be wrong.
    codes = [code for code in cm.get_all_codes(with_dots=True) if cm.is_category_or_subcategory(code)]
    names = {code: cm.get_description(code) for code in codes}
    above = {code: cm.get_parent(code) for code in codes if len(code) > _CATEGORY}
    index: dict[frozenset[str], dict[str, Named]] = {}

    def add(code: str, name: str, how: int) -> None:
        for reading in readings(name):
            _enter(index, Named(code, how, reading))
            if how == DESCRIPTION and (shorter := uncomplicated(reading)):
                _enter(index, Named(code, PLAIN, shorter))

    for code in codes:
        if len(code.replace(".", "")) >= _EXTENSION or code[0] in _CIRCUMSTANCES:
            continue
        add(code, names[code], DESCRIPTION)
        if any(_MANIFESTATION in names[above] for above in (code, code[:_CATEGORY])):
            continue
        for term in cm.get_inclusion_term(code):
            add(code, term, TERM)
        for term in cm.get_includes(code):
            add(code, term, INCLUDED)
    for code, others in _own_names().items():
        for name in others:
            add(code, name, OURS)
    return Table(
        names=names,
        parents=above,
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
