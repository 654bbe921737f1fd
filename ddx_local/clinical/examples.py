"""The program's own examples, and that no example is the case under test, in whatever script or encoding it is written.

The own examples are synthetic, solved cases that ship with the prompts: a case base that every installation has. This file knows
where they lie and when two texts are nearly equal; it doesn't know how a base is read or searched (`case_base`, which leaves out
copies by runs of words; here letters are compared, for texts without blanks and for accents that are encoded in two ways).
"""

import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ddx_local.data import data_dir
from ddx_local.flow import OWN_EXAMPLES, Retrieve

Answer = Callable[[Retrieve], Awaitable[list[list[Any]]]]

RUN = 8
"""Letters in a row by which two texts are compared."""

NEARLY_EQUAL = 0.5
"""Share of the shorter text's runs of letters in the other one, from which on the two are one case."""

SPARE = 8
"""Past cases asked for beyond the count, so that copies of the case can be left out."""


def own_examples() -> Path:
    """Their file, JSON Lines."""
    return data_dir("prompts") / "few_shot" / "examples.jsonl"


def nearly_equal(a: str, b: str) -> bool:
    """Whether one text is the other, an excerpt of it, or a slightly changed copy: by letters and digits alone."""
    one, two = _runs(a), _runs(b)
    return len(one & two) >= NEARLY_EQUAL * min(len(one), len(two))


@lru_cache(maxsize=4096)
def _runs(text: str) -> frozenset[str]:
    # Decomposed and without the marks, so that one accent is one letter however it is encoded.
    letters = "".join(letter for letter in unicodedata.normalize("NFKD", text).casefold() if letter.isalnum())
    return frozenset(letters[at : at + RUN] for at in range(max(1, len(letters) - RUN + 1)))


def with_own_examples(answer: Answer) -> Answer:
    """An answerer of `Retrieve` that knows `OWN_EXAMPLES` beside files, and never gives a near copy of the text."""

    async def answered(about: Retrieve) -> list[list[Any]]:
        base = str(own_examples()) if about.base == OWN_EXAMPLES else about.base
        found = await answer(replace(about, base=base, count=about.count + SPARE))
        return [past for past in found if not nearly_equal(past[1], about.text)][: about.count]

    return answered
