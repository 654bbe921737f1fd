"""What driving a case needs beside its flow, and how its events are appended: once each, in the order in which they happen."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ddx_local.assets import Assets
from ddx_local.case import Case
from ddx_local.engines.protocol import Engine
from ddx_local.events import Answered, Asked, CaseFailed, Commented, Event, Noted, RoundStarted
from ddx_local.supervise import Supervisor

Append = Callable[[Sequence[Event], Sequence[str]], None]
"""Makes events and their texts durable; it returns when they are."""

Consultant = Callable[[Any], Awaitable[Any]]
"""Answers one kind of consultation; the answer must be JSON."""


@dataclass(frozen=True)
class Context:
    """What driving a case needs beside the flow.

    `engine` is None for a replay: every question must then have a recorded answer. `history` holds the case's recorded
    events. `supervise`, where given, is awaited after each round of model questions (Doctor Supervisor).
    """

    engine: Engine | None
    assets: Assets
    append: Append
    seed: int = 0
    consultants: Mapping[type, Consultant] = field(default_factory=dict)
    history: Sequence[Event] = ()
    recorded_text: Callable[[str], str] = lambda _: ""
    supervise: Supervisor | None = None
    budget: int | None = None
    """Tokens that a case may use, prompts and answers together; probabilities count by the tokens of their labels."""
    recording: bool = True
    """False for a replay: everything is written once more, into the replay's own store."""
    bound: Mapping[str, Engine] = field(default_factory=dict)
    """Role -> the engine that answers for it in place of `engine`; label probabilities are never asked of it."""


class RecordedFailure(Exception):
    """A replay has come to where the case failed for want of an answer."""

    def __init__(self, failure: CaseFailed) -> None:
        super().__init__(failure.kind)
        self.failure = failure


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Recorder:
    """Appends a case's events once each: what history already holds is not written again."""

    def __init__(self, case: Case, context: Context) -> None:
        self.case = case
        self.context = context
        self.seen = {_identity(event) for event in context.history} if context.recording else set()

    def add(self, events: Sequence[Event], texts: Sequence[str] = ()) -> None:
        fresh = [event for event in events if _identity(event) not in self.seen]
        if fresh:
            at = now()
            self.context.append([_stamped(event, at, self.case.id) for event in fresh], texts)


def _stamped(event: Event, at: str, case_id: str) -> Event:
    return replace(event, at=at, case_id=case_id)


def _identity(event: Event) -> tuple[Any, ...]:
    match event:
        case Asked() | Answered():
            return (type(event).__name__, event.round, event.key)
        case RoundStarted():
            return ("RoundStarted", event.round)
        case Noted():
            return ("Noted", event.round, event.detail)
        case Commented():
            return ("Commented", event.round, event.by, event.about, event.text)
        case CaseFailed():
            return ("CaseFailed", event.kind, event.message)
        case _:
            return (type(event).__name__,)
