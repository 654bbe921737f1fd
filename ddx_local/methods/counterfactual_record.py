"""The counterfactual method's record: what the team has said and measured, and that as text for prompts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddx_local.case import Case
from ddx_local.methods.counterfactual_options import Options
from ddx_local.methods.counterfactual_steps import Candidate, Report, Stance, Summary, Verdict
from ddx_local.methods.edits import Edit, Patch
from ddx_local.methods.fitting import Section, titled
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
    """Everything that was said and measured so far; `history` holds the stances of each round, by role."""

    case: Case
    options: Options
    specialists: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    reports: dict[str, Report] = field(default_factory=dict)
    tested: list[Tested] = field(default_factory=list)
    history: list[Mapping[str, Stance]] = field(default_factory=list)
    summary: Summary | None = None
    verdict: Verdict | None = None
    before: Probabilities | None = None
    final: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(candidate.diagnosis for candidate in self.candidates)

    @property
    def stances(self) -> Mapping[str, Stance]:
        """The last round's."""
        return self.history[-1] if self.history else {}

    def received(self, role: str) -> dict[str, str]:
        """Questions of the last round to a role, by asker."""
        return _received(self.stances, role)


def _received(stances: Mapping[str, Stance], role: str) -> dict[str, str]:
    return {asker: text for asker, stance in stances.items() for to, text in stance.questions if to == role}


def counted(team: Team) -> Section:
    """Who takes part and what is under test."""
    lines = [f"- {item.diagnosis}: {item.reason}" for item in team.candidates]
    full = f"TEAM: {', '.join(team.specialists)}\n" + titled("CANDIDATES:", lines)
    return {"full": full, "brief": f"CANDIDATES: {', '.join(team.names)}", "bare": ""}


def reports(team: Team) -> Section:
    full = ["REPORTS:"]
    for role, report in team.reports.items():
        quotes = " ".join(f'"{quote}"' for quote in report.facts)
        full.append(f"- {role}: {report.report} {quotes}")
    brief = ["REPORTS:", *(f"- {role}: {report.report}" for role, report in team.reports.items())]
    return {"full": "\n".join(full), "brief": "\n".join(brief), "bare": ""}


def discussion(team: Team, *, whole: bool = False) -> list[Section]:
    """The minutes and the last positions, with the questions and the answers to those of the round before.

    `whole` adds the positions of all earlier rounds, what the roles read from their tests, and the judge's verdict: for
    those who close the discussion. The independent clinician, who sees no tests, never gets that.
    """
    sections = [_positions(team, number, whole) for number in range(1, len(team.history))] if whole else []
    if team.summary:
        text = f"MINUTES: agreed: {team.summary.agreed} Disputed: {team.summary.disputed} Open: {team.summary.open}"
        sections.append({"full": text, "brief": text, "bare": text})
    if team.history:
        sections.append(_positions(team, len(team.history), whole))
    if team.verdict:
        decided = f"VERDICT OF THE JUDGE: {team.verdict.diagnosis} ({team.verdict.confidence})"
        sections.append({"full": f"{decided}. {team.verdict.reasoning}", "brief": decided, "bare": decided})
    return sections


def _positions(team: Team, number: int, tests: bool) -> Section:
    """What every role said in a round, from 1."""
    before = team.history[number - 2] if number > 1 else {}
    title = f"POSITIONS OF ROUND {number}:"
    full, brief, bare = [title], [title], [title]
    for role, stance in team.history[number - 1].items():
        held = f"- {role}: {stance.diagnosis} ({stance.confidence})"
        asked = _received(before, role)
        exchange = [f'  answers the {to}, who asked "{asked[to]}": {text}' for to, text in stance.answers]
        exchange += [f"  asks the {to}: {text}" for to, text in stance.questions]
        shown = f" Tests: {stance.tests_show}" if tests and stance.tests_show else ""
        full += [f"{held}. {stance.reasoning}{shown}", *exchange]
        brief += [held, *exchange]
        bare.append(held)
    return {"full": "\n".join(full), "brief": "\n".join(brief), "bare": "\n".join(bare)}


def shown_tests(tested: Sequence[Tested]) -> str:
    """A specialist's best counterfactuals with their numbers."""
    return "\n".join(_line(item) for item in tested) or "- none"


def tests_table(team: Team) -> str:
    """The counterfactuals of all rounds that counted, the strongest first."""
    kept = sorted((item for item in team.tested if item.kept), key=lambda item: -item.combined)
    lines = [f"{_line(item)} ({item.role}, round {item.round})" for item in kept[: 3 * team.options.top]]
    more = len(kept) - len(lines)
    return "\n".join([*lines, f"- and {more} weaker ones"] if more else lines) or "- none"


def _line(item: Tested) -> str:
    changes = "; ".join(
        f'remove "{quote}"' if item.edit.operation == "remove" else f'{item.edit.operation} "{quote}": "{new}"'
        for quote, new in item.edit.spans
    )
    low, high = item.after.normalised[item.diagnosis], item.before.normalised[item.diagnosis]
    leads = item.after.most_likely
    flip = f", and {leads} becomes the most likely" if leads != item.before.most_likely else ""
    below = ", below the noise floor" if abs(item.gap.signed) < item.gap.noise_floor else ""
    return f"- {changes}. P({item.diagnosis}) {high:.2f} -> {low:.2f}, gap {item.gap.signed:+.2f}{below}{flip}"
