"""MedAgents' book-keeping: who takes part, what was found, as text for later prompts, and the differential. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ddx_local.case import Case, Differential, Entry, ReasoningTrace
from ddx_local.methods.fitting import Section, titled
from ddx_local.methods.lists import Named, by_quote, entry, quoted
from ddx_local.methods.medagents_steps import Analysis, Decision, Options, Report, Vote
from ddx_local.methods.proposals import Weighed

PHYSICIAN, RECRUITER, REPORTER, DECIDER = "physician", "recruiter", "reporter", "decision maker"


@dataclass
class Team:
    """Everything that was said. `candidates`: name -> all proposals of it; `votes` are those on the report as it is."""

    case: Case
    options: Options
    candidates: Mapping[str, list[Named]]
    experts: tuple[str, ...]
    option_experts: tuple[str, ...] = ()
    analyses: Mapping[str, Analysis] = field(default_factory=dict)
    weighed: Mapping[str, Mapping[str, Weighed]] = field(default_factory=dict)
    report: Report | None = None
    votes: Mapping[str, Vote] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.candidates)

    @property
    def voters(self) -> tuple[str, ...]:
        return (*self.experts, *self.option_experts)

    @property
    def written(self) -> Report:
        assert self.report is not None, "the report comes before whoever reads it"
        return self.report

    @property
    def advice(self) -> tuple[str, ...]:
        """What those who vote no want changed."""
        return tuple(f"{role}: {vote.advice}" for role, vote in self.votes.items() if not vote.agrees)


def analyses(team: Team) -> Section:
    """What the experts of the question's fields found; without the quotes; only who took part."""
    full, brief = [], []
    for role, item in team.analyses.items():
        proof = " ".join(f'"{quote}"' for quote in item.findings)
        full.append(" ".join(part for part in (f"- {role}:", proof, item.analysis) if part))
        brief.append(f"- {role}: {item.analysis}")
    return {
        "full": titled("ANALYSES:", full),
        "brief": titled("ANALYSES:", brief),
        "bare": f"EXPERTS: {', '.join(team.analyses)}",
    }


def options(team: Team) -> Section:
    """What the option experts weighed, by candidate."""
    full, brief, bare = [], [], []
    for name in team.names:
        given = {role: answer[name] for role, answer in team.weighed.items()}
        full += [f"- {name}, {role}: {_proof(item)}{item.conclusion}" for role, item in given.items()]
        brief += [f"- {name}, {role}: {item.conclusion}" for role, item in given.items()]
        quotes = {
            "for": {quote for item in given.values() for quote in item.supports},
            "against": {quote for item in given.values() for quote in item.opposes},
        }
        bare.append(f"- {name}: {len(quotes['for'])} findings for, {len(quotes['against'])} against")
    title = "THE DIAGNOSES WEIGHED:"
    return {"full": titled(title, full), "brief": titled(title, brief), "bare": titled(title, bare)}


def report(written: Report) -> Section:
    """The report; without its key facts."""
    whole = "\n".join(["THE REPORT:", *(f"- {fact}" for fact in written.key_facts), written.analysis])
    short = f"THE REPORT: {written.analysis}"
    return {"full": whole, "brief": short, "bare": short}


def _proof(item: Weighed) -> str:
    sides = (("for", item.supports), ("against", item.opposes))
    return "".join(f"{side} " + ", ".join(f'"{quote}"' for quote in quotes) + "; " for side, quotes in sides if quotes)


def result(team: Team, decision: Decision) -> Differential:
    """The decision's ranking, with what the candidates were named for and what the option experts weighed."""
    return Differential(
        score_kind="reciprocal_place",
        entries=tuple(_entry(team, rank, name) for rank, name in enumerate(decision.ranking, start=1)),
        panel=team.voters,
        trace=ReasoningTrace(
            conclusion=f"{decision.reason} {team.written.analysis}".strip(),
            would_change="; ".join(team.advice),
            by_consensus=bool(team.votes) and not team.advice,
        ),
    )


def _entry(team: Team, rank: int, name: str) -> Entry:
    made = entry(team.case, rank, 1 / rank, team.candidates[name], "candidates")
    said = quoted(team.candidates[name])
    for role, answer in team.weighed.items():
        said += [(role, quote, True) for quote in answer[name].supports]
        said += [(role, quote, False) for quote in answer[name].opposes]
    return replace(made, votes={DECIDER: rank}, evidence=by_quote(team.case, said))
