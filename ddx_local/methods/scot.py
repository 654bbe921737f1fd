"""Social Chain of Thought (SCoT): a panel of specialists, seven rounds, a weighted Borda vote.

Source: "Social Chain of Thought: A Multi-Agent Architecture Grounded in Medical Differential Diagnosis Methodology".

The paper says / we do:
- five specialists chosen for the case, two innovative (0.7) and three conservative (0.3) / the grammar takes them from the
  pool, all different; other panel sizes keep 2:3, rounded; a single agent is conservative
- agents speak within a round / one round is one batch: a role sees all earlier rounds and sub-rounds, none of this one
- a deduplicated master list / by name, then by meaning, then by one question; what is merged or left out is noted
- Borda weighted by insight, breadth, actionability / each agent's weights are divided by their mean
- "can't miss" check / reported beside the differential, never reordering it
- the authors' program asks 8 S + 2 times, one after another, in 42 steps for five / at most 11 batches
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, Step, ask, note
from ddx_local.methods import master_list, scot_record
from ddx_local.methods.fitting import Detail, Section, ask_fitting, render
from ddx_local.methods.master_list import Entry, Proposed
from ddx_local.methods.scot_debate import STYLES, Debate, dropped, own_challenged, styles, with_supports
from ddx_local.methods.scot_options import Options
from ddx_local.methods.scot_result import assemble
from ddx_local.methods.scot_steps import (
    CANT_MISS,
    DIFFERENTIAL,
    EXCHANGE,
    FINAL,
    PANEL,
    POSITIONS,
    RELEVANCE,
    TRIAGE,
    VOTE,
)

A = TypeVar("A")


def scot(case: Case, options: Options) -> Flow[Differential]:
    """The seven rounds; 9 batches, and up to two merge questions."""
    roles = yield from ask(PANEL, case=case.text, pool=panel_choices(), agents=str(options.agents))
    debate = Debate(case, options, dict(zip(roles, styles(options.agents), strict=True)))
    record: list[Section] = [scot_record.panel(roles)]

    if "relevance" not in options.without:
        debate.relevance = yield from _round(debate, RELEVANCE, record)
        record.append(scot_record.relevance(debate.relevance))
    if "triage" not in options.without:
        debate.triage = yield from _round(debate, TRIAGE, record)
        record.append(scot_record.triage(debate.triage))

    bounds = {"least": str(min(3, options.k)), "k": str(options.k)}
    lists = yield from _round(debate, DIFFERENTIAL, record, lambda _: bounds)
    proposed = [
        Proposed(role, place, item) for role, items in lists.items() for place, item in enumerate(items, start=1)
    ]
    entries = yield from master_list.build(case.text, (), proposed, "differential", options)
    record.append(scot_record.lists(entries))
    if "refinement" not in options.without:
        entries = yield from _refine(debate, entries, record)
    entries = yield from _drop(debate, entries)

    names = _names(entries)
    if "voting" not in options.without:
        debate.votes = yield from _round(debate, VOTE, record, lambda _: {"entries": names})
        record.append(scot_record.ballots({role: vote.ballot for role, vote in debate.votes.items()}))
    counted = debate.count(entries)
    order = "first places, supports, then the earlier proposal" if debate.votes else "the best place"
    for tie in counted.ties:
        yield from note("tie", f"equal score, ordered by {order}: {', '.join(tie)}")
    final = counted.ranking[: options.k]
    if "cant_miss" not in options.without:
        debate.safety = yield from _round(debate, CANT_MISS, record, lambda _: {"final": final})
    return assemble(debate, entries, counted)


def _names(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(entry.diagnosis for entry in entries)


def _refine(debate: Debate, entries: tuple[Entry, ...], record: list[Section]) -> Flow[tuple[Entry, ...]]:
    """Round 5: positions and additions (5a), challenges and answers (5b), final positions (5c)."""
    options = debate.options
    names = _names(entries)
    debate.positions = yield from _round(debate, POSITIONS, record, lambda _: {"entries": names})
    additions = [
        Proposed(role, place, item)
        for role, answer in debate.positions.items()
        for place, item in enumerate(answer.missing, start=options.k + 1)
    ]
    entries = yield from master_list.build(debate.case.text, entries, additions, "refinement", options)
    debate.positions = with_supports(debate.positions, entries, additions)
    record.append(scot_record.positions("POSITIONS", debate.positions))
    if added := scot_record.additions(entries, additions):
        record.append(added)

    names = _names(entries)
    challenged = {role: own_challenged(role, entries, debate.positions) for role in debate.seats}

    def for_exchange(role: str) -> dict[str, tuple[str, ...]]:
        others = _names(entry for entry in entries if role not in entry.roles)
        return {"entries": names, "challenged": challenged[role], "others": others}

    def for_final(role: str) -> dict[str, tuple[str, ...]]:
        return {"entries": names, "own": _names(entry for entry in entries if role in entry.roles)}

    debate.exchange = yield from _round(debate, EXCHANGE, record, for_exchange)
    record.append(scot_record.exchange(debate.exchange))
    debate.final = yield from _round(debate, FINAL, record, for_final)
    record.append(scot_record.positions("FINAL POSITIONS", debate.final))
    return entries


def _drop(debate: Debate, entries: tuple[Entry, ...]) -> Flow[tuple[Entry, ...]]:
    """Leave out what nobody supports at the end and someone challenges, unless nothing would be left."""
    out = dropped(entries, debate.final)
    if not out:
        return entries
    if len(out) == len(entries):
        yield from note("kept", "every diagnosis is challenged and none supported: all stay, or nothing would be left")
        return entries
    yield from note("dropped", f"challenged and supported by nobody at the end: {', '.join(out)}")
    return tuple(entry for entry in entries if entry.diagnosis not in out)


def _round(
    debate: Debate,
    step: Step[A],
    record: list[Section],
    slots: Callable[[str], Mapping[str, str | tuple[str, ...]]] = lambda _: {},
) -> Flow[dict[str, A]]:
    """One question to every seat, with the record in the fullest detail that fits the context."""

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": debate.case.text, "record": render(record, detail)}
        return {
            role: Ask(
                step, {**shown, "role": role, "style": STYLES[style], **slots(role)}, role, debate.temperature(style)
            )
            for role, style in debate.seats.items()
        }

    return (yield from ask_fitting(build))
