"""MDAgents: the case's complexity decides who works on it: one clinician, a panel that discusses, or teams.

Source: "MDAgents: An Adaptive Collaboration of LLMs for Medical Decision-Making".

The paper says / we do:
- complexity check: low, moderate, high / the grammar allows these three; words of the reason decide nothing
- low: one primary care clinician with examples / without examples
- moderate: five recruited experts discuss until they agree / they come from the pool, all different; up to three rounds: who
  wants to speak writes to others, all answer again; ends when all put the same diagnosis first or nobody speaks
- a moderator takes the majority / counted by the program; the moderator's ballot orders equal votes
- high: three teams of three, from initial assessment to final review / the teams before the last work side by side, then
  the last one reviews their reports: the lead asks, the members report, the lead concludes
- a decision maker reads the reports of all teams / bound to the teams' diagnoses; its order is the answer
- 2 batches (low), 4 to 10 (moderate), 9 (high)

Differs from the authors' program, which has no answer unless every turn of a round was spoken in, reads "basic" first
wherever it stands and answers with the previous case's answer where it finds no complexity, shows a message only to those who
speak later in the same turn, and decides from the initial team's report alone. Its examples and priming calls are left out.
"""

from collections.abc import Sequence

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Flow, ask, note, spending
from ddx_local.methods import discussion
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.discussion import Panel
from ddx_local.methods.lists import listed
from ddx_local.methods.majority import agreed
from ddx_local.methods.mdagents_steps import CLINICIAN, COMPLEXITY, RECRUIT, TEAMS, Complexity, Options
from ddx_local.methods.mdagents_teams import Teams, decide, seated, work

CLINICIAN_ROLE = "primary care physician"


def mdagents(case: Case, options: Options) -> Flow[Differential]:
    """The complexity, then one of the three ways."""
    complexity: Complexity
    if options.complexity == "adaptive":
        complexity = yield from ask(COMPLEXITY, case=case.text)
        yield from note("complexity", f"the case is taken as {complexity}")
    else:
        complexity = options.complexity
    if complexity == "low":
        return (yield from _alone(case, options))
    if complexity == "moderate":
        return (yield from _together(case, options))
    return (yield from _in_teams(case, options))


def _alone(case: Case, options: Options) -> Flow[Differential]:
    slots = {"case": case.text, "k": str(options.k)}
    proposals = yield from ask(CLINICIAN, role=CLINICIAN_ROLE, temperature=options.temperature, **slots)
    return listed(case, proposals, CLINICIAN_ROLE)


def _together(case: Case, options: Options) -> Flow[Differential]:
    """A panel: lists, rounds of discussion, the moderator."""
    experts = yield from ask(RECRUIT, case=case.text, pool=panel_choices(), experts=str(options.experts))
    panel = Panel(case, options.k, options.most, options.temperature, experts)
    yield from discussion.opinions(panel, experts)
    start = yield from spending()
    for number in range(1, options.rounds + 1):
        if not (yield from pays_for_turn(start, number - 1, "the discussion")):
            break
        if name := agreed(panel.lists):
            yield from note("agreed", f"all put {name} first before round {number}: the discussion ends")
            break
        said = yield from discussion.talk(panel, f"round {number}")
        if not any(talk.messages for talk in said.values()):
            yield from note("agreed", f"nobody wants to speak in round {number}: the lists stay")
            break
        yield from discussion.update(panel, said, f"round {number}", experts)
    return (yield from discussion.moderate(panel))


def _in_teams(case: Case, options: Options) -> Flow[Differential]:
    """Teams side by side, the review of their reports, the decision."""
    names = titles(options.teams)
    places = tuple(f"the {name} ({options.members} members)" for name in names)
    seats = yield from ask(
        TEAMS, case=case.text, pool=panel_choices(), seats=str(options.teams * options.members), teams=places
    )
    teams = Teams(case, options, seated(names, seats))
    if names[:-1]:
        yield from work(teams, names[:-1])
    yield from work(teams, names[-1:])
    return (yield from decide(teams))


def titles(teams: int) -> Sequence[str]:
    """What the teams are called: the first assesses, the last reviews."""
    if teams == 1:
        return ["review team"]
    between = ["specialist team"] if teams == 3 else [f"specialist team {number}" for number in range(1, teams - 1)]
    return ["initial assessment team", *between, "review team"]
