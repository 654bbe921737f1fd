"""Few-shot and few-shot with thoughts: one agent that sees solved cases of other patients before the case.

Source: "Language Models are Few-Shot Learners"; with thoughts "Chain-of-Thought Prompting Elicits Reasoning in Large Language
Models"; baselines of the counterfactual method's and DMoA's papers.

The papers say / we do:
- k examples, the same for every case / the `shots` examples of the pool that are most like the case, the most similar last
- examples are drawn from a set apart from the test / a pool never gives the case itself, nor an excerpt or a slightly changed
  copy of it (whoever answers `Retrieve` makes sure; equal texts are looked for here once more)
- examples with chains of thought / pools of cases have none: examples show case and diagnoses, the thoughts are the model's own

Differs from the program of Dual-Inf, whose ten examples are rows of the data that it is tested on.

Where not all examples fit the context, the least similar ones are left out, and that is noted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ddx_local.case import Case, Differential
from ddx_local.flow import OWN_EXAMPLES, Ask, Flow, PastCase, SlotValue, Step, ask_each, note, retrieve, sizes
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.cot import read_thoughts
from ddx_local.methods.lists import listed
from ddx_local.methods.proposals import read_differential

A = TypeVar("A")

DIFFERENTIAL = Step("few_shot/differential", read_differential)
THINK = Step("few_shot/think", read_thoughts)
ANSWER = Step("few_shot/answer", read_differential)

ROLE = "physician"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of few-shot and of few-shot with thoughts.

    Args:
        shots: Examples.
        pool: File of solved cases, JSON Lines with text (or case) and diagnoses; the program's own 8 where none is given.
        k: Diagnoses at most.
        temperature: Sampling temperature.
    """

    shots: int = 5
    pool: str = ""
    k: int = 5
    temperature: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"shots": (1, 32), "k": (1, 10), "temperature": (0, 2)})


def few_shot(case: Case, options: Options) -> Flow[Differential]:
    """One batch of one call; the score of a diagnosis is 1 / its place."""
    examples = yield from _examples(case, options)
    proposals = yield from _ask(DIFFERENTIAL, case, options, examples, {"k": str(options.k)})
    return listed(case, proposals, ROLE)


def few_shot_cot(case: Case, options: Options) -> Flow[Differential]:
    """Two batches of one call, the thoughts and the answer."""
    examples = yield from _examples(case, options)
    thoughts = yield from _ask(THINK, case, options, examples, {})
    slots: dict[str, SlotValue] = {"thoughts": thoughts, "k": str(options.k)}
    proposals = yield from _ask(ANSWER, case, options, examples, slots)
    return listed(case, proposals, ROLE)


def _examples(case: Case, options: Options) -> Flow[tuple[PastCase, ...]]:
    """The examples, the most similar first; none of them is the case."""
    found = yield from retrieve(case.text, options.shots, options.pool or OWN_EXAMPLES, (case.id,))
    others = tuple(past for past in found if _plain(past.text) != _plain(case.text))
    if len(others) < len(found):
        yield from note("examples", "the pool gave the case itself as an example: it was left out")
    if len(others) < options.shots:
        yield from note(
            "examples",
            f"{len(others)} of {options.shots} examples: the pool holds no more beside the case",
            degraded=not others,
        )
    return others


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _ask(
    step: Step[A], case: Case, options: Options, examples: Sequence[PastCase], slots: dict[str, SlotValue]
) -> Flow[A]:
    """One question with as many of the examples as fit the context; where not even none fit, the engine refuses."""
    count = len(examples)
    while True:
        filled: dict[str, SlotValue] = {"case": case.text, "examples": shown(examples[:count]), **slots}
        question: Ask[A] = Ask(step, filled, ROLE, options.temperature)
        (size,) = yield from sizes((question,))
        if size.fits or count == 0:
            break
        count -= 1
    if count < len(examples):
        yield from note(
            "condensed",
            f"{step.name}: {count} of {len(examples)} examples were shown, to fit the context",
            degraded=True,
        )
    answers = yield from ask_each({ROLE: question})
    return answers[ROLE]


def shown(examples: Sequence[PastCase]) -> str:
    """Examples as text, the most similar last, next to the case."""
    parts = [
        f"EXAMPLE {number}\n{past.text.strip()}\nDiagnoses: {'; '.join(past.diagnoses)}"
        for number, past in enumerate(reversed(examples), start=1)
    ]
    return "\n\n".join(parts) or "(no examples)"
