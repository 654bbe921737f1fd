"""Counting votes: Borda, weighted Borda and majority, with every tie made explicit. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

AXIS_WEIGHTS = (0.5, 0.25, 0.25)
"""Diagnostic insight, breadth, actionability (SCoT, round 6)."""


@dataclass(frozen=True, slots=True)
class Count:
    """A counted vote: the items, best first; their scores; the groups that only a tie-break could order."""

    ranking: tuple[str, ...]
    scores: Mapping[str, float]
    ties: tuple[tuple[str, ...], ...] = ()


def axis_score(scores: tuple[int, int, int]) -> float:
    """Weighted mean of the three axes, 1 to 10."""
    return sum(weight * score for weight, score in zip(AXIS_WEIGHTS, scores, strict=True))


def borda(
    ballots: Mapping[str, Sequence[str]],
    weights: Mapping[str, Mapping[str, float]] | None = None,
    voices: Mapping[str, float] | None = None,
    supports: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
) -> Count:
    """Borda count, weighted as in SCoT's round 6.

    Voter a gives item e at place p (from 1) of n: (n - p) * w[a, e] / mean over e of w[a, .] * voice[a]. Dividing by the
    voter's own mean means that a generous scorer gains no power.

    Args:
        ballots: Voter -> all items, the best first.
        weights: Voter -> item -> positive weight; 1 where it is not given.
        voices: Voter -> weight of the whole ballot; 1 where it is not given.
        supports: Item -> how many supported it, for ties.
        order: All items, the earliest proposed first, for ties.

    Returns:
        The items by score; ties by more first places, then more supports, then the earlier proposal.
    """
    items = list(order) or list(dict.fromkeys(item for ballot in ballots.values() for item in ballot))
    scores = dict.fromkeys(items, 0.0)
    first = dict.fromkeys(items, 0)
    for voter, ballot in ballots.items():
        own = {item: (weights or {}).get(voter, {}).get(item, 1.0) for item in ballot}
        mean = sum(own.values()) / len(own) if own else 1.0
        for place, item in enumerate(ballot, start=1):
            scores[item] += (len(ballot) - place) * own[item] / mean * (voices or {}).get(voter, 1.0)
            first[item] += place == 1
    rounded = {item: round(score, 9) for item, score in scores.items()}
    ranking = sorted(
        items, key=lambda item: (-rounded[item], -first[item], -(supports or {}).get(item, 0), items.index(item))
    )
    return Count(tuple(ranking), rounded, _ties(ranking, rounded))


def majority(votes: Sequence[str], order: Sequence[str] = ()) -> Count:
    """Items by how often they were named; ties by `order`, then by first appearance."""
    counts = Counter(votes)
    items = list(dict.fromkeys([*order, *votes]))
    ranking = sorted(items, key=lambda item: (-counts[item], items.index(item)))
    scores = {item: float(counts[item]) for item in items}
    return Count(tuple(ranking), scores, _ties(ranking, scores))


def _ties(ranking: Sequence[str], scores: Mapping[str, float]) -> tuple[tuple[str, ...], ...]:
    groups: dict[float, list[str]] = {}
    for item in ranking:
        groups.setdefault(scores[item], []).append(item)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
