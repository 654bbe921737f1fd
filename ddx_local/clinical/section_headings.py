"""Headings of a case text: where one stands, and which section it opens.

It knows the forms (own line, with a colon, Markdown, numbered, upper case, inline after a sentence) and the words, which
`section_headings.toml` holds, in English and Arabic. It doesn't know what stands under a heading.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

OTHER = "other"
"""What a heading opens that is none of the six: an assessment, a plan, a diagnosis, an unknown Markdown heading."""

LONGEST = 80
"""Characters of a heading's words."""

_GAP = r"[^\S\r\n]"
_MARKS = (
    rf"(?P<marks>{_GAP}*(?:>{_GAP}*)?(?:(?P<level>\#{{1,6}}){_GAP}*)?(?:[-*•●▪]{_GAP}+)?(?P<bold>\*\*|__)?"
    rf"(?:\(?(?:[0-9٠-٩]{{1,2}}(?:\.[0-9]{{1,2}})*|[A-Za-z]|[IVX]{{1,5}})[.):-]{_GAP}*|[0-9]{{1,2}}(?:\.[0-9]{{1,2}})+{_GAP}+)?(?:\*\*|__)?[\[【<(]?)"
)
# The shortest run of words that one of the ends follows: a colon, a dash, a bar, a tab, or the end of the line.
_LINE = re.compile(
    rf"^{_MARKS}(?P<words>[^\W\d_](?:[^:：\r\n|\t]){{0,{LONGEST}}}?)"
    rf"(?:\*\*|__|[\]】>)])?{_GAP}*(?P<end>[:：](?:\*\*|__)?|[-–—](?={_GAP})|\||\t|\#*{_GAP}*$)",
    re.MULTILINE,
)
_INLINE = re.compile(
    r"(?<=[.!?؟。;؛)\]”\"*])\s+(?:\*\*|__)?(?P<words>[^\W\d_][^:：\r\n.;!?]{1,60}?)(?:\*\*|__)?\s?[:：]"
)
_CAPITALS = re.compile(rf"^{_GAP}*(?P<words>[A-Z][A-Z/&-]*(?:{_GAP}[A-Z/&-]{{2,}}){{1,4}})(?={_GAP}+\S)", re.MULTILINE)
_ASIDE = re.compile(r"\s*[(\[][^)\]]*(?:[)\]]|\Z)")
_PARTS = re.compile(r"\s*(?:/|&|\+|,|،|\band\b)\s*|\s+و\s*(?=ال)")
_ARABIC = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "ـ": None})
_VOWELS = re.compile("[\u064b-\u0652\u200e\u200f]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at `text[start:end]` and the section that it opens (`OTHER` for none of the six)."""

    section: str
    start: int
    end: int
    words: str


def section_of(words: str) -> str | None:
    """The section that a heading's words open, `OTHER`, or None where they are not known.

    "Labs & imaging" opens what its first part opens, if every part is known.
    """
    known = _known()
    bare = _normal(_ASIDE.sub("", words))
    if bare in known:
        return known[bare]
    parts = [known.get(part) for part in _PARTS.split(bare) if part]
    return parts[0] if len(parts) > 1 and None not in parts else None


def headings(text: str) -> tuple[Heading, ...]:
    """All headings of a text in order, without overlap. "Impression:" under a test's heading is a part of that test."""
    found: list[Heading] = []
    level = 0
    for start, end, words, depth in sorted(_candidates(text)):
        section = section_of(words)
        if section is None and (not depth or (level and depth > level)):
            continue
        section = section or OTHER
        if found and (start < found[-1].end or (found[-1].section in _TESTS and _normal(words) in _OF_A_REPORT)):
            continue
        level = depth or level
        found.append(Heading(section, start, end, words))
    return tuple(found)


_TESTS = ("initial_test_results", "further_diagnostic_tests")
_OF_A_REPORT = ("impression", "impressions", "conclusion", "conclusions", "comment", "comments", "note", "notes")


def _candidates(text: str) -> Iterator[tuple[int, int, str, int]]:
    """(start, end, words, Markdown level or 0) of whatever has the form of a heading."""
    for match in _LINE.finditer(text):
        depth = len(match["level"] or "")
        if match["end"][:1] in (":", "：") or depth or match["bold"] or _is_own(match["words"], match["end"]):
            yield match.start(), match.end(), match["words"].strip("* _"), depth
    for match in _INLINE.finditer(text):
        if not match["words"][0].islower():
            yield match.start("words"), match.end(), match["words"], 0
    for match in _CAPITALS.finditer(text):
        yield match.start(), match.end(), match["words"], 0


def _is_own(words: str, end: str) -> bool:
    """Without a colon: words that end in a full stop are a sentence."""
    return bool(end) or not words.rstrip().endswith((".", "؟", "?", "!", ";", ","))


def _normal(words: str) -> str:
    text = " ".join(_VOWELS.sub("", words).replace("’", "'").casefold().split()).translate(_ARABIC)
    return text.strip(" *_#-–—:.'\"")


@cache
def _known() -> Mapping[str, str]:
    data = tomllib.loads((files(__package__) / "section_headings.toml").read_text(encoding="utf-8"))
    return {_normal(words): section for section, phrases in data.items() for words in phrases}
