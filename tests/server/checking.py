"""Replies and stream chunks against OpenAI's own schemas, and server-sent events read as they come over the wire."""

import json
from typing import Any

import jsonschema


def check(value: Any, name: str, schemas: dict[str, Any]) -> None:
    """Raises where a value is not what OpenAI's schema of that name says."""
    document = {"$ref": f"#/components/schemas/{name}", "components": schemas["components"]}
    jsonschema.Draft202012Validator(_nullable(document)).validate(value)


def events(text: str) -> list[Any]:
    """The data of all events of a stream; `[DONE]` as it is."""
    blocks = [block for block in text.split("\n\n") if block.strip() and not block.startswith(":")]
    data = [next(line[6:] for line in block.split("\n") if line.startswith("data: ")) for block in blocks]
    return [item if item == "[DONE]" else json.loads(item) for item in data]


def _nullable(node: Any) -> Any:
    """OpenAPI 3.0's `nullable`, which some of the schemas still have, in the words of JSON Schema."""
    if isinstance(node, list):
        return [_nullable(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: _nullable(item) for name, item in node.items() if name != "nullable"}
    return {"anyOf": [found, {"type": "null"}]} if node.get("nullable") is True else found
