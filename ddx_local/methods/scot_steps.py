"""SCoT's questions: the options with the paper's values, the answers' types, and the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.flow import Step

Position = Literal["support", "challenge", "neutral", "withdrawn"]

ROUNDS = ("relevance", "triage", "merge", "refinement", "voting", "cant_miss")
"""What `without` can switch off; the independent lists (round 3) cannot be."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of SCoT.

    Args:
        agents: Seats of the panel; two in five are innovative, the others conservative. 1 is the single-agent ablation.
        k: Diagnoses of a differential at most.
        temperature_innovative: Sampling temperature of the innovative seats.
        temperature_conservative: Sampling temperature of the conservative seats.
        same_at: Cosine similarity from which two names are one diagnosis (not calibrated yet).
        ask_at: Cosine similarity from which the model is asked whether they are (not calibrated yet).
        most: Entries of the master list at most.
        relevance_weighting: Weigh an agent's votes by the relevance that it gave its specialty.
        without: Rounds to leave out, for ablations: relevance, triage, merge, refinement, voting, cant_miss.
    """

    agents: int = 5
    k: int = 5
    temperature_innovative: float = 0.7
    temperature_conservative: float = 0.3
    same_at: float = 0.90
    ask_at: float = 0.75
    most: int = 12
    relevance_weighting: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.agents <= 12:
            raise ValueError("agents must be 1 to 12")
        if not 1 <= self.k <= 10:
            raise ValueError("k must be 1 to 10")
        if not self.k <= self.most <= 20:
            raise ValueError("most must be k to 20")
        if not (0 <= self.temperature_innovative <= 2 and 0 <= self.temperature_conservative <= 2):
            raise ValueError("temperatures must be 0 to 2")
        if not 0 < self.ask_at <= self.same_at <= 1:
            raise ValueError("ask_at and same_at must be in (0, 1], ask_at not above same_at")
        if unknown := [name for name in self.without if name not in ROUNDS]:
            raise ValueError(f"without: no round {unknown[0]!r}; known: {', '.join(ROUNDS)}")
        if self.relevance_weighting and "relevance" in self.without:
            raise ValueError("relevance_weighting needs the relevance round, which `without` leaves out")


@dataclass(frozen=True, slots=True)
class Relevance:
    relevance: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    finding: str
    quote: str | None
    urgency: Literal["emergent", "urgent", "routine"]
    step: str


@dataclass(frozen=True, slots=True)
class Proposal:
    diagnosis: str
    evidence: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Stance:
    position: Position
    quote: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Positions:
    """Diagnosis -> stance, and the diagnoses that the list lacks."""

    stances: Mapping[str, Stance]
    missing: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """Answers to challenges of one's own proposals, and challenges of others', by diagnosis."""

    answers: Mapping[str, str]
    challenges: Mapping[str, Stance]


@dataclass(frozen=True, slots=True)
class Vote:
    """Diagnosis -> (insight, breadth, actionability), each 1 to 10, and the ballot, the most likely first."""

    scores: Mapping[str, tuple[int, int, int]]
    ballot: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Danger:
    diagnosis: str
    why: str
    quote: str | None
    test: str


@dataclass(frozen=True, slots=True)
class Safety:
    conditions: tuple[Danger, ...]
    critical: tuple[str, ...]


def read_proposals(items: Any) -> tuple[Proposal, ...]:
    """A list of proposals, each diagnosis once, in the order given."""
    found: dict[str, Proposal] = {}
    for item in items:
        name = item["diagnosis"].strip()
        evidence = tuple(dict.fromkeys(quote.strip() for quote in item["evidence"] if quote.strip()))
        found.setdefault(name.casefold(), Proposal(name, evidence, item["reason"].strip()))
    return tuple(found.values())


def _quote(value: str | None) -> str | None:
    return value.strip() if value else None


def _stance(item: Any, position: Position) -> Stance:
    return Stance(position, _quote(item["quote"]), item["reason"].strip())


def _stances(items: Any) -> dict[str, Stance]:
    return {item["diagnosis"]: _stance(item, item["position"]) for item in items}


def _findings(answer: Any) -> tuple[Finding, ...]:
    return tuple(
        Finding(item["finding"].strip(), _quote(item["quote"]), item["urgency"], item["step"].strip())
        for item in answer["findings"]
    )


def _positions(answer: Any) -> Positions:
    return Positions(_stances(answer["positions"]), read_proposals(answer["missing"]))


def _exchange(answer: Any) -> Exchange:
    answers: dict[str, str] = {}
    for item in answer["answers"]:
        answers.setdefault(item["diagnosis"], item["answer"].strip())
    challenges: dict[str, Stance] = {}
    for item in answer["challenges"]:
        challenges.setdefault(item["diagnosis"], _stance(item, "challenge"))
    return Exchange(answers, challenges)


def _final(answer: Any) -> Positions:
    stances = _stances(answer["positions"])
    for name in answer["withdrawn"]:
        stances[name] = Stance("withdrawn", stances[name].quote, stances[name].reason)
    return Positions(stances)


def _vote(answer: Any) -> Vote:
    scores = {
        item["diagnosis"]: (int(item["insight"]), int(item["breadth"]), int(item["actionability"]))
        for item in answer["scores"]
    }
    return Vote(scores, tuple(answer["ballot"]))


def _safety(answer: Any) -> Safety:
    conditions = tuple(
        Danger(item["diagnosis"].strip(), item["why"].strip(), _quote(item["quote"]), item["test"].strip())
        for item in answer["conditions"]
    )
    return Safety(conditions, tuple(answer["critical"]))


PANEL: Step[tuple[str, ...]] = Step("scot/panel", tuple)
RELEVANCE = Step("scot/relevance", lambda answer: Relevance(int(answer["relevance"]), answer["reason"].strip()))
TRIAGE = Step("scot/triage", _findings)
DIFFERENTIAL = Step("scot/differential", lambda answer: read_proposals(answer["differential"]))
MERGE = Step("scot/merge", lambda answer: tuple(item["verdict"] == "same" for item in answer["pairs"]))
POSITIONS = Step("scot/positions", _positions)
EXCHANGE = Step("scot/exchange", _exchange)
FINAL = Step("scot/final", _final)
VOTE = Step("scot/vote", _vote)
CANT_MISS = Step("scot/cant_miss", _safety)
