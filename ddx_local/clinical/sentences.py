"""Where the sentences of a case text end. It knows punctuation and lines, not what a sentence says."""

import re

from ddx_local.clinical.quotes import Span

# An end is a line's end, or a mark with what closes after it, before white space and something that can begin a sentence.
_END = re.compile(r"""(?:[.!?؟。！？]["'”’)\]»]*(?:\s+|\Z)|[。！？]|[ \t]*(?:\r\n|\r|\n)\s*)""")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|vs|approx|ca|cf|e\.g|i\.e|etc|No|Fig|Figs|St|resp)|(?<![^\s(])[A-Z])\.\s+\Z"
)


def sentences(text: str) -> tuple[Span, ...]:
    """The sentences of a text, each with the white space after it, as spans that hold every character once.

    A line ends a sentence. A full stop does where white space follows it, unless it ends an abbreviation or an initial, or
    a small letter comes next. White space at the very beginning belongs to the first sentence.
    """
    found: list[Span] = []
    start = 0
    for end in _END.finditer(text):
        stop = end.end()
        if stop == len(text):
            break
        if not text[start:stop].strip():
            continue
        whole_line = "\n" in end.group() or "\r" in end.group()
        if not whole_line and (text[stop].islower() or _ABBREVIATION.search(text[max(start, stop - 12) : stop])):
            continue
        found.append(Span(start, stop))
        start = stop
    if start < len(text):
        found.append(Span(start, len(text)))
    return tuple(found)
