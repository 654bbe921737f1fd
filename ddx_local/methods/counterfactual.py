"""Counterfactual multi-agent reasoning: specialists change findings of the case and see what that does to each diagnosis.

Source: "Improving Clinical Diagnosis with Counterfactual Multi-Agent Reasoning", section 4 and appendix A.5.

The paper says / we do:
- triage of up to five specialists, then a differential of K = 3 / both in one round; never fewer than two specialists
- N = 2 counterfactual cases for each specialist and diagnosis / edits are span patches that the program applies, so that the
  rest of the case is unchanged by construction; new edits in each round, against the diagnoses that are still held
- the gap |P(d | case) - P(d^ | edited)| (equation 2) / that, and the signed gap of the same diagnosis, by default the signal;
  P comes from forced decoding under one prompt without a role, no sampling
- SIP >= 0.85 and EditSim >= 0.80 are required / as the paper says: if no edit passes, the specialist has none, and it is noted
- at most R = 3 further rounds, consensus at 0.75 of the specialists / agreement by `labels.same`
- an Independent Clinician audits without counterfactuals / it may leave the list, and does not count for consensus
- questions between the agents / they reach the one asked in the next round, who answers each of them
- without role-playing (ablation) / as many physicians without a specialty, so that there is still a discussion
- a judge without consensus / bound to the candidates by its grammar; not asked when there is consensus
- the authors' program: 76 to 235 calls in a depth of 14 to 32 / 5 + 4 R or 6 + 4 R batches
"""

from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, ask_each, note, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.counterfactual_options import Options
from ddx_local.methods.counterfactual_record import Team, counted, reports, tests_table
from ddx_local.methods.counterfactual_result import answer
from ddx_local.methods.counterfactual_rounds import over_all, reports_and_edits, take_stances
from ddx_local.methods.counterfactual_scoring import score
from ddx_local.methods.counterfactual_steps import DIFFERENTIAL, JUDGE, SUMMARY, TRACE, TRIAGE
from ddx_local.methods.fitting import Section
from ddx_local.methods.gaps import needed


def counterfactual(case: Case, options: Options) -> Flow[Differential]:
    """Rounds until the specialists agree, or the judge decides; then the reasoning trace."""
    team = yield from _assemble(case, options)
    record: list[Section] = [counted(team)]
    limit = 1 if "rounds" in options.without else options.rounds + 1
    start = yield from spending()
    for number in range(1, limit + 1):
        if not (yield from pays_for_turn(start, number - 1, "the discussion")):
            break
        if number > 1:
            yield from _sum_up(team, record)
        edits = yield from reports_and_edits(team, record, number)
        if number == 1 and team.reports:
            record.append(reports(team))
        tested = yield from score(team, edits, number)
        yield from take_stances(team, record, tested)
        team.final = _consensus(team)
        if team.final:
            break
    if not team.final:
        yield from _judge(team, record)
    trace = yield from over_all(team, record, Ask(TRACE, {"final": team.final, "tests": tests_table(team)}), whole=True)
    return answer(team, trace)


def _assemble(case: Case, options: Options) -> Flow[Team]:
    """Who takes part and what is under test, in one round."""
    bounds = {"least": "2", "most": str(options.specialists)}
    questions: dict[str, Ask[Any]] = {
        f"differential {number}": Ask(DIFFERENTIAL, {"case": case.text, "k": str(options.candidates)})
        for number in range(1, options.samples + 1)
    }
    if "roles" not in options.without:
        questions["triage"] = Ask(TRIAGE, {"case": case.text, "pool": panel_choices(), **bounds})
    answers = yield from ask_each(questions, "counterfactual/triage + differential")
    named = [
        (number, place, item)
        for number in range(1, options.samples + 1)
        for place, item in enumerate(answers[f"differential {number}"])
    ]
    groups = [[named[index] for index in group] for group in labels.merge([item.diagnosis for _, _, item in named])]
    # A sample that names a diagnosis twice has one vote; equal votes go by the better place.
    ranked = sorted(groups, key=lambda group: (-len({number for number, _, _ in group}), min(at for _, at, _ in group)))
    kept = ranked[: options.candidates]
    if len(kept) < options.candidates:
        yield from note(
            "candidates", f"the model named {len(kept)} different diagnoses, {options.candidates} were asked for"
        )
    physicians = tuple(f"physician {number}" for number in range(1, options.specialists + 1))
    return Team(case, options, answers.get("triage", physicians), tuple(group[0][2] for group in kept))


def _consensus(team: Team) -> str:
    """The diagnosis that enough specialists hold, or ''."""
    held = [team.stances[role].diagnosis for role in team.specialists]
    group = max(labels.merge(held), key=len)
    return held[group[0]] if len(group) >= needed(len(held), team.options.consensus) else ""


def _sum_up(team: Team, record: list[Section]) -> Flow[None]:
    team.summary = yield from over_all(team, record, Ask(SUMMARY, {}))


def _judge(team: Team, record: list[Section]) -> Flow[None]:
    team.verdict = yield from over_all(team, record, Ask(JUDGE, {"tests": tests_table(team)}), whole=True)
    team.final = team.verdict.diagnosis
    yield from note("judge", "the specialists did not agree; the judge chose from the candidates")
