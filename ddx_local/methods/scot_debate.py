"""SCoT's book-keeping: who sits on the panel, what was said so far, who is dropped, how votes are counted. It asks nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ddx_local.case import Case
from ddx_local.methods import voting
from ddx_local.methods.master_list import Entry, Proposed
from ddx_local.methods.scot_options import Options
from ddx_local.methods.scot_steps import Exchange, Finding, Positions, Relevance, Safety, Stance, Vote
from ddx_local.methods.voting import Count

STYLES = {
    "innovative": "You look for explanations that others overlook.",
    "conservative": "You stay close to the findings and prefer the explanation that fits them all.",
}


def styles(agents: int) -> tuple[str, ...]:
    """The seats' styles: two in five innovative, rounded; a single agent is conservative."""
    innovative = round(agents * 2 / 5)
    return ("innovative",) * innovative + ("conservative",) * (agents - innovative)


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


def with_supports(
    positions: Mapping[str, Positions], entries: Sequence[Entry], additions: Sequence[Proposed]
) -> dict[str, Positions]:
    """Positions with each addition's proposer as its supporter; who has a stance on what it was merged into keeps that."""
    found = dict(positions)
    for item in additions:
        entry = next((entry for entry in entries if item in entry.proposed), None)
        if entry is None or entry.diagnosis in found[item.role].stances:
            continue  # left out of the list, or already judged under another wording
        said = found[item.role]
        quote = next(iter(item.proposal.evidence), None)
        support = Stance("support", quote, item.proposal.reason)
        found[item.role] = replace(said, stances={**said.stances, entry.diagnosis: support})
    return found


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
