"""The table of methods: name -> flow, options, citation. A literal, so that it is a table of contents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Flow
from ddx_local.methods import baselines, counterfactual, counterfactual_steps, escalate, scot, scot_steps


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
    "counterfactual": Method(
        name="counterfactual",
        summary="specialists change findings of the case and measure what that does to each diagnosis",
        citation="Improving Clinical Diagnosis with Counterfactual Multi-Agent Reasoning",
        folders=("counterfactual",),
        options=counterfactual_steps.Options,
        flow=counterfactual.counterfactual,
        embedding=lambda options: "editing" not in options.without,
        rounds=(
            "triage + differential: who takes part, what is under test",
            "report + edit: facts by specialty; changes of the case for each specialist and diagnosis",
            "probability: every candidate on the case and on every edited case, without sampling",
            "stance: each specialist with its strongest tests, and the independent clinician",
            "summary, edit, probability, stance: up to 3 further rounds, until 0.75 of the specialists agree",
            "judge: only without agreement, bound to the candidates",
            "trace: evidence for and against each candidate, and what would change the mind",
        ),
    ),
    "auto": Method(
        name="auto",
        summary="a single agent first, SCoT where it is not sure",
        citation="the difficulty-conditioned results of the SCoT paper",
        folders=("zero_shot", "scot", "counterfactual"),
        options=escalate.Options,
        flow=escalate.auto,
        embedding=lambda _: True,
        rounds=(
            "differential: the single agent's list, and 5 samples of it",
            "probability: of each diagnosis of the list, without sampling",
            "then nothing more, or the rounds of scot",
        ),
    ),
}
