"""Edits of a case as span patches: only the quoted pieces change, the rest is unchanged by construction. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ddx_local.clinical.quotes import places

Operation = Literal["negate", "remove", "replace", "weaken", "intensify", "insert"]


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
    """Where the edit changes the text, in order, without overlap.

    A quote that stands several times is changed everywhere. Pieces that overlap are merged; the merged piece gets the
    replacements in their order, each once. An insertion comes after the first place of its anchor, since it is one new
    finding and changes none. What would change nothing is left out.
    """
    found = []
    for quote, replacement in edit.spans:
        spots = places(text, quote)
        if edit.operation == "insert":
            found += [Patch(span.end, span.end, replacement) for span in spots[:1]]
        else:
            found += [Patch(span.start, span.end, replacement) for span in spots]
    groups: list[list[Patch]] = []
    for patch in sorted(found, key=lambda item: (item.start, item.end)):
        last = groups[-1] if groups else []
        if last and (patch.start < max(item.end for item in last) or patch.start == patch.end == last[0].start):
            last.append(patch)
        else:
            groups.append([patch])
    merged = [_merged(group) for group in groups]
    return tuple(patch for patch in merged if text[patch.start : patch.end] != patch.replacement)


def _merged(group: Sequence[Patch]) -> Patch:
    start, end = group[0].start, max(patch.end for patch in group)
    texts = " ".join(dict.fromkeys(patch.replacement for patch in group if patch.replacement))
    return Patch(start, end, f" {texts}" if texts and start == end else texts)


def apply(text: str, changes: Sequence[Patch]) -> str:
    """The text with ordered, disjoint patches applied."""
    pieces, position = [], 0
    for patch in changes:
        pieces += [text[position : patch.start], patch.replacement]
        position = patch.end
    return "".join([*pieces, text[position:]])
