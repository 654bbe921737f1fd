"""MAC's questions: the options, the answers' types, the steps that read them."""

from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.flow import Step
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.proposals import Proposal, read_differential, read_texts


@dataclass(frozen=True, slots=True)
class Options:
    """Options of MAC.

    Args:
        doctors: D, doctors beside the supervisor.
        rounds: Rounds of discussion at most.
        k: Diagnoses of a list at most.
        stage: initial (with the tests that would help) or follow_up (without).
        temperature: Sampling temperature of all.
    """

    doctors: int = 4
    rounds: int = 3
    k: int = 5
    stage: Literal["initial", "follow_up"] = "initial"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        # 8 doctors with 8 diagnoses each are 64 candidates, the most that a grammar can tell apart.
        check_bounds(self, {"doctors": (2, 8), "rounds": (1, 10), "k": (1, 8)})
        if self.stage not in ("initial", "follow_up"):
            raise ValueError("stage must be initial or follow_up")
        check_bounds(self, {"temperature": (0, 2)})

    @property
    def tests(self) -> int:
        """Tests that one answer may name."""
        return 3 if self.stage == "initial" else 0


@dataclass(frozen=True, slots=True)
class View:
    """What a doctor says in a round; the first of the list is the most likely."""

    comment: str
    differential: tuple[Proposal, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supervision:
    """What the supervisor says after a round. `ranking`: the most likely first; `challenges`: (to whom, text)."""

    summary: str
    agreed: bool
    ranking: tuple[str, ...]
    disagreements: tuple[str, ...]
    challenges: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def _view(answer: Any) -> View:
    return View(answer["comment"].strip(), read_differential(answer), read_texts(answer["tests"]))


def _supervision(answer: Any) -> Supervision:
    return Supervision(
        summary=answer["summary"].strip(),
        agreed=answer["verdict"] == "agreed",
        ranking=tuple(dict.fromkeys([answer["most_likely"], *answer["others"]])),
        disagreements=read_texts(answer.get("disagreements", ())),
        challenges=tuple((item["to"], item["challenge"].strip()) for item in answer.get("challenges", ())),
        tests=read_texts(answer["tests"]),
    )


OPENING = Step("mac/opening", _view)
DOCTOR = Step("mac/doctor", _view)
SUPERVISOR = Step("mac/supervisor", _supervision)
