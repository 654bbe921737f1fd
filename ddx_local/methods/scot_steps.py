"""SCoT's questions: the answers' types, and the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ddx_local.flow import Step
from ddx_local.methods.proposals import Danger, Proposal, read_dangers, read_differential, read_proposals, read_quote

Position = Literal["support", "challenge", "neutral", "withdrawn"]


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
class Safety:
    conditions: tuple[Danger, ...]
    critical: tuple[str, ...]


def _stance(item: Any, position: Position) -> Stance:
    return Stance(position, read_quote(item["quote"]), item["reason"].strip())


def _stances(items: Any) -> dict[str, Stance]:
    return {item["diagnosis"]: _stance(item, item["position"]) for item in items}


def _findings(answer: Any) -> tuple[Finding, ...]:
    return tuple(
        Finding(item["finding"].strip(), read_quote(item["quote"]), item["urgency"], item["step"].strip())
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
    return Safety(read_dangers(answer["conditions"]), tuple(answer["critical"]))


PANEL: Step[tuple[str, ...]] = Step("scot/panel", tuple)
RELEVANCE = Step("scot/relevance", lambda answer: Relevance(int(answer["relevance"]), answer["reason"].strip()))
TRIAGE = Step("scot/triage", _findings)
DIFFERENTIAL = Step("scot/differential", read_differential)
MERGE = Step("scot/merge", lambda answer: tuple(item["verdict"] == "same" for item in answer["pairs"]))
POSITIONS = Step("scot/positions", _positions)
EXCHANGE = Step("scot/exchange", _exchange)
FINAL = Step("scot/final", _final)
VOTE = Step("scot/vote", _vote)
CANT_MISS = Step("scot/cant_miss", _safety)
