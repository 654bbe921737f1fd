"""One section of a report, and how its numbers are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Section:
    """A title, lines of text, and a table (its first row is the head)."""

    title: str
    lines: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = field(default=())


def span(value: Value, digits: int = 3, sign: str = "") -> str:
    """A value with its interval."""
    if value is None:
        return "undefined"
    return f"{value['value']:{sign}.{digits}f} [{value['low']:{sign}.{digits}f}, {value['high']:{sign}.{digits}f}]"


def number(value: Any, digits: int = 3) -> str:
    return "undefined" if value is None else f"{value:.{digits}f}" if isinstance(value, float) else str(value)
