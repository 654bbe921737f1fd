"""Debate-Mixture-of-Agents (DMoA): debaters of a presenter and a rebutter, and an aggregator over what they come to.

Source: "A Structured Debate-Mixture-of-Agents Framework for Complex Clinical Diagnostic Decision Support".

The paper says / we do:
- 4 x 2: N = 4 debaters of 2, 3 N + 1 calls / the same, in 4 batches: presentations, rebuttals, revisions, the aggregator
- one base model for all / debaters who read the same are told apart by their seeds, so that temperature 0 is refused
- the aggregator gets the revised outputs / it doesn't see the case, either; it chooses among the debaters' diagnoses, so that
  each of its diagnoses has evidence and a proposer
- a most likely diagnosis, and three possible ones in a run of its own / one ranked list: its first is the most likely
- prose / JSON under a grammar, with evidence as verbatim quotes
- safety concerns are feedback to the presenter / that, and they stand beside the differential, so that none is lost
- budgets of 4000, 8000 and 16000 tokens by role, input and output / the same; what doesn't fit is condensed by a summary call (a
  case into verbatim pieces of itself) and noted
- without the rebutter: a mixture of agents / `rebutter=off`, N + 1 calls in 2 batches
- a dialogue of two over five rounds, no aggregator / `debaters=1`, `debate_rounds=5`: 11 calls in 11 batches, without an early stop
- one model told to simulate the debate / `prompt_only`
- patient information divided by category among the debaters / `partition`: by the sections of `clinical.sections`
- another model as the aggregator / `--role aggregator=MODEL`
- a reward model, which didn't help / left out

Differs from the authors' program: none is published.
"""

from collections.abc import Callable
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, SlotValue, Step, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.dmoa_budget import ask_within
from ddx_local.methods.dmoa_parts import dealt
from ddx_local.methods.dmoa_result import Debate, accounts, assemble, candidates, dialogue, unaided
from ddx_local.methods.dmoa_steps import (
    AGGREGATE,
    AGGREGATOR,
    ALONE,
    ALONE_ROLE,
    PRESENT,
    REBUT,
    REVISE,
    Options,
    Verdict,
    presenter,
    rebutter,
)


def dmoa(case: Case, options: Options) -> Flow[Differential]:
    """Presentations, rebuttals and revisions, each a round of all debaters; then the aggregator."""
    if options.prompt_only:
        return (yield from _alone(case, options))
    debate = Debate(case, options, (yield from dealt(case, options)))
    debate.presented.append((yield from _present(debate, PRESENT)))
    start = yield from spending()
    for number in range(1, options.debate_rounds + 1 if options.rebutter else 1):
        if not (yield from pays_for_turn(start, number - 1, "the debate")):
            break
        debate.rebutted.append((yield from _rebut(debate)))
        debate.presented.append((yield from _present(debate, REVISE)))
    verdict = (yield from _aggregate(debate)) if options.debaters > 1 else None
    return assemble(debate, verdict)


def _present(debate: Debate, step: Step[Any]) -> Flow[dict[str, Any]]:
    return (yield from _round(debate, step, presenter, debate.options.presenter_tokens, {"k": str(debate.options.k)}))


def _rebut(debate: Debate) -> Flow[dict[str, Any]]:
    return (yield from _round(debate, REBUT, rebutter, debate.options.rebutter_tokens, {}))


def _round(
    debate: Debate, step: Step[Any], role_of: Callable[[str], str], budget: int, bounds: dict[str, SlotValue]
) -> Flow[dict[str, Any]]:
    """One question to every debater's presenter or rebutter, with the case and what its own debater said so far."""
    questions: dict[str, Ask[Any]] = {}
    for seat, text in debate.texts.items():
        role = role_of(seat)
        slots: dict[str, SlotValue] = {"case": debate.reads.get(role, text), **bounds}
        if debate.presented:
            slots["record"] = dialogue(debate, seat)
        questions[role] = Ask(step, slots, role, debate.options.temperature)
    answers, asked = yield from ask_within(questions, budget)
    # Who has come to read pieces of the case goes on with these.
    debate.reads |= {role: str(question.slots["case"]) for role, question in asked.items()}
    return {seat: answers[role_of(seat)] for seat in debate.texts}


def _aggregate(debate: Debate) -> Flow[Verdict]:
    slots: dict[str, SlotValue] = {
        "record": accounts(debate),
        "candidates": tuple(candidates(debate)),
        "k": str(debate.options.k),
    }
    question = Ask(AGGREGATE, slots, AGGREGATOR)
    answers, _ = yield from ask_within({AGGREGATOR: question}, debate.options.aggregator_tokens)
    verdict: Verdict = answers[AGGREGATOR]
    return verdict


def _alone(case: Case, options: Options) -> Flow[Differential]:
    slots: dict[str, SlotValue] = {"case": case.text, "k": str(options.k), "debaters": str(options.debaters)}
    question = Ask(ALONE, slots, ALONE_ROLE, options.temperature)
    answers, _ = yield from ask_within({ALONE_ROLE: question}, options.aggregator_tokens)
    return unaided(case, answers[ALONE_ROLE])
