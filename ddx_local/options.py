"""Options of a method from text: `--option k=v` sets field k of its `Options`, parsed by the field's type."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin, get_type_hints

from ddx_local.errors import UsageError, nearest

MOST_SHOWN = 60
"""Characters of a value that a message repeats."""


def parse_pairs(pairs: Sequence[str], flag: str = "--option", form: str = "name=value") -> dict[str, str]:
    """`["k=3", ...]` as a mapping; raises `UsageError` for an item without `=` and for a key given twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark or not key.strip():
            raise UsageError(f"{flag} {pair!r}: write it as {form}")
        if key.strip() in found:
            raise UsageError(f"{flag} {key.strip()}: given twice")
        found[key.strip()] = value.strip()
    return found


def parse(kind: type[Any], values: Mapping[str, Any], method: str) -> Any:
    """An `Options` value.

    Args:
        kind: The method's frozen options dataclass.
        values: Field name -> text, or a value of the settings file.
        method: The method's name, for messages.

    Raises:
        UsageError: An unknown field (the nearest names are shown), a value of the wrong type or out of range.
    """
    types = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    arguments = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(
                f"method `{method}` has no option `{name}`: {nearest(name, known)}",
                f"See `ddx-local methods show {method}`.",
            )
        arguments[name] = _value(types[name], value, f"--option {name}={_short(value)}")
    try:
        return kind(**arguments)
    except ValueError as error:
        raise UsageError(f"method `{method}`: {error}", f"See `ddx-local methods show {method}`.") from None


def _short(value: Any) -> str:
    """A value as a message repeats it; a file's content in its place is not worth pages."""
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def as_json(options: Any) -> dict[str, Any]:
    """An options value as JSON values."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(options).items()
    }


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _value(kind: Any, value: Any, flag: str) -> Any:
    if get_origin(kind) is tuple:
        if not isinstance(value, str | list | tuple):
            raise UsageError(f"{flag}: must be a list, or names with commas between them")
        items = value.split(",") if isinstance(value, str) else list(value)
        return tuple(
            _value(get_args(kind)[0], item.strip() if isinstance(item, str) else item, flag) for item in items if item
        )
    if kind is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in (*_TRUE, *_FALSE):
            return str(value).lower() in _TRUE
        raise UsageError(f"{flag}: must be true or false")
    if kind in (int, float):
        try:
            # A settings file has typed values: int(2.7) is 2 and int(True) is 1, which nobody meant.
            if isinstance(value, bool) or (kind is int and isinstance(value, float)):
                raise TypeError
            return kind(value)
        except (TypeError, ValueError):
            raise UsageError(f"{flag}: must be a {'whole number' if kind is int else 'number'}") from None
    return str(value)
