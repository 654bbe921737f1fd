"""Methods in which a panel discusses until it agrees, or until its rounds are over."""

from collections.abc import Mapping

from ddx_local.clinical.pool import panel_choices
from ddx_local.methods import (
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
)
from ddx_local.methods.method import Method

PANELS: Mapping[str, Method] = {
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
}
