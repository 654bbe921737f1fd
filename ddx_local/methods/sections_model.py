"""The Information Editor's second part: a model says to which section each sentence belongs that the first part left open.

Source: the Information Editor of the DMoA paper.

The paper says / we do:
- a model splits free text into sections / the program splits it into sentences, and the model names a section for each one
  that has none: it chooses from a list and cannot write a word of the case

A sentence under a heading of something else (a plan, a diagnosis) is not asked about: it stays unassigned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ddx_local.clinical.sections import UNASSIGNED, Section, merged, sentences
from ddx_local.flow import Ask, Flow, Step, ask_each
from ddx_local.methods.bounds import check_bounds

ASSIGN = Step("sections/assign", lambda answer: read_names(answer["sections"]))

ROLE = "editor"


@dataclass(frozen=True, slots=True)
class Options:
    """Options.

    Args:
        at_once: Sentences of one question; more are asked about in further questions of the same round.
    """

    at_once: int = 20

    def __post_init__(self) -> None:
        check_bounds(self, {"at_once": (1, 50)})


def assign(text: str, found: Sequence[Section], options: Options) -> Flow[tuple[Section, ...]]:
    """Assign the open sentences of a split text; no question where there are none.

    Args:
        text: The case text.
        found: Its sections, as `clinical.sections.split` finds them.
        options: How many sentences one question asks about.

    Returns:
        The sections, with every character still in exactly one.
    """
    open_ = [part for section in found if is_open(section) for part in pieces(text, section)]
    asked = [part for part in open_ if text[part.start : part.end].strip()]
    parts = [asked[start : start + options.at_once] for start in range(0, len(asked), options.at_once)]
    answers = yield from ask_each({f"{ROLE} {place}": _question(text, part) for place, part in enumerate(parts, 1)})
    named = {
        (part.start, part.end): name
        for part, name in zip(asked, (name for names in answers.values() for name in names), strict=True)
    }
    whole = []
    for section in found:
        for part in pieces(text, section) if is_open(section) else (section,):
            name = named.get((part.start, part.end), section.name)
            by_model = name != section.name
            whole.append(Section(name, part.start, part.end, "model" if by_model else section.by))
    return merged(whole)


def is_open(section: Section) -> bool:
    """Whether a section is one that nothing has said anything of."""
    return section.name == UNASSIGNED and section.by == "none"


def pieces(text: str, section: Section) -> tuple[Section, ...]:
    """A section's sentences, which hold its characters once each."""
    spans = sentences(text[section.start : section.end])
    return tuple(Section(section.name, section.start + span.start, section.start + span.end) for span in spans)


def read_names(answer: Sequence[Any]) -> tuple[str, ...]:
    """The sections in the order of the sentences, which the grammar keeps."""
    return tuple(str(name) for _, name in answer)


def _question(text: str, part: Sequence[Section]) -> Ask[tuple[str, ...]]:
    lines = [f"{place}. {' '.join(text[item.start : item.end].split())}" for place, item in enumerate(part, 1)]
    numbers = tuple(str(place) for place in range(1, len(part) + 1))
    return Ask(ASSIGN, {"case": text, "sentences": "\n".join(lines), "numbers": numbers}, ROLE)
