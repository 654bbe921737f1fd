"""DxChain's questions: the options, the answers' types, the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import read_quotes

EXPERTS: Mapping[str, str] = {
    "diagnostic_test_specialist": "laboratory and function tests",
    "medical_imaging_specialist": "imaging",
    "clinical_specialist": "history and examination, as the leading diagnosis would have them",
    "internal_medicine_specialist": "the patient as a whole: chronic diseases, medications, how the findings hang together",
    "medical_coder": "standard names of diagnoses, duplicates, symptoms that are no diagnoses",
}
"""The experts that a strategy may call, and their fields (the paper's list)."""

KINDS = ("broad", "focused", "alternative")
"""Kinds of strategies, in the order in which they are proposed."""

Kind = Literal["primary", "secondary"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of DxChain.

    Args:
        phases: 1 (memory), 1+2 (and navigation), 1+2+3 (and debate).
        turns: Turns of the navigation at most.
        tau: Conflict between finding and expectation from which on it is planned anew, in [0, 1].
        strategies: Strategies that a turn proposes: broad and focused, and the alternative.
        k: Diagnoses at most.
        cases: A file of past cases with diagnoses (JSON Lines); none is looked up without it.
        nearest: Past cases that the experts see.
        temperature: Sampling temperature of all.
    """

    phases: Literal["1", "1+2", "1+2+3"] = "1+2+3"
    turns: int = 20
    tau: float = 0.5
    strategies: int = 3
    k: int = 5
    cases: str = ""
    nearest: int = 3
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if self.phases not in ("1", "1+2", "1+2+3"):
            raise ValueError("phases must be 1, 1+2 or 1+2+3")
        check_bounds(self, {"turns": (1, 50), "strategies": (2, 3), "k": (1, 10), "nearest": (1, 10)})
        check_bounds(self, {"tau": (0, 1), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class Strategy:
    """A branch: what it is for, whom it calls, and what it expects them to find."""

    kind: str
    name: str
    reason: str
    experts: tuple[str, ...]
    past_cases: bool
    expected: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What an expert looked for, the case's own words for it ('' where it is not recorded), and what they mean."""

    asked: str
    quote: str
    means: str


@dataclass(frozen=True, slots=True)
class Working:
    """A working diagnosis; `confidence` in [0, 1]."""

    diagnosis: str
    kind: Kind
    evidence: tuple[str, ...]
    reason: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The consolidated diagnosis; `ruled_out` holds (diagnosis, reason)."""

    summary: str
    diagnoses: tuple[Working, ...]
    ruled_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Review:
    passes: bool
    weakness: str


def _strategy(item: Any) -> Strategy:
    return Strategy(
        kind=item["kind"],
        name=item["name"].strip(),
        reason=item["reason"].strip(),
        experts=tuple(item["experts"]),
        past_cases=item["past_cases"] == "yes",
        expected=item["expected"].strip(),
    )


def _observed(item: Any) -> Observed:
    recorded = item["recorded"]
    quote = "" if recorded in (None, "not recorded") else recorded.strip()
    return Observed(item["asked"].strip(), quote, item["means"].strip())


def _synthesis(answer: Any) -> Synthesis:
    diagnoses = tuple(
        Working(
            item["diagnosis"].strip(), item["kind"], read_quotes(item["evidence"]), item["reason"].strip(), confidence
        )
        for item in answer["diagnoses"]
        for confidence in [item["confidence"] / 100]
    )
    gone = tuple((item["diagnosis"].strip(), item["reason"].strip()) for item in answer["ruled_out"])
    return Synthesis(answer["summary"].strip(), diagnoses, gone)


EXPAND = Step("dxchain/expand", lambda answer: tuple(_strategy(item) for item in answer))
SELECT = Step(
    "dxchain/select", lambda answer: {item["strategy"]: (item["information"], item["safety"]) for item in answer}
)
EXPERT = Step("dxchain/expert", lambda answer: tuple(_observed(item) for item in answer))
CHECK: Step[Any] = Step("dxchain/check", lambda answer: answer)
SYNTHESIS = Step("dxchain/synthesis", _synthesis)
REFLECTION = Step("dxchain/reflection", lambda answer: Review(answer["passes"], answer["weakness"].strip()))
