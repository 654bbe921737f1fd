"""Who reads what of a case: all of it, or by partition some of its sections. Every character reaches a debater."""

from collections.abc import Sequence

from ddx_local.case import Case
from ddx_local.clinical.sections import Section, split
from ddx_local.flow import Flow, note
from ddx_local.methods.dmoa_budget import JOINT
from ddx_local.methods.dmoa_steps import Options


def dealt(case: Case, options: Options) -> Flow[dict[str, str]]:
    """Debater's number -> the text that it reads."""
    seats = [str(number) for number in range(1, options.debaters + 1)]
    if not options.partition:
        return dict.fromkeys(seats, case.text)
    sections = split(case.text)
    hands = deal(sections, options.debaters)
    if len(hands) < 2:
        yield from note("partition", "the case has one section only: every debater reads all of it", degraded=True)
        return dict.fromkeys(seats, case.text)
    if len(hands) < options.debaters:
        fewer = f"the case has {len(hands)} sections: {len(hands)} debaters instead of {options.debaters}"
        yield from note("partition", fewer, degraded=True)
    told = "; ".join(f"debater {seat}: {', '.join(names)}" for seat, names in zip(seats, hands, strict=False))
    yield from note("partition", told)
    return {seat: text_of(case.text, sections, names) for seat, names in zip(seats, hands, strict=False)}


def deal(sections: Sequence[Section], debaters: int) -> list[list[str]]:
    """Names of sections by debater: the longest first, each to whom has least so far; nobody is left without any."""
    size: dict[str, int] = {}
    for section in sections:
        size[section.name] = size.get(section.name, 0) + section.end - section.start
    hands: list[list[str]] = [[] for _ in range(min(debaters, len(size)))]
    for name in sorted(size, key=lambda name: -size[name]):
        min(hands, key=lambda hand: sum(size[held] for held in hand)).append(name)
    return [[name for name in size if name in hand] for hand in hands]


def text_of(text: str, sections: Sequence[Section], names: Sequence[str]) -> str:
    """The sections' spans in the order of the case; between spans that do not touch stands what no quote can hold."""
    spans: list[tuple[int, int]] = []
    for section in sections:
        if section.name not in names:
            continue
        if spans and spans[-1][1] == section.start:
            spans[-1] = (spans[-1][0], section.end)
        else:
            spans.append((section.start, section.end))
    return JOINT.join(text[start:end] for start, end in spans)
