"""DMoA's book-keeping: what the debaters said, how it is told to the next role, and the differential at the end. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ddx_local.case import Case, Conflict, Differential
from ddx_local.clinical import labels
from ddx_local.methods.dmoa_steps import (
    AGGREGATOR,
    ALONE_ROLE,
    Options,
    Presentation,
    Rebuttal,
    Verdict,
    presenter,
    rebutter,
)
from ddx_local.methods.lists import Named, cant_miss, entry, grouped, listed, named, roles
from ddx_local.methods.proposals import Danger, Proposal


@dataclass
class Debate:
    """Everything that was said, by debater's number; `texts` is what each reads, `reads` what a role has come to read."""

    case: Case
    options: Options
    texts: Mapping[str, str]
    presented: list[Mapping[str, Presentation]] = field(default_factory=list)
    rebutted: list[Mapping[str, Rebuttal]] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)

    def groups(self, turn: int = -1) -> list[list[Named]]:
        """The diagnoses of a turn's presentations, whatever they are called: most presenters first, then the best place."""
        lists = {presenter(seat): item.proposals for seat, item in self.presented[turn].items()}
        ranked = grouped(named(lists))
        return sorted(ranked, key=lambda group: (-len(roles(group)), min(place for _, place, _ in group)))


def candidates(debate: Debate) -> list[str]:
    """What the aggregator may choose from: the diagnoses of the last presentations, each once."""
    return [group[0][2].diagnosis for group in debate.groups()]


def dialogue(debate: Debate, seat: str) -> str:
    """What a debater's two roles have said to each other; nothing of the other debaters."""
    said = []
    for number, presented in enumerate(debate.presented):
        said.append(f"PRESENTATION {number + 1}\n{_presentation(presented[seat])}")
        if number < len(debate.rebutted):
            said.append(f"REBUTTAL {number + 1}\n{_rebuttal(debate.rebutted[number][seat])}")
    return "\n\n".join(said)


def accounts(debate: Debate) -> str:
    """The last presentation of every debater, for the aggregator."""
    last = debate.presented[-1]
    return "\n\n".join(f"DEBATER {seat}\n{_presentation(item)}" for seat, item in last.items())


def _presentation(item: Presentation) -> str:
    lines = [f"{place}. {_proposal(proposal)}" for place, proposal in enumerate(item.proposals, start=1)]
    return "\n".join([item.analysis, *lines])


def _proposal(item: Proposal) -> str:
    return " ".join([f"{item.diagnosis}:", *(f'"{quote}"' for quote in item.evidence), item.reason])


def _rebuttal(item: Rebuttal) -> str:
    lines = [
        *(f"Unsupported: {text}" for text in item.unsupported),
        *(f"Missing: {text}" for text in item.missing),
        *(f"Alternative: {_proposal(proposal)}" for proposal in item.alternatives),
        *(f"Safety: {danger.diagnosis}: {danger.why} Test: {danger.test}" for danger in item.dangers),
    ]
    return "\n".join(lines) or "No objection."


def assemble(debate: Debate, verdict: Verdict | None) -> Differential:
    """The aggregator's ranking, or a single debater's own; the score of a diagnosis is 1 / its place."""
    groups = {group[0][2].diagnosis: group for group in debate.groups()}
    if verdict is None:
        (only,) = debate.presented[-1].values()
        ranking = tuple(item.diagnosis for item in only.proposals if item.diagnosis in groups)[: debate.options.k]
    else:
        ranking = verdict.ranking
    entries = tuple(
        entry(debate.case, rank, 1 / rank, groups[name], _entered(debate, name))
        for rank, name in enumerate(ranking, start=1)
    )
    answer = Differential(
        score_kind="reciprocal_place",
        entries=entries,
        cant_miss=cant_miss(debate.case, _dangers(debate), ranking),
        panel=_panel(debate, verdict),
    )
    if verdict is None:
        return answer
    first = replace(entries[0], reasoning=verdict.reason)
    conflicts = tuple(Conflict(kept, over, because, AGGREGATOR) for kept, over, because in verdict.conflicts)
    uncertainty = f"{verdict.uncertainty} (confidence: {verdict.confidence})"
    return replace(answer, entries=(first, *entries[1:]), conflicts=conflicts, uncertainty=uncertainty)


def unaided(case: Case, proposals: Sequence[Proposal]) -> Differential:
    """The answer of the one call that went through the debate by itself."""
    return listed(case, proposals, ALONE_ROLE)


def _panel(debate: Debate, verdict: Verdict | None) -> tuple[str, ...]:
    seats = [role for seat in debate.texts for role in (presenter(seat), rebutter(seat))]
    taking_part = [role for role in seats if debate.rebutted or role.startswith("presenter")]
    return (*taking_part, *((AGGREGATOR,) if verdict else ()))


def _entered(debate: Debate, name: str) -> str:
    """The round in which a diagnosis was first presented, under whichever name."""
    for turn in range(len(debate.presented)):
        if any(labels.same(name, group[0][2].diagnosis) for group in debate.groups(turn)):
            return "present" if turn == 0 else "revise"
    return "revise"


def _dangers(debate: Debate) -> list[tuple[str, Danger]]:
    """The rebutters' safety concerns."""
    return [
        (rebutter(seat), danger)
        for rebuttals in debate.rebutted
        for seat, rebuttal in rebuttals.items()
        for danger in rebuttal.dangers
    ]
