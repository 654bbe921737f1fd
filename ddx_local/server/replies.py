"""What a handler gets and what it gives back: a call, a whole reply, or a stream of chunks. It knows HTTP, not routes."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ddx_local.server.errors import ApiError

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"

KEEP_ALIVE = b": keep-alive\n\n"

SAFE: Mapping[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Headers of every reply."""


@dataclass
class Call:
    """One request that has passed the gate.

    Args:
        request_id: Ours, not the client's.
        actor: The key's id, or `local` where none is needed.
        method: HTTP method.
        path: Path without the query.
        values: The pieces of the path that the route names.
        query: The query's parameters, the last of a name.
        headers: Lower-case names.
        body: The whole body, within its bound.
        scopes: What the key opens.
        object_id: What the audit record names as its object; a handler sets it.
        facts: What the audit record holds beside; a handler adds to it.
    """

    request_id: str
    actor: str
    method: str
    path: str
    values: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    scopes: frozenset[str] = frozenset()
    object_id: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """A whole reply."""

    body: bytes = b""
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """A reply that goes on; its chunks are whole server-sent events. Closing the iterator ends the work behind it."""

    chunks: AsyncIterator[bytes]
    content_type: str = EVENTS
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    """A value as a reply."""
    return Reply(dumped(value), status, JSON, {name.replace("_", "-"): text for name, text in headers.items()})


def as_error(error: ApiError) -> Reply:
    """An error as a reply in OpenAI's shape."""
    return Reply(dumped(error.body()), error.status, JSON, {name.lower(): text for name, text in error.headers.items()})


def dumped(value: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(errors="replace")


def event(value: Any, number: int | None = None) -> bytes:
    """One server-sent event with JSON data."""
    head = b"" if number is None else f"id: {number}\n".encode()
    return head + b"data: " + dumped(value) + b"\n\n"


DONE = b"data: [DONE]\n\n"
