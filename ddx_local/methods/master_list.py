"""The master list: the union of the panel's proposals, each diagnosis once, whoever proposed it under whichever name.

Deterministic first (`labels.same`), then meaning (similarity of the names), then one question for the pairs in between.
Names that differ in a word that tells diseases apart (acute, type 1, viral ...) are never merged by meaning.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ddx_local.clinical import labels
from ddx_local.flow import Flow, ask, note, similarities
from ddx_local.methods.scot_steps import MERGE, Options, Proposal

MOST_PAIRS = 16
"""Pairs of one merge question at most, the most similar first."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposal: who made it, and at which place (from 1) of the own list."""

    role: str
    place: int
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Entry:
    """One diagnosis of the list, under the name of its first proposer."""

    proposed: tuple[Proposed, ...]
    entered_in: str

    @property
    def diagnosis(self) -> str:
        return self.proposed[0].proposal.diagnosis

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.role for item in self.proposed))

    @property
    def best_place(self) -> int:
        return min(item.place for item in self.proposed)


def build(
    case: str, old: Sequence[Entry], proposed: Iterable[Proposed], entered_in: str, options: Options
) -> Flow[tuple[Entry, ...]]:
    """Merge new proposals into a list.

    Args:
        case: The case text.
        old: Entries that are there already; they keep their order and names.
        proposed: New proposals.
        entered_in: The round that the new entries are marked with.
        options: `same_at`, `ask_at`, `most`, and `without` (merge: by name only).

    Returns:
        At most `options.most` entries, those with most proposers (then the best place) first; the rest is noted.
    """
    entries = [*old, *(Entry((item,), entered_in) for item in proposed)]
    if len(entries) == len(old):
        return tuple(old)
    entries = _joined(entries, labels.merge([entry.diagnosis for entry in entries]))
    if "merge" not in options.without:
        entries = yield from _merge_by_meaning(case, entries, len(old), options)
    ranked = sorted(entries, key=lambda entry: (-len(entry.roles), entry.best_place))
    if left_out := ranked[options.most :]:
        names = ", ".join(entry.diagnosis for entry in left_out)
        yield from note("left_out", f"{len(left_out)} of {len(ranked)} diagnoses left out of the master list: {names}")
    return tuple(ranked[: options.most])


def _merge_by_meaning(case: str, entries: list[Entry], old: int, options: Options) -> Flow[list[Entry]]:
    """Join what means the same; two entries that were both on the list before are not compared again."""
    names = [entry.diagnosis for entry in entries]
    pairs = [
        (a, b) for a, b in combinations(range(len(names)), 2) if b >= old and not labels.conflicting(names[a], names[b])
    ]
    scores = yield from similarities([(names[a], names[b]) for a, b in pairs])
    near = sorted(zip(scores, pairs, strict=True), reverse=True)
    same = [pair for score, pair in near if score >= options.same_at]
    unsure = [pair for score, pair in near if options.ask_at <= score < options.same_at]
    asked = unsure[:MOST_PAIRS]
    if unsure[MOST_PAIRS:]:
        yield from note("merge", f"{len(unsure) - MOST_PAIRS} of {len(unsure)} similar pairs were not asked about")
    if asked:
        lines = tuple(f"{names[a]} | {names[b]}" for a, b in asked)
        verdicts = yield from ask(MERGE, case=case, pairs=lines)
        same += [pair for pair, verdict in zip(asked, verdicts, strict=True) if verdict]
    if not same:
        return entries
    joined = "; ".join(f"{names[a]} = {names[b]}" for a, b in same)
    yield from note("merged", f"taken for one diagnosis by meaning: {joined}")
    return _joined(entries, _groups(len(entries), same))


def _joined(entries: Sequence[Entry], groups: Iterable[Sequence[int]]) -> list[Entry]:
    """One entry for each group; it keeps the first one's name and round."""
    return [
        Entry(tuple(item for index in group for item in entries[index].proposed), entries[group[0]].entered_in)
        for group in groups
    ]


def _groups(count: int, same: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Connected components, in order of their first member."""
    leader = list(range(count))
    find: Callable[[int], int] = lambda index: index if leader[index] == index else find(leader[index])  # noqa: E731
    for a, b in same:
        first, second = sorted((find(a), find(b)))
        leader[second] = first
    groups: dict[int, list[int]] = {}
    for index in range(count):
        groups.setdefault(find(index), []).append(index)
    return list(groups.values())
