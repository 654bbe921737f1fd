"""Which predictions are which golds: distinct names, one-to-one assignment, the deterministic matcher.

A matcher turns two lists of names into similarities; assignment is the same for all: the most pairs at or over the
threshold, then the highest similarity. It knows no case. Meanings: specs/evaluation.md, section 2.1.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from ddx_local.clinical.labels import same

Same = Callable[[str, str], bool]
Pair = tuple[int, int, float]
"""Place of a prediction, place of a gold, similarity."""

Hierarchy = Literal["exact", "broader_ok", "either_ok"]
"""Whether a broader prediction (or a narrower one, too) counts: the published graders disagree, so it is always logged."""

HIERARCHIES: tuple[Hierarchy, ...] = ("exact", "broader_ok", "either_ok")

_MORE_PAIRS = 10.0
"""Bonus that makes one more pair worth more than any similarity."""


@dataclass(frozen=True, slots=True)
class Matched:
    """One case's predictions against its golds.

    Args:
        pairs: One-to-one, in order of the predictions.
        first: Place from 1 of the first prediction that matches any gold, None for none.
        primary: The same for the first gold alone.
        unread: Pairs that the judge gave no readable verdict on.
        upper: Pairs if every unread verdict were a yes.
        total: Sum of the matched similarities, where P, R and F1 are soft (BERTScore).
    """

    pairs: tuple[Pair, ...]
    first: int | None
    primary: int | None
    unread: int = 0
    upper: int = 0
    total: float | None = None


class Matcher(Protocol):
    """Decides for one case at a time; `label` says which it is in stamps and reports."""

    @property
    def label(self) -> str: ...

    def match(self, predictions: Sequence[str], golds: Sequence[str]) -> Awaitable[Matched]:
        """Predictions are distinct and ranked; golds as the data set has them."""
        ...


def distinct(names: Sequence[str], is_same: Same = same) -> list[str]:
    """The names, each diagnosis once, at its first place."""
    found: list[str] = []
    for name in names:
        if not any(is_same(name, other) for other in found):
            found.append(name)
    return found


def matrix(predictions: Sequence[str], golds: Sequence[str], is_same: Same = same) -> list[list[float]]:
    """1 where two names are the same diagnosis, else 0."""
    return [[float(is_same(prediction, gold)) for gold in golds] for prediction in predictions]


def assign(similarities: Sequence[Sequence[float]], threshold: float | None) -> list[Pair]:
    """Optimal one-to-one pairs: as many as possible at or over the threshold, then the highest sum.

    Args:
        similarities: Predictions x golds.
        threshold: None assigns by the sum alone (soft Hungarian).
    """
    table = np.asarray(similarities, dtype=float)
    if table.size == 0:
        return []
    from scipy.optimize import linear_sum_assignment

    gate = table if threshold is None else np.where(table >= threshold - 1e-12, table + _MORE_PAIRS, 0.0)
    rows, columns = linear_sum_assignment(gate, maximize=True)
    return [
        (int(i), int(j), float(table[i, j]))
        for i, j in zip(rows, columns, strict=True)
        if threshold is None or table[i, j] >= threshold - 1e-12
    ]


def greedy(similarities: Sequence[Sequence[float]], threshold: float) -> list[Pair]:
    """Pairs taken from the most similar downwards (DxChain's way), which may find fewer than there are."""
    table = [(value, i, j) for i, row in enumerate(similarities) for j, value in enumerate(row) if value >= threshold]
    used: tuple[set[int], set[int]] = (set(), set())
    found: list[Pair] = []
    for value, i, j in sorted(table, key=lambda item: (-item[0], item[1], item[2])):
        if i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            found.append((i, j, value))
    return sorted(found)


def paired(predictions: Sequence[str], golds: Sequence[str], is_same: Same = same) -> list[Pair]:
    """One-to-one pairs of names that are the same diagnosis."""
    return assign(matrix(predictions, golds, is_same), 1.0)


def matched(similarities: Sequence[Sequence[float]], threshold: float, *, by_greed: bool = False) -> Matched:
    """Assignment and ranks from a matrix of similarities."""
    pairs = greedy(similarities, threshold) if by_greed else assign(similarities, threshold)
    hits = [place for place, row in enumerate(similarities, start=1) if any(v >= threshold - 1e-12 for v in row)]
    firsts = [place for place, row in enumerate(similarities, start=1) if row and row[0] >= threshold - 1e-12]
    return Matched(tuple(pairs), min(hits, default=None), min(firsts, default=None), upper=len(pairs))


@dataclass(frozen=True, slots=True)
class Labels:
    """The default matcher: `clinical.labels.same`, deterministic, and it knows no hierarchy."""

    is_same: Same = same
    extra: tuple[Any, ...] = field(default=())

    @property
    def label(self) -> str:
        return "labels"

    async def match(self, predictions: Sequence[str], golds: Sequence[str]) -> Matched:
        return matched(matrix(predictions, golds, self.is_same), 1.0)
