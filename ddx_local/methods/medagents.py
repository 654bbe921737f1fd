"""MedAgents: experts of the case's fields analyse it, a report joins them, they vote on it until all agree, then a decision.

Source: "MedAgents: Large Language Models as Collaborators for Zero-shot Medical Reasoning".

The paper says / we do:
- multiple choice / open diagnosis: the options become a list of candidates, which one call names beforehand
- 5 experts of the question's fields, 2 of the options' / that, all different, from the pool of specialists
- each analyses; a report with key knowledge and a total analysis / that; the key knowledge reaches the vote and the decision
- all vote yes or no; a no brings advice and a revision, until all agree or after 3 loops / the advice comes with the vote
- the decision is an option / a ranking of all candidates
- temperature 0 / that

Differs from the authors' program:
- it asks for advice in calls of their own, and does not vote on the last revision / here the vote after it says if all agree
- it takes "yes" or "no" from anywhere in a text ("diagnosis" has a no in it), yes where there is none, the first capital letter for
  the option, and goes on with the text "ERROR." of a failed call / the grammars leave no such choice, a failed call fails the case
- it falls back to general medicine, lets a field overwrite another of the same name, splits the report at a heading, drops its key
  knowledge and repeats the options five times / none of these can happen
- 18 to 56 calls in as great a depth / 19 to 43 calls in 6 to 12 batches
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, SlotValue, Step, ask_each, note, spending
from ddx_local.methods import medagents_record as record
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render
from ddx_local.methods.lists import grouped, named
from ddx_local.methods.medagents_record import DECIDER, PHYSICIAN, RECRUITER, REPORTER, Team
from ddx_local.methods.medagents_steps import (
    ANALYSIS,
    CANDIDATES,
    DECISION,
    EXPERTS,
    OPTION_EXPERTS,
    OPTIONS,
    REPORT,
    REVISION,
    VOTE,
    Options,
)


def medagents(case: Case, options: Options) -> Flow[Differential]:
    """Six batches, and two for each revision that a no brings."""
    team = yield from _gather(case, options)
    yield from _analyse(team)
    if team.option_experts:
        team.weighed = yield from _each(team, OPTIONS, team.option_experts, [record.analyses(team)])
    found = [record.analyses(team), *([record.options(team)] if team.weighed else [])]
    team.report = yield from _one(team, REPORT, REPORTER, found, {"candidates": team.names})
    yield from _agree(team, found)
    decision = yield from _one(team, DECISION, DECIDER, (), {"candidates": team.names})
    return record.result(team, decision)


def _gather(case: Case, options: Options) -> Flow[Team]:
    """What there is to choose from and whose fields it concerns, in one round."""
    listing: dict[str, SlotValue] = {"case": case.text, "least": str(min(3, options.k)), "k": str(options.k)}
    choice: dict[str, SlotValue] = {"case": case.text, "pool": panel_choices(), "agents": str(options.experts)}
    questions: dict[str, Ask[Any]] = {
        PHYSICIAN: Ask(CANDIDATES, listing, PHYSICIAN, options.temperature),
        RECRUITER: Ask(EXPERTS, choice, RECRUITER, options.temperature),
    }
    answers = yield from ask_each(questions, "medagents/candidates + experts")
    groups = grouped(named({PHYSICIAN: answers[PHYSICIAN]}))
    for group in groups:
        if len(group) > 1:
            yield from note("merged", f"one diagnosis: {' = '.join(item.diagnosis for _, _, item in group)}")
    return Team(case, options, {group[0][2].diagnosis: group for group in groups}, answers[RECRUITER])


def _analyse(team: Team) -> Flow[None]:
    """The analyses, and the choice of the option experts, which does not depend on them."""
    case, options = team.case.text, team.options
    questions: dict[str, Ask[Any]] = {
        role: Ask(ANALYSIS, {"case": case, "role": role}, role, options.temperature) for role in team.experts
    }
    if options.option_experts:
        others = tuple(name for name in panel_choices() if name not in team.experts)
        slots: dict[str, SlotValue] = {
            "case": case,
            "candidates": team.names,
            "pool": others,
            "agents": str(options.option_experts),
        }
        questions[RECRUITER] = Ask(OPTION_EXPERTS, slots, RECRUITER, options.temperature)
    answers = yield from ask_each(questions, "medagents/analysis")
    team.option_experts = answers.get(RECRUITER, ())
    team.analyses = {role: answers[role] for role in team.experts}


def _agree(team: Team, found: list[Section]) -> Flow[None]:
    """Votes and revisions until nobody says no, or the loops are over; the last vote is on the last report."""
    if not team.options.loops:
        return
    team.votes = yield from _each(team, VOTE, team.voters)
    start = yield from spending()
    for number in range(team.options.loops):
        if not team.advice:
            return
        if not (yield from pays_for_turn(start, number, "the revision")):
            break
        given = {"candidates": team.names, "advice": team.advice}
        team.report = yield from _one(team, REVISION, REPORTER, found, given)
        team.votes = yield from _each(team, VOTE, team.voters)
    if team.advice:
        yield from note(
            "not_agreed",
            f"{len(team.advice)} of {len(team.voters)} experts do not agree after {team.options.loops} revisions: "
            "the report stands",
        )


def _each(team: Team, step: Step[Any], roles: tuple[str, ...], sections: list[Section] | None = None) -> Flow[Any]:
    """One question to each role: over the record where there is one, over the report otherwise."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots: dict[str, SlotValue] = {"case": team.case.text}
        if sections is None:
            slots["report"] = render([record.report(team.written)], detail)
        else:
            slots |= {"record": render(sections, detail), "candidates": team.names}
        return {role: Ask(step, {**slots, "role": role}, role, team.options.temperature) for role in roles}

    return (yield from ask_fitting(build))


def _one(
    team: Team, step: Step[Any], role: str, sections: Sequence[Section], given: Mapping[str, SlotValue]
) -> Flow[Any]:
    """One question over the record, where there is one, and the report, once it is written."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots: dict[str, SlotValue] = {"case": team.case.text, **given}
        if sections:
            slots["record"] = render(sections, detail)
        if team.report is not None:
            slots["report"] = render([record.report(team.report)], detail)
        return {role: Ask(step, slots, role, team.options.temperature)}

    return (yield from ask_fitting(build))[role]
