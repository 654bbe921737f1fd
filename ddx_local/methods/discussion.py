"""A panel that discusses: every expert gives a list, who wants to speak writes to others, all answer again, a moderator counts.

What a round says is seen in the next one by everybody. It doesn't know who recruits the experts, or when a method stops.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, SlotValue, Step
from ddx_local.methods import scot_record
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render, titled
from ddx_local.methods.majority import Choice, Lists, by_majority, choices, decided, shortlist
from ddx_local.methods.mdagents_steps import MODERATOR, OPINION, TALK, UPDATE, Talk
from ddx_local.methods.proposals import Proposal, in_words

A = TypeVar("A")

NOTHING = ("nothing",)


@dataclass
class Panel:
    """The experts and what they have said.

    Args:
        case: The case.
        k: Diagnoses of a list at most.
        most: Diagnoses that the moderator orders at most.
        temperature: Of the experts.
        experts: In the order in which they came.
        history: Rounds in which lists were given: name and lists.
        record: Who is there, the lists, and what else was said, in order; lists that were replaced are shown in brief.
    """

    case: Case
    k: int
    most: int
    temperature: float
    experts: tuple[str, ...]
    history: list[tuple[str, Lists]] = field(default_factory=list)
    record: list[Section] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record.append(scot_record.panel(self.experts))

    @property
    def lists(self) -> dict[str, tuple[Proposal, ...]]:
        """Every expert's latest list."""
        return {role: items for _, lists in self.history for role, items in lists.items()}

    def give(self, name: str, lists: Lists) -> None:
        """Take the lists of a round. Earlier ones that they replace are shown in brief, or the record would double."""
        replaced = [listed(name, given) for name, given in self.history if set(given) <= set(lists)]
        self.record = [{**one, "full": one["brief"]} if one in replaced else one for one in self.record]
        self.history.append((name, lists))
        self.record.append(listed(name, lists))

    @property
    def choices(self) -> tuple[Choice, ...]:
        return choices(self.lists, self.history)


def opinions(panel: Panel, roles: Sequence[str], name: str = "opinion") -> Flow[None]:
    """First lists of the experts given, who see what was said before they came."""
    lists = yield from _each(panel, OPINION, roles, lambda _: {"k": str(panel.k)})
    panel.give(name, lists)


def talk(panel: Panel, name: str) -> Flow[Mapping[str, Talk]]:
    """Who speaks, and to whom; nobody hears anything before the next round."""

    def slots(role: str) -> Mapping[str, SlotValue]:
        return {"others": tuple(other for other in panel.experts if other != role)}

    said = yield from _each(panel, TALK, panel.experts, slots)
    lines = [f"- {role} to {to}: {text}" for role, talk in said.items() for to, text in talk.messages.items()]
    if lines:
        brief = [f"- {role} wrote to {', '.join(talk.messages)}" for role, talk in said.items() if talk.messages]
        title = f"MESSAGES ({name}):"
        panel.record.append({"full": titled(title, lines), "brief": titled(title, brief), "bare": ""})
    return said


def update(panel: Panel, said: Mapping[str, Talk], name: str, roles: Sequence[str]) -> Flow[None]:
    """The lists of the experts given anew, after the messages."""

    def slots(role: str) -> Mapping[str, SlotValue]:
        received = [f"from {sender}: {talk.messages[role]}" for sender, talk in said.items() if role in talk.messages]
        return {"received": tuple(received) or NOTHING, "k": str(panel.k)}

    lists = yield from _each(panel, UPDATE, roles, slots)
    panel.give(name, lists)


def moderate(panel: Panel) -> Flow[Differential]:
    """The majority of the latest lists; the moderator's ballot orders equal votes."""
    found = yield from shortlist(panel.choices, panel.most)
    slots = {
        "counts": tuple(choice.count for choice in found),
        "candidates": tuple(choice.diagnosis for choice in found),
    }

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": panel.case.text, "record": render(panel.record, detail)}
        return {"moderator": Ask(MODERATOR, {**shown, **slots}, "moderator")}

    ballot = (yield from ask_fitting(build))["moderator"]
    voters = len(panel.experts)
    ranked = (yield from by_majority(found, voters, ballot))[: panel.k]
    scores = [choice.score(voters) for choice in ranked]
    return decided(panel.case, ranked, scores, "majority", panel.experts)


def listed(name: str, lists: Lists) -> Section:
    """The lists of a round, expert by expert; at the barest only how many name what."""
    full, brief = [], []
    for role, items in lists.items():
        full += [f"- {role}:", *(f"  {place}. {in_words(item)}" for place, item in enumerate(items, start=1))]
        brief.append(f"- {role}: " + "; ".join(item.diagnosis for item in items))
    bare = [f"- {choice.count}" for choice in choices(lists, ())]
    title = f"LISTS ({name}):"
    return {
        "full": titled(title, full),
        "brief": titled(title, brief),
        "bare": titled(title, bare),
    }


def _each(
    panel: Panel, step: Step[A], roles: Sequence[str], slots: Callable[[str], Mapping[str, SlotValue]]
) -> Flow[dict[str, A]]:
    """One question to each of the experts, with the record in the fullest detail that fits the context."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": panel.case.text, "record": render(panel.record, detail)}
        return {role: Ask(step, {**shown, "role": role, **slots(role)}, role, panel.temperature) for role in roles}

    return (yield from ask_fitting(build))
