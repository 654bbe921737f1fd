"""The synonyms file, and words brought to its canonical names. It knows one name at a time and compares none.

Single words are mapped first (renal, kidney), then phrases where they stand in order (heart attack), and at last whole
names in any order of their words.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from rapidfuzz.distance import OSA

from ddx_local.clinical.label_qualifiers import opposed
from ddx_local.clinical.label_words import words

GENERIC: Final = frozenset("disease disorder syndrome condition illness diagnosis".split())
"""Heads of a name that may be there or not: Crohn's disease, Crohn's."""

# Canonical names may hold other names (acute MI: acute myocardial infarction), so phrases are replaced more than once.
_MOST_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The synonyms file, read.

    Args:
        word: A word to the canonical word of its group.
        phrase: The words of a name in order to those of the canonical name.
        whole: The core words of a name in any order to those of the canonical name.
        longest: Words of the longest phrase.
        known: Every word of the file: two of them are never a misspelling of each other.
    """

    word: Mapping[str, str]
    phrase: Mapping[tuple[str, ...], tuple[str, ...]]
    whole: Mapping[frozenset[str], frozenset[str]]
    longest: int
    known: frozenset[str]


def groups() -> tuple[tuple[str, ...], ...]:
    """The groups of the synonyms file as written, one member or more each."""
    text = files("ddx_local.clinical").joinpath("synonyms.txt").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return tuple(tuple(line.split(" = ")) for line in lines if line and not line.startswith("#"))


@cache
def lexicon() -> Lexicon:
    """The synonyms file, read once."""
    # DRESS is an abbreviation in capitals only, but `dress syndrome` is a name however it is written.
    spelled = [
        [
            words(form)
            for member in group
            for form in dict.fromkeys((member, member.lower() if " " in member else member))
        ]
        for group in groups()
    ]
    word: dict[str, str] = {}
    for group in spelled:
        # A word stands for its abbreviation, not the other way round.
        single = sorted((member[0] for member in group if len(member) == 1), key=lambda token: len(token) <= 4)
        word.update((other, single[0]) for other in single[1:])
    phrase: dict[tuple[str, ...], tuple[str, ...]] = {}
    targets: dict[frozenset[str], set[frozenset[str]]] = {}
    for group in spelled:
        members = [tuple(word.get(token, token) for token in member) for member in group]
        if len(members) > 1:
            phrase.update((member, members[0]) for member in members)
            for member in members:
                targets.setdefault(core(member), set()).add(core(members[0]))
    # Without its head a name may be that of two groups (Cushing's disease and syndrome): then only the phrase tells.
    whole = {name: min(target) for name, target in targets.items() if len(target) == 1}
    known = frozenset(token for group in spelled for member in group for token in member)
    return Lexicon(word, phrase, whole, max(map(len, phrase)), known)


def core(tokens: Iterable[str]) -> frozenset[str]:
    """The words without generic heads, unless there is nothing else."""
    full = frozenset(tokens)
    return full - GENERIC or full


@lru_cache(maxsize=65536)
def canonical(text: str) -> tuple[str, ...]:
    """The words of a text in order, with every name in it that the lexicon has replaced by its canonical name."""
    have = lexicon()
    tokens = tuple(have.word.get(token, token) for token in words(text))
    for _ in range(_MOST_ROUNDS):
        before, tokens = tokens, _replace(tokens, have)
        if tokens == before:
            break
    return tokens


def key(text: str) -> frozenset[str]:
    """What a name is compared by: the core of its canonical words."""
    own = core(canonical(text))
    return lexicon().whole.get(own, own)


def is_known(text: str) -> bool:
    """Whether the text, in any order of its words, is a name of the lexicon."""
    have = lexicon()
    return core(have.word.get(token, token) for token in words(text)) in have.whole


def _replace(tokens: tuple[str, ...], have: Lexicon) -> tuple[str, ...]:
    out: list[str] = []
    at = 0
    while at < len(tokens):
        for size in range(min(have.longest, len(tokens) - at), 0, -1):
            if (name := have.phrase.get(tokens[at : at + size])) is not None:
                out.extend(name)
                at += size
                break
        else:
            out.append(tokens[at])
            at += 1
    return tuple(out)


def lookalike(a: Set[str], b: Set[str]) -> bool:
    """Whether two names differ in one word each, and these are two words of the lexicon that are easily confused."""
    only_a, only_b = a - b, b - a
    if len(only_a) != 1 or len(only_b) != 1:
        return False
    x, y = min(only_a), min(only_b)
    return {x, y} <= lexicon().known and min(len(x), len(y)) >= 6 and OSA.distance(x, y, score_cutoff=2) <= 2


@lru_cache(maxsize=65536)
def slip(x: str, y: str) -> bool:
    """Whether one of two words is the other one misspelt: long, nearly equal, and not both words of their own.

    One letter (or two neighbours swapped) may differ, two in a word of ten letters that the lexicon has. The first
    letter must agree: other first letters are mostly other words (axillary and maxillary).
    """
    known = (x in lexicon().known) + (y in lexicon().known)
    shorter = min(len(x), len(y))
    if x == y or known == 2 or x[0] != y[0] or not (x + y).isalpha():
        return False
    long = (6, 10) if known else (8, 99)
    allowed = sum(shorter >= least for least in long)
    return 0 < OSA.distance(x, y, score_cutoff=allowed) <= allowed and not opposed(x, y)
