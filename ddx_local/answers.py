"""Whether an answer is one, what it says as a value, and what of a question is no longer as it was recorded."""

import json
from typing import Any

from ddx_local.errors import EmptyAnswer, GrammarDeadEnd, LengthStop, ParseError
from ddx_local.events import Asked
from ddx_local.flow import Ask
from ddx_local.grammar import accepts


def check(text: str, finish_reason: str, grammar: str | None, step: str) -> None:
    """An answer that is cut off, empty or stuck is an error of its own kind, never a short answer."""
    if finish_reason == "length":
        raise LengthStop(f"step `{step}`: the answer was cut off at its token limit")
    if not text.strip():
        raise EmptyAnswer(f"step `{step}`: the answer is empty")
    if grammar is not None and not accepts(grammar, text):
        raise GrammarDeadEnd(f"step `{step}`: the answer ends in the middle of its grammar")
    if finish_reason != "stop":
        raise GrammarDeadEnd(f"step `{step}`: the engine ended the answer before its end ({finish_reason})")


def parse(question: Ask[Any], text: str, *, grammar: bool) -> Any:
    try:
        return question.step.parse(json.loads(text) if grammar else text)
    except ParseError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        # The error's own text may quote the answer, which may quote the case.
        raise ParseError(f"step `{question.step.name}`: the answer cannot be read ({type(error).__name__})") from None


def difference(before: Asked, after: Asked) -> str:
    """What of a question changed, as far as the events tell."""
    names = sorted({*before.slots, *after.slots})
    slots = [f"slot `{name}`" for name in names if before.slots.get(name) != after.slots.get(name)]
    others = [name for name in ("step", "seed", "temperature") if getattr(before, name) != getattr(after, name)]
    return ", ".join(slots + others) or "the prompt file, the grammar file or the sampling"
