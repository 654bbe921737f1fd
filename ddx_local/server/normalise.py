"""Replies of vLLM's own app in OpenAI's shape: errors without an echo, fields that OpenAI's schemas do not allow left out. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ddx_local.server.errors import ApiError, busy, invalid, unavailable
from ddx_local.server.fields import CHAT, COMPLETION
from ddx_local.server.replies import DONE, event

Json = dict[str, Any]

_EXTRA = (
    "stop_reason", "token_ids", "routed_experts", "prompt_logprobs", "prompt_token_ids", "prompt_text", "kv_transfer_params",
    "ec_transfer_params", "metrics", "weight_version",
)  # fmt: skip
_KEPT_NULL = ("content", "refusal", "finish_reason", "logprobs", "bytes")
_REASONS = (None, "stop", "length", "tool_calls", "content_filter", "function_call")
_LIMIT = re.compile(
    r"(?:maximum context length (?:is |of |\()|maximum model length of |cannot be greater than max_model_len\s?=\s?)(\d+)"
)


def error(status: int, body: bytes) -> ApiError:
    """What a client is told about an error of the inner app; only numbers and known fields' names of it are kept."""
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    held = data.get("error") if isinstance(data, dict) else None
    held = held if isinstance(held, dict) else {}
    param = held.get("param")
    named = str(param).split(".")[0] if isinstance(param, str) else None
    named = named if named in (*CHAT, *COMPLETION) else None
    text = str(held.get("message", ""))
    if found := _LIMIT.search(text):
        message = f"The context holds {found[1]} tokens; prompt and answer together need more."
        return ApiError(400, message, code="context_length_exceeded", param=named or "messages")
    if status in (429, 503):
        return (
            busy("The engine's queue is full.", 1) if status == 429 else unavailable("The engine does not answer now.")
        )
    if 400 <= status < 500:
        what = f"`{named}` is not a value that the engine takes." if named else "The engine does not take this request."
        return invalid(what, named)
    return ApiError(500, "The engine failed on this request.", "server_error", "engine_error")


def whole(data: Json) -> Json:
    """A whole reply."""
    return _choices(_tidy(data), "message")


def chunk(data: Json) -> Json:
    """One chunk of a stream."""
    return _choices(_tidy(data), "delta")


def sent(block: bytes) -> bytes:
    """One server-sent event of the inner app as it goes out; comments and the end as they are."""
    line = next((item for item in block.split(b"\n") if item.startswith(b"data:")), None)
    if line is None:
        return block + b"\n\n"
    data = line[5:].strip()
    if data == b"[DONE]":
        return DONE
    value = json.loads(data)
    if "error" in value:
        code = value["error"].get("code") if isinstance(value["error"], dict) else 500
        return event(error(code if isinstance(code, int) else 500, data).body())
    return event(chunk(value))


def _tidy(value: Any) -> Any:
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _tidy(item)
        for name, item in value.items()
        if name not in _EXTRA and (item is not None or name in _KEPT_NULL)
    }


def _choices(data: Json, part: str) -> Json:
    for choice in data.get("choices", []):
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and "content" in logprobs:
            logprobs.setdefault("refusal", None)
        if choice.get("finish_reason") not in _REASONS:
            raise ApiError(500, "The engine ended the answer before its end.", "server_error", "engine_aborted")
        said = choice.get(part)
        if part == "message" and isinstance(said, dict):
            said.setdefault("content", None)
            said.setdefault("refusal", None)
    return data
