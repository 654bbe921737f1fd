"""A text cut where spans begin and end, so that spans that overlap can be shown without nesting. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Piece:
    """`text[start:end]`; `over` are the places (in the list of spans) of those that cover it, `ending` of those that end here."""

    start: int
    end: int
    over: tuple[int, ...]
    ending: tuple[int, ...]


def cut(length: int, spans: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """The pieces of a text, in order, joined the whole of it.

    Args:
        length: Of the text, in characters.
        spans: (start, end) of each; what lies outside of the text is left out, an empty span covers nothing.
    """
    inside = [(max(0, start), min(end, length)) for start, end in spans]
    real = [(place, start, end) for place, (start, end) in enumerate(inside) if start < end]
    borders = sorted({0, length, *(border for _, start, end in real for border in (start, end))})
    return tuple(
        Piece(
            start,
            end,
            over=tuple(place for place, first, last in real if first <= start and end <= last),
            ending=tuple(place for place, _, last in real if last == end),
        )
        for start, end in pairwise(borders)
    )
