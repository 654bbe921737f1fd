"""The program's own examples, solved cases that ship with its prompts: a case base that every installation has.

They are synthetic, written for this project, and none of them is a case of bench/. This file knows where they lie; it doesn't
know how a base is read or searched (`case_base`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddx_local.data import data_dir
from ddx_local.flow import OWN_EXAMPLES, Retrieve

Answer = Callable[[Retrieve], Awaitable[list[list[Any]]]]


def own_examples() -> Path:
    """Their file, JSON Lines."""
    return data_dir("prompts") / "few_shot" / "examples.jsonl"


def with_own_examples(answer: Answer) -> Answer:
    """An answerer of `Retrieve` that knows `OWN_EXAMPLES` beside the files that another one knows."""

    async def answered(about: Retrieve) -> list[list[Any]]:
        return await answer(replace(about, base=str(own_examples())) if about.base == OWN_EXAMPLES else about)

    return answered
