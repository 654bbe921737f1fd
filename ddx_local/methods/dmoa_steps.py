"""DMoA's questions: the options with the paper's values, the answers' types, and the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import (
    Danger,
    Proposal,
    read_dangers,
    read_differential,
    read_proposals,
    read_texts,
)

AGGREGATOR, SUMMARIZER, ALONE_ROLE = "aggregator", "summarizer", "physician"


def presenter(seat: str) -> str:
    return f"presenter {seat}"


def rebutter(seat: str) -> str:
    return f"rebutter {seat}"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of DMoA.

    Args:
        debaters: N, each a presenter and a rebutter; 1 has no aggregator (the paper's dialogue of two).
        debate_rounds: Rebuttals and revisions of each debater; the paper's dialogue of two has 5.
        rebutter: off leaves out rebuttals and revisions: a plain mixture of agents.
        prompt_only: One call that is told to go through the whole debate by itself.
        partition: Each debater reads only some sections of the case.
        k: Diagnoses of a presentation and of the answer.
        temperature: Sampling temperature of presenters and rebutters.
        presenter_tokens: Budget of a presenter, prompt and longest answer together.
        rebutter_tokens: Budget of a rebutter.
        aggregator_tokens: Budget of the aggregator, and of the one call of prompt_only.
    """

    debaters: int = 4
    debate_rounds: int = 1
    rebutter: bool = True
    prompt_only: bool = False
    partition: bool = False
    k: int = 3
    temperature: float = 0.7
    presenter_tokens: int = 4000
    rebutter_tokens: int = 8000
    aggregator_tokens: int = 16000

    def __post_init__(self) -> None:
        check_bounds(self, {"debaters": (1, 5), "debate_rounds": (1, 10), "k": (1, 5), "temperature": (0, 2)})
        budgets = ("presenter_tokens", "rebutter_tokens", "aggregator_tokens")
        check_bounds(self, dict.fromkeys(budgets, (256, 1 << 20)))
        if not self.rebutter and (self.debaters == 1 or self.debate_rounds > 1):
            raise ValueError("debaters must be 2 to 5 and debate_rounds 1 where rebutter is off: nobody debates")
        if self.partition and (self.debaters == 1 or self.prompt_only):
            raise ValueError(
                "partition needs debaters of 2 to 5, among whom the sections are dealt, and no prompt_only"
            )
        if self.temperature == 0 and self.debaters > 1 and not (self.partition or self.prompt_only):
            raise ValueError("temperature must be above 0: debaters who read the same would all say the same")


@dataclass(frozen=True, slots=True)
class Presentation:
    analysis: str
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True)
class Rebuttal:
    """What a presentation claims without a quote, what it lacks; `dangers`: what it passes over."""

    unsupported: tuple[str, ...]
    missing: tuple[str, ...]
    alternatives: tuple[Proposal, ...]
    dangers: tuple[Danger, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The aggregator's answer; `conflicts` holds (kept, over, because)."""

    ranking: tuple[str, ...]
    reason: str
    conflicts: tuple[tuple[str, str, str], ...]
    uncertainty: str
    confidence: str


def _presentation(answer: Any) -> Presentation:
    return Presentation(answer["analysis"].strip(), read_differential(answer))


def _rebuttal(answer: Any) -> Rebuttal:
    return Rebuttal(
        read_texts(answer["unsupported"]),
        read_texts(answer["missing"]),
        read_proposals(answer["alternatives"]),
        read_dangers(answer["safety"]),
    )


def _verdict(answer: Mapping[str, Any]) -> Verdict:
    conflicts = tuple(
        (item["kept"], item["over"], item["because"].strip())
        for item in answer["conflicts"]
        if item["kept"] != item["over"]
    )
    return Verdict(
        tuple(answer["differential"]),
        answer["reason"].strip(),
        conflicts,
        answer["uncertainty"].strip(),
        answer["confidence"],
    )


PRESENT = Step("dmoa/present", _presentation)
REBUT = Step("dmoa/rebut", _rebuttal)
REVISE = Step("dmoa/revise", _presentation)
ALONE = Step("dmoa/alone", read_differential)
EXTRACT: Step[tuple[str, ...]] = Step("dmoa/extract", lambda answer: read_texts(answer["pieces"]))
AGGREGATE = Step("dmoa_record/aggregate", _verdict)
CONDENSE = Step("dmoa_record/condense", lambda answer: str(answer["summary"]).strip())
