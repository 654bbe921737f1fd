"""The master list: the union of the panel's proposals, each diagnosis once, whoever proposed it under whichever name.

Deterministic first (`labels.same`), then meaning (similarity of the names), then one question for the pairs in between.
Names that differ in a word that tells diseases apart (acute, type 1, viral ...) are never merged by meaning, not even by
way of a third name that is similar to both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ddx_local.clinical import labels
from ddx_local.flow import Flow, ask, note, similarities
from ddx_local.methods.proposals import Proposal
from ddx_local.methods.scot_options import Options
from ddx_local.methods.scot_steps import MERGE

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
        old: Entries that are there already; they keep their names, and none of them is merged with another.
        proposed: New proposals.
        entered_in: The round that the new entries are marked with.
        options: `same_at`, `ask_at`, `most`, and `without` (merge: by name only).

    Returns:
        At most `options.most` entries, those with most proposers (then the best place) first; the rest is noted.
    """
    entries = [*old, *(Entry((item,), entered_in) for item in proposed)]
    if len(entries) == len(old):
        return tuple(old)
    entries = _joined(entries, _groups(entries, len(old), _equal([entry.diagnosis for entry in entries])))
    if "merge" not in options.without:
        entries = yield from _merge_by_meaning(case, entries, len(old), options)
    ranked = sorted(entries, key=lambda entry: (-len(entry.roles), entry.best_place))
    if left_out := ranked[options.most :]:
        names = ", ".join(entry.diagnosis for entry in left_out)
        yield from note("left_out", f"{len(left_out)} of {len(ranked)} diagnoses left out of the master list: {names}")
    return tuple(ranked[: options.most])


def _merge_by_meaning(case: str, entries: list[Entry], old: int, options: Options) -> Flow[list[Entry]]:
    """Join what means the same, the most similar first; what was on the list before (the first `old`) stays apart."""
    names = [entry.diagnosis for entry in entries]
    pairs = [(a, b) for a, b in combinations(range(len(names)), 2) if b >= old and not _apart(entries[a], entries[b])]
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
    groups = _groups(entries, old, same)
    if joined := "; ".join(" = ".join(names[index] for index in group) for group in groups if len(group) > 1):
        yield from note("merged", f"taken for one diagnosis by meaning: {joined}")
    return _joined(entries, groups)


def _joined(entries: Sequence[Entry], groups: Iterable[Sequence[int]]) -> list[Entry]:
    """One entry for each group; it keeps the first one's name and round."""
    return [
        Entry(tuple(item for index in group for item in entries[index].proposed), entries[group[0]].entered_in)
        for group in groups
    ]


def _equal(names: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of names of the same diagnosis."""
    return [
        (a, b) for group in labels.merge(names) for a, b in combinations(group, 2) if labels.same(names[a], names[b])
    ]


def _groups(entries: Sequence[Entry], old: int, same: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Groups joined along the pairs in the order given, in order of first member; no group holds what must stay apart."""
    groups = [[index] for index in range(len(entries))]
    for a, b in same:
        one, two = (next(group for group in groups if index in group) for index in (a, b))
        both_old = min(one) < old and min(two) < old
        if one is two or both_old or any(_apart(entries[i], entries[j]) for i in one for j in two):
            continue
        groups.remove(two)
        one.extend(two)
    return sorted(sorted(group) for group in groups)


def _apart(one: Entry, two: Entry) -> bool:
    """Whether any of the two entries' wordings are known to be different diagnoses."""
    wordings = [{item.proposal.diagnosis for item in entry.proposed} for entry in (one, two)]
    return any(labels.conflicting(a, b) for a in wordings[0] for b in wordings[1])
