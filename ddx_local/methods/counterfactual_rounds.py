"""The rounds of counterfactual reasoning that every specialist takes part in, and questions over the whole discussion."""

from typing import Any

from ddx_local.flow import Ask, Flow, note
from ddx_local.methods.counterfactual_record import CLINICIAN_ROLE, Team, discussion, shown_tests
from ddx_local.methods.counterfactual_result import outside
from ddx_local.methods.counterfactual_scoring import Edits, Tests
from ddx_local.methods.counterfactual_steps import CLINICIAN, EDIT, REPORT, STANCE
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render


def reports_and_edits(team: Team, record: list[Section], number: int) -> Flow[Edits]:
    """Reports (first round) and edits, which do not depend on them, in one round: (specialist, diagnosis) -> edits."""
    options = team.options
    held = tuple(dict.fromkeys(stance.diagnosis for role, stance in team.stances.items() if role in team.specialists))
    under_test = team.names if number == 1 else tuple(name for name in team.names if name in held)
    parts = {"report": number == 1 and "reports" not in options.without, "edit": "editing" not in options.without}
    pairs = {f"edit/{role}/{at}": (role, name) for role in team.specialists for at, name in enumerate(under_test, 1)}

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        questions: dict[str, Ask[Any]] = {}
        if parts["report"]:
            for role in team.specialists:
                questions[f"report/{role}"] = Ask(REPORT, {"case": team.case.text, "role": role}, role)
        if parts["edit"]:
            shown = render([*record, *discussion(team)], detail)
            for key, (role, name) in pairs.items():
                slots: dict[str, str | tuple[str, ...]] = {
                    "case": team.case.text,
                    "record": shown,
                    "role": role,
                    "diagnosis": name,
                    "others": tuple(other for other in team.names if other != name),
                    "edits": str(options.edits),
                }
                questions[key] = Ask(EDIT, slots, role)
        return questions

    answers = yield from ask_fitting(build, f"counterfactual/{' + '.join(part for part in parts if parts[part])}")
    team.reports |= {role: answers[f"report/{role}"] for role in team.specialists if f"report/{role}" in answers}
    return {pair: answers[key] for key, pair in pairs.items() if key in answers}


def take_stances(team: Team, record: list[Section], tested: Tests) -> Flow[None]:
    roles = team.specialists if "clinician" in team.options.without else (*team.specialists, CLINICIAN_ROLE)

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        questions: dict[str, Ask[Any]] = {}
        for role in roles:
            received = team.received(role)
            slots: dict[str, str | tuple[str, ...]] = {
                "case": team.case.text,
                "record": render(record, detail),
                "discussion": render(discussion(team), detail),
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

    team.history.append((yield from ask_fitting(build)))
    if named := outside(team):
        yield from note("outside", f"the {CLINICIAN_ROLE} names a diagnosis outside the list: {named}")


def over_all(team: Team, record: list[Section], question: Ask[Any], *, whole: bool = False) -> Flow[Any]:
    """One question over the discussion so far; `whole`: over that of all rounds."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots = {
            "case": team.case.text,
            "record": render(record, detail),
            "discussion": render(discussion(team, whole=whole), detail),
            "candidates": team.names,
            **question.slots,
        }
        return {"": Ask(question.step, slots)}

    return (yield from ask_fitting(build))[""]
