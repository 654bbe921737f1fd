"""The counterfactual method's book-keeping: what the team has said and measured, as text for prompts and as the answer. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddx_local.case import Case, Counterfactual, Differential, Entry, Evidence, Quote, ReasoningTrace
from ddx_local.clinical.quotes import locate
from ddx_local.methods.counterfactual_steps import Candidate, Options, Report, Stance, Summary, Trace, Verdict
from ddx_local.methods.edits import Edit, Patch
from ddx_local.methods.fitting import Section
from ddx_local.methods.gaps import Gap, Probabilities

CLINICIAN_ROLE = "independent clinician"


@dataclass(frozen=True, slots=True)
class Tested:
    """One edit with its numbers; `kept` when it preserves enough of the case."""

    role: str
    round: int
    diagnosis: str
    edit: Edit
    patches: tuple[Patch, ...]
    gap: Gap
    before: Probabilities
    after: Probabilities
    sip: float
    edit_sim: float
    shift: float
    combined: float
    kept: bool


@dataclass
class Team:
    """Everything that was said and measured so far; `stances` are the last round's."""

    case: Case
    options: Options
    specialists: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    reports: dict[str, Report] = field(default_factory=dict)
    tested: list[Tested] = field(default_factory=list)
    stances: Mapping[str, Stance] = field(default_factory=dict)
    history: list[Mapping[str, Stance]] = field(default_factory=list)
    summary: Summary | None = None
    verdict: Verdict | None = None
    before: Probabilities | None = None
    final: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(candidate.diagnosis for candidate in self.candidates)

    def received(self, role: str) -> dict[str, str]:
        """Questions of the last round to a role, by asker."""
        return {
            asker: question for asker, stance in self.stances.items() for to, question in stance.questions if to == role
        }


def counted(team: Team) -> Section:
    """Who takes part and what is under test."""
    lines = [f"- {item.diagnosis}: {item.reason}" for item in team.candidates]
    full = f"TEAM: {', '.join(team.specialists)}\n" + "\n".join(["CANDIDATES:", *lines])
    return {"full": full, "brief": f"CANDIDATES: {', '.join(team.names)}", "bare": ""}


def reports(team: Team) -> Section:
    full = ["REPORTS:"]
    for role, report in team.reports.items():
        quotes = " ".join(f'"{quote}"' for quote in report.facts)
        full.append(f"- {role}: {report.report} {quotes}")
    brief = ["REPORTS:", *(f"- {role}: {report.report}" for role, report in team.reports.items())]
    return {"full": "\n".join(full), "brief": "\n".join(brief), "bare": ""}


def discussion(team: Team, without: str = "") -> list[Section]:
    """The minutes and the last positions, with the questions and answers that were exchanged; `without` leaves a role's own out."""
    sections: list[Section] = []
    if team.summary:
        text = f"MINUTES: agreed: {team.summary.agreed} Disputed: {team.summary.disputed} Open: {team.summary.open}"
        sections.append({"full": text, "brief": text, "bare": text})
    others = {role: stance for role, stance in team.stances.items() if role != without}
    if others:
        full, brief = ["POSITIONS:"], ["POSITIONS:"]
        for role, stance in others.items():
            said = [f"- {role}: {stance.diagnosis} ({stance.confidence}). {stance.reasoning}"]
            said += [f"  to the {to}: {text}" for to, text in (*stance.questions, *stance.answers)]
            full += said
            brief.append(f"- {role}: {stance.diagnosis} ({stance.confidence})")
        sections.append({"full": "\n".join(full), "brief": "\n".join(brief), "bare": "\n".join(brief)})
    return sections


def shown_tests(tested: Sequence[Tested]) -> str:
    """A specialist's best counterfactuals with their numbers."""
    return "\n".join(_line(item) for item in tested) or "- none: no change of the case preserved enough of it"


def tests_table(team: Team) -> str:
    """The counterfactuals of all rounds that counted, the strongest first."""
    best = sorted((item for item in team.tested if item.kept), key=lambda item: -item.combined)[: 3 * team.options.top]
    return "\n".join(f"{_line(item)} ({item.role}, round {item.round})" for item in best) or "- none"


def _line(item: Tested) -> str:
    changes = "; ".join(
        f'remove "{quote}"' if item.edit.operation == "remove" else f'{item.edit.operation} "{quote}": "{new}"'
        for quote, new in item.edit.spans
    )
    low, high = item.after.normalised[item.diagnosis], item.before.normalised[item.diagnosis]
    flip = f", then most likely: {item.gap.flipped_to}" if item.gap.flipped_to else ""
    below = ", below the noise floor" if abs(item.gap.signed) < item.gap.noise_floor else ""
    return f"- {changes}. P({item.diagnosis}) {high:.2f} -> {low:.2f}, gap {item.gap.signed:+.2f}{below}{flip}"


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
            outside=_outside(team),
        ),
    )


def _entry(team: Team, trace: Trace, name: str, rank: int, probability: Mapping[str, float]) -> Entry:
    holders = [role for role, stance in team.stances.items() if stance.diagnosis == name]
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for role in holders:
        for quote in team.stances[role].discriminating:
            found.setdefault((quote, True), {})[role] = None
    weighed = trace.candidates[name]
    for quotes, supports in ((weighed.supports, True), (weighed.opposes, False)):
        for quote in quotes:
            found.setdefault((quote, supports), {})["trace"] = None
    evidence = []
    for (text, supports), roles in found.items():
        span = locate(team.case.text, text)
        evidence.append(Evidence(Quote(text, span.start, span.end), supports, tuple(roles)))
    value = probability.get(name)
    return Entry(
        rank=rank,
        diagnosis=name,
        score=value or 0.0,
        probability=value,
        evidence=tuple(evidence),
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


def _outside(team: Team) -> str:
    stance = team.stances.get(CLINICIAN_ROLE)
    return stance.diagnosis if stance and stance.diagnosis not in team.names else ""
