"""Chain of thought: one agent thinks freely about the case, then answers.

Source: "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models" and, for a prompt without examples, "Large Language
Models are Zero-Shot Reasoners"; the single-agent baseline of the counterfactual method's and DMoA's papers.

The papers say / we do:
- think, then answer (the second paper: in two calls) / two rounds: free thoughts, of which only the number and length are
  bound, then a list
- the answer is searched for in the text / the grammar gives it, with evidence quoted verbatim
- greedy decoding / 0.3, as for zero-shot, so that the two differ in the thoughts alone

The thoughts do not reach the result: they are in the run's record.
"""

from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Flow, Step, ask
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.lists import listed
from ddx_local.methods.proposals import read_differential


def read_thoughts(answer: Any) -> str:
    """Thoughts as a text, a line each."""
    return "\n".join(thought.strip() for thought in answer["thoughts"])


THINK = Step("cot/think", read_thoughts)
ANSWER = Step("cot/answer", read_differential)

ROLE = "physician"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of chain of thought.

    Args:
        k: Diagnoses at most.
        temperature: Sampling temperature of the thoughts and of the answer.
    """

    k: int = 5
    temperature: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"k": (1, 10), "temperature": (0, 2)})


def cot(case: Case, options: Options) -> Flow[Differential]:
    """Two rounds of one call; the score of a diagnosis is 1 / its place."""
    thoughts = yield from ask(THINK, role=ROLE, temperature=options.temperature, case=case.text)
    proposals = yield from ask(
        ANSWER, role=ROLE, temperature=options.temperature, case=case.text, thoughts=thoughts, k=str(options.k)
    )
    return listed(case, proposals, ROLE)
