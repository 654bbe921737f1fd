"""The names that one label gives: `acute kidney injury (AKI)` gives two, `type 2 (adult-onset) diabetes` one.

It knows brackets, slashes, `also known as` and headings. It compares no labels.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ddx_local.clinical.label_lexicon import GENERIC, canonical, core, is_known, key
from ddx_local.clinical.label_qualifiers import NEGATIONS, QUALIFIERS, clash
from ddx_local.clinical.label_words import plain, words

_BRACKET: Final = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]?")
_ALSO: Final = re.compile(
    r"\b(?:a\.?k\.?a\.?(?!\w)|also (?:known as|called|termed)|i\.e\.|formerly(?: known as)?)[\s,:]*|\s[/=|]\s", re.I
)
_TIGHT_SLASH: Final = re.compile(r"(.*?)([^\s/]+)/([^\s/]+)(.*)", re.S)
_LEAD: Final = re.compile(
    r"^[\s*#>_•-]*(?:\(?\d{1,2}[.)]\s+)?[\s*_]*"
    r"(?:(?:(?:final|primary|principal|leading|most likely|working|main)\s+)?diagnos[ie]s\s*:)?",
    re.I,
)
_NARROWS: Final = re.compile(
    r"\s*(?:e\.?g\b|such as|includ|for example|with\b|without|due|secondary|of\b|in\b|on\b|to\b|from\b|or\b|vs\b|"
    r"versus|likely|most likely|possibl|probabl|suspect|presum|caus|associated|related|less likely|like\b|other\b|"
    r"post\b|after\b|no\b|not\b)|.*(?:,|;|\bor\b|\bvs\b|\bversus\b)",
    re.I,
)
_ADJECTIVE: Final = re.compile(
    r"(?:al|ic|ous|ive|ary|able|ible|type|stage|grade|phase|form|variant|subtype|\w{4}(?:ar|ed|ent|ant|ing))$"
)
_HEADS: Final = frozenset({"disease", "syndrome"})
_LONGEST_ABBREVIATION: Final = 6


@dataclass(frozen=True, slots=True)
class Forms:
    """What a label can be compared by.

    Args:
        first: Its first name as a set of words, with brackets that narrow it down; empty if the label has no word.
        names: All its full names, the first one and the whole label among them.
        short: Abbreviations in brackets that say nothing alone: they only count against a name of the other label.
        solid: The first name as one string without spaces: hydro nephrosis.
        everything: All words of the label, aliases included.
        bare: The words of the first name as written, without generic heads.
        heads: `disease` or `syndrome` where the name is a description, for which the two differ.
    """

    first: frozenset[str]
    names: frozenset[frozenset[str]]
    short: frozenset[frozenset[str]]
    solid: str
    everything: frozenset[str]
    bare: frozenset[str]
    heads: frozenset[str]

    def head_differs(self, other: "Forms") -> bool:
        """Whether one is called a disease, the other a syndrome (inflammatory bowel ...)."""
        return bool(self.heads and other.heads and not self.heads & other.heads)


@lru_cache(maxsize=65536)
def forms(label: str) -> Forms:
    """The names of a label."""
    text = _LEAD.sub("", label, count=1)
    text = text if words(text) else label
    aliases = [inner for inner in _BRACKET.findall(text) if not _narrows(inner)]
    base = _BRACKET.sub(lambda match: " " if match[1] in aliases else f" {match[1]} ", text)
    if not words(base):
        base, aliases = _BRACKET.sub(r" \1 ", text), []
    names: list[frozenset[str]] = []
    short: set[frozenset[str]] = set()
    for name in alternatives(base):
        # `MS (mitral stenosis)`: the bracket says what the letters mean here, whatever they mean elsewhere.
        if any(_abbreviates(name, alias) for alias in aliases):
            short.add(key(name))
        else:
            names.append(key(name))
    for alias in aliases:
        for name in alternatives(alias):
            if not (_abbreviates(name, base) or _is_abbreviation(name)):
                names.append(key(name))
            elif not is_known(name) or key(name) in names:
                short.add(key(name))
    everything = key(_BRACKET.sub(r" \1 ", text))
    names.append(everything)
    in_order = canonical(base)
    kept = core(in_order)
    eponym = len(kept) == 1 and not _ADJECTIVE.search(min(kept))
    return Forms(
        first=names[0],
        names=frozenset(names),
        short=frozenset(short),
        solid="".join(token for token in in_order if token in kept),
        everything=everything,
        bare=core(words(base)),
        heads=frozenset() if eponym else _HEADS & frozenset(in_order),
    )


def alternatives(text: str) -> list[str]:
    """The names that one text gives: of `A / B`, `A aka B` and `x A/B y` both, of contrary ones only the whole."""
    parts = [part for part in _ALSO.split(text) if words(part)]
    if len(parts) > 1:
        if any(_partial(part) for part in parts) or any(clash(key(parts[0]), key(part)) for part in parts[1:]):
            return [text]
        return [name for part in parts for name in alternatives(part)]
    tight = _TIGHT_SLASH.fullmatch(text)
    if tight is None:
        return [text]
    before, left, right, after = tight.groups()
    if _partial(left) or _partial(right) or clash(key(left), key(right)):
        return [text]
    if (before.strip() and after.strip()) or is_known(before + left) or is_known(right + after):
        return [before + left, right + after]
    return [before + left + after, before + right + after]


def _partial(text: str) -> bool:
    """Whether a text is no name but a qualifier of one."""
    return all(token in QUALIFIERS or len(token) == 1 or token.isdigit() or token in GENERIC for token in words(text))


def _narrows(bracket: str) -> bool:
    """Whether a bracket narrows the name down instead of giving another one."""
    tokens = words(bracket)
    if tokens and is_known(bracket):
        return False
    return (
        not tokens
        or any(token in QUALIFIERS or token in NEGATIONS or len(token) == 1 or token.isdigit() for token in tokens)
        or _NARROWS.match(bracket) is not None
        or (_ADJECTIVE.search(tokens[-1]) is not None and not bracket.isupper())
    )


def _is_abbreviation(text: str) -> bool:
    text = text.strip()
    return len(text) <= _LONGEST_ABBREVIATION and text.isupper()


def _abbreviates(short: str, long: str) -> bool:
    """Whether the one word `short` is made of the first letter and more letters of `long`, in order."""
    short = plain(short).strip().replace(".", "").replace("-", "")
    long = plain(long).strip()
    if not short.isalnum() or len(short) > _LONGEST_ABBREVIATION or not long.startswith(short[0]) or " " not in long:
        return False
    letters = iter(long)
    return all(char in letters for char in short)
