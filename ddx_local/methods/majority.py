"""The majority of a panel's lists: who names what, who names it first, and a moderator's ballot for equal votes.

It knows lists and ballots; it doesn't know how they came about. A panel's vote on a whole differential has no single
answer, so the diagnosis that most experts put first leads, then counts by how many name a diagnosis at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.flow import Flow, note
from ddx_local.methods import voting
from ddx_local.methods.lists import Named, entry, grouped, named, roles
from ddx_local.methods.proposals import Proposal

Lists = Mapping[str, tuple[Proposal, ...]]
"""Role -> its list, the most likely first."""

History = Sequence[tuple[str, Lists]]
"""Rounds in which lists were given: name and lists."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A diagnosis that was named: all who name it, how many name it first and at all, the round that brought it in."""

    named: tuple[Named, ...]
    firsts: int
    mentions: int
    entered_in: str

    @property
    def diagnosis(self) -> str:
        return self.named[0][2].diagnosis

    def score(self, voters: int) -> float:
        """First places, and a fraction below one for the mentions, so that no number of mentions outweighs a first place."""
        return round(self.firsts + self.mentions / (voters + 1), 9)

    @property
    def count(self) -> str:
        return f"{self.diagnosis}: named by {self.mentions}, first by {self.firsts}"


def choices(lists: Lists, history: History) -> tuple[Choice, ...]:
    """What the lists name, each diagnosis once under any name; first places count most, then mentions, then best place."""
    groups = grouped(named(lists))
    names = [group[0][2].diagnosis for group in groups]
    firsts = voting.majority([names[_of(groups, role)] for role, items in lists.items() if items], names).scores
    mentions = voting.majority([name for name, group in zip(names, groups, strict=True) for _ in roles(group)]).scores
    found = [
        Choice(tuple(group), int(firsts[name]), int(mentions[name]), _entered(group, history))
        for name, group in zip(names, groups, strict=True)
    ]
    return tuple(sorted(found, key=lambda choice: (-choice.firsts, -choice.mentions, _best_place(choice.named))))


def shortlist(found: Sequence[Choice], most: int) -> Flow[tuple[Choice, ...]]:
    """The first `most`; the rest is noted."""
    if left_out := [choice.diagnosis for choice in found[most:]]:
        yield from note("left_out", f"{len(left_out)} of {len(found)} diagnoses left out: {', '.join(left_out)}")
    return tuple(found[:most])


def by_majority(found: Sequence[Choice], voters: int, ballot: Sequence[str]) -> Flow[tuple[Choice, ...]]:
    """Choices by votes; equal ones by the ballot, which is noted. Without a ballot they stay in the order given."""
    place = {name: at for at, name in enumerate(ballot)}
    ranked = sorted(found, key=lambda choice: (-choice.score(voters), place.get(choice.diagnosis, 0)))
    for score in dict.fromkeys(choice.score(voters) for choice in ranked):
        tied = [choice.diagnosis for choice in ranked if choice.score(voters) == score]
        if len(tied) > 1:
            order = "the moderator's ballot" if ballot else "the best place"
            yield from note("tie", f"equal votes, ordered by {order}: {', '.join(tied)}")
    return tuple(ranked)


def decided(
    case: Case, found: Sequence[Choice], scores: Sequence[float], kind: str, panel: Sequence[str]
) -> Differential:
    """The choices, in order, as a differential."""
    entries = tuple(
        entry(case, rank, score, choice.named, choice.entered_in)
        for rank, (choice, score) in enumerate(zip(found, scores, strict=True), start=1)
    )
    return Differential(score_kind=kind, entries=entries, panel=tuple(panel))


def agreed(lists: Lists) -> str:
    """The diagnosis that every list puts first, or ''."""
    first = [items[0].diagnosis for items in lists.values() if items]
    return first[0] if first and len(labels.merge(first)) == 1 else ""


def _of(groups: Sequence[Sequence[Named]], role: str) -> int:
    """The group that holds the role's first proposal."""
    return next(at for at, group in enumerate(groups) if any(who == role and place == 1 for who, place, _ in group))


def _best_place(found: Sequence[Named]) -> int:
    return min(place for _, place, _ in found)


def _entered(group: Sequence[Named], history: History) -> str:
    names = [item.diagnosis for _, _, item in group]
    for name, lists in history:
        if any(labels.same(item.diagnosis, one) for items in lists.values() for item in items for one in names):
            return name
    return ""
