"""Verbatim quotes of a case: where one stands, and which ones a grammar may give.

A quote grammar takes a run of whole chunks (words with the white space after them), each JSON-escaped, whose escaped
length lies between two bounds. This file knows that rule, so that a step can ask beforehand whether a case has any legal
quote and how long the longest one is. It doesn't know the grammar's syntax, tokens, or what a quote is evidence for.

Source: llguidance's `substring_chunks`. Chunks are escaped whole, so that no quote ends in the middle of an escape.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddx_local.errors import ParseError

# White space before the first word is a chunk of its own; any other follows the word that it belongs to.
_CHUNK = re.compile(r"\A\s+|\S+\s*")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a text that isn't empty: `text[start:end]`, in characters.

    Raises:
        ValueError: Unless 0 <= start < end.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a span needs 0 <= start < end, not start {self.start}, end {self.end}")


def locate(text: str, quote: str) -> Span:
    """Where the quote first stands in the text.

    Raises:
        ParseError: The quote is empty or doesn't stand in the text, character for character. The message has lengths only.
    """
    if not quote:
        raise ParseError("an evidence quote is empty")
    start = text.find(quote)
    if start < 0:
        raise ParseError(f"an evidence quote of {len(quote)} characters is not in the case ({len(text)} characters)")
    return Span(start, start + len(quote))


def places(text: str, quote: str) -> tuple[Span, ...]:
    """Everywhere where the quote stands as whole words, with or without punctuation around it, in order.

    A quote of a grammar stands at least once. "38" does not stand in "138", "38.5" or "38/min", nor "tender" in
    "non-tender". No place of an empty quote.
    """
    if not quote:
        return ()
    before = r"""(?:(?=\s)|(?<![^\s(\[{"'“‘（「]))"""
    after = r"(?:(?<=\s)|(?=[^\w\s]*(?:\s|\Z)))"
    return tuple(Span(*match.span()) for match in re.finditer(f"{before}{re.escape(quote)}{after}", text))


def chunks(text: str) -> tuple[str, ...]:
    """The text's words, each with the white space after it; white space at the very beginning is the first chunk.

    Joined they are the text again, whatever it holds.
    """
    return tuple(_CHUNK.findall(text))


def has_quote(text: str, least: int, most: int) -> bool:
    """Whether some run of chunks has an escaped length in [least, most], in characters.

    A text without spaces longer than `most` (Chinese, say) is one chunk and has none.
    """
    return any(length >= least for length, _ in _longest_runs(text, most))


def longest_quote_bytes(text: str, least: int, most: int) -> int:
    """The largest size of a run that `has_quote` would accept, in UTF-8 bytes of its escaped form; 0 if there is none."""
    return max((size for length, size in _longest_runs(text, most) if length >= least), default=0)


def highlight_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same characters as sorted spans without overlap. Spans that only touch stay apart: they are two quotes."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def _longest_runs(text: str, most: int) -> Iterator[tuple[int, int]]:
    """For each chunk that is not too long itself: (characters, bytes) of the longest escaped run that ends with it.

    Every chunk has a positive length, so the longest run within `most` that ends at a chunk is also the one with the most
    bytes, and the only one that needs a look; its first chunk never moves back as the last moves on (two pointers).
    """
    sizes = [_escaped_size(chunk) for chunk in chunks(text)]
    first = length = size = 0
    for last, (chunk_length, chunk_size) in enumerate(sizes):
        length, size = length + chunk_length, size + chunk_size
        while length > most and first <= last:
            length, size = length - sizes[first][0], size - sizes[first][1]
            first += 1
        if first <= last:
            yield length, size


def _escaped_size(chunk: str) -> tuple[int, int]:
    escaped = json.dumps(chunk, ensure_ascii=False)[1:-1]
    # A lone surrogate has no UTF-8 form; it can come in from a JSON case, and is counted as the three bytes it would be.
    return len(escaped), len(escaped.encode("utf-8", "surrogatepass"))
