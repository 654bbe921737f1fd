"""The counterfactual method's questions: the answers' types, and the steps that read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.flow import Step
from ddx_local.methods.edits import Edit
from ddx_local.methods.proposals import Weighed, read_quotes


@dataclass(frozen=True, slots=True)
class Candidate:
    diagnosis: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    facts: tuple[str, ...]
    report: str


@dataclass(frozen=True, slots=True)
class Stance:
    """Where a role stands. `questions` and `answers` are (to whom, text)."""

    diagnosis: str
    reasoning: str
    discriminating: tuple[str, ...]
    tests_show: str
    questions: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str], ...]
    confidence: str


@dataclass(frozen=True, slots=True)
class Summary:
    agreed: str
    disputed: str
    open: str


@dataclass(frozen=True, slots=True)
class Verdict:
    diagnosis: str
    reasoning: str
    decides: tuple[str, ...]
    confidence: str


@dataclass(frozen=True, slots=True)
class Trace:
    candidates: Mapping[str, Weighed]
    conclusion: str
    would_change: str


def _edits(answer: Any) -> tuple[Edit, ...]:
    found = []
    for operation, feature, pieces in answer["edits"]:
        swaps = [(piece, "") for piece in pieces] if operation == "remove" else pieces
        spans = tuple((quote.strip(), new.strip()) for quote, new in swaps if quote is not None)
        found.append(Edit(operation, feature, spans))
    return tuple(found)


def _exchange(items: Any, what: str) -> tuple[tuple[str, str], ...]:
    """Questions or answers by addressee; two to the same one are joined, so that none is lost."""
    found: dict[str, list[str]] = {}
    for item in items:
        found.setdefault(item["to"], []).append(item[what].strip())
    return tuple((to, " ".join(dict.fromkeys(texts))) for to, texts in found.items())


def _stance(answer: Any) -> Stance:
    return Stance(
        diagnosis=answer["diagnosis"].strip(),
        reasoning=(answer["reasoning"] + (f" Criticism: {answer['critique']}" if "critique" in answer else "")).strip(),
        discriminating=read_quotes(answer["discriminating"]),
        tests_show=answer.get("tests_show", "").strip(),
        questions=_exchange(answer["questions"], "question"),
        answers=_exchange(answer["answers"], "answer"),
        confidence=answer["confidence"],
    )


def _trace(answer: Any) -> Trace:
    weighed = {
        item["diagnosis"]: Weighed(read_quotes(item["for"]), read_quotes(item["against"]), item["conclusion"].strip())
        for item in answer["candidates"]
    }
    return Trace(weighed, answer["conclusion"].strip(), answer["would_change"].strip())


def _candidates(answer: Any) -> tuple[Candidate, ...]:
    return tuple(Candidate(item["diagnosis"].strip(), item["reason"].strip()) for item in answer["differential"])


TRIAGE: Step[tuple[str, ...]] = Step("counterfactual/triage", tuple)
DIFFERENTIAL = Step("counterfactual/differential", _candidates)
REPORT = Step("counterfactual/report", lambda answer: Report(read_quotes(answer["facts"]), answer["report"].strip()))
EDIT = Step("counterfactual/edit", _edits)
PROBABILITY: Step[Any] = Step("counterfactual/probability", lambda answer: answer)
STANCE = Step("counterfactual/stance", _stance)
CLINICIAN = Step("counterfactual/clinician", _stance)
SUMMARY = Step(
    "counterfactual/summary",
    lambda answer: Summary(answer["agreed"].strip(), answer["disputed"].strip(), answer["open"].strip()),
)
JUDGE = Step(
    "counterfactual/judge",
    lambda answer: Verdict(
        answer["diagnosis"], answer["reasoning"].strip(), read_quotes(answer["decides"]), answer["confidence"]
    ),
)
TRACE = Step("counterfactual/trace", _trace)
