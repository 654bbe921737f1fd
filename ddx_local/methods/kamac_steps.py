"""KAMAC's own question and its options; it shares the others with MDAgents."""

from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds


@dataclass(frozen=True, slots=True)
class Options:
    """Options of KAMAC.

    Args:
        start: Experts at the start.
        experts: Experts at most, with those who are recruited.
        turns: Turns at most.
        k: Diagnoses at most, of a list and of the answer.
        most: Diagnoses that the moderator orders at most.
        temperature: Sampling temperature of the experts.
    """

    start: int = 1
    experts: int = 5
    turns: int = 3
    k: int = 5
    most: int = 12
    temperature: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"start": (1, 10), "experts": ("start", 12), "turns": (0, 10)})
        check_bounds(self, {"k": (1, 10), "most": ("k", 20), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class Gap:
    """The specialist whose knowledge is missing and why; '' where none is."""

    specialist: str
    reason: str


def _gap(answer: Any) -> Gap:
    return Gap(answer.get("specialist", ""), answer.get("reason", "").strip())


GAP = Step("kamac/gap", _gap)
