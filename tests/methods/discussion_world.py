"""Experts who say what a test wants: scripted answers to the questions that MDAgents and KAMAC share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ddx_local.case import Differential
from ddx_local.flow import Ask
from tests.methods.driving import Driven, Reply
from tests.methods.scot_world import QUOTES, proposal

LISTS = (
    ("Myocardial infarction", "Pericarditis"),
    ("Pulmonary embolism", "Malaria"),
    ("heart attack", "Pulmonary embolism"),
    ("Aortic dissection", "Pericarditis"),
    ("Pericarditis", "Amyloidosis"),
)
"""The lists of the seats: first places 2 (of one under two names), 1, 1, 1."""


def experts(
    lists: Callable[[int, str], Sequence[str]] = lambda seat, when: LISTS[seat % len(LISTS)],  # noqa: ARG005
    speaks: Callable[[int, int], Sequence[int]] = lambda seat, number: (),  # noqa: ARG005
    ballot: Callable[[tuple[str, ...]], Sequence[str]] = lambda candidates: candidates,
    first: int = 3,
) -> dict[str, Reply]:
    """Replies by step. Seats count from 0 in the order in which experts come; `speaks` gives the seats written to in a round.

    `lists` is asked with `opinion` or the number of the update.
    """
    seats: dict[str, int] = {}
    said: dict[str, int] = {}
    updates: dict[str, int] = {}

    def seat(role: str) -> int:
        return seats.setdefault(role, len(seats))

    def recruit(ask: Ask[Any]) -> Any:
        chosen = list(ask.slots["pool"])[first : first + int(str(ask.slots["experts"]))]
        for role in chosen:
            seat(role)
        return chosen

    def differential(ask: Ask[Any], when: str) -> Any:
        names = lists(seat(ask.role), when)
        return {
            "differential": [
                proposal(name, mark(when, ask.role), QUOTES[seat(ask.role) % len(QUOTES)]) for name in names
            ]
        }

    def update(ask: Ask[Any]) -> Any:
        updates[ask.role] = updates.get(ask.role, 0) + 1
        return differential(ask, f"update {updates[ask.role]}")

    def talk(ask: Ask[Any]) -> Any:
        said[ask.role] = said.get(ask.role, 0) + 1
        to = [role for role in seats if seats[role] in speaks(seat(ask.role), said[ask.role]) and role != ask.role]
        messages = [{"to": role, "message": mark(f"to {role}", ask.role)} for role in to]
        return {"speak": "yes" if messages else "no", "messages": messages}

    def moderator(ask: Ask[Any]) -> Any:
        return {"reason": "Most hold this", "ballot": list(ballot(tuple(ask.slots["candidates"])))}

    return {
        "mdagents/recruit": recruit,
        "mdagents/opinion": lambda ask: differential(ask, "opinion"),
        "mdagents/talk": talk,
        "mdagents/update": update,
        "mdagents/moderator": moderator,
    }


def mark(when: str, role: str) -> str:
    """What a role says at a time, and nobody else."""
    return f"M-{when} <{role}>"


def names(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def trace(driven: Driven[Differential]) -> list[tuple[str, str, str]]:
    """Round name, role and step of every question."""
    return [(driven.batches[item.batch], item.role, item.step) for item in driven.said]


def prompts(driven: Driven[Differential], step: str, batch: int | None = None) -> Mapping[str, str]:
    """Role -> prompt of a step, of one batch where it is given."""
    return {
        item.role: item.prompt for item in driven.said if item.step == step and (batch is None or item.batch == batch)
    }
