"""The table of methods: name -> flow, options, citation. A literal, so that it is a table of contents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Flow
from ddx_local.methods import baselines, scot, scot_steps


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Args:
        name: On the command line.
        summary: One line.
        citation: The paper.
        folder: Of its prompts and grammars; more than one where a method builds on another.
        options: Its frozen `Options`, with the paper's values.
        flow: Makes the flow of a case.
        embedding: Whether a run with these options consults the embedding model.
        rounds: What happens, for `methods show`.
    """

    name: str
    summary: str
    citation: str
    folders: tuple[str, ...]
    options: type[Any]
    flow: Callable[[Case, Any], Flow[Differential]]
    embedding: Callable[[Any], bool]
    rounds: tuple[str, ...]


METHODS: Mapping[str, Method] = {
    "zero-shot": Method(
        name="zero-shot",
        summary="one agent, one call",
        citation="the single-agent baseline of the SCoT paper",
        folders=("zero_shot",),
        options=baselines.ZeroShotOptions,
        flow=baselines.zero_shot,
        embedding=lambda _: False,
        rounds=("differential: one agent gives its list with evidence",),
    ),
    "best-of-n": Method(
        name="best-of-n",
        summary="n samples of zero-shot, diagnoses kept by majority",
        citation="the best-of-n ablation of the SCoT paper",
        folders=("zero_shot",),
        options=baselines.BestOfNOptions,
        flow=baselines.best_of_n,
        embedding=lambda _: False,
        rounds=("differential: n samples in one batch, then a count",),
    ),
    "scot": Method(
        name="scot",
        summary="a panel of specialists, seven rounds, weighted Borda vote",
        citation="Social Chain of Thought: A Multi-Agent Architecture Grounded in Medical Differential Diagnosis Methodology",
        folders=("scot",),
        options=scot_steps.Options,
        flow=scot.scot,
        embedding=lambda options: "merge" not in options.without,
        rounds=(
            "panel: who takes part",
            "1 relevance: each agent rates its specialty's relevance",
            "2 triage: what needs treatment now",
            "3 differential: independent lists with quoted evidence",
            "4 merge: the master list, each diagnosis once (at most one question)",
            "5a positions: support, challenge or neutral on every entry, and what is missing",
            "5b exchange: answers to challenges, challenges of others' entries",
            "5c final: final positions and withdrawals",
            "6 vote: scores and a ballot from every agent, weighted Borda count",
            "7 cant_miss: life-threatening conditions that the list lacks",
        ),
    ),
}
