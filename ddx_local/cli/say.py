"""What an answer says, in a line for the live view: by step where a form of its own says it better, else its values in order."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

MOST = 150
"""Characters of a line."""


def summary(step: str, text: str) -> str:
    """One line for an answer of a step."""
    try:
        answer = json.loads(text)
    except ValueError:
        return _short(text)
    writer = _WRITERS.get(step.rpartition("/")[2])
    try:
        return _short(writer(answer) if writer else told(answer))
    except (KeyError, TypeError, AttributeError):
        return _short(told(answer))


def told(value: Any) -> str:
    """A JSON value as a person would say it: texts as they are, numbers and yes or no with their name before them."""
    if isinstance(value, list):
        return ("; " if any(isinstance(item, dict | list) for item in value) else ", ").join(
            filter(None, map(told, value))
        )
    if isinstance(value, dict):
        parts = [f"{key.replace('_', ' ')} {told(item)}" if _bare(item) else told(item) for key, item in value.items()]
        return ", ".join(filter(None, parts))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _bare(value: Any) -> bool:
    """Whether a value says nothing without its name."""
    return isinstance(value, bool | int | float)


def harmless(text: str) -> str:
    """The text with a space in place of each control character, which could steer a terminal; nothing changes its place."""
    return _CONTROL.sub(" ", text)


def _short(text: str) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= MOST else line[: MOST - 1] + "…"


def _positions(answer: Any) -> str:
    parts = []
    for position, mark in (("support", "+"), ("challenge", "-")):
        names = [item["diagnosis"] for item in answer["positions"] if item["position"] == position]
        parts += [f"{mark} {', '.join(names)}"] if names else []
    missing = [item["diagnosis"] for item in answer.get("missing", [])]
    parts += [f"adds {', '.join(missing)}"] if missing else []
    parts += [f"withdraws {', '.join(answer['withdrawn'])}"] if answer.get("withdrawn") else []
    return "; ".join(parts) or "neutral on all"


def _exchange(answer: Any) -> str:
    parts = [f"challenges {item['diagnosis']}: {item['reason']}" for item in answer["challenges"]]
    parts += [f"defends {item['diagnosis']}: {item['answer']}" for item in answer["answers"]]
    return "; ".join(parts) or "nothing to add"


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "panel": lambda answer: ", ".join(answer),
    "relevance": lambda answer: f"{answer['relevance']} of 5: {answer['reason']}",
    "triage": lambda answer: (
        "; ".join(f"{item['urgency']}: {item['finding']}, {item['step']}" for item in answer["findings"])
        or "nothing now"
    ),
    "differential": lambda answer: " > ".join(item["diagnosis"] for item in answer["differential"]),
    "merge": lambda answer: "; ".join(f"{item['names']}: {item['verdict']}" for item in answer["pairs"]),
    "positions": _positions,
    "final": _positions,
    "exchange": _exchange,
    "vote": lambda answer: " > ".join(answer["ballot"]),
    "cant_miss": lambda answer: (
        "; ".join(f"{item['diagnosis']} ({item['test']})" for item in answer["conditions"]) or "nothing is missing"
    ),
}
