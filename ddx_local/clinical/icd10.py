"""ICD-10-CM, offline: the code of a diagnosis' name, the codes close to it, and whether a given code is real and fits.

A code fits a name if the table's name of it, or another that the table lists under it, means the same diagnosis
(`labels`). Nothing is guessed: a name that two unrelated codes go by, or none, has no code.

Source: ICD-10-CM of April 2026, from the package simple-icd-10-cm.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rapidfuzz import fuzz, process

from ddx_local.clinical import labels
from ddx_local.clinical.icd10_rows import Named
from ddx_local.clinical.icd10_table import Table, keep, table
from ddx_local.clinical.label_forms import forms
from ddx_local.clinical.label_lexicon import key
from ddx_local.flow import Codes, Similarity

Alike = Callable[[Similarity], Awaitable[Sequence[float]]]

SHORTLIST = 24
"""Names that are compared by spelling, and by meaning where there is a model, for one diagnosis."""

LEAST_ALIKE = 55
"""Spelling under which a name is not close at all, in [0, 100]."""

SHORTEST_SLIP = 9
"""Letters of the shortest word that may be misspelt: shorter ones are too easily another word (IgM, IgE)."""


@dataclass(frozen=True, slots=True)
class Code:
    """A code that is in the table, with the table's name of it."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked code: what stands now (None where nothing fits), and what was wrong (empty where nothing was)."""

    code: Code | None
    fault: str = ""


def find(code: str) -> Code | None:
    """The code of the table, however written (`i219`); None if there is no such code."""
    known = table().code(code)
    return None if known is None else Code(known, table().name(known))


def parents(code: str) -> tuple[Code, ...]:
    """The codes above a code of the table, the nearest first, up to the category."""
    return tuple(Code(above, table().name(above)) for above in table().ancestors(code))


def coded(diagnosis: str) -> Code | None:
    """The code of a diagnosis; None where the table knows no such name, or knows it for unrelated codes."""
    fitting = _fitting(diagnosis)
    return Code(fitting[0], table().name(fitting[0])) if fitting else None


def fits(code: str, diagnosis: str) -> bool:
    """Whether a code of the table says what the diagnosis says; an extension (initial encounter ...) says nothing of it."""
    known = table().code(code)
    return known is not None and table().without_extension(known) in _fitting(diagnosis)


def check(code: str, diagnosis: str) -> Checked:
    """A code that somebody gave for a diagnosis: kept if it is real and fits, else replaced from the name, and said so."""
    known = find(code)
    if known is not None and fits(known.code, diagnosis):
        return Checked(known)
    why = "there is no such code" if known is None else "it does not fit the name"
    return Checked(coded(diagnosis), why)


def closest(diagnosis: str, most: int) -> tuple[Code, ...]:
    """The codes whose names are spelled most like a diagnosis, without regard to whether they fit; the best first."""
    return tuple(Code(code, table().name(code)) for code in _near(diagnosis)[:most])


class Icd10:
    """Answers `Codes` consultations: for each name lists of [code, name, fits], those that fit first.

    Args:
        alike: Compares in meaning, where an embedding model is there; it orders the codes that do not fit.
        keep: Whether the table may be kept in a file, so that the next process need not make it.
    """

    def __init__(self, alike: Alike | None = None, *, keep: bool = False) -> None:
        self.alike = alike
        self.keep = keep
        self._lock = asyncio.Lock()

    async def __call__(self, about: Codes) -> list[list[list[str | bool]]]:
        async with self._lock:  # many cases may end at once, and the classification is to be read once
            await asyncio.to_thread(table)
        if self.keep:
            await asyncio.to_thread(keep)
        return [await self._one(name, about.most, about.fitting_only) for name in about.names]

    async def _one(self, name: str, most: int, fitting_only: bool) -> list[list[str | bool]]:
        fitting = await asyncio.to_thread(_fitting, name)
        near: list[str] = []
        if len(fitting) < most and not fitting_only:
            near = [code for code in await asyncio.to_thread(_near, name) if code not in fitting]
        name_of = table().name
        if self.alike is not None and near:
            scores = await self.alike(Similarity(tuple((name, name_of(code)) for code in near)))
            near = [near[place] for place in sorted(range(len(near)), key=lambda place: -scores[place])]
        return [[code, name_of(code), code in fitting] for code in [*fitting, *near][:most]]


@lru_cache(maxsize=4096)
def _fitting(diagnosis: str) -> tuple[str, ...]:
    """The codes that fit, the one to take first."""
    have = table()
    names = forms(diagnosis).names
    by_name = [list(hits) for words in sorted(names, key=sorted) if (hits := have.named(words))]
    if not by_name:
        by_name = [hits for hits in (_misspelt(diagnosis, have),) if hits]
    elif not have.named(forms(diagnosis).first) and not diagnosis.rstrip().endswith((")", "]")):
        return ()  # a name in brackets that is not the whole: `infectious diarrhea (gastroenteritis), bacterial`
    sound = [[named for named in hits if not labels.conflicting(diagnosis, named.reading)] for hits in by_name]
    if not sound or not all(sound):
        return ()
    chosen = {_chosen(hits, have) for hits in sound}
    first = None if None in chosen else _related({code for code in chosen if code}, have)
    if first is None:
        return ()
    return first, *_also({named.code for hits in sound for named in hits} - {first}, first, have)


def _misspelt(diagnosis: str, have: Table) -> list[Named]:
    """The codes by a name that differs from the diagnosis by a slip of the pen; a word that the table has is no slip."""
    near = [have.texts[text] for text, _ in _spelled_like(diagnosis, have)]
    own = key(diagnosis)
    slips = [
        words
        for words in near
        if not (own - words) & have.words and all(len(word) >= SHORTEST_SLIP for word in own - words)
    ]
    return [named for words in slips for named in have.named(words) if labels.same(diagnosis, named.reading)]


def _chosen(hits: Sequence[Named], have: Table) -> str | None:
    """Of codes that go by one name, the one to take among those that do so the most directly."""
    best = min(named.how for named in hits)
    return _related({named.code for named in hits if named.how == best}, have)


def _related(codes: set[str], have: Table) -> str | None:
    """Of several codes the last of a line of descent, or the one above all others; None where they are unrelated."""
    line = sorted(codes, key=lambda code: (len(have.ancestors(code)), code))
    if all(above in have.ancestors(below) for above, below in pairwise(line)):
        return line[-1]
    top = line[0]
    return top if all(top in have.ancestors(code) for code in line[1:]) else None


def _also(codes: set[str], first: str, have: Table) -> tuple[str, ...]:
    """The others that are above or below the chosen one: as true, but broader or narrower."""
    return tuple(sorted(code for code in codes if first in have.ancestors(code) or code in have.ancestors(first)))


def _near(diagnosis: str) -> list[str]:
    """The codes whose names are spelled alike, the best first, each once."""
    have = table()
    found: dict[str, None] = {}
    for text, _ in _spelled_like(diagnosis, have):
        named = sorted(have.named(have.texts[text]), key=_most_direct)
        found[named[0].code] = None
    return list(found)


def _most_direct(named: Named) -> tuple[int, str]:
    return named.how, named.code


def _spelled_like(diagnosis: str, have: Table) -> list[tuple[str, float]]:
    """Texts of the index that are spelled alike, with how much in [0, 100], the best first."""
    text = " ".join(sorted(key(diagnosis)))
    found = process.extract(
        text, have.texts.keys(), scorer=fuzz.token_sort_ratio, limit=SHORTLIST, score_cutoff=LEAST_ALIKE
    )
    return [(match, score) for match, score, _ in found]
