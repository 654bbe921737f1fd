"""Baselines: zero-shot (one agent, one call) and best-of-n (repeated sampling of it).

Sources: the single-agent baseline and the best-of-n ablation of the SCoT paper (35 samples = 5 agents x 7 rounds).

The papers say / we do:
- zero-shot: one answer, a list of diagnoses / the grammar bounds the list, and evidence is quoted verbatim
- best-of-n: diagnoses kept by majority / names that mean the same count together (`labels.same`); `threshold` is the share of
  samples that must name a diagnosis, and when none reaches it the most frequent one is kept, which is noted
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, Step, ask, ask_each, note
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.budget import sampled
from ddx_local.methods.lists import entry, grouped, listed, named, roles
from ddx_local.methods.proposals import Proposal, read_differential

DIFFERENTIAL = Step("zero_shot/differential", read_differential)

ROLE = "physician"


@dataclass(frozen=True, slots=True)
class ZeroShotOptions:
    """Options of zero-shot.

    Args:
        k: Diagnoses at most.
        temperature: Sampling temperature.
    """

    k: int = 5
    temperature: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"k": (1, 10), "temperature": (0, 2)})


@dataclass(frozen=True, slots=True)
class BestOfNOptions:
    """Options of best-of-n.

    Args:
        n: Samples.
        k: Diagnoses at most, of a sample and of the answer.
        temperature: Sampling temperature.
        threshold: Share of the samples that must name a diagnosis for it to be kept, in [0, 1].
    """

    n: int = 35
    k: int = 5
    temperature: float = 0.7
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_bounds(self, {"n": (1, 200), "k": (1, 10)})
        if not (0 <= self.temperature <= 2 and 0 <= self.threshold <= 1):
            raise ValueError("temperature must be 0 to 2 and threshold 0 to 1")


def zero_shot(case: Case, options: ZeroShotOptions) -> Flow[Differential]:
    """One call; the score of a diagnosis is 1 / its place."""
    slots = {"case": case.text, "k": str(options.k)}
    proposals = yield from ask(DIFFERENTIAL, role=ROLE, temperature=options.temperature, **slots)
    return listed(case, proposals, ROLE)


def best_of_n(case: Case, options: BestOfNOptions) -> Flow[Differential]:
    """N samples in one batch; the score of a diagnosis is the share of samples that name it."""
    slots = {"case": case.text, "k": str(options.k)}

    def draw(names: Sequence[str]) -> Flow[dict[str, tuple[Proposal, ...]]]:
        return ask_each({name: Ask(DIFFERENTIAL, slots, name, options.temperature) for name in names})

    samples = yield from sampled(draw, options.n)
    groups = grouped(named(samples))
    share = {id(group): len(roles(group)) / len(samples) for group in groups}
    ranked = sorted(groups, key=lambda group: (-share[id(group)], min(place for _, place, _ in group)))
    kept = [group for group in ranked if share[id(group)] >= options.threshold]
    if not kept:
        yield from note(
            "kept", f"no diagnosis was named by {options.threshold:.0%} of the samples: the first one stays"
        )
        kept = ranked[:1]
    entries = tuple(entry(case, rank, share[id(group)], group) for rank, group in enumerate(kept[: options.k], start=1))
    return Differential(score_kind="share_of_samples", entries=entries, panel=tuple(samples))
