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
- questions between the agents / they reach the one asked in the next round, and the answers come back
- a judge without consensus / bound to the candidates by its grammar; not asked when there is consensus
- the authors' program: 76 to 235 calls in a depth of 14 to 32 / 5 + 4 R or 6 + 4 R batches
"""

from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, ask_each, note
from ddx_local.methods.counterfactual_record import (
    CLINICIAN_ROLE,
    Team,
    answer,
    counted,
    discussion,
    reports,
    shown_tests,
    tests_table,
)
from ddx_local.methods.counterfactual_scoring import Edits, Tests, score
from ddx_local.methods.counterfactual_steps import (
    CLINICIAN,
    DIFFERENTIAL,
    EDIT,
    JUDGE,
    REPORT,
    STANCE,
    SUMMARY,
    TRACE,
    TRIAGE,
    Candidate,
    Options,
)
from ddx_local.methods.edits import OPERATIONS
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render
from ddx_local.methods.gaps import needed

GENERALIST = "general internal medicine doctor"


def counterfactual(case: Case, options: Options) -> Flow[Differential]:
    """Rounds until the specialists agree, or the judge decides; then the reasoning trace."""
    team = yield from _assemble(case, options)
    record: list[Section] = [counted(team)]
    limit = 1 if "rounds" in options.without else options.rounds + 1
    for number in range(1, limit + 1):
        if number > 1:
            yield from _sum_up(team, record)
        edits = yield from _reports_and_edits(team, record, number)
        if number == 1 and team.reports:
            record.append(reports(team))
        tested = yield from score(team, edits, number)
        yield from _take_stances(team, record, tested)
        team.final = _consensus(team)
        if team.final:
            break
    if not team.final:
        yield from _judge(team, record)
    trace = yield from _tail(team, record, Ask(TRACE, {"final": team.final, "tests": tests_table(team)}))
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
    named: list[Candidate] = [item for key in questions if key != "triage" for item in answers[key]]
    groups = labels.merge([item.diagnosis for item in named])
    ranked = sorted(groups, key=lambda group: -len(group))[: options.candidates]
    if len(ranked) < options.candidates:
        yield from note(
            "candidates", f"the model named {len(ranked)} different diagnoses, {options.candidates} were asked for"
        )
    candidates = tuple(named[group[0]] for group in ranked)
    return Team(case, options, answers.get("triage", (GENERALIST,)), candidates)


def _reports_and_edits(team: Team, record: list[Section], number: int) -> Flow[Edits]:
    """Reports (first round) and edits, which do not depend on them, in one round: (specialist, diagnosis) -> edits."""
    options = team.options
    held = tuple(dict.fromkeys(stance.diagnosis for role, stance in team.stances.items() if role in team.specialists))
    under_test = team.names if number == 1 else tuple(name for name in team.names if name in held) or team.names

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        questions: dict[str, Ask[Any]] = {}
        if number == 1 and "reports" not in options.without:
            for role in team.specialists:
                questions[f"report/{role}"] = Ask(REPORT, {"case": team.case.text, "role": role}, role)
        if "editing" not in options.without:
            for role in team.specialists:
                for name in under_test:
                    slots: dict[str, str | tuple[str, ...]] = {
                        "case": team.case.text,
                        "record": render([*record, *discussion(team)], detail),
                        "role": role,
                        "diagnosis": name,
                        "others": tuple(other for other in team.names if other != name),
                        "edits": str(options.edits),
                        "operations": OPERATIONS,
                    }
                    questions[f"edit/{role}/{name}"] = Ask(EDIT, slots, role)
        return questions

    answers = yield from ask_fitting(build, f"counterfactual/{'report + ' if number == 1 else ''}edit")
    team.reports |= {role: answers[f"report/{role}"] for role in team.specialists if f"report/{role}" in answers}
    return {
        (role, name): answers[f"edit/{role}/{name}"]
        for role in team.specialists
        for name in under_test
        if f"edit/{role}/{name}" in answers
    }


def _take_stances(team: Team, record: list[Section], tested: Tests) -> Flow[None]:
    roles = team.specialists if "clinician" in team.options.without else (*team.specialists, CLINICIAN_ROLE)

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        questions: dict[str, Ask[Any]] = {}
        for role in roles:
            received = team.received(role)
            slots: dict[str, str | tuple[str, ...]] = {
                "case": team.case.text,
                "record": render(record, detail),
                "discussion": render(discussion(team, without=role), detail),
                "role": role,
                "candidates": team.names,
                "received": tuple(f"from the {asker}: {question}" for asker, question in received.items()),
                "askers": tuple(received),
                "others": tuple(other for other in roles if other != role),
            }
            if role == CLINICIAN_ROLE:
                questions[role] = Ask(CLINICIAN, slots, role)
            else:
                questions[role] = Ask(STANCE, {**slots, "tests": shown_tests(tested[role])}, role)
        return questions

    team.stances = yield from ask_fitting(build)
    team.history.append(team.stances)
    clinician = team.stances.get(CLINICIAN_ROLE)
    if clinician and not any(labels.same(clinician.diagnosis, name) for name in team.names):
        yield from note("outside", f"the {CLINICIAN_ROLE} names a diagnosis outside the list: {clinician.diagnosis}")


def _consensus(team: Team) -> str:
    """The diagnosis that enough specialists hold, or ''."""
    held = [team.stances[role].diagnosis for role in team.specialists]
    group = max(labels.merge(held), key=len)
    return held[group[0]] if len(group) >= needed(len(held), team.options.consensus) else ""


def _sum_up(team: Team, record: list[Section]) -> Flow[None]:
    team.summary = yield from _tail(team, record, Ask(SUMMARY, {}))


def _judge(team: Team, record: list[Section]) -> Flow[None]:
    team.verdict = yield from _tail(team, record, Ask(JUDGE, {"tests": tests_table(team)}))
    team.final = team.verdict.diagnosis
    yield from note("judge", "the specialists did not agree; the judge chose from the candidates")


def _tail(team: Team, record: list[Section], question: Ask[Any]) -> Flow[Any]:
    """One question over the whole discussion."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots = {
            "case": team.case.text,
            "record": render(record, detail),
            "discussion": render(discussion(team), detail),
            "candidates": team.names,
            **question.slots,
        }
        return {"": Ask(question.step, slots)}

    return (yield from ask_fitting(build))[""]
