"""Token budgets of roles: a question stays within its role's budget, or what it carries is condensed by a summary call.

A budget holds the prompt and the longest answer together, as the engine of the role measures them. The debate so far is
condensed into a summary, a case into verbatim pieces of itself, so that quotes of it are still the case's. Nothing is cut
silently: what was condensed, and what doesn't fit even so, is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ddx_local.clinical.quotes import locate
from ddx_local.flow import Ask, Flow, Size, ask_each, note, sizes
from ddx_local.methods.dmoa_steps import CONDENSE, EXTRACT, SUMMARIZER

PIECE = 120
"""Characters of a piece of a case at most, as in grammars/dmoa/extract.lark."""

JOINT = "\n" + "-" * (PIECE + 1) + "\n"
"""Between pieces that do not touch: one word too long to be in any quote, so that no quote holds text of both its sides."""

_SUMMARY = (120, 1600)
"""Characters of a summary, least and most."""

_PIECES = 12
"""Pieces of a condensed case at most."""


def ask_within(questions: Mapping[str, Ask[Any]], budget: int) -> Flow[tuple[dict[str, Any], Mapping[str, Ask[Any]]]]:
    """Ask a round of questions, each within the budget; `record` is condensed first, then `case`.

    Returns:
        The answers, and the questions as they were asked.
    """
    questions = dict(questions)
    step = next(iter(questions.values())).step.name
    over: dict[str, Size] = {}
    for slot in ("record", "case", ""):
        measured = yield from sizes(tuple(questions.values()))
        over = {key: size for key, size in zip(questions, measured, strict=True) if _needs(size) > _limit(size, budget)}
        # What is no longer than one piece would only be said again.
        long = {key: questions[key] for key in over if len(questions[key].slots.get(slot, "")) > PIECE}
        if long:
            questions |= yield from _condensed(long, over, slot, budget)
    if over:
        most = max(_needs(size) for size in over.values())
        detail = f"{step}: {most:,} tokens for {_names(over)}, over the budget of {budget:,}; nothing was cut"
        yield from note("over_budget", detail, degraded=True)
    return (yield from ask_each(questions)), questions


def _needs(size: Size) -> int:
    return size.prompt + size.answer


def _limit(size: Size, budget: int) -> int:
    return min(budget, size.context)


def _names(keys: Iterable[str]) -> str:
    return ", ".join(keys)


def _condensed(
    questions: Mapping[str, Ask[Any]], over: Mapping[str, Size], slot: str, budget: int
) -> Flow[dict[str, Ask[Any]]]:
    """The questions with a shorter text in a slot: one summary call for each different text, all in one batch."""
    empty = [replace(question, slots={**question.slots, slot: ""}) for question in questions.values()]
    bare = yield from sizes(empty)
    room: dict[str, int] = {}
    for (key, question), size in zip(questions.items(), bare, strict=True):
        text = str(question.slots[slot])
        # Bytes are never fewer than tokens: what has so many characters fits, in a script of one byte each.
        left = _limit(over[key], budget) - over[key].answer - size.prompt
        room[text] = min(left, room.get(text, left))
    shorter = yield from _summaries(room, slot)
    kept = {text: short for text, short in shorter.items() if short and len(short) < len(text)}
    done = [key for key, question in questions.items() if question.slots[slot] in kept]
    if done:
        what = "the case in verbatim pieces" if slot == "case" else "a summary of what was said before"
        step = questions[done[0]].step.name
        detail = f"{step}: {_names(done)} got {what}, to stay within {budget:,} tokens"
        yield from note("condensed", detail, degraded=True)
    return {
        key: replace(questions[key], slots={**questions[key].slots, slot: kept[str(questions[key].slots[slot])]})
        for key in done
    }


def _summaries(room: Mapping[str, int], slot: str) -> Flow[dict[str, str]]:
    """Text -> a shorter one, of about as many characters as there is room for."""
    numbered = {f"summary {number}": text for number, text in enumerate(room, start=1)}
    if slot == "record":
        least, most = _SUMMARY
        bounds = {key: str(max(least, min(most, room[text]))) for key, text in numbered.items()}
        asks: dict[str, Ask[Any]] = {
            key: Ask(CONDENSE, {"record": text, "room": bounds[key]}, SUMMARIZER) for key, text in numbered.items()
        }
        found = yield from ask_each(asks)
        return {numbered[key]: summary for key, summary in found.items()}
    counts = {key: str(max(1, min(_PIECES, room[text] // (PIECE + len(JOINT))))) for key, text in numbered.items()}
    asks = {key: Ask(EXTRACT, {"case": text, "most": counts[key]}, SUMMARIZER) for key, text in numbered.items()}
    found = yield from ask_each(asks)
    return {numbered[key]: _in_order(numbered[key], pieces) for key, pieces in found.items()}


def _in_order(text: str, pieces: Sequence[str]) -> str:
    """Pieces of a text, each once, as they stand in it."""
    return JOINT.join(
        sorted(dict.fromkeys(piece for piece in pieces if piece), key=lambda piece: locate(text, piece).start)
    )
