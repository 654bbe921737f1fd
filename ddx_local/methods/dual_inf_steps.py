"""Dual-Inf's questions: the options with the program's values, and the steps that read the answers.

It knows nothing of iterations or of what is done with an answer.
"""

from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import read_differential

LEAST_FINDINGS = 3
"""Textbook findings of a disease at least."""

YES_NO = ("yes", "no")
"""What an examination weighs."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of Dual-Inf.

    Args:
        iterations: Iterations at most.
        k: Diagnoses at most, of a list and of the answer. The same for every case, whatever its reference holds.
        facts: Quotes for a diagnosis in forward inference at most.
        findings: Textbook findings of a diagnosis at most.
        low: A diagnosis with at most this many confirmed findings is doubtful.
        threshold: Probability of "yes" from which a finding is confirmed, in [0, 1] (not calibrated yet).
        temperature: Sampling temperature of both inferences.
    """

    iterations: int = 5
    k: int = 5
    facts: int = 4
    findings: int = 8
    low: int = 2
    threshold: float = 0.5
    temperature: float = 0.1

    def __post_init__(self) -> None:
        check_bounds(self, {"iterations": (1, 10), "k": (1, 10), "facts": (1, 8), "findings": (LEAST_FINDINGS, 15)})
        check_bounds(self, {"low": (0, 10), "threshold": (0, 1), "temperature": (0, 2)})


def _findings(answer: Any) -> tuple[str, ...]:
    """Textbook findings, each once, whatever its case."""
    found: dict[str, str] = {}
    for item in answer["findings"]:
        found.setdefault(item.strip().casefold(), item.strip())
    return tuple(found.values())


def _places(answer: Any) -> tuple[str, ...]:
    """The quote of each finding, in order; '' where the case has nothing to quote."""
    return tuple((item["quote"] or "").strip() for item in answer["places"])


FORWARD = Step("dual_inf/forward", read_differential)
REFLECT = Step("dual_inf/reflect", read_differential)
BACKWARD = Step("dual_inf/backward", _findings)
MANIFESTATION: Step[Any] = Step("dual_inf/manifestation", lambda answer: answer)
MENTIONED: Step[Any] = Step("dual_inf/mentioned", lambda answer: answer)
PLACE = Step("dual_inf/place", _places)
