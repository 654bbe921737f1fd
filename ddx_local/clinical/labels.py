"""Do two labels name the same diagnosis? One answer for consensus, voting, merging and metrics.

Deterministic and strict: another word order, spelling, numeral, alias, or a synonym of our own file (synonyms.txt) is
the same diagnosis; a broader, narrower or otherwise qualified one is not. It knows no hierarchy and no model. How a
word can be written is in `label_words`, synonyms in `label_lexicon`, the names that one label gives in `label_forms`,
what looks alike but is different in `label_qualifiers`.
"""

from collections.abc import Sequence
from functools import lru_cache

from ddx_local.clinical.label_forms import forms
from ddx_local.clinical.label_lexicon import lookalike, slip
from ddx_local.clinical.label_mentions import mentions
from ddx_local.clinical.label_qualifiers import clash
from ddx_local.clinical.label_words import plain

__all__ = ["conflicting", "mentions", "merge", "normalise", "same"]


def normalise(label: str) -> str:
    """The normal form: canonical words in alphabetical order, one space apart, without aliases in brackets.

    Labels with equal normal forms are the same diagnosis, unless their brackets conflict. The same diagnosis may have
    two normal forms (a label with an alias, a misspelling), so compare by `same`. A label without a word keeps its text.
    """
    found = forms(label)
    return " ".join(sorted(found.first | found.heads)) or " ".join(plain(label).split())


def same(a: str, b: str) -> bool:
    """Whether two labels name the same diagnosis. Symmetric and reflexive, but not transitive: `A / B` is A and is B.

    Args:
        a: A diagnosis as a model, a clinician or a data set writes it.
        b: Another one.
    """
    return a == b or (_same(a, b) if a < b else _same(b, a))


@lru_cache(maxsize=65536)
def _same(a: str, b: str) -> bool:
    one, two = forms(a), forms(b)
    if not one.first or not two.first:
        return not one.first and not two.first and normalise(a) == normalise(b)
    meet = (
        one.solid == two.solid
        or one.names & two.names
        or one.names & two.short
        or two.names & one.short
        or any(_misspelt(x, y) for x in one.names for y in two.names)
    )
    if not meet:
        return False
    return not (one.head_differs(two) or clash(one.everything, two.everything))


def _misspelt(a: frozenset[str], b: frozenset[str]) -> bool:
    """Whether two names differ in one long word by a slip of the pen."""
    if len(a) != len(b):
        return False
    only_a, only_b = a - b, b - a
    return len(only_a) == 1 and slip(min(only_a), min(only_b))


def conflicting(a: str, b: str) -> bool:
    """Whether two labels differ in a qualifier that makes them different diagnoses, however similar they look.

    Both have to have one: acute and chronic pancreatitis conflict, pancreatitis and acute pancreatitis don't (one is
    broader), nor do labels that are just different words. Two words that are easily misread for each other do
    (dysphagia, dysphasia). Symmetric; never true of the same diagnosis.
    """
    if same(a, b):
        return False
    one, two = forms(a), forms(b)
    # The same words and yet not the same: a disease and a syndrome (Cushing's).
    return (
        clash(one.everything, two.everything)
        or (bool(one.bare) and one.bare == two.bare)
        or lookalike(one.everything, two.everything)
    )


def merge(labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Groups of equal labels.

    Returns:
        The indexes of each group, ascending, groups in order of first appearance. A label joins a group if it equals
        any member of it, so that an alias in brackets joins its two names.
    """
    found: list[list[int]] = []
    for index, label in enumerate(labels):
        hits = [group for group in found if any(same(label, labels[member]) for member in group)]
        joined = sorted([index, *(member for group in hits for member in group)])
        found = sorted([*(group for group in found if group not in hits), joined])
    return tuple(map(tuple, found))
