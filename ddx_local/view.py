"""What a run looks like now: its events, folded. Pure; the same fold serves live views, history and results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ddx_local.events import (
    Answered,
    Asked,
    CaseFailed,
    CaseFinished,
    CaseStarted,
    Commented,
    Event,
    Noted,
    RoundStarted,
    RunFinished,
    RunStarted,
)

Status = Literal["waiting", "running", "finished", "failed"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `text` is the address of what was said, `label` names who said it."""

    label: str
    step: str
    text: str
    generated_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundView:
    """One batch. `prompt_tokens_computed` leaves out what the KV cache already held; `seconds` is the slowest answer's."""

    number: int
    name: str
    questions: int
    roles: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    steps: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    prompt_tokens: int = 0
    prompt_tokens_computed: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return len(self.answers) == self.questions


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case."""

    case_id: str
    status: Status = "waiting"
    batches: tuple[RoundView, ...] = ()
    notes: tuple[Noted, ...] = ()
    comments: tuple[Commented, ...] = ()
    answer: str = ""
    failure: CaseFailed | None = None
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """A whole run; `cases` in the order in which the run lists them."""

    header: RunStarted | None = None
    cases: Mapping[str, CaseView] = field(default_factory=dict)
    status: str = "running"


def fold(events: Iterable[Event], view: RunView | None = None) -> RunView:
    """The view after some events, from the beginning or from an earlier view."""
    view = view or RunView()
    for event in events:
        view = step(view, event)
    return view


def step(view: RunView, event: Event) -> RunView:
    """The view after one more event."""
    if isinstance(event, RunStarted):
        return RunView(event, {case_id: CaseView(case_id) for case_id in event.cases}, "running")
    if isinstance(event, RunFinished):
        return replace(view, status=event.status)
    case = view.cases.get(event.case_id) or CaseView(event.case_id)
    # A run that was cancelled and then resumed goes on with its cases' events.
    return replace(view, status="running", cases={**view.cases, event.case_id: _case(case, event)})


def _case(case: CaseView, event: Event) -> CaseView:
    match event:
        case CaseStarted():
            return replace(case, status="running", text=event.text)
        case RoundStarted(batch=True):
            batch = RoundView(event.round, event.name, event.questions)
            return replace(case, batches=(*case.batches, batch))
        case Asked() | Answered():
            batches = tuple(_batch(item, event) if item.number == event.round else item for item in case.batches)
            return replace(case, batches=batches)
        case Noted():
            return replace(case, notes=(*case.notes, event))
        case Commented():
            return replace(case, comments=(*case.comments, event))
        case CaseFinished():
            seconds = case.seconds + event.seconds
            return replace(case, status="finished", answer=event.answer, failure=None, seconds=seconds)
        case CaseFailed():
            return replace(case, status="failed", failure=event, seconds=case.seconds + event.seconds)
        case _:
            return case


def _batch(batch: RoundView, event: Asked | Answered) -> RoundView:
    if isinstance(event, Asked):
        roles = {**batch.roles, event.key: event.role or "/".join(event.key)}
        return replace(batch, roles=roles, steps={**batch.steps, event.key: event.step})
    if event.key not in batch.roles:
        return batch  # a consultation in the same round
    label, step = batch.roles[event.key], batch.steps[event.key]
    answer = Answer(label, step, event.text, event.generated_tokens, event.seconds)
    return replace(
        batch,
        answers=(*batch.answers, answer),
        prompt_tokens=batch.prompt_tokens + event.prompt_tokens,
        prompt_tokens_computed=batch.prompt_tokens_computed + event.prompt_tokens - event.cached_tokens,
        generated_tokens=batch.generated_tokens + event.generated_tokens,
        seconds=max(batch.seconds, event.seconds),
    )
