"""What a case's discussion did, read from its events: who named what when, who changed, whether they agreed. It asks no model.

A diagnosis is named by an answer that gives it as a diagnosis or in a list; round 7 of SCoT (can't miss) names none, since
its conditions stand beside the differential and never in it. Names are compared by `labels.same`, whatever matcher scores.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddx_local.clinical.labels import same
from ddx_local.evaluation.metrics_discussion import Move, has_consensus
from ddx_local.events import Answered, Asked, Event

STAGES: Mapping[str, int] = {
    "scot/panel": 0, "scot/relevance": 1, "scot/triage": 2, "scot/differential": 3, "scot/merge": 4, "scot/positions": 5,
    "scot/exchange": 5, "scot/final": 5, "scot/vote": 6, "scot/cant_miss": 7,
}  # fmt: skip
"""SCoT's steps as the paper numbers its rounds; a step of another method gets its place among the case's batches."""

LATE_FROM = 5
"""SCoT's refinement; elsewhere the first batch after the one that named the first diagnosis."""

_LISTS = ("ballot", "ranking", "differential", "diagnoses", "ranked")
_BESIDE = ("conditions", "critical", "pairs", "withdrawn")


@dataclass(frozen=True, slots=True)
class Discussion:
    """One case's discussion.

    Args:
        first_named: True positive -> (stage, step) of the first answer that names it; without those that nobody named.
        late: True positive -> whether it came late.
        firsts: Role, in order of its first answer -> whether its first leading diagnosis is a gold.
        moves: Role -> first and last leading diagnosis, wrong or correct.
        changed: Role -> whether its last leading diagnosis is another than its first.
        consensus: Whether the last leading diagnoses agree (three quarters), None for fewer than two roles.
        consensus_batch: Place from 1 of the first batch after which they do.
        batches: Batches in which somebody gave a leading diagnosis.
    """

    first_named: Mapping[str, tuple[int, str]]
    late: Mapping[str, bool]
    firsts: Mapping[str, bool]
    moves: Mapping[str, Move]
    changed: Mapping[str, bool]
    consensus: bool | None
    consensus_batch: int | None
    batches: int


def discussion(
    events: Sequence[Event], text_of: Callable[[str], str], final: Sequence[str], golds: Sequence[str]
) -> Discussion:
    """Read one case's events.

    Args:
        events: The case's events, in order.
        text_of: Text by its address.
        final: The true positives, as the final list names them.
        golds: What is right.
    """
    asked = {(e.round, e.key): e for e in events if isinstance(e, Asked)}
    answers = [e for e in events if isinstance(e, Answered) and e.text and (e.round, e.key) in asked]
    places = {number: place for place, number in enumerate(sorted({e.round for e in answers}), start=1)}
    named: dict[str, tuple[int, int, str]] = {}
    leads: dict[str, list[tuple[int, str]]] = {}
    for event in sorted(answers, key=lambda e: e.round):
        question = asked[event.round, event.key]
        answer = _decoded(text_of(event.text))
        place = places[event.round]
        for name in names(answer):
            key = name.casefold()
            if key not in named:
                named[key] = (place, STAGES.get(question.step, place), question.step)
        if (lead := leading(answer)) and STAGES.get(question.step, 0) != 7:
            leads.setdefault(question.role or "/".join(event.key), []).append((place, lead))
    began = min((place for place, _, _ in named.values()), default=0)
    found = {name: hit for name in final if (hit := _first(name, named)) is not None}
    right = {lead: any(same(lead, gold) for gold in golds) for trail in leads.values() for _, lead in trail}
    moves = {role: _move(right[trail[0][1]], right[trail[-1][1]]) for role, trail in leads.items() if len(trail) > 1}
    agreed, when = _agreement(leads)
    return Discussion(
        first_named={name: (stage, step) for name, (_, stage, step) in found.items()},
        late={
            name: stage >= LATE_FROM if step in STAGES else place > began
            for name, (place, stage, step) in found.items()
        },
        firsts={role: right[trail[0][1]] for role, trail in leads.items()},
        moves=moves,
        changed={role: not same(trail[0][1], trail[-1][1]) for role, trail in leads.items() if len(trail) > 1},
        consensus=agreed,
        consensus_batch=when,
        batches=len({place for trail in leads.values() for place, _ in trail}),
    )


def names(answer: Any) -> Iterator[str]:
    """All diagnoses that an answer names, at any depth, but for what stands beside the differential."""
    if isinstance(answer, list):
        for item in answer:
            yield from names(item)
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in _BESIDE:
                continue
            if key == "diagnosis" and isinstance(value, str):
                yield value.strip()
            elif key in _LISTS and isinstance(value, list):
                yield from (item.strip() for item in value if isinstance(item, str))
                yield from names([item for item in value if not isinstance(item, str)])
            else:
                yield from names(value)


def leading(answer: Any) -> str | None:
    """The diagnosis that an answer puts first, where it gives an order or just one."""
    if not isinstance(answer, dict):
        return None
    for key in _LISTS:
        if isinstance(value := answer.get(key), list) and value:
            first = value[0].get("diagnosis") if isinstance(value[0], dict) else value[0]
            return first.strip() if isinstance(first, str) else None
    value = answer.get("diagnosis")
    return value.strip() if isinstance(value, str) else None


def _first(name: str, named: Mapping[str, tuple[int, int, str]]) -> tuple[int, int, str] | None:
    hits = [hit for other, hit in named.items() if other == name.casefold() or same(other, name)]
    return min(hits, default=None)


def _move(first: bool, last: bool) -> Move:
    if first:
        return "CC" if last else "CW"
    return "WC" if last else "WW"


def _agreement(leads: Mapping[str, Sequence[tuple[int, str]]]) -> tuple[bool | None, int | None]:
    """Whether the last leading diagnoses agree, and after which batch the leading ones of then did first."""
    if len(leads) < 2:
        return None, None
    last = has_consensus([trail[-1][1] for trail in leads.values()])
    for place in sorted({place for trail in leads.values() for place, _ in trail}):
        said = [[lead for at, lead in trail if at <= place] for trail in leads.values()]
        if all(said) and has_consensus([trail[-1] for trail in said]):
            return last, place
    return last, None


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
