"""MAM's questions: the options, the answers' types, and the steps that read them."""

from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import Proposal, read_differential


@dataclass(frozen=True, slots=True)
class Options:
    """Options of MAM.

    Args:
        roles: Specialists at most; the general practitioner says how many the case needs.
        rounds: Rounds of the meeting at most.
        answers: Diagnoses of a specialist at most.
        k: Diagnoses of the answer at most.
        temperature: Sampling temperature of the specialists.
    """

    roles: int = 3
    rounds: int = 3
    answers: int = 3
    k: int = 5
    temperature: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"roles": (1, 5), "rounds": (1, 10), "answers": (1, 5), "k": (1, 10), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class Opinion:
    assessment: str
    differential: tuple[Proposal, ...]
    conclusion: str


@dataclass(frozen=True, slots=True)
class Summary:
    summary: str
    differential: tuple[str, ...]


def _opinion(answer: Any) -> Opinion:
    return Opinion(answer["assessment"].strip(), read_differential(answer), answer["conclusion"].strip())


def _or_none(text: str | None) -> str:
    return text.strip() if text else ""


ROLES: Step[tuple[str, ...]] = Step("mam/roles", tuple)
OPINION = Step("mam/opinion", _opinion)
REVIEW = Step("mam/review", lambda answer: _or_none(answer["correction"]))
"""What has to be corrected; '' without an error."""
REVISE = Step("mam/revise", _opinion)
SUMMARY = Step("mam/summary", lambda answer: Summary(answer["summary"].strip(), tuple(answer["differential"])))
VOTE = Step("mam/vote", lambda answer: _or_none(answer["objection"]))
"""What speaks against the summary; '' is agreement."""
FINAL: Step[tuple[str, ...]] = Step("mam/final", lambda answer: tuple(answer["ballot"]))
