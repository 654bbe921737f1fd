"""Scores: from recorded events and golds to one row a case, by a matcher. No engine is needed, and no event is changed.

One denominator: every selected case has a row. A failed case has no predictions and counts as wrong; it is never dropped.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ddx_local.clinical.labels import same
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.deliberation import Discussion, discussion
from ddx_local.evaluation.match import Matched, Matcher, distinct
from ddx_local.evaluation.metrics import PRF, Sets, ddxplus, soft
from ddx_local.evaluation.record import Bench, PlannedRun
from ddx_local.events import Answered, CaseFailed, CaseFinished, Event, Noted, RoundStarted
from ddx_local.store import Store

_CONFIDENCE = re.compile(r"\bconfidence ([0-9.]+(?:e-?[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a case cost."""

    calls: int = 0
    batches: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One case of one run, scored.

    Args:
        arm: Label of the method in the suite.
        model: Name of its model.
        seed: Of the run.
        case_id: Which case.
        status: finished, failed, or missing (never run: an interrupted benchmark).
        error: Kind of the failure, '' without one.
        predictions: Distinct diagnoses in order.
        golds: What is right.
        tp: One-to-one matches.
        prf: Of this case: from sets, or soft where the matcher is.
        first: Place of the first prediction that matches any gold, None for none.
        primary: Of the first that matches the first gold.
        pairs: (prediction, gold, similarity), by their places.
        unread: Verdicts that the judge gave and nobody could read.
        upper: `tp` if all of them were a yes.
        usage: What the case cost.
        confidence: What the method said of its first diagnosis: its probability, or the escalation's confidence.
        degraded: Kinds of notes that a reader has to know.
        discussion: As `Discussion`, as JSON; None for a case without answers.
        gaps: Counterfactuals as (before, after, signed gap, paper's gap, kept).
        groups: What results are shown apart by.
        ddxplus: DDXPlus' own metrics, where the data set has probabilities.
    """

    arm: str
    model: str
    seed: int
    case_id: str
    status: str
    error: str
    predictions: tuple[str, ...]
    golds: tuple[str, ...]
    tp: int
    prf: PRF
    first: int | None
    primary: int | None
    pairs: tuple[tuple[int, int, float], ...]
    unread: int
    upper: int
    usage: Usage
    confidence: float | None = None
    escalated: bool | None = None
    degraded: tuple[str, ...] = ()
    discussion: Mapping[str, Any] | None = None
    gaps: tuple[tuple[float, float, float, float, bool], ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    ddxplus: Mapping[str, float] | None = None

    @property
    def sets(self) -> Sets:
        return Sets(self.tp, len(self.predictions), len(self.golds))


@dataclass(frozen=True, slots=True)
class _Read:
    """What the events of a case hold, before matching."""

    status: str
    error: str
    answer: Mapping[str, Any]
    usage: Usage
    confidence: float | None
    escalated: bool | None
    degraded: tuple[str, ...]
    events: Sequence[Event]


async def score(bench: Bench, store: Store, matcher: Matcher) -> list[CaseScore]:
    """All rows of a benchmark, in order of runs and cases.

    Raises:
        StoreError: A run is gone from the store, or damaged.
    """
    labelled = {case.id: case for case in bench.cases}
    stored = {row.run_id for row in store.runs()}
    found = []
    for run in bench.runs:
        rows = [_scored(run, labelled[case_id], store, matcher, there=run.run_id in stored) for case_id in run.cases]
        # A judge answers many pairs in one batch; the others answer at once.
        found += await asyncio.gather(*rows)
    return found


async def _scored(run: PlannedRun, case: LabelledCase, store: Store, matcher: Matcher, *, there: bool) -> CaseScore:
    read = _read(store, run.run_id, case.id) if there else _Read("missing", "", {}, Usage(), None, None, (), ())
    entries = read.answer.get("differential", [])
    predictions = distinct([str(entry["diagnosis"]) for entry in entries])
    found = await matcher.match(predictions, case.gold) if predictions else Matched((), None, None)
    probability = entries[0].get("probability") if entries else None
    hits = [predictions[place] for place, _, _ in found.pairs]
    talk = _talk(read, store, run.run_id, hits, case.gold) if read.events else None
    return CaseScore(
        arm=run.arm,
        model=run.model,
        seed=run.seed,
        case_id=case.id,
        status=read.status,
        error=read.error,
        predictions=tuple(predictions),
        golds=case.gold,
        tp=len(found.pairs),
        prf=_prf(found, len(predictions), len(case.gold)),
        first=found.first,
        primary=found.primary,
        pairs=found.pairs,
        unread=found.unread,
        upper=found.upper,
        usage=read.usage,
        confidence=read.confidence if read.confidence is not None else probability,
        escalated=read.escalated,
        degraded=read.degraded,
        discussion=json.loads(json.dumps(asdict(talk))) if talk else None,
        gaps=tuple(
            (item["p_before"], item["p_after"], item["gap"], item["gap_paper"], item["kept"])
            for item in read.answer.get("counterfactuals", [])
        ),
        groups=dict(case.groups),
        ddxplus=_ddxplus(case, predictions, entries, found) if case.weights else None,
    )


def _ddxplus(
    case: LabelledCase, names: Sequence[str], entries: Sequence[Mapping[str, Any]], found: Matched
) -> dict[str, float]:
    """Predictions under the data set's names, with their probabilities; equal ones where the method gives none."""
    known = {i: case.gold[j] for i, j, _ in found.pairs}
    likely = {str(entry["diagnosis"]): entry.get("probability") for entry in entries}
    predicted = {}
    for place, name in enumerate(names):
        own = known.get(place) or next((other for other in sorted(case.severe) if same(other, name)), name)
        chance = likely[name]
        predicted[own] = 1 / len(names) if chance is None else float(chance)
    whole = ddxplus(predicted, case.weights, case.gold[0], case.severe)
    top = ddxplus(predicted, case.weights, case.gold[0], case.severe, k=1)
    return {**{name: float(value) for name, value in whole.items()}, "GTPA@1": float(top["GTPA"])}


def _prf(found: Matched, n_pred: int, n_gold: int) -> PRF:
    if found.total is not None:
        return soft(found.total, n_pred, n_gold)
    sets = Sets(len(found.pairs), n_pred, n_gold)
    return PRF(sets.precision, sets.recall, sets.f1)


def _talk(read: _Read, store: Store, run_id: str, hits: Sequence[str], golds: Sequence[str]) -> Discussion:
    addresses = list({event.text for event in read.events if isinstance(event, Answered) and event.text})
    texts = store.texts(run_id, addresses)
    return discussion(read.events, lambda address: texts[address], hits, golds)


def _read(store: Store, run_id: str, case_id: str) -> _Read:
    events = store.events(run_id, case_id)
    finished = [event for event in events if isinstance(event, CaseFinished)]
    failed = [event for event in events if isinstance(event, CaseFailed)]
    answers = [event for event in events if isinstance(event, Answered) and event.finish_reason]
    notes = [event for event in events if isinstance(event, Noted)]
    said = [float(m[1].rstrip(".")) for note in notes if (m := _CONFIDENCE.search(note.detail))]
    kinds = {note.kind for note in notes}
    seconds = sum(event.seconds for event in events if isinstance(event, CaseFinished | CaseFailed))
    status = "finished" if finished else "failed" if failed else "missing"
    return _Read(
        status=status,
        error=failed[-1].kind if failed and not finished else "",
        answer=json.loads(store.text(run_id, finished[-1].answer)) if finished else {},
        usage=Usage(
            calls=len(answers),
            batches=sum(isinstance(event, RoundStarted) and event.batch for event in events),
            prompt_tokens=sum(event.prompt_tokens for event in answers),
            generated_tokens=sum(event.generated_tokens for event in answers),
            seconds=round(seconds, 3),
        ),
        confidence=said[-1] if said else None,
        escalated="escalated" in kinds if kinds & {"escalated", "single"} else None,
        degraded=tuple(note.kind for note in notes if note.degraded),
        events=events,
    )


def to_json(row: CaseScore) -> dict[str, Any]:
    """A row as plain JSON values."""
    body: dict[str, Any] = json.loads(json.dumps(asdict(row)))
    return body


def from_json(body: Mapping[str, Any]) -> CaseScore:
    """The inverse of `to_json`."""
    values = dict(body)
    for name in ("predictions", "golds", "degraded"):
        values[name] = tuple(values[name])
    values["pairs"] = tuple((int(i), int(j), float(s)) for i, j, s in values["pairs"])
    values["gaps"] = tuple(tuple(item) for item in values["gaps"])
    values["prf"], values["usage"] = PRF(**values["prf"]), Usage(**values["usage"])
    return CaseScore(**values)
