"""Sentences without a heading: which section their words belong to, where that is plain. It knows words, not medicine.

The words are in `section_cues.toml`. A sentence gets a section when what speaks for it clearly outweighs what speaks for any
other; otherwise none. What stands between two sentences of one section, without words that speak for any, belongs to it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

LEAST = 2
"""Weight that a section needs."""

MARGIN = 2
"""By how much a section must outweigh the next."""

LEAST_CHARACTERS = 8

LONGEST = 1500
"""Characters of a sentence; what is longer is no sentence, and says something of everything."""

MOST_BETWEEN = 4
"""Sentences that say nothing and go with those around them."""


def assign(sentences: Sequence[str]) -> tuple[str | None, ...]:
    """The section of each sentence of a text, in order; None where its words do not tell."""
    found = [_section(sentence) for sentence in sentences]
    known = [place for place, name in enumerate(found) if name is not None]
    for place, next_ in pairwise(known):
        if found[place] == found[next_] and next_ - place - 1 <= MOST_BETWEEN:
            found[place:next_] = [found[place]] * (next_ - place)
    return tuple(found)


def _section(sentence: str) -> str | None:
    if not LEAST_CHARACTERS <= len(sentence) <= LONGEST:
        return None
    weights = {
        name: sum(weight for weight, pattern in cues if pattern.search(sentence)) for name, cues in _cues().items()
    }
    best, next_ = sorted(weights.values(), reverse=True)[:2]
    if best < LEAST or best - next_ < MARGIN:
        return None
    return next(name for name, weight in weights.items() if weight == best)


@cache
def _cues() -> Mapping[str, tuple[tuple[int, re.Pattern[str]], ...]]:
    data = tomllib.loads((files(__package__) / "section_cues.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = data.pop("words")

    def compiled(pattern: str) -> re.Pattern[str]:
        for name, expression in words.items():
            pattern = pattern.replace(name, expression)
        return re.compile(pattern, re.IGNORECASE)

    return {name: tuple((weight, compiled(pattern)) for weight, pattern in cues) for name, cues in data.items()}
