"""Ranked lists of proposals as a differential: who named a diagnosis at which place, with which evidence. Pure.

It knows places, names and quotes; it doesn't know who was asked what, or how a method ranks.
"""

from collections.abc import Iterable, Mapping, Sequence

from ddx_local.case import CantMiss, Case, Differential, Entry, Evidence, Quote
from ddx_local.clinical import labels
from ddx_local.clinical.quotes import locate
from ddx_local.methods.proposals import Danger, Proposal

Named = tuple[str, int, Proposal]
"""Who named a diagnosis, at which place (from 1) of the own list, and how."""

Quoted = tuple[str, str, bool]
"""Who quotes the case, what, and whether it speaks for the diagnosis."""


def named(lists: Mapping[str, Sequence[Proposal]]) -> list[Named]:
    """All proposals of all roles, role by role, in the order given."""
    return [(role, place, item) for role, items in lists.items() for place, item in enumerate(items, start=1)]


def grouped(found: Sequence[Named]) -> list[list[Named]]:
    """The proposals by diagnosis, whatever it is called, in order of first appearance."""
    return [[found[index] for index in group] for group in labels.merge([item.diagnosis for _, _, item in found])]


def roles(group: Sequence[Named]) -> tuple[str, ...]:
    """Who named it, each once, in order."""
    return tuple(dict.fromkeys(role for role, _, _ in group))


def entry(case: Case, rank: int, score: float, group: Sequence[Named], entered_in: str = "differential") -> Entry:
    """One diagnosis, under its first name, from all that name it; a role that names it twice counts by its first place.

    Raises:
        ParseError: A quote does not stand in the case.
    """
    votes: dict[str, int] = {}
    for role, place, _ in group:
        votes.setdefault(role, place)
    return Entry(
        rank=rank,
        diagnosis=group[0][2].diagnosis,
        score=score,
        votes=votes,
        evidence=by_quote(case, quoted(group)),
        proposed_by=tuple(votes),
        entered_in=entered_in,
        reasoning=group[0][2].reason,
    )


def quoted(group: Sequence[Named]) -> list[Quoted]:
    """What those who named a diagnosis quote for it."""
    return [(role, quote, True) for role, _, proposal in group for quote in proposal.evidence]


def by_quote(case: Case, said: Iterable[Quoted]) -> tuple[Evidence, ...]:
    """Every quote once for and once against, with all who gave it, in order of first appearance.

    Raises:
        ParseError: A quote does not stand in the case.
    """
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for role, quote, supports in said:
        found.setdefault((quote, supports), {})[role] = None
    return tuple(evidence(case, quote, tuple(by), supports=supports) for (quote, supports), by in found.items())


def evidence(case: Case, quote: str, by: tuple[str, ...], *, supports: bool = True) -> Evidence:
    """A quote where it first stands; raises `ParseError` if it does not stand in the case."""
    span = locate(case.text, quote)
    return Evidence(Quote(quote, span.start, span.end), supports, by)


def located(case: Case, quote: str | None) -> Quote | None:
    """Where a quote stands first; raises `ParseError` for one that does not stand in the case."""
    if not quote:
        return None
    span = locate(case.text, quote)
    return Quote(quote, span.start, span.end)


def cant_miss(case: Case, said: Iterable[tuple[str, Danger]], ranking: Sequence[str]) -> tuple[CantMiss, ...]:
    """The dangers that roles name, each once whatever it is called, with all who name it; without those in the ranking.

    Raises:
        ParseError: A quote does not stand in the case.
    """
    left = [pair for pair in said if not any(labels.same(pair[1].diagnosis, name) for name in ranking)]
    found = []
    for group in labels.merge([danger.diagnosis for _, danger in left]):
        danger, by = left[group[0]][1], tuple(dict.fromkeys(left[index][0] for index in group))
        found.append(CantMiss(danger.diagnosis, danger.why, located(case, danger.quote), danger.test, by))
    return tuple(found)


def listed(case: Case, proposals: Sequence[Proposal], role: str) -> Differential:
    """One role's list as a differential; the score of a diagnosis is 1 / its place."""
    entries = tuple(
        entry(case, rank, 1 / rank, [(role, rank, proposal)]) for rank, proposal in enumerate(proposals, start=1)
    )
    return Differential(score_kind="reciprocal_place", entries=entries, panel=(role,))
