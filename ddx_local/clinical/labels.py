"""Do two labels name the same diagnosis? One answer for consensus, voting, merging and metrics.

Deterministic and strict: another word order, spelling, number, alias or a synonym of our own file (synonyms.txt) is the
same diagnosis; a broader, narrower or otherwise qualified one is not. It knows no hierarchy and no model; what looks
alike but must not be merged is in `label_qualifiers`, how one word can be written is in `label_words`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from rapidfuzz.distance import OSA

from ddx_local.clinical.label_qualifiers import NEGATIONS, QUALIFIERS, clash, opposed
from ddx_local.clinical.label_words import plain, words

_GENERIC: Final = frozenset("disease disorder syndrome condition illness diagnosis mellitus".split())
_BRACKET: Final = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]?")
_ALSO: Final = re.compile(r"\b(?:a\.?k\.?a\.?|also (?:known as|called|termed)|i\.e\.|formerly(?: known as)?)[\s,:]*|\s[/=|]\s", re.I)
_LEAD: Final = re.compile(
    r"^[\s*#>_-]*(?:\(?\d{1,2}[.)]\s+)?[\s*_]*(?:(?:final|primary|principal|leading|most likely|working|main)\s+)?"
    r"(?:diagnos[ie]s\s*:)?", re.I
)  # fmt: skip
_NOT_ALIAS: Final = re.compile(
    r"\s*(?:e\.?g\b|such as|includ|for example|with\b|without|due|secondary|of\b|in\b|on\b|to\b|from\b|or\b|vs\b|versus|"
    r"likely|most likely|possibl|probabl|suspect|presum|caused|associated|related|less likely|post\b|after\b|no\b|not\b)", re.I
)  # fmt: skip
_ADJECTIVE: Final = re.compile(r"(?:al|ic|ous|ive|ary|ent|ant|ar|ed|able|ible|oid|ing|type|stage|grade|phase|form|variant|subtype)$")


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The synonyms file: single words first, then phrases in order, then whole names in any order."""

    word: Mapping[str, str]
    phrase: Mapping[tuple[str, ...], tuple[str, ...]]
    whole: Mapping[frozenset[str], frozenset[str]]
    longest: int
    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Forms:
    """What a label can be compared by.

    Args:
        everything: All its words.
        strong: Names of the diagnosis, each as a set of words.
        weak: Abbreviations in brackets; they count only against a name of the other label.
    """

    everything: frozenset[str]
    strong: tuple[frozenset[str], ...]
    weak: frozenset[frozenset[str]]
    solid: str


