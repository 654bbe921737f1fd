"""The Information Editor: a case text as six sections, which are spans of it and never rewritten text.

It finds headings (`section_headings`) and, where there are none, sentences whose words belong to one section
(`section_cues`); everything else stays unassigned. It asks no model: `ddx_local.methods.sections_model` does that for what
is left.

Source: the Information Editor of the DMoA paper (the six sections); every character in exactly one section or unassigned.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ddx_local.clinical.section_cues import assign
from ddx_local.clinical.section_headings import OTHER, headings
from ddx_local.clinical.section_headings import section_of as section_of
from ddx_local.clinical.sentences import sentences as sentences  # methods know them through here

NAMES = (
    "basic_information",
    "clinical_presentation",
    "physical_examination",
    "medical_history",
    "initial_test_results",
    "further_diagnostic_tests",
)
"""The six sections, in the order in which a case is told."""

UNASSIGNED = "unassigned"

TITLES: Mapping[str, str] = {name: name.replace("_", " ").capitalize() for name in NAMES} | {UNASSIGNED: "Other"}
"""Section -> its heading in a case text."""

How = Literal["heading", "cue", "model", "given", "none"]
"""How a span came to its section: under a heading, by its words, by a model's choice, by whoever gave the case, or not.

What is unassigned by a heading stands under one of something else; what is so by none is open.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]` belongs to the section `name`, one of `NAMES` or `UNASSIGNED`; a heading is part of its section.

    A section may have several spans: a text may come back to it.
    """

    name: str
    start: int
    end: int
    by: How = "none"


def split(text: str) -> tuple[Section, ...]:
    """A text's sections, in order, as spans that hold every character exactly once; none of an empty text.

    Under a heading the text belongs to the heading's section, until the next one. Before the first heading, or without
    any, a sentence belongs to a section where its words say so (conservatively). The rest is `UNASSIGNED`, and so is what
    stands under a heading of something else (a plan, a diagnosis).
    """
    found: list[Section] = []
    marks = headings(text)
    first = marks[0].start if marks else len(text)
    # White space alone before the first heading says nothing.
    if text[:first].strip():
        spans = sentences(text[:first])
        for span, name in zip(spans, assign([text[span.start : span.end] for span in spans]), strict=True):
            found.append(Section(name or UNASSIGNED, span.start, span.end, "cue" if name else "none"))
    elif first and not marks:
        found.append(Section(UNASSIGNED, 0, first))
    elif first:
        found.append(_opened(marks[0].section, 0, first))
    ends = [*(mark.start for mark in marks[1:]), *([len(text)] if marks else [])]
    found += [_opened(mark.section, mark.start, end) for mark, end in zip(marks, ends, strict=True)]
    return merged(found)


def _opened(section: str, start: int, end: int) -> Section:
    return Section(UNASSIGNED if section == OTHER else section, start, end, "heading")


def merged(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Spans that touch and belong together as one; empty ones are left out."""
    found: list[Section] = []
    for section in sections:
        last = found[-1] if found else None
        if section.start == section.end:
            continue
        if last and (last.name, last.by, last.end) == (section.name, section.by, section.start):
            found[-1] = Section(last.name, last.start, section.end, last.by)
        else:
            found.append(section)
    return tuple(found)


def text_of(text: str, sections: Iterable[Section], *names: str) -> str:
    """The characters of some sections, in the text's order; a line feed parts two that did not touch."""
    chosen = [section for section in sections if section.name in names]
    pieces = [text[section.start : section.end] for section in chosen]
    joints = [
        "" if one.end == next_.start or piece.endswith("\n") else "\n"
        for piece, (one, next_) in zip(pieces, pairwise(chosen), strict=False)
    ]
    return "".join(piece + joint for piece, joint in zip(pieces, [*joints, ""], strict=False))


def join(form: Mapping[str, str]) -> str:
    """A case text with headings from the section form: section name -> its text; blank ones are left out.

    `split` finds the same sections again, unless a text holds lines that are headings themselves.

    Raises:
        ValueError: A name that is no section.
    """
    return laid_out(form)[0]


def laid_out(form: Mapping[str, str]) -> tuple[str, tuple[Section, ...]]:
    """`join`, and the sections that the form itself says, whatever lines its texts hold.

    Raises:
        ValueError: A name that is no section.
    """
    unknown = [name for name in form if name not in TITLES]
    if unknown:
        raise ValueError(f"no section `{unknown[0]}`: a form has {', '.join((*NAMES, UNASSIGNED))}")
    text = ""
    found = []
    for name, title in TITLES.items():
        if form.get(name, "").strip():
            text += "\n" if text else ""
            found.append((name, len(text)))
            text += f"{title}:\n{form[name].strip()}\n"
    ends = [*(start for _, start in found[1:]), len(text)]
    return text, tuple(Section(name, start, end, "given") for (name, start), end in zip(found, ends, strict=False))


def check(text: str, sections: Sequence[Section]) -> tuple[str, ...]:
    """What keeps sections from being a split of a text: gaps, overlaps, spans out of range, names that are none.

    Returns:
        One phrase for each fault, without the text's words; nothing if every character is in exactly one section.
    """
    faults = [
        f"section {number}: no section is named `{section.name}`"
        if section.name.isidentifier()
        else f"section {number}: its name is no section's"
        for number, section in enumerate(sections, 1)
        if section.name not in TITLES
    ]
    faults += [
        f"section {number} ({section.start} to {section.end}): is not a span of a text of {len(text)} characters"
        for number, section in enumerate(sections, 1)
        if not 0 <= section.start < section.end <= len(text)
    ]
    if faults:
        return tuple(faults)
    covered = 0
    for section in sorted(sections, key=lambda section: (section.start, section.end)):
        if section.start > covered:
            faults.append(f"characters {covered} to {section.start} are in no section")
        elif section.start < covered:
            faults.append(f"characters {section.start} to {min(covered, section.end)} are in more than one section")
        covered = max(covered, section.end)
    if covered < len(text):
        faults.append(f"characters {covered} to {len(text)} are in no section")
    return tuple(faults)
