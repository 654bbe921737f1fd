"""The table of methods: name -> flow, options, citation. A literal, so that it is a table of contents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Flow
from ddx_local.methods import (
    baselines,
    cot,
    counterfactual,
    counterfactual_options,
    dmoa,
    dmoa_steps,
    dual_inf,
    dual_inf_steps,
    dxchain,
    dxchain_steps,
    escalate,
    few_shot,
    kamac,
    kamac_steps,
    mac,
    mac_steps,
    mam,
    mam_steps,
    mdagents,
    mdagents_steps,
    medagents,
    medagents_steps,
    moa,
    scot,
    scot_options,
    self_consistency,
)


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
        roles: Its fixed role names, which `--role` may bind to another model: of a question without a role its step's
            name, of numbered roles (`presenter 2`) the name without the number.
    """

    name: str
    summary: str
    citation: str
    folders: tuple[str, ...]
    options: type[Any]
    flow: Callable[[Case, Any], Flow[Differential]]
    embedding: Callable[[Any], bool]
    rounds: tuple[str, ...]
    roles: tuple[str, ...] = ()


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
        roles=("physician",),
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
        roles=("sample",),
    ),
    "cot": Method(
        name="cot",
        summary="one agent thinks freely, then answers",
        citation="Chain-of-Thought Prompting Elicits Reasoning in Large Language Models",
        folders=("cot",),
        options=cot.Options,
        flow=cot.cot,
        embedding=lambda _: False,
        rounds=("think: thoughts in free text", "answer: a list with evidence, after the thoughts"),
        roles=("physician",),
    ),
    "few-shot": Method(
        name="few-shot",
        summary="one agent, with solved cases of other patients as examples",
        citation="Language Models are Few-Shot Learners",
        folders=("few_shot",),
        options=few_shot.Options,
        flow=few_shot.few_shot,
        embedding=lambda _: True,
        rounds=("differential: one agent gives its list, after the examples most like the case",),
        roles=("physician",),
    ),
    "few-shot-cot": Method(
        name="few-shot-cot",
        summary="few-shot, with free thoughts before the answer",
        citation="Chain-of-Thought Prompting Elicits Reasoning in Large Language Models",
        folders=("few_shot",),
        options=few_shot.Options,
        flow=few_shot.few_shot_cot,
        embedding=lambda _: True,
        rounds=("think: thoughts in free text, after the examples", "answer: a list with evidence, after the thoughts"),
        roles=("physician",),
    ),
    "self-consistency": Method(
        name="self-consistency",
        summary="n chains of thought, the majority of their first diagnoses",
        citation="Self-Consistency Improves Chain of Thought Reasoning in Language Models",
        folders=("cot",),
        options=self_consistency.Options,
        flow=self_consistency.self_consistency,
        embedding=lambda _: False,
        rounds=("think: n chains of thought in one batch", "answer: n lists in one batch, then a count"),
        roles=("sample",),
    ),
    "moa": Method(
        name="moa",
        summary="layers of proposers that improve on each other's answers, then an aggregator",
        citation="Mixture-of-Agents Enhances Large Language Model Capabilities",
        folders=("moa",),
        options=moa.Options,
        flow=moa.moa,
        embedding=lambda _: False,
        rounds=(
            "layer 1: every proposer answers alone",
            "layer 2 and later: every proposer reads the layer before and answers again",
            "aggregate: one final answer from the last layer's",
            "(as many batches as layers, and one; by default 9 calls in 3)",
        ),
        roles=("proposer", "aggregator"),
    ),
    "dual-inf": Method(
        name="dual-inf",
        summary="from findings to diseases, back to their textbook findings, and both examined",
        citation="Explainable differential diagnosis with dual-inference large language models",
        folders=("dual_inf",),
        options=dual_inf_steps.Options,
        flow=dual_inf.dual_inf,
        embedding=lambda _: False,
        rounds=(
            "forward: a list of diagnoses with quoted facts; from the second iteration on after the examination",
            "backward: what a textbook gives for each new diagnosis, without the case",
            "examination: yes or no by probability on every fact and every textbook finding, in one batch",
            "place: where the case says the findings that it mentions",
            "up to 4 further iterations while a diagnosis has few confirmed findings and a list brings something new",
            "in all: 3 to 20 batches, at most 71 calls an iteration",
        ),
        roles=("forward inference", "backward inference"),
    ),
    "mac": Method(
        name="mac",
        summary="doctors discuss, a supervisor challenges them until they agree",
        citation="Enhancing Diagnostic Capability with Multi-Agents Conversational Large Language Models",
        folders=("mac",),
        options=mac_steps.Options,
        flow=mac.mac,
        embedding=lambda _: False,
        rounds=(
            "opening: every doctor alone, with a list and tests",
            "supervisor: sums up; ends it where all agree, else challenges doctors",
            "doctor, supervisor: up to 2 further rounds, until the supervisor finds that all agree",
            "(5 calls in 2 batches a round: 5 calls in 2 batches to 15 in 6)",
        ),
        roles=("doctor", "supervisor"),
    ),
    "kamac": Method(
        name="kamac",
        summary="one expert begins; missing specialists join as gaps of knowledge are seen",
        citation="A Knowledge-driven Adaptive Collaboration of LLMs for Enhancing Medical Decision-making",
        folders=("mdagents", "kamac"),
        options=kamac_steps.Options,
        flow=kamac.kamac,
        embedding=lambda _: False,
        rounds=(
            "recruit, opinion: one expert",
            "talk: who takes part, and writes to whom (not of an expert who is alone)",
            "gap: which specialist is missing; opinion: of those who join; update: all others again",
            "up to 2 further turns, until nobody speaks and nobody is missing",
            "moderator: the majority, counted; not of an expert who is alone",
            "in all: 3 to 14 batches, 3 to 27 calls",
        ),
        roles=("recruit", "moderator", *panel_choices()),
    ),
    "mam": Method(
        name="mam",
        summary="a general practitioner calls a meeting of specialists, a moderator sums up, they vote",
        citation="MAM: Modular Multi-Agent Framework for Multi-Modal Medical Diagnosis via Role-Specialized Collaboration",
        folders=("mam",),
        options=mam_steps.Options,
        flow=mam.mam,
        embedding=lambda _: False,
        rounds=(
            "roles: the general practitioner names up to 3 specialists",
            "opinion, review: each alone, the moderator looks for errors; revise: those with one, once",
            "summary, vote: the meeting's differential, yes or no from every specialist",
            "up to 2 further rounds of these 4 or 5 until all agree",
            "final: the general practitioner decides, only where no majority agrees at the end",
            "in all: 5 to 17 batches, 5 to 41 calls",
        ),
        roles=("general practitioner", "moderator", *panel_choices()),
    ),
    "mdagents": Method(
        name="mdagents",
        summary="the complexity decides: one clinician, a panel that discusses, or teams",
        citation="MDAgents: An Adaptive Collaboration of LLMs for Medical Decision-Making",
        folders=("mdagents",),
        options=mdagents_steps.Options,
        flow=mdagents.mdagents,
        embedding=lambda _: False,
        rounds=(
            "complexity: low, moderate or high",
            "low: one primary care physician answers (in all 2 batches, 2 calls)",
            "moderate: recruit, opinion, up to 3 times talk and update, moderator (in all 4 to 10 batches, 8 to 38 calls)",
            "high: teams, then lead, assist, conclude, the same for the review team, decision (in all 9 batches, 15 calls)",
        ),
        roles=(
            *("complexity", "recruit", "teams", "primary care physician", "moderator", "decision maker"),
            *panel_choices(),
        ),
    ),
    "medagents": Method(
        name="medagents",
        summary="experts analyse, a report joins them, they vote on it until all agree",
        citation="MedAgents: Large Language Models as Collaborators for Zero-shot Medical Reasoning",
        folders=("medagents",),
        options=medagents_steps.Options,
        flow=medagents.medagents,
        embedding=lambda _: False,
        rounds=(
            "candidates + experts: what there is to choose from, whose fields it concerns",
            "analysis: each expert alone; who can tell the candidates apart",
            "options: the experts for the candidates weigh them",
            "report: one text that joins all",
            "vote: every expert, yes or no with advice",
            "revision, vote: up to 3 times, while somebody says no",
            "decision: the candidates ranked in view of the report",
            "(19 calls in 6 batches, and 8 in 2 for each revision: at most 43 in 12)",
        ),
        roles=("physician", "recruiter", "reporter", "decision maker", *panel_choices()),
    ),
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
