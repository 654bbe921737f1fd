"""MDAgents' questions: the options, the answers' types, and the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import Proposal, read_differential, read_quotes

Complexity = Literal["low", "moderate", "high"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of MDAgents.

    Args:
        complexity: adaptive (the model says), or low, moderate or high for every case (the paper's static ablation).
        experts: Experts of a moderate case.
        rounds: Rounds of discussion of a moderate case at most.
        teams: Teams of a high case; the last one reviews the others' reports.
        members: Members of a team, the lead among them.
        k: Diagnoses at most, of a list and of the answer.
        most: Diagnoses that a moderator orders at most.
        temperature: Sampling temperature of clinician, experts and teams.
    """

    complexity: Literal["adaptive", "low", "moderate", "high"] = "adaptive"
    experts: int = 5
    rounds: int = 3
    teams: int = 3
    members: int = 3
    k: int = 5
    most: int = 12
    temperature: float = 0.3

    def __post_init__(self) -> None:
        if self.complexity not in ("adaptive", "low", "moderate", "high"):
            raise ValueError("complexity must be adaptive, low, moderate or high")
        check_bounds(self, {"experts": (2, 10), "rounds": (0, 10), "teams": (1, 5), "members": (1, 5)})
        check_bounds(self, {"k": (1, 10), "most": ("k", 20), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class Talk:
    """Expert -> message to it; nothing where the speaker has nothing to say."""

    messages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Assistance:
    findings: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Report:
    report: str
    differential: tuple[Proposal, ...]


def _addressed(items: Any, what: str) -> dict[str, str]:
    """Texts by addressee; two to the same one are joined, so that none is lost."""
    found: dict[str, str] = {}
    for item in items:
        text = item[what].strip()
        found[item["to"]] = f"{found[item['to']]} {text}" if item["to"] in found else text
    return found


def _assistance(answer: Any) -> Assistance:
    return Assistance(read_quotes(answer["findings"]), answer["answer"].strip())


def _ballot(answer: Any) -> tuple[str, ...]:
    return tuple(answer["ballot"])


COMPLEXITY: Step[Complexity] = Step("mdagents/complexity", lambda answer: answer["complexity"])
CLINICIAN = Step("mdagents/clinician", read_differential)
RECRUIT: Step[tuple[str, ...]] = Step("mdagents/recruit", tuple)
OPINION = Step("mdagents/opinion", read_differential)
TALK = Step("mdagents/talk", lambda answer: Talk(_addressed(answer["messages"], "message")))
UPDATE = Step("mdagents/update", read_differential)
MODERATOR = Step("mdagents/moderator", _ballot)
TEAMS: Step[tuple[str, ...]] = Step("mdagents/teams", tuple)
LEAD = Step("mdagents/lead", lambda answer: _addressed(answer["questions"], "question"))
ASSIST = Step("mdagents/assist", _assistance)
CONCLUDE = Step("mdagents/conclude", lambda answer: Report(answer["report"].strip(), read_differential(answer)))
DECISION = Step("mdagents/decision", _ballot)
