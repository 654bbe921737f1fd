"""A run's events as messages for people who watch: who said what in which round, what was decided, how it ended. Pure.

The same messages come from a run that goes on and from one in the store. It knows events, not HTTP and not HTML.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

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
from ddx_local.server.live_run import Waits

Json = dict[str, Any]
Text = Callable[[str], str]
"""A text by its address; '' where it is not known."""

MOST = 240
"""Characters of one line about an answer."""


class Teller:
    """Turns events into messages, one after the other; it remembers who was asked."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int, tuple[str, ...]], Asked] = {}
        self._left: dict[tuple[str, int], int] = {}

    def tell(self, what: Event | Waits, text: Text) -> Json | None:
        """The message of an event, or None where it has none."""
        match what:
            case Waits(round=None):
                return {"type": "goes_on"}
            case Waits(round=done) if done is not None:
                return {"type": "waits", "round": done.number, "name": done.name}
            case RunStarted():
                return {
                    "type": "run",
                    "run_id": what.run_id,
                    "method": what.method,
                    "options": dict(what.options),
                    "model": what.model,
                    "engine": what.engine,
                    "seed": what.seed,
                    "at": what.at,
                }
            case CaseStarted():
                return {"type": "case", "case_id": what.case_id, "text": text(what.text)}
            case RoundStarted(batch=True):
                self._left[(what.case_id, what.round)] = what.questions
                return {"type": "round", "round": what.round, "name": what.name, "questions": what.questions}
            case Asked():
                self._asked[(what.case_id, what.round, what.key)] = what
                return None
            case Answered():
                return self._answered(what, text)
            case Noted():
                return {
                    "type": "note",
                    "round": what.round,
                    "kind": what.kind,
                    "detail": what.detail,
                    "degraded": what.degraded,
                }
            case Commented():
                return {"type": "comment", "round": what.round, "by": what.by, "text": what.text, "at": what.at}
            case CaseFinished():
                return {"type": "finished", "seconds": what.seconds}
            case CaseFailed():
                return {"type": "failed", "kind": what.kind, "message": what.message, "hint": what.hint}
            case RunFinished():
                return {"type": "end", "status": what.status, "seconds": what.seconds}
            case _:
                return None

    def _answered(self, event: Answered, text: Text) -> Json | None:
        asked = self._asked.get((event.case_id, event.round, event.key))
        if asked is None:
            return None  # a consultation: no model spoke
        place = (event.case_id, event.round)
        self._left[place] = self._left.get(place, 1) - 1
        return {
            "type": "answer",
            "round": event.round,
            "key": "/".join(event.key),
            "role": asked.role or "/".join(event.key),
            "step": asked.step,
            "text": text(event.text) if event.text else "",
            "thoughts": text(event.thoughts) if event.thoughts else "",
            "tokens": event.generated_tokens,
            "seconds": round(event.seconds, 2),
            "last": self._left[place] == 0,
        }


def line(message: Mapping[str, Any]) -> str:
    """An answer in one line: who, and the gist of what was said."""
    who = message["role"]
    said = gist(message["text"]) if message["text"] else "probabilities"
    return f"{who}: {said}" if who else said


def gist(text: str) -> str:
    """An answer's values without its JSON form, shortened."""
    try:
        value = json.loads(text)
    except ValueError:
        return _short(text)
    return _short(_flat(value))


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        if isinstance(value.get("diagnosis"), str):
            rest = {name: item for name, item in value.items() if name not in ("diagnosis", "evidence") and item}
            return str(value["diagnosis"]) + (f" ({_flat(rest)})" if rest else "")
        return ", ".join(part for item in value.values() if (part := _flat(item)))
    if isinstance(value, list):
        return "; ".join(part for item in value if (part := _flat(item)))
    return "" if value is None else str(value)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MOST else f"{flat[: MOST - 1]}…"
