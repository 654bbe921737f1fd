"""SCoT's answer: the differential with evidence, votes and stances, and what stands beside it. It asks nothing."""

from collections.abc import Sequence

from ddx_local.case import Differential, Evidence, TriageItem
from ddx_local.case import Entry as Ranked
from ddx_local.methods.lists import by_quote, cant_miss, located
from ddx_local.methods.master_list import Entry
from ddx_local.methods.scot_debate import Debate
from ddx_local.methods.voting import Count


def assemble(debate: Debate, entries: Sequence[Entry], counted: Count) -> Differential:
    """The differential: the first k by the count, with evidence, votes, stances, and what stands beside it."""
    by_name = {entry.diagnosis: entry for entry in entries}
    critical = {name for answer in debate.safety.values() for name in answer.critical}
    top = counted.ranking[: debate.options.k]
    dangers = [(role, danger) for role, answer in debate.safety.items() for danger in answer.conditions]
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
        cant_miss=cant_miss(debate.case, dangers, top),
        triage=tuple(
            TriageItem(item.finding, located(debate.case, item.quote), item.urgency, item.step, role)
            for role, findings in debate.triage.items()
            for item in findings
        ),
        panel=tuple(debate.seats),
    )


def _evidence(debate: Debate, entry: Entry) -> tuple[Evidence, ...]:
    """Quotes of the proposals and of the final positions (else the first ones), each once, with all who gave it."""
    said = [(item.role, quote, True) for item in entry.proposed for quote in item.proposal.evidence]
    for role, answer in (debate.final or debate.positions).items():
        stance = answer.stances.get(entry.diagnosis)
        if stance and stance.quote and stance.position in ("support", "challenge"):
            said.append((role, stance.quote, stance.position == "support"))
    return by_quote(debate.case, said)
