"""Edits of a case as span patches: only the quoted pieces change, the rest is unchanged by construction. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Operation = Literal["negate", "remove", "replace", "weaken", "intensify", "insert"]

OPERATIONS: tuple[Operation, ...] = ("negate", "replace", "weaken", "intensify", "insert")
"""The operations that bring a text; `remove` brings none."""


@dataclass(frozen=True, slots=True)
class Patch:
    """`text[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One proposed change of the case: an evidence group of 1 to 4 quotes, each with its replacement ('' removes)."""

    operation: Operation
    feature: str
    spans: tuple[tuple[str, str], ...]


def patches(text: str, edit: Edit) -> tuple[Patch, ...]:
    """Where the edit changes the text, in order.

    A quote that stands several times is changed everywhere. Pieces that overlap are merged; the merged piece gets the
    replacements in their order, each once. An insertion comes after its anchor. What would change nothing is left out.
    """
    found = []
    for quote, replacement in edit.spans:
        start = text.find(quote) if quote else -1
        while start >= 0:
            end = start + len(quote)
            found.append(
                Patch(end, end, f" {replacement}") if edit.operation == "insert" else Patch(start, end, replacement)
            )
            start = text.find(quote, end)
    merged: list[Patch] = []
    for patch in sorted(found, key=lambda item: (item.start, item.end)):
        last = merged[-1] if merged else None
        if last is not None and (patch.start < last.end or (patch.start, patch.end) == (last.start, last.end)):
            same = patch.replacement in last.replacement or not patch.replacement
            joined = last.replacement if same else f"{last.replacement} {patch.replacement}".strip()
            merged[-1] = Patch(last.start, max(last.end, patch.end), joined)
        else:
            merged.append(patch)
    return tuple(patch for patch in merged if text[patch.start : patch.end] != patch.replacement)


def apply(text: str, changes: Sequence[Patch]) -> str:
    """The text with ordered, disjoint patches applied."""
    pieces, position = [], 0
    for patch in changes:
        pieces += [text[position : patch.start], patch.replacement]
        position = patch.end
    return "".join([*pieces, text[position:]])
