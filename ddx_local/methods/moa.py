"""Mixture of Agents (MoA): layers of proposers, each of which improves on the answers of the layer before; then an aggregator.

Source: "Mixture-of-Agents Enhances Large Language Model Capabilities".

The paper says / we do:
- L = 3 layers, the last of them one aggregator, 9 calls / `layers` counts those of proposers: 2 of them and the aggregator
- different models propose / one model, M = 4 samples of it at 0.7 (its ablation with a single proposer model)
- a layer reads the answers of the layer before it / that, and none of its own layer
- answers in prose / a short answer and a list under a grammar, so that what each proposer named is known
- the answer is the aggregator's / that; it may name what no proposer named, which is noted

Differs from the authors' program: it leaves out an answer that failed and goes on with fewer, here a failed call fails the case; it
puts the answers before the case into the system message, here they come after it, so that all prompts share their beginning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.flow import Ask, Flow, Step, note
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render
from ddx_local.methods.lists import Named, entry, grouped, named, roles
from ddx_local.methods.proposals import Proposal, in_words, read_differential

AGGREGATOR = "aggregator"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of MoA.

    Args:
        proposers: M, proposers of a layer.
        layers: Layers of proposers before the aggregator; the paper's L is one more.
        k: Diagnoses of a list at most.
        temperature: Sampling temperature of the proposers.
        temperature_aggregator: Sampling temperature of the aggregator.
    """

    proposers: int = 4
    layers: int = 2
    k: int = 5
    temperature: float = 0.7
    temperature_aggregator: float = 0.3

    def __post_init__(self) -> None:
        check_bounds(self, {"proposers": (1, 12), "layers": (1, 6), "k": (1, 10)})
        if not (0 <= self.temperature <= 2 and 0 <= self.temperature_aggregator <= 2):
            raise ValueError("temperatures must be 0 to 2")


@dataclass(frozen=True, slots=True)
class Answer:
    answer: str
    differential: tuple[Proposal, ...]


def _read(answer: Any) -> Answer:
    return Answer(answer["answer"].strip(), read_differential(answer))


PROPOSE = Step("moa/propose", _read)
REFINE = Step("moa/refine", _read)
AGGREGATE = Step("moa/aggregate", _read)


def moa(case: Case, options: Options) -> Flow[Differential]:
    """One batch for each layer and one for the aggregator; the score of a diagnosis is 1 / its place."""
    proposers = [f"proposer {number}" for number in range(1, options.proposers + 1)]
    past: list[dict[str, Answer]] = []
    for layer in range(1, options.layers + 1):
        step = REFINE if past else PROPOSE
        name = f"moa/layer {layer}"
        past.append((yield from _layer(case, options, step, past[-1:], proposers, options.temperature, name)))
    last = yield from _layer(
        case, options, AGGREGATE, past[-1:], [AGGREGATOR], options.temperature_aggregator, AGGREGATE.name
    )
    answer = result(case, past, last)
    if new := [item.diagnosis for item in answer.entries if item.entered_in == "aggregate"]:
        yield from note("outside", f"the aggregator names what no proposer named: {', '.join(new)}")
    return answer


def _layer(
    case: Case,
    options: Options,
    step: Step[Answer],
    before: list[dict[str, Answer]],
    seats: list[str],
    temperature: float,
    name: str,
) -> Flow[dict[str, Answer]]:
    """The same question to every role of a layer, with the answers of the layer before in the fullest detail that fits."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots = {"case": case.text, "k": str(options.k)}
        if before:
            slots["record"] = render([shown(before[0])], detail)
        return {role: Ask(step, slots, role, temperature) for role in seats}

    return (yield from ask_fitting(build, name))


def shown(answers: Mapping[str, Answer]) -> Section:
    """A layer's answers by number; whose is whose does not matter, since all are samples of one model."""
    full, brief = [], []
    for number, answer in enumerate(answers.values(), start=1):
        lines = [f"- {in_words(item)}" for item in answer.differential]
        full.append("\n".join([f"ANSWER {number}: {answer.answer}", *lines]))
        brief.append(f"ANSWER {number}: " + "; ".join(item.diagnosis for item in answer.differential))
    groups = grouped(named({role: answer.differential for role, answer in answers.items()}))
    counts = [(group[0][2].diagnosis, len(roles(group))) for group in groups]
    bare = "; ".join(f"{name} ({count})" if count > 1 else name for name, count in counts)
    return {"full": "\n\n".join(full), "brief": "\n".join(brief), "bare": f"NAMED (by how many): {bare}"}


def result(case: Case, past: list[dict[str, Answer]], last: Mapping[str, Answer]) -> Differential:
    """The aggregator's list, each diagnosis once; with it the places and quotes that the last layer of proposers gave."""
    by_layer = [named({role: answer.differential for role, answer in layer.items()}) for layer in past]
    entries = []
    for rank, group in enumerate(grouped(named({AGGREGATOR: last[AGGREGATOR].differential})), start=1):
        names = [item.diagnosis for _, _, item in group]
        layers = [[found for found in layer if _among(found, names)] for layer in by_layer]
        entered = next((f"layer {number}" for number, found in enumerate(layers, start=1) if found), "aggregate")
        found = entry(case, rank, 1 / rank, [*group, *layers[-1]], entered)
        proposers = roles([item for layer in layers for item in layer])
        entries.append(replace(found, proposed_by=proposers or (AGGREGATOR,)))
    return Differential(score_kind="reciprocal_place", entries=tuple(entries), panel=(*past[-1], AGGREGATOR))


def _among(found: Named, names: list[str]) -> bool:
    return any(labels.same(found[2].diagnosis, name) for name in names)
