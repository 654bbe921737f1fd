"""MedAgents' questions: the options with the paper's values, the answers' types, the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import Weighed, read_differential, read_quotes, read_texts


@dataclass(frozen=True, slots=True)
class Options:
    """Options of MedAgents.

    Args:
        experts: Experts of the question's fields.
        option_experts: Experts who weigh the candidates; 0 leaves that round out.
        loops: Revisions of the report at most; 0 leaves the vote out.
        k: Candidates at most.
        temperature: Sampling temperature of all.
    """

    experts: int = 5
    option_experts: int = 2
    loops: int = 3
    k: int = 5
    temperature: float = 0.0

    def __post_init__(self) -> None:
        check_bounds(self, {"experts": (1, 10), "option_experts": (0, 5), "loops": (0, 10)})
        check_bounds(self, {"k": (1, 10), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class Analysis:
    findings: tuple[str, ...]
    analysis: str


@dataclass(frozen=True, slots=True)
class Report:
    key_facts: tuple[str, ...]
    analysis: str


@dataclass(frozen=True, slots=True)
class Vote:
    """`advice` is empty where the vote is yes."""

    agrees: bool
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    reason: str
    ranking: tuple[str, ...]


def _weighed(answer: Any) -> Mapping[str, Weighed]:
    return {
        item["diagnosis"]: Weighed(read_quotes(item["for"]), read_quotes(item["against"]), item["conclusion"].strip())
        for item in answer
    }


def _report(answer: Any) -> Report:
    return Report(read_texts(answer["key_facts"]), answer["analysis"].strip())


CANDIDATES = Step("medagents/candidates", read_differential)
EXPERTS: Step[tuple[str, ...]] = Step("medagents/experts", tuple)
OPTION_EXPERTS: Step[tuple[str, ...]] = Step("medagents/option_experts", tuple)
ANALYSIS = Step(
    "medagents/analysis", lambda answer: Analysis(read_quotes(answer["findings"]), answer["analysis"].strip())
)
OPTIONS = Step("medagents/options", _weighed)
REPORT = Step("medagents/report", _report)
VOTE = Step("medagents/vote", lambda answer: Vote(answer["vote"] == "yes", answer.get("advice", "").strip()))
REVISION = Step("medagents/revision", _report)
DECISION = Step("medagents/decision", lambda answer: Decision(answer["reason"].strip(), tuple(answer["ranking"])))
