"""The counterfactual method's answer: the differential with evidence, every counterfactual with its numbers, the trace. Pure."""

from collections.abc import Mapping

from ddx_local.case import Counterfactual, Differential, Entry, ReasoningTrace
from ddx_local.clinical import labels
from ddx_local.methods.counterfactual_record import CLINICIAN_ROLE, Team, Tested
from ddx_local.methods.counterfactual_steps import Trace
from ddx_local.methods.lists import by_quote

JUDGE_ROLE, TRACE_ROLE = "judge", "trace"


def answer(team: Team, trace: Trace) -> Differential:
    """The differential: the final diagnosis first, the others by their probability on the case."""
    probability = team.before.normalised if team.before else {}
    order = sorted(team.names, key=lambda name: (name != team.final, -probability.get(name, 0.0)))
    return Differential(
        score_kind="probability",
        entries=tuple(_entry(team, trace, name, rank, probability) for rank, name in enumerate(order, start=1)),
        panel=tuple(team.stances),
        counterfactuals=tuple(_counterfactual(item) for item in team.tested),
        trace=ReasoningTrace(
            conclusion=trace.conclusion,
            would_change=trace.would_change,
            by_consensus=team.verdict is None,
            outside=outside(team),
        ),
    )


def outside(team: Team) -> str:
    """The independent clinician's last diagnosis where it is none of the candidates under any name, else ''."""
    stance = team.stances.get(CLINICIAN_ROLE)
    if stance is None or any(labels.same(stance.diagnosis, name) for name in team.names):
        return ""
    return stance.diagnosis


def _entry(team: Team, trace: Trace, name: str, rank: int, probability: Mapping[str, float]) -> Entry:
    holders = [role for role, stance in team.stances.items() if labels.same(stance.diagnosis, name)]
    said = [(role, quote, True) for role in holders for quote in team.stances[role].discriminating]
    if team.verdict and team.verdict.diagnosis == name:
        said += [(JUDGE_ROLE, quote, True) for quote in team.verdict.decides]
    weighed = trace.candidates[name]
    said += [(TRACE_ROLE, quote, True) for quote in weighed.supports]
    said += [(TRACE_ROLE, quote, False) for quote in weighed.opposes]
    value = probability.get(name)
    return Entry(
        rank=rank,
        diagnosis=name,
        score=value or 0.0,
        probability=value,
        evidence=by_quote(team.case, said),
        proposed_by=("differential",),
        entered_in="differential",
        reasoning=weighed.conclusion,
        stances=dict.fromkeys(holders, "support"),
    )


def _counterfactual(item: Tested) -> Counterfactual:
    return Counterfactual(
        by=item.role,
        round=str(item.round),
        diagnosis=item.diagnosis,
        operation=item.edit.operation,
        patches=tuple((patch.start, patch.end, patch.replacement) for patch in item.patches),
        p_before=item.before.normalised[item.diagnosis],
        p_after=item.after.normalised[item.diagnosis],
        gap=item.gap.signed,
        gap_raw=item.gap.signed_raw,
        gap_paper=item.gap.paper,
        gap_paper_raw=item.gap.paper_raw,
        noise_floor=item.gap.noise_floor,
        sip=item.sip,
        edit_sim=item.edit_sim,
        shift=item.shift,
        combined=item.combined,
        kept=item.kept,
    )
