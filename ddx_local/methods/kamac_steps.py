"""KAMAC's own question and its options; it shares the others with MDAgents."""

from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step


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
        if not 1 <= self.start <= 10:
            raise ValueError("start must be 1 to 10")
        if not self.start <= self.experts <= 12:
            raise ValueError("experts must be start to 12")
        if not 0 <= self.turns <= 10:
            raise ValueError("turns must be 0 to 10")
        if not 1 <= self.k <= 10:
            raise ValueError("k must be 1 to 10")
        if not self.k <= self.most <= 20:
            raise ValueError("most must be k to 20")
        if not 0 <= self.temperature <= 2:
            raise ValueError("temperature must be 0 to 2")


@dataclass(frozen=True, slots=True)
class Gap:
    """The specialist whose knowledge is missing and why; '' where none is."""

    specialist: str
    reason: str


def _gap(answer: Any) -> Gap:
    return Gap(answer.get("specialist", ""), answer.get("reason", "").strip())


GAP = Step("kamac/gap", _gap)
