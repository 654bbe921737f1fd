"""SCoT's answer: the differential with evidence, votes and stances, and what stands beside it. It asks nothing."""

from collections.abc import Sequence

from ddx_local.case import CantMiss, Differential, Evidence, TriageItem
from ddx_local.case import Entry as Ranked
from ddx_local.clinical import labels
from ddx_local.methods.lists import located
from ddx_local.methods.master_list import Entry
from ddx_local.methods.scot_debate import Debate
from ddx_local.methods.scot_steps import Danger
from ddx_local.methods.voting import Count


def assemble(debate: Debate, entries: Sequence[Entry], counted: Count) -> Differential:
    """The differential: the first k by the count, with evidence, votes, stances, and what stands beside it."""
    by_name = {entry.diagnosis: entry for entry in entries}
    critical = {name for answer in debate.safety.values() for name in answer.critical}
    top = counted.ranking[: debate.options.k]
    return Differential(
        score_kind="borda" if debate.votes else "proposers",
        entries=tuple(
            Ranked(
                rank=rank,
                diagnosis=name,
                score=counted.scores[name],
                votes={role: vote.ballot.index(name) + 1 for role, vote in debate.votes.items()},
                evidence=_evidence(debate, by_name[name]),
                proposed_by=by_name[name].roles,
                entered_in=by_name[name].entered_in,
                critical=name in critical,
                reasoning=by_name[name].proposed[0].proposal.reason,
                stances={
                    role: answer.stances[name].position
                    for role, answer in debate.final.items()
                    if name in answer.stances
                },
            )
            for rank, name in enumerate(top, start=1)
        ),
        cant_miss=_cant_miss(debate, top),
        triage=tuple(
            TriageItem(item.finding, located(debate.case, item.quote), item.urgency, item.step, role)
            for role, findings in debate.triage.items()
            for item in findings
        ),
        panel=tuple(debate.seats),
    )


def _evidence(debate: Debate, entry: Entry) -> tuple[Evidence, ...]:
    """Quotes of the proposals and of the final positions (else the first ones), each once, with all who gave it."""
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for item in entry.proposed:
        for quote in item.proposal.evidence:
            found.setdefault((quote, True), {})[item.role] = None
    for role, answer in (debate.final or debate.positions).items():
        stance = answer.stances.get(entry.diagnosis)
        if stance and stance.quote and stance.position in ("support", "challenge"):
            found.setdefault((stance.quote, stance.position == "support"), {})[role] = None
    return tuple(
        Evidence(place, supports, tuple(roles))
        for (text, supports), roles in found.items()
        if (place := located(debate.case, text)) is not None
    )


def _cant_miss(debate: Debate, top: Sequence[str]) -> tuple[CantMiss, ...]:
    """The union of what the roles name, equal names together; what the differential already holds is left out."""
    named: list[tuple[str, Danger]] = [
        (role, danger)
        for role, answer in debate.safety.items()
        for danger in answer.conditions
        if not any(labels.same(danger.diagnosis, name) for name in top)
    ]
    groups = labels.merge([danger.diagnosis for _, danger in named])
    return tuple(
        CantMiss(
            diagnosis=named[group[0]][1].diagnosis,
            why=named[group[0]][1].why,
            quote=located(debate.case, named[group[0]][1].quote),
            test=named[group[0]][1].test,
            by=tuple(dict.fromkeys(named[index][0] for index in group)),
        )
        for group in groups
    )
