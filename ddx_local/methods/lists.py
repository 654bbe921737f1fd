"""Ranked lists of proposals as a differential: who named a diagnosis at which place, with which evidence. Pure.

It knows places, names and quotes; it doesn't know who was asked what, or how a method ranks.
"""

from collections.abc import Mapping, Sequence

from ddx_local.case import Case, Differential, Entry, Evidence, Quote
from ddx_local.clinical import labels
from ddx_local.clinical.quotes import locate
from ddx_local.methods.proposals import Proposal

Named = tuple[str, int, Proposal]
"""Who named a diagnosis, at which place (from 1) of the own list, and how."""


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
    quotes: dict[str, dict[str, None]] = {}
    for role, place, proposal in group:
        votes.setdefault(role, place)
        for quote in proposal.evidence:
            quotes.setdefault(quote, {})[role] = None
    return Entry(
        rank=rank,
        diagnosis=group[0][2].diagnosis,
        score=score,
        votes=votes,
        evidence=tuple(evidence(case, quote, tuple(by)) for quote, by in quotes.items()),
        proposed_by=tuple(votes),
        entered_in=entered_in,
        reasoning=group[0][2].reason,
    )


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


def listed(case: Case, proposals: Sequence[Proposal], role: str) -> Differential:
    """One role's list as a differential; the score of a diagnosis is 1 / its place."""
    entries = tuple(
        entry(case, rank, 1 / rank, [(role, rank, proposal)]) for rank, proposal in enumerate(proposals, start=1)
    )
    return Differential(score_kind="reciprocal_place", entries=entries, panel=(role,))
