"""SCoT's book-keeping: what a panel has said so far, who is dropped, how votes are counted, and the differential at the end.

Pure: it asks nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddx_local.case import CantMiss, Case, Differential, Evidence, Quote, TriageItem
from ddx_local.case import Entry as Ranked
from ddx_local.clinical import labels
from ddx_local.clinical.quotes import locate
from ddx_local.methods import voting
from ddx_local.methods.master_list import Entry
from ddx_local.methods.scot_steps import Danger, Exchange, Finding, Options, Positions, Relevance, Safety, Vote
from ddx_local.methods.voting import Count


@dataclass
class Debate:
    """Everything that was said; rounds that are switched off stay empty. `seats` maps a role to its style."""

    case: Case
    options: Options
    seats: Mapping[str, str]
    relevance: Mapping[str, Relevance] = field(default_factory=dict)
    triage: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    positions: Mapping[str, Positions] = field(default_factory=dict)
    exchange: Mapping[str, Exchange] = field(default_factory=dict)
    final: Mapping[str, Positions] = field(default_factory=dict)
    votes: Mapping[str, Vote] = field(default_factory=dict)
    safety: Mapping[str, Safety] = field(default_factory=dict)

    def temperature(self, style: str) -> float:
        options = self.options
        return options.temperature_innovative if style == "innovative" else options.temperature_conservative

    def count(self, entries: Sequence[Entry]) -> Count:
        """The vote; without a voting round the number of proposers counts, then the best place.

        An addition's place comes after all places of the lists, so that the best place orders by the earlier proposal.
        """
        ordered = [entry.diagnosis for entry in sorted(entries, key=lambda entry: entry.best_place)]
        if not self.votes:
            return voting.majority([entry.diagnosis for entry in entries for _ in entry.roles], ordered)
        weights = {
            role: {name: voting.axis_score(scores) for name, scores in vote.scores.items()}
            for role, vote in self.votes.items()
        }
        supports = {name: self._holding(name, "support") for name in ordered}
        return voting.borda(
            {role: vote.ballot for role, vote in self.votes.items()}, weights, self._voices(), supports, ordered
        )

    def _voices(self) -> dict[str, float]:
        if not (self.options.relevance_weighting and self.relevance):
            return {}
        mean = sum(answer.relevance for answer in self.relevance.values()) / len(self.relevance)
        return {role: answer.relevance / mean for role, answer in self.relevance.items()}

    def _holding(self, name: str, position: str) -> int:
        return sum(
            answer.stances[name].position == position for answer in self.final.values() if name in answer.stances
        )


def own_challenged(role: str, entries: Sequence[Entry], positions: Mapping[str, Positions]) -> tuple[str, ...]:
    """The role's own proposals that somebody else challenges."""
    return tuple(
        entry.diagnosis
        for entry in entries
        if role in entry.roles
        and any(
            answer.stances[entry.diagnosis].position == "challenge"
            for other, answer in positions.items()
            if other != role and entry.diagnosis in answer.stances
        )
    )


def dropped(entries: Sequence[Entry], final: Mapping[str, Positions]) -> tuple[str, ...]:
    """Diagnoses that no role supports at the end and some role challenges; a withdrawal counts as a challenge."""
    out = []
    for entry in entries:
        held = [
            answer.stances[entry.diagnosis].position for answer in final.values() if entry.diagnosis in answer.stances
        ]
        if "support" not in held and ("challenge" in held or "withdrawn" in held):
            out.append(entry.diagnosis)
    return tuple(out)


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
            TriageItem(item.finding, _located(debate.case, item.quote), item.urgency, item.step, role)
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
        Evidence(located, supports, tuple(roles))
        for (text, supports), roles in found.items()
        if (located := _located(debate.case, text)) is not None
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
            quote=_located(debate.case, named[group[0]][1].quote),
            test=named[group[0]][1].test,
            by=tuple(dict.fromkeys(named[index][0] for index in group)),
        )
        for group in groups
    )


def _located(case: Case, quote: str | None) -> Quote | None:
    """Where a quote stands first; raises `ParseError` for one that does not stand in the case."""
    if not quote:
        return None
    span = locate(case.text, quote)
    return Quote(quote, span.start, span.end)
