"""MDAgents' teams: the lead asks, the members report, the lead concludes; then a decision over the reports of all teams.

It knows who sits where and what was reported; it doesn't know when teams are asked for, or in which order they work.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, SlotValue, Step
from ddx_local.methods.discussion import NOTHING
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render
from ddx_local.methods.majority import choices, decided, shortlist
from ddx_local.methods.mdagents_steps import ASSIST, CONCLUDE, DECISION, LEAD, Assistance, Options, Report

A = TypeVar("A")


@dataclass
class Teams:
    """Who sits in which team, the lead first, and the leads' reports by team."""

    case: Case
    options: Options
    seats: Mapping[str, tuple[str, ...]]
    reports: dict[str, Report] = field(default_factory=dict)

    @property
    def record(self) -> list[Section]:
        line = "TEAMS: " + "; ".join(f"{name}: {', '.join(seats)}" for name, seats in self.seats.items())
        reports = [_section(name, report) for name, report in self.reports.items()]
        return [{"full": line, "brief": line, "bare": ""}, *reports]


def seated(names: Sequence[str], seats: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The specialists, team by team, as many in each."""
    size = len(seats) // len(names)
    return {name: tuple(seats[at * size : (at + 1) * size]) for at, name in enumerate(names)}


def work(teams: Teams, names: Sequence[str]) -> Flow[None]:
    """Three rounds of the given teams side by side: questions, answers, reports. A lead without members concludes alone."""
    leads = {teams.seats[name][0]: name for name in names}
    members = {member: name for name in names for member in teams.seats[name][1:]}
    asked: Mapping[str, Mapping[str, str]] = {}
    answers: Mapping[str, Assistance] = {}
    if members:
        asked = yield from _each(teams, LEAD, leads, lambda role: {"members": teams.seats[leads[role]][1:]})
        questions = {to: text for questions in asked.values() for to, text in questions.items()}
        answers = yield from _each(teams, ASSIST, members, lambda role: {"question": questions[role]})

    def heard(role: str) -> dict[str, SlotValue]:
        reports = [_reported(member, answers[member]) for member in teams.seats[leads[role]][1:]]
        return {"reports": tuple(reports) or NOTHING, "k": str(teams.options.k)}

    reports = yield from _each(teams, CONCLUDE, leads, heard)
    teams.reports |= {leads[role]: report for role, report in reports.items()}


def decide(teams: Teams) -> Flow[Differential]:
    """The decision maker's order of what the teams named; a diagnosis's votes are the places that the leads gave it."""
    lists = {teams.seats[name][0]: report.differential for name, report in teams.reports.items()}
    history = [
        (f"report of the {name}", {teams.seats[name][0]: report.differential}) for name, report in teams.reports.items()
    ]
    found = yield from shortlist(choices(lists, history), teams.options.most)
    slots = {"counts": tuple(item.count for item in found), "candidates": tuple(item.diagnosis for item in found)}

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": teams.case.text, "record": render(teams.record, detail)}
        return {"decision maker": Ask(DECISION, {**shown, **slots}, "decision maker")}

    ballot: tuple[str, ...] = (yield from ask_fitting(build))["decision maker"]
    by_name = {item.diagnosis: item for item in found}
    ranked = [by_name[name] for name in ballot][: teams.options.k]
    panel = [role for seats in teams.seats.values() for role in seats]
    return decided(teams.case, ranked, [1 / rank for rank in range(1, len(ranked) + 1)], "reciprocal_place", panel)


def _each(
    teams: Teams, step: Step[A], roles: Mapping[str, str], slots: Callable[[str], Mapping[str, SlotValue]]
) -> Flow[dict[str, A]]:
    """One question to each role (-> its team), with the finished reports in the fullest detail that fits the context."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": teams.case.text, "record": render(teams.record, detail)}
        temperature = teams.options.temperature
        return {
            role: Ask(step, {**shown, "role": role, "team": team, **slots(role)}, role, temperature)
            for role, team in roles.items()
        }

    return (yield from ask_fitting(build))


def _reported(role: str, said: Assistance) -> str:
    return " ".join([f"{role}:", *(f'"{quote}"' for quote in said.findings), said.answer])


def _section(name: str, report: Report) -> Section:
    head, places = f"REPORT of the {name}:", list(enumerate(report.differential, start=1))
    full = [
        " ".join([f"  {at}. {item.diagnosis}.", *(f'"{quote}"' for quote in item.evidence), item.reason])
        for at, item in places
    ]
    brief = "; ".join(f"{at}. {item.diagnosis}" for at, item in places)
    return {
        "full": "\n".join([f"{head} {report.report}", *full]),
        "brief": f"{head} {report.report} {brief}",
        "bare": f"{head} {brief}",
    }
