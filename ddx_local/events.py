"""What happened, as facts: appended as they happen, never edited. Progress, audit, resume and every metric read these only.

An event names its case by id and holds no text of it: prompts, slot values and answers are kept once each in the store's
content-addressed texts and referred to by their sha256 (`Asked.slots`, `Answered.text`).
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any


def sha256(text: str) -> str:
    """Content address of a text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base: `at` is UTC, ISO 8601 with milliseconds; `case_id` is empty for events of the whole run."""

    at: str = ""
    case_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The settings of a run: all that is needed to do it again."""

    run_id: str
    method: str
    options: Mapping[str, Json]
    model: str
    fingerprint: Mapping[str, str]
    engine: str
    seed: int
    package_version: str
    cases: Mapping[str, str]
    """Case id -> sha256 of its text."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """How the engine was opened (device, dtype, context ...), so that a resumed run opens the same."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Step -> digest of its prompt and grammar files."""
    roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Role -> fingerprint of the engine that answers for it, where a role is bound to another model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStarted(Event):
    text: str
    """sha256 of the case text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    round: int
    name: str
    questions: int
    batch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Event):
    """A question as it went out. `digest` covers the filled prompt, the grammar and the sampling."""

    round: int
    key: tuple[str, ...]
    step: str
    role: str
    slots: Mapping[str, Json]
    """Slot name -> sha256 of the value, or a list of them."""
    seed: int
    temperature: float
    digest: str
    engine: str = ""
    """The model that answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Event):
    """An answer as it came in; `text` and `thoughts` are addresses of texts, `value` holds what a consultation gave."""

    round: int
    key: tuple[str, ...]
    digest: str
    text: str = ""
    thoughts: str = ""
    value: Json = None
    finish_reason: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """What the code decided, apart from what the model said."""

    round: int
    kind: str
    detail: str
    degraded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commented(Event):
    """A person's comment between rounds."""

    round: int
    by: str
    text: str
    about: str = ""
    """The role whose answer it is about; empty: the whole round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinished(Event):
    """The method's answer, as JSON (`ddx_local.result.differential_json`), as the address of a text."""

    answer: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFailed(Event):
    kind: str
    message: str
    hint: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    status: str
    """finished | cancelled"""
    finished: int
    """Cases, those that were finished before a resume included."""
    failed: int
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)


TYPES: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        RunStarted,
        CaseStarted,
        RoundStarted,
        Asked,
        Answered,
        Noted,
        Commented,
        CaseFinished,
        CaseFailed,
        RunFinished,
    )
}


def to_json(event: Event) -> dict[str, Json]:
    """The event as plain JSON values, with its type's name under `type`."""
    return {"type": type(event).__name__, **dataclasses.asdict(event)}


def from_json(data: Mapping[str, Json]) -> Event:
    """The inverse of `to_json`; unknown fields of a later version are left out, an unknown type raises `KeyError`."""
    kind = TYPES[data["type"]]
    known = {item.name for item in dataclasses.fields(kind)}
    values = {name: value for name, value in data.items() if name in known}
    if "key" in values:
        values["key"] = tuple(values["key"])
    return kind(**values)
