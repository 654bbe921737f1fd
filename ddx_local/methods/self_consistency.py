"""Self-consistency: many chains of thought for one case, and the majority of their first diagnoses.

Source: "Self-Consistency Improves Chain of Thought Reasoning in Language Models".

The paper says / we do:
- 40 sampled chains at temperature 0.7 / that; all chains think in one batch and answer in a second one
- the majority of the final answers / of the first diagnoses, under whatever name (`labels.same`); the others of the lists follow
- a tie is not spoken of / by the samples that name a diagnosis at all, then by the best place, then by the earlier sample; noted

Differs from a program that takes the name for "several doctors, then a critic who picks" (MAC's repository): there each saw the
others before answering; here no sample sees another, and the program counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, ask_each, note
from ddx_local.methods import voting
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.budget import sampled
from ddx_local.methods.cot import ANSWER, THINK
from ddx_local.methods.lists import entry, grouped, named, roles
from ddx_local.methods.proposals import Proposal


@dataclass(frozen=True, slots=True)
class Options:
    """Options of self-consistency.

    Args:
        n: Samples.
        k: Diagnoses at most, of a sample and of the answer.
        temperature: Sampling temperature of the thoughts and of the answers.
    """

    n: int = 40
    k: int = 5
    temperature: float = 0.7

    def __post_init__(self) -> None:
        check_bounds(self, {"n": (1, 200), "k": (1, 10), "temperature": (0, 2)})


def self_consistency(case: Case, options: Options) -> Flow[Differential]:
    """Two batches of n calls; the score of a diagnosis is the share of samples that put it first."""

    def draw(names: Sequence[str]) -> Flow[dict[str, tuple[Proposal, ...]]]:
        thoughts = yield from ask_each(
            {role: Ask(THINK, {"case": case.text}, role, options.temperature) for role in names}
        )
        slots = {role: {"case": case.text, "thoughts": thoughts[role], "k": str(options.k)} for role in names}
        return (yield from ask_each({role: Ask(ANSWER, slots[role], role, options.temperature) for role in names}))

    lists = yield from sampled(draw, options.n)
    samples = list(lists)
    found = {group[0][2].diagnosis: group for group in grouped(named(lists))}
    # Equal counts keep this order.
    order = sorted(found, key=lambda name: (-len(roles(found[name])), min(place for _, place, _ in found[name])))
    firsts = [name for name, group in found.items() for _, place, _ in group if place == 1]
    counted = voting.majority(firsts, order)
    for tie in counted.ties:
        if counted.scores[tie[0]] > 0:
            how = "ordered by samples that name it, then its best place, then the earlier sample"
            yield from note("tie", f"first in equally many samples, {how}: {', '.join(tie)}")
    entries = tuple(
        entry(case, rank, counted.scores[name] / len(samples), found[name])
        for rank, name in enumerate(counted.ranking[: options.k], start=1)
    )
    return Differential(score_kind="share_of_first_places", entries=entries, panel=tuple(samples))
