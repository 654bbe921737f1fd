# ruff: noqa: E501
"""JSON Schemas of what the routes take and give, for the OpenAPI document. Literals alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

_STRING: Json = {"type": "string"}
_FLAG: Json = {"type": ["boolean", "null"]}


def _object(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "required": list(required), "properties": properties}


def _closed(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {**_object(required, **properties), "additionalProperties": False}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _number(least: float, most: float) -> Json:
    return {"type": ["number", "null"], "minimum": least, "maximum": most}


def _whole(least: int, most: int) -> Json:
    return {"type": ["integer", "null"], "minimum": least, "maximum": most}


_USAGE = _object(
    ("prompt_tokens", "completion_tokens", "total_tokens"),
    prompt_tokens={"type": "integer"},
    completion_tokens={"type": "integer"},
    total_tokens={"type": "integer"},
)
_TEXTS: Json = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 64}
_SHARED: Mapping[str, Json] = {
    "model": {"type": "string", "minLength": 1, "maxLength": 500},
    "stream": _FLAG,
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "max_tokens": _whole(1, 1 << 20),
    "n": _whole(1, 16),
    "seed": _whole(-(1 << 63), (1 << 63) - 1),
    "stop": {"anyOf": [{"type": "string", "minLength": 1}, {**_TEXTS, "maxItems": 4}, {"type": "null"}]},
    "user": {"type": ["string", "null"]},
}

SCHEMAS: Mapping[str, Json] = {
    "Error": _object(
        ("error",),
        error=_object(
            ("message", "type", "param", "code"),
            message=_STRING,
            type=_STRING,
            param={"type": ["string", "null"]},
            code={"type": ["string", "null"]},
        ),
    ),
    "Model": _object(
        ("id", "object", "created", "owned_by"),
        id=_STRING,
        object={"const": "model"},
        created={"type": "integer"},
        owned_by=_STRING,
    ),
    "Models": _object(("object", "data"), object={"const": "list"}, data={"type": "array", "items": _ref("Model")}),
    "ChatRequest": _closed(
        ("model", "messages"),
        **_SHARED,
        max_completion_tokens=_whole(1, 1 << 20),
        response_format={"anyOf": [_closed(("type",), type={"enum": ["text", "json_object"]}), {"type": "null"}]},
        messages={
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "items": _closed(
                ("role", "content"), role={"enum": ["system", "developer", "user", "assistant"]}, content=_STRING
            ),
        },
        ddx={
            "type": ["object", "null"],
            "description": "Options of the method; `supervise: true` waits after each round.",
        },
    ),
    "Chat": _object(
        ("id", "object", "created", "model", "choices", "usage"),
        id=_STRING,
        object={"const": "chat.completion"},
        created={"type": "integer"},
        model=_STRING,
        choices={"type": "array", "minItems": 1},
        usage=_USAGE,
    ),
    "TextRequest": _closed(("model", "prompt"), **_SHARED, prompt={"anyOf": [{"type": "string"}, _TEXTS]}),
    "Text": _object(
        ("id", "object", "created", "model", "choices"),
        id=_STRING,
        object={"const": "text_completion"},
        created={"type": "integer"},
        model=_STRING,
        choices={"type": "array"},
        usage=_USAGE,
    ),
    "EmbeddingRequest": _closed(
        ("model", "input"),
        model={"type": "string", "minLength": 1, "maxLength": 500},
        input={"anyOf": [{"type": "string", "minLength": 1}, _TEXTS]},
        encoding_format={"enum": ["float", "base64", None]},
        user={"type": ["string", "null"]},
    ),
    "Embeddings": _object(
        ("object", "data", "model", "usage"),
        object={"const": "list"},
        data={"type": "array"},
        model=_STRING,
        usage={"type": "object"},
    ),
    "Sections": _object(
        ("case_id", "text", "characters", "names", "sections"),
        case_id=_STRING,
        text=_STRING,
        characters={"type": "integer"},
        names={"type": "array"},
        sections={"type": "array"},
    ),
    "Run": _object(
        ("run_id", "created_at", "method", "model", "status", "cases", "results"),
        run_id=_STRING,
        created_at=_STRING,
        method=_STRING,
        model=_STRING,
        status={"enum": ["running", "finished", "cancelled", "interrupted"]},
        cases={"type": "array"},
        results={"type": "array"},
    ),
    "Runs": _object(("runs", "counts"), runs={"type": "array"}, counts={"type": "object"}),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route takes and gives, beside its path."""

    summary: str
    reply: Json | None = None
    body: Json | None = None
    status: str = "200"
    content: str = "application/json"
    query: Mapping[str, Json] = field(default_factory=dict)


