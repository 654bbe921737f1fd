"""JSON as a server may read it: bounded in depth, no key twice, no number that is none, no half of a character. Pure.

What it refuses is told by its kind and place in the document's form, never by its text.
"""

import json
import math
import re
from typing import Any

from ddx_local.server.errors import invalid

DEEPEST = 32
"""Levels of lists and objects within each other."""

# A string that never ends is one too: else each of its quotation marks would be tried as a beginning.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def read(body: bytes) -> Any:
    """The value of a request's body.

    Raises:
        ApiError: 400; it is no JSON of ours.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise invalid("The body is not UTF-8.") from None
    if _depth(body) > DEEPEST:
        raise invalid(f"The body is nested deeper than {DEEPEST} levels.")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except ValueError:
        raise invalid("The body is not valid JSON.") from None
    _check_texts(value)
    return value


def read_object(body: bytes) -> dict[str, Any]:
    """The same for a body that must be an object."""
    value = read(body)
    if not isinstance(value, dict):
        raise invalid("The body must be a JSON object.")
    return value


def _depth(body: bytes) -> int:
    depth = deepest = 0
    for found in _BRACKETS.finditer(_STRINGS.sub(b"", body)):
        depth += 1 if found[0] in (b"[", b"{") else -1
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise invalid("An object of the body has a key twice.")
    return found


def _constant(_: str) -> Any:
    raise invalid("NaN and Infinity are no JSON numbers.")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise invalid("A number of the body is too large.")
    return value


def _int(text: str) -> int:
    if len(text) > 20:
        raise invalid("A number of the body is too large.")
    return int(text)


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise invalid("A text of the body holds half of a surrogate pair.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)
