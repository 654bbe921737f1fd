"""Messages of a chat request, and its response format. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from ddx_local.request import Message
from ddx_local.server.errors import invalid, unsupported
from ddx_local.server.fields import MOST_MESSAGES

ROLES: Mapping[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

Format = Literal["text", "json_object", "json_schema"]


def read_messages(fields: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation, of texts alone.

    Raises:
        ApiError: 400; `messages` is not a conversation of 1 to 256 messages, or holds more than text.
    """
    items = fields.get("messages")
    if not isinstance(items, list) or not items:
        raise invalid("`messages` must be a list of messages and not be empty.", "messages")
    if len(items) > MOST_MESSAGES:
        raise invalid(f"`messages` may hold {MOST_MESSAGES} messages, and holds {len(items)}.", "messages")
    return tuple(_message(item, place) for place, item in enumerate(items))


def _message(item: Any, place: int) -> Message:
    where = f"messages.{place}"
    if not isinstance(item, dict):
        raise invalid(f"`{where}` must be an object.", where)
    role = item.get("role")
    if role in ("tool", "function") or item.get("tool_calls") or item.get("function_call"):
        name = f"{where}.tool_calls" if role == "assistant" else f"{where}.role"
        raise unsupported(name, "needs tools, which are not supported here")
    if not isinstance(role, str) or role not in ROLES:
        raise invalid(f"`{where}.role` must be one of {', '.join(ROLES)}.", f"{where}.role")
    if item.get("audio"):
        raise unsupported(f"{where}.audio")
    return Message(ROLES[role], _content(item.get("content"), where, optional=role == "assistant"))


def _content(value: Any, where: str, *, optional: bool) -> str:
    if isinstance(value, str):
        if "\0" in value:
            raise invalid(f"`{where}.content` holds a NUL character.", f"{where}.content")
        return value
    if value is None and optional:
        return ""
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        for part in value:
            if part.get("type") != "text":
                raise unsupported(f"{where}.content", "may hold text only")
        return "\n".join(_content(part.get("text"), f"{where}.content", optional=False) for part in value)
    raise invalid(f"`{where}.content` must be a text or a list of text parts.", f"{where}.content")


def read_format(fields: Mapping[str, Any]) -> tuple[Format, Any]:
    """The response format and, for `json_schema`, the schema; raises `ApiError` 400."""
    value = fields.get("response_format")
    if value is None:
        return "text", None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text" or kind == "json_object":
        return kind, None
    if kind == "json_schema":
        held = value.get("json_schema")
        schema = held.get("schema") if isinstance(held, dict) else None
        if not isinstance(schema, dict) or not isinstance(held.get("name"), str):
            raise invalid("`response_format.json_schema` must have `name` and `schema`.", "response_format")
        return "json_schema", schema
    raise invalid("`response_format.type` must be text, json_object or json_schema.", "response_format")