_RUN = "/ddx/v1/runs/{run_id}"
_EVENTS = "text/event-stream"
_AFTER = {"after": {"type": "integer", "minimum": 0, "maximum": 999_999_999}}
_LIMIT = {"limit": {"type": "integer", "minimum": 1, "maximum": 1000}}
_SECTIONS = {"type": "object", "additionalProperties": {"type": "string"}}

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/healthz"): Operation("Whether the process lives.", _object(("status",), status=_STRING)),
    ("GET", "/readyz"): Operation("Whether the engine answers.", _object(("status",), status=_STRING)),
    ("GET", "/metrics"): Operation("Counts for Prometheus.", content="text/plain"),
    ("GET", "/v1/models"): Operation("All models.", _ref("Models")),
    ("GET", "/v1/models/{id:path}"): Operation("One model.", _ref("Model")),
    ("POST", "/v1/chat/completions"): Operation("A chat completion by the model or by a method (`ddx/...`).", _ref("Chat"), _ref("ChatRequest")),
    ("POST", "/v1/completions"): Operation("A text completion.", _ref("Text"), _ref("TextRequest")),
    ("POST", "/v1/embeddings"): Operation("Embeddings of texts.", _ref("Embeddings"), _ref("EmbeddingRequest")),
    ("GET", "/ddx/v1/openapi.json"): Operation("This document.", {"type": "object"}),
    ("GET", "/ddx/v1/status"): Operation("The server's state.", {"type": "object"}),
    ("GET", "/ddx/v1/methods"): Operation("The methods with their options.", _object(("methods",), methods={"type": "array"})),
    ("POST", "/ddx/v1/cases"): Operation("A case text as sections, or sections as a text.", _ref("Sections"), {"oneOf": [_closed(("text",), text={"type": "string", "minLength": 1}), _closed(("sections",), sections=_SECTIONS)]}),
    ("GET", "/ddx/v1/runs"): Operation("The history, the newest first.", _ref("Runs"), query=_LIMIT),
    ("POST", "/ddx/v1/runs"): Operation(
        "Begin a run.",
        _object(("run_id",), run_id=_STRING),
        _closed(
            ("text",),
            text={"type": "string", "minLength": 1},
            method={"type": ["string", "null"]},
            options={"type": ["object", "null"]},
            seed=_whole(0, (1 << 63) - 1),
            supervise=_FLAG,
        ),
        "201",
    ),
    ("GET", _RUN): Operation("A run: its case, state and result.", _ref("Run")),
    ("DELETE", _RUN): Operation("Delete a run that is over.", status="204"),
    ("GET", f"{_RUN}/events"): Operation("What happens in a run, as it happens.", _STRING, content=_EVENTS, query=_AFTER),
    ("POST", f"{_RUN}/comments"): Operation(
        "Comment on a run between its rounds.",
        {"type": "object"},
        _closed(("text",), text={"type": "string", "minLength": 1, "maxLength": 2000}, by=_STRING, about=_STRING),
        "202",
    ),
    ("POST", f"{_RUN}/continue"): Operation("Let a waiting run go on.", {"type": "object"}, _closed((), pause=_FLAG)),
    ("POST", f"{_RUN}/pause"): Operation("Wait after the round that goes on now.", {"type": "object"}, status="202"),
    ("POST", f"{_RUN}/cancel"): Operation("Stop a run.", {"type": "object"}),
    ("POST", "/ddx/v1/summary"): Operation("The newest runs in a few sentences by the model.", {"type": "object"}, _closed((), last=_whole(1, 100))),
    ("POST", f"{_RUN}/summary"): Operation("A past run in a few sentences by the model.", {"type": "object"}),
    ("GET", f"{_RUN}/export.json"): Operation("A whole run.", {"type": "object"}),
    ("GET", f"{_RUN}/export.html"): Operation("A report to read or print.", _STRING, content="text/html"),
    ("POST", "/ddx/v1/session"): Operation("Open the panel with a key.", body=_object(("key",), key=_STRING), status="303"),
    ("DELETE", "/ddx/v1/session"): Operation("Close the panel.", status="204"),
}  # fmt: skip
