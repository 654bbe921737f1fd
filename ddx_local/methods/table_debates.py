"""Methods that argue over a list: challenges, votes, counterfactuals, verdicts; and what escalates to one of them."""

from collections.abc import Mapping

from ddx_local.clinical.pool import panel_choices
from ddx_local.methods import (
    counterfactual,
    counterfactual_options,
    dmoa,
    dmoa_steps,
    dxchain,
    dxchain_steps,
    escalate,
    scot,
    scot_options,
)
from ddx_local.methods.method import Method

DEBATES: Mapping[str, Method] = {
    "scot": Method(
        name="scot",
        summary="a panel of specialists, seven rounds, weighted Borda vote",
        citation="Social Chain of Thought: A Multi-Agent Architecture Grounded in Medical Differential Diagnosis Methodology",
        folders=("scot",),
        options=scot_options.Options,
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
        roles=("panel", "merge", *panel_choices()),
    ),
    "counterfactual": Method(
        name="counterfactual",
        summary="specialists change findings of the case and measure what that does to each diagnosis",
        citation="Improving Clinical Diagnosis with Counterfactual Multi-Agent Reasoning",
        folders=("counterfactual",),
        options=counterfactual_options.Options,
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
        roles=(
            *("triage", "differential", "independent clinician", "summary", "judge", "trace", "physician"),
            *panel_choices(),
        ),
    ),
    "dmoa": Method(
        name="dmoa",
        summary="debaters present, are rebutted and revise; an aggregator settles what is left",
        citation="A Structured Debate-Mixture-of-Agents Framework for Complex Clinical Diagnostic Decision Support",
        folders=("dmoa", "dmoa_record"),
        options=dmoa_steps.Options,
        flow=dmoa.dmoa,
        embedding=lambda _: False,
        rounds=(
            "present: every debater's presenter, alone",
            "rebut: every debater's rebutter, on its own presenter",
            "revise: every presenter, after its rebuttal",
            "aggregate: one ranked list from the debaters' diagnoses, the conflicts settled, what stays uncertain",
            "extract, condense: only where a role's token budget would be exceeded",
        ),
        roles=("presenter", "rebutter", "aggregator", "summarizer", "physician"),
    ),
    "dxchain": Method(
        name="dxchain",
        summary="a patient profile, a tree of strategies with expectations, a debate on what is ambiguous",
        citation="Thinking Like a Clinician: A Cognitive AI Agent for Clinical Diagnosis via Panoramic Profiling and "
        "Adversarial Debate",
        folders=("dxchain",),
        options=dxchain_steps.Options,
        flow=dxchain.dxchain,
        embedding=lambda options: bool(options.cases) and options.phases != "1",
        rounds=(
            "perception + profile, abstract: the patient as a whole, before anything is planned",
            "expand, select: two or three strategies with expectations; the best of all open ones is taken",
            "expert: those whom the strategy names report what the case records",
            "check: yes or no by probability, does it agree with what was expected? If not, plan anew",
            "synthesis, reflection: the consolidated diagnosis and its review; up to 20 turns until it passes",
            "judge: which diagnoses are ambiguous; without one no debate",
            "debate, rebuttal, verdict: advocate and skeptic on the ambiguous ones",
            "report: primary and secondary diagnoses, treatment, and the coder's choice of codes",
        ),
        roles=(
            *("perception", "profiler", "summarizer", "planner", "evaluator", "synthesis", "reflection"),
            *("judge", "angel", "devil", *dxchain_steps.EXPERTS),
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
        roles=("physician", "sample", "panel", "merge", *panel_choices()),
    ),
}
