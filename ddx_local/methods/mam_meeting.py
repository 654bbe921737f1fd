"""MAM's minutes: what was said in which round of the meeting, as text for the prompts of later rounds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ddx_local.case import Case
from ddx_local.methods import scot_record
from ddx_local.methods.fitting import Section, titled
from ddx_local.methods.majority import Choice, Lists, choices
from ddx_local.methods.mam_steps import Opinion, Options, Summary
from ddx_local.methods.proposals import in_words


@dataclass
class Minutes:
    """One round: opinions (the corrected ones where they were), the moderator's summary, objections to it by role."""

    opinions: dict[str, Opinion]
    summary: Summary | None = None
    objections: Mapping[str, str] = field(default_factory=dict)

    @property
    def lists(self) -> Lists:
        return {role: opinion.differential for role, opinion in self.opinions.items()}


@dataclass
class Meeting:
    """The case, the specialists, and the rounds so far."""

    case: Case
    options: Options
    roles: tuple[str, ...]
    rounds: list[Minutes] = field(default_factory=list)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What the specialists name in the last round."""
        history = [(f"round {number}", minutes.lists) for number, minutes in enumerate(self.rounds, start=1)]
        return choices(self.rounds[-1].lists, history)

    @property
    def record(self) -> list[Section]:
        """Who is there and the minutes; opinions that were given anew later are shown in brief."""
        found = [scot_record.panel(self.roles)]
        for number, minutes in enumerate(self.rounds, start=1):
            found += _sections(number, minutes, last=minutes is self.rounds[-1])
        return found


def spoken(opinion: Opinion) -> str:
    """An opinion in words."""
    lines = [opinion.assessment]
    lines += [f"{place}. {in_words(item)}" for place, item in enumerate(opinion.differential, start=1)]
    return "\n".join([*lines, opinion.conclusion])


def _sections(number: int, minutes: Minutes, *, last: bool) -> list[Section]:
    opinions = minutes.opinions.items()
    brief = [f"- {role}: {'; '.join(item.diagnosis for item in opinion.differential)}" for role, opinion in opinions]
    full = [f"- {role}: {spoken(opinion)}" for role, opinion in opinions] if last else brief
    counts = [f"- {choice.count}" for choice in choices(minutes.lists, ())]
    title = f"ROUND {number}, OPINIONS:"
    found: list[Section] = [{"full": titled(title, full), "brief": titled(title, brief), "bare": titled(title, counts)}]
    if minutes.summary:
        names = "; ".join(minutes.summary.differential)
        said = f"ROUND {number}, SUMMARY of the moderator: {minutes.summary.summary} Proposed: {names}"
        found.append({"full": said, "brief": said, "bare": f"ROUND {number}, SUMMARY: proposed: {names}"})
    against = {role: objection for role, objection in minutes.objections.items() if objection}
    if against:
        title = f"ROUND {number}, OBJECTIONS:"
        lines = [f"- {role}: {objection}" for role, objection in against.items()]
        found.append({"full": titled(title, lines), "brief": titled(title, lines), "bare": f"{title} {len(against)}"})
    return found
