"""Rounds whose prompts carry a record: shown in the fullest detail that fits the context; what is condensed is noted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from ddx_local.flow import Ask, Flow, ask_each, note, sizes

Detail = Literal["full", "brief", "bare"]
DETAILS: tuple[Detail, ...] = ("full", "brief", "bare")

Section = Mapping[Detail, str]
"""A piece of a record in each degree of detail."""

_SAID = {"brief": "without quotes and reasons", "bare": "as counts only"}


def render(sections: Sequence[Section], detail: Detail) -> str:
    """A record as text."""
    return "\n\n".join(section[detail] for section in sections if section[detail])


def titled(title: str, lines: Iterable[str]) -> str:
    """Lines under a title; the title alone where there are none."""
    return "\n".join([title, *lines])


def ask_fitting(build: Callable[[Detail], Mapping[str, Ask[Any]]], name: str = "") -> Flow[dict[str, Any]]:
    """Ask a round of questions, each built with the record in one degree of detail: the first at which all of them fit.

    Where nothing fits, the barest is asked, and the engine refuses it with the numbers.
    """
    detail: Detail = "full"
    questions: Mapping[str, Ask[Any]] = {}
    for detail in DETAILS:
        questions = build(detail)
        if all(size.fits for size in (yield from sizes(tuple(questions.values())))):
            break
    if questions and detail != "full":
        step = name or next(iter(questions.values())).step.name
        yield from note(
            "condensed", f"{step}: earlier rounds were shown {_SAID[detail]}, to fit the context", degraded=True
        )
    return (yield from ask_each(questions, name))
