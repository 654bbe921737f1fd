"""The rows of our ICD-10-CM table, from the installed package: codes with names and parents, and which codes go by a name.

It takes seconds, so that `icd10_table` keeps the rows in a file. It does not know which of several codes to take.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from ddx_local.clinical.icd10_names import readings, uncomplicated
from ddx_local.clinical.label_lexicon import key

EXTENSION: Final = 7
"""Characters of a code with an extension (initial encounter ...), which says nothing of the diagnosis."""
CATEGORY: Final = 3
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
class Rows:
    """The table.

    Args:
        codes: Code -> its name and the code above it, empty for a category.
        index: Comparable words of a name -> the codes that go by it.
    """

    codes: Mapping[str, tuple[str, str]]
    index: Mapping[frozenset[str], tuple[Named, ...]]


def rows() -> Rows:
    """All rows, from the installed package."""
    import simple_icd_10_cm as cm  # type: ignore[import-untyped]

    codes: dict[str, tuple[str, str]] = {}
    index: dict[frozenset[str], dict[str, Named]] = {}
    for code in cm.get_all_codes(with_dots=True):
        # A category that is a block of its own (B99) is a code too, so that "neither chapter nor block" would be wrong.
        if not cm.is_category_or_subcategory(code):
            continue
        codes[code] = (str(cm.get_description(code)), str(cm.get_parent(code)) if len(code) > CATEGORY else "")
        if len(code.replace(".", "")) >= EXTENSION or code[0] in _CIRCUMSTANCES:
            continue
        terms, included = cm.get_inclusion_term(code), cm.get_includes(code)
        for name, how in _names(codes[code][0], cm.get_description(code[:CATEGORY]), terms, included):
            _add(index, code, name, how)
    for code, others in _own_names().items():
        for name in others:
            _add(index, code, name, OURS)
    return Rows(codes, {words: tuple(found.values()) for words, found in index.items()})


def _names(name: str, category: str, terms: list[str], included: list[str]) -> Iterator[tuple[str, int]]:
    """The names that the classification gives a code, and how."""
    yield name, DESCRIPTION
    if _MANIFESTATION in name or _MANIFESTATION in category:
        return
    yield from ((term, TERM) for term in terms)
    yield from ((term, INCLUDED) for term in included)


def _add(index: dict[frozenset[str], dict[str, Named]], code: str, name: str, how: int) -> None:
    for reading in readings(name):
        _enter(index, Named(code, how, reading))
        if how == DESCRIPTION and (shorter := uncomplicated(reading)):
            _enter(index, Named(code, PLAIN, shorter))


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