@cache
def _lexicon() -> _Lexicon:
    text = files("ddx_local.clinical").joinpath("synonyms.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    groups = [[words(member) for member in line.split(" = ")] for line in lines]
    word: dict[str, str] = {}
    for group in groups:
        single = [member[0] for member in group if len(member) == 1]
        word.update((other, single[0]) for other in single[1:])
    phrase: dict[tuple[str, ...], tuple[str, ...]] = {}
    whole: dict[frozenset[str], frozenset[str]] = {}
    for group in groups:
        members = [tuple(word.get(token, token) for token in member) for member in group]
        if len(members) > 1:
            phrase.update((member, members[0]) for member in members)
            whole.update((_core(member), _core(members[0])) for member in members)
    known = frozenset(token for group in groups for member in group for token in member)
    return _Lexicon(word, phrase, whole, max(map(len, phrase)), known)


def _core(tokens: Iterable[str]) -> frozenset[str]:
    full = frozenset(tokens)
    return full - _GENERIC or full


def _canonical(tokens: tuple[str, ...]) -> tuple[str, ...]:
    lexicon = _lexicon()
    tokens = tuple(lexicon.word.get(token, token) for token in tokens)
    for _ in range(4):
        found = _replace(tokens, lexicon)
        if found == tokens:
            break
        tokens = found
    return tokens


def _replace(tokens: tuple[str, ...], lexicon: _Lexicon) -> tuple[str, ...]:
    out: list[str] = []
    at = 0
    while at < len(tokens):
        for size in range(min(lexicon.longest, len(tokens) - at), 0, -1):
            if (name := lexicon.phrase.get(tokens[at : at + size])) is not None:
                out.extend(name)
                at += size
                break
        else:
            out.append(tokens[at])
            at += 1
    return tuple(out)


def _key(text: str) -> frozenset[str]:
    core = _core(_canonical(words(text)))
    return _lexicon().whole.get(core, core)


def _is_known(text: str) -> bool:
    return _core(_lexicon().word.get(token, token) for token in words(text)) in _lexicon().whole


def _abbreviates(short: str, long: str) -> bool:
    """Whether the one word `short` is made of initials (and maybe inner letters) of `long`."""
    short = plain(short).strip().replace(".", "").replace("-", "")
    initials = "".join(word[0] for word in re.findall(r"\w+", plain(long)))
    if not short.isalnum() or len(short) > 6 or not initials:
        return False
    letters = iter(plain(long).replace(" ", ""))
    return short[0] == initials[0] and all(char in letters for char in short)


def _qualifies(text: str) -> bool:
    """Whether a bracket narrows the name down instead of giving another one."""
    if _is_known(text):
        return False
    tokens = words(text)
    return (
        not tokens
        or any(token in QUALIFIERS or token in NEGATIONS or len(token) == 1 or token.isdigit() for token in tokens)
        or _NOT_ALIAS.match(text) is not None
        or (_ADJECTIVE.search(tokens[-1]) is not None and not text.isupper())
    )


@lru_cache(maxsize=65536)
def _forms(label: str) -> _Forms:
    label = _LEAD.sub("", label, count=1)
    strong: list[frozenset[str]] = []
    weak: set[frozenset[str]] = set()
    brackets = [text for text in _BRACKET.findall(label) if not _qualifies(text)]
    base = _BRACKET.sub(lambda match: f" {match[1]} " if match[1] not in brackets else " ", label)
    for name in _alternatives(base):
        shorts = [text for text in brackets if _abbreviates(name, text)]
        (weak.add if shorts else strong.append)(_key(name))
    for text in brackets:
        for name in _alternatives(text):
            key = _key(name)
            short = _abbreviates(name, base) or (name.strip().isupper() and len(name.strip()) < 7)
            if not short:
                strong.append(key)
            elif not _is_known(name) or key == strong[:1]:
                weak.add(key)
    everything = _key(_BRACKET.sub(r" \1 ", label))
    strong.append(everything)
    solid = "".join(token for token in _canonical(words(base)) if token not in _GENERIC)
    return _Forms(everything, tuple(dict.fromkeys(strong)), frozenset(weak), solid)


def _alternatives(text: str) -> list[str]:
    """The names that one text gives: of `A / B`, `A aka B` and `x A/B y` both, of contrary ones only the whole."""
    parts = [part for part in _ALSO.split(text) if words(part)]
    if len(parts) > 1 and not any(_partial(part) for part in parts):
        return [name for part in parts for name in _alternatives(part)]
    tight = re.fullmatch(r"(.*?)([^\s/]+)/([^\s/]+)(.*)", text, re.S)
    if tight is None:
        return [text]
    before, left, right, after = tight.groups()
    if _partial(left) or _partial(right) or clash(_key(left), _key(right)):
        return [text]
    if (before.strip() and after.strip()) or _is_known(before + left) or _is_known(right + after):
        return [before + left, right + after]
    return [before + left + after, before + right + after]


def _partial(text: str) -> bool:
    tokens = words(text)
    return not tokens or all(token in QUALIFIERS or len(token) == 1 or token.isdigit() or token in _GENERIC for token in tokens)


def normalise(label: str) -> str:
    """The normal form: canonical words in alphabetical order, one space apart, without aliases in brackets."""
    forms = _forms(label)
    return " ".join(sorted(forms.strong[0])) or plain(label).strip()


def same(a: str, b: str) -> bool:
    """Whether two labels name the same diagnosis. Symmetric and reflexive.

    Args:
        a: A diagnosis as a model, a clinician or a data set writes it.
        b: Another one.
    """
    if a == b:
        return True
    return _same(a, b) if a < b else _same(b, a)


@lru_cache(maxsize=65536)
def _same(a: str, b: str) -> bool:
    one, two = _forms(a), _forms(b)
    if not one.everything or not two.everything:
        return plain(a).strip() == plain(b).strip()
    left, right = set(one.strong), set(two.strong)
    found = (
        one.solid == two.solid
        or bool(left & right or left & two.weak or right & one.weak)
        or any(_misspelt(x, y) for x in left for y in right)
    )
    return found and not clash(one.everything, two.everything)


def _misspelt(a: frozenset[str], b: frozenset[str]) -> bool:
    """Whether two names differ in one long word by a slip of the pen."""
    only_a, only_b = a - b, b - a
    if len(only_a) != 1 or len(only_b) != 1:
        return False
    (x,), (y,) = only_a, only_b
    return slip(x, y)


@lru_cache(maxsize=65536)
def slip(x: str, y: str) -> bool:
    """Whether one of two words is the other one misspelt: long, nearly equal, and not both words of their own."""
    known = (x in _lexicon().known) + (y in _lexicon().known)
    shorter = min(len(x), len(y))
    if shorter < 6 or x[0] != y[0] or known == 2 or opposed(x, y):
        return False
    allowed = 2 if shorter >= 10 and known else 1 if known or shorter >= 8 else 0
    return OSA.distance(x, y, score_cutoff=allowed) <= allowed


def conflicting(a: str, b: str) -> bool:
    """Whether two labels differ in a qualifier that makes them different diagnoses, however similar they look.

    Args:
        a: A diagnosis.
        b: Another one. Labels that are just different words don't conflict.
    """
    return not same(a, b) and clash(_forms(a).everything, _forms(b).everything)


def merge(labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Groups of equal labels.

    Returns:
        The indexes of each group, ascending, groups in order of first appearance. A label joins a group if it equals any
        member of it, so that an alias in brackets joins its two names.
    """
    groups: list[list[int]] = []
    for index, label in enumerate(labels):
        hits = [group for group in groups if any(same(label, labels[member]) for member in group)]
        if not hits:
            groups.append([index])
            continue
        hits[0].extend(member for group in hits[1:] for member in group)
        hits[0].append(index)
        groups = [group for group in groups if all(group is not other for other in hits[1:])]
    return tuple(tuple(sorted(group)) for group in groups)


def mentions(text: str, label: str) -> bool:
    """Whether a model's text affirms the diagnosis; a first rule, to be replaced."""
    return bool(_key(label)) and _key(label) <= _key(text) and not _key(text) & NEGATIONS
