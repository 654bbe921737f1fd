"""Multi-Agent Conversation (MAC): doctors discuss a case, a supervisor challenges them until they agree.

Source: "Enhancing Diagnostic Capability with Multi-Agents Conversational Large Language Models".

The paper says / we do:
- four doctors and a supervisor, one model, the same persona, temperature 1 / that
- a group chat of 13 messages / 3 rounds, each of all doctors and then the supervisor (D + 1 messages), two batches
- everyone sees the whole conversation / of the earlier rounds; doctors of one round don't see each other, the supervisor sees them
- the supervisor ends it when all agree and nothing is left / it can say so only where all doctors name the same diagnosis first
  (`labels.same`); it may still challenge them then
- the answer is the supervisor's last one / that, after agreement in whichever round, or after the last one, which is noted

Differs from the authors' program:
- there a model picks the next speaker, up to two calls for a message, 24 calls in a depth of 24 / 5 calls and 2 batches a round
- there the supervisor's JSON is searched for in the chat, and a case without one is dropped or begun again up to 100 times / the
  grammar makes sure of it
- there the supervisor of the plain variant is told of specialists that are "None" / it is told who the doctors are
- specialists (a variant) and the variants of self-consistency and self-refinement are methods of their own or left out
"""

from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Flow, note, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.fitting import Detail, ask_fitting, render
from ddx_local.methods.mac_record import SUPERVISOR_ROLE, Discussion, result
from ddx_local.methods.mac_steps import DOCTOR, OPENING, SUPERVISOR, Options


def mac(case: Case, options: Options) -> Flow[Differential]:
    """Two batches a round until the supervisor finds that all agree, or the rounds are over."""
    discussion = Discussion()
    start = yield from spending()
    for number in range(options.rounds):
        if not (yield from pays_for_turn(start, number, "the discussion")):
            break
        yield from _doctors(case, options, discussion)
        yield from _supervise(case, options, discussion)
        if discussion.supervised[-1].agreed:
            break
    else:
        yield from note(
            "no_agreement", f"no agreement after {options.rounds} rounds: the supervisor's last answer stands"
        )
    return result(case, discussion)


def _doctors(case: Case, options: Options, discussion: Discussion) -> Flow[None]:
    """All doctors at once; from the second round on with the discussion and the challenges put to them."""
    doctors = [f"doctor {number}" for number in range(1, options.doctors + 1)]
    sections = discussion.sections()

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        questions = {}
        for role in doctors:
            slots: dict[str, str | tuple[str, ...]] = {
                "case": case.text,
                "role": role,
                "k": str(options.k),
                "tests": str(options.tests),
            }
            if sections:
                slots |= {"record": render(sections, detail), "received": discussion.received(role)}
            questions[role] = Ask(DOCTOR if sections else OPENING, slots, role, options.temperature)
        return questions

    discussion.views.append((yield from ask_fitting(build)))


def _supervise(case: Case, options: Options, discussion: Discussion) -> Flow[None]:
    sections = discussion.sections()

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        slots: dict[str, str | tuple[str, ...]] = {
            "case": case.text,
            "record": render(sections, detail),
            "candidates": discussion.candidates(),
            "agreed": discussion.agreed(),
            "doctors": tuple(discussion.views[-1]),
            "others": str(options.k - 1),
            "tests": str(options.tests),
        }
        return {SUPERVISOR_ROLE: Ask(SUPERVISOR, slots, SUPERVISOR_ROLE, options.temperature)}

    answers = yield from ask_fitting(build)
    discussion.supervised.append(answers[SUPERVISOR_ROLE])
