"""KAMAC: one expert begins; whoever sees a gap of knowledge says which specialist is missing, and the group grows by need.

Source: "A Knowledge-driven Adaptive Collaboration of LLMs for Enhancing Medical Decision-making" (KAMAC). Written from the
described method alone.

The paper says / we do:
- n = 1 expert at the start, recruited for the case / from the pool
- in every turn each expert says whether it takes part, and writes to others / not asked of an expert who is alone
- each says whether knowledge is missing and whose / yes or no, and a specialist of the pool who is not there yet, by the
  grammar; asked of all in one batch, while there is room in the group
- an assistant merges the requests, a recruiter adds experts / the program does: equal requests are one, the most wanted first, at
  most five experts in all; what is not granted is noted
- new experts assess the case with what was said before them, all answer again / those who were there before answer again
- ends when nobody takes part and nobody sees a gap, or after three turns / that; a recruitment never adds a turn
- a moderator takes the majority / counted by the program; the moderator's ballot orders equal votes; not asked about one expert
- at most 4 batches a turn

Differs from the authors' program, which tells every role to think as a cardiologist, always begins with the same specialist
in one of its tasks, lets a recruiter's "skip" wipe the experts' last messages and prolong the discussion, answers from stored
answers that do not know the prompt or the model, and always needs a server.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, SlotValue, ask, note, spending
from ddx_local.methods import discussion
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.discussion import Panel
from ddx_local.methods.fitting import Detail, ask_fitting, render, titled
from ddx_local.methods.kamac_steps import GAP, Gap, Options
from ddx_local.methods.majority import decided
from ddx_local.methods.mdagents_steps import RECRUIT, Talk


def kamac(case: Case, options: Options) -> Flow[Differential]:
    """Turns until nobody has anything to say and nobody is missing; then the majority."""
    experts = yield from ask(RECRUIT, case=case.text, pool=panel_choices(), experts=str(options.start))
    panel = Panel(case, options.k, options.most, options.temperature, experts)
    yield from discussion.opinions(panel, experts)
    start = yield from spending()
    for number in range(1, options.turns + 1):
        if not (yield from pays_for_turn(start, number - 1, "the discussion")):
            break
        before = panel.experts
        said: Mapping[str, Talk] = {}
        if len(before) > 1:
            said = yield from discussion.talk(panel, f"turn {number}")
        new = yield from _missing(panel, options, number)
        if not new and not any(talk.messages for talk in said.values()):
            yield from note("agreed", f"turn {number}: nobody has anything to say and no knowledge is missing")
            break
        if new:
            panel.experts = (*before, *new)
            yield from discussion.opinions(panel, new, f"joined in turn {number}")
        yield from discussion.update(panel, said, f"turn {number}", before)
    if len(panel.experts) > 1:
        return (yield from discussion.moderate(panel))
    yield from note("alone", f"the {panel.experts[0]} stays alone: its list is the answer, without a moderator")
    found = panel.choices[: options.k]
    return decided(case, found, [1 / place for place in range(1, len(found) + 1)], "reciprocal_place", panel.experts)


def _missing(panel: Panel, options: Options, number: int) -> Flow[tuple[str, ...]]:
    """Who is to join: what the experts miss, each once, the most wanted first, while there is room."""
    room = options.experts - len(panel.experts)
    absent = tuple(name for name in panel_choices() if name not in panel.experts)
    if not room:
        return ()

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        record = render(panel.record, detail)
        shown: dict[str, SlotValue] = {"case": panel.case.text, "record": record, "absent": absent}
        return {role: Ask(GAP, {**shown, "role": role}, role, options.temperature) for role in panel.experts}

    gaps: dict[str, Gap] = yield from ask_fitting(build)
    wanted = [name for name, _ in Counter(gap.specialist for gap in gaps.values() if gap.specialist).most_common()]
    new = tuple(wanted[:room])
    if wanted[room:]:
        yield from note("left_out", f"turn {number}: no room for {', '.join(wanted[room:])}")
    if new:
        yield from note("recruited", f"turn {number}: {', '.join(new)}")
        lines = [
            f"- {gap.specialist}, asked for by the {role}: {gap.reason}"
            for role, gap in gaps.items()
            if gap.specialist in new
        ]
        brief = f"JOINED (turn {number}): {', '.join(new)}"
        full = titled(f"JOINED (turn {number}):", lines)
        panel.record.append({"full": full, "brief": brief, "bare": brief})
    return new
