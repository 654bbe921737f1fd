"""MAM: a general practitioner calls up to three specialists to a meeting, a moderator sums it up, the specialists vote.

Source: "MAM: Modular Multi-Agent Framework for Multi-Modal Medical Diagnosis via Role-Specialized Collaboration".

The paper says / we do:
- the general practitioner names up to three roles with their duties / all different, from the pool; a specialty is a duty
- every role gives assessment steps, three possible answers and a conclusion, alone / diagnoses with quotes; it sees earlier
  rounds, none of this one
- the moderator looks for errors, and a role with one answers again, once / as the paper says
- the moderator's summary / with the meeting's differential, bound to what the roles of the round name
- the roles vote on it; without disagreement, or after three rounds, the meeting ends / as the paper says; who votes no says why
- an answer from the meeting's record / what all roles agreed to is the answer; after the last round also what more than half
  of them agreed to; else the general practitioner orders what was named
- images, audio and video / cases are text: no modality is classified, no expert of one is called
- 4 or 5 batches a round

Differs from the authors' program: no search of the web and no earlier cases (nothing leaves the machine, no method reads
another case); a vote is yes or no by the grammar, where it reads "yes" anywhere first and takes anything unclear for a yes; the
reviewer at its end, whose answer it does not use, is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Flow, SlotValue, Step, ask, note, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.fitting import Detail, ask_fitting, render
from ddx_local.methods.majority import decided
from ddx_local.methods.mam_meeting import Meeting, Minutes, spoken
from ddx_local.methods.mam_steps import FINAL, OPINION, REVIEW, REVISE, ROLES, SUMMARY, VOTE, Opinion, Options

A = TypeVar("A")

PRACTITIONER, MODERATOR = "general practitioner", "moderator"
OF_SPECIALISTS = (OPINION.name, REVISE.name, VOTE.name)


def mam(case: Case, options: Options) -> Flow[Differential]:
    """The roles, rounds of the meeting, and where they do not agree the general practitioner."""
    roles = yield from ask(ROLES, role=PRACTITIONER, case=case.text, pool=panel_choices(), roles=str(options.roles))
    meeting = Meeting(case, options, roles)
    against: list[str] = []
    start = yield from spending()
    for number in range(1, options.rounds + 1):
        if not (yield from pays_for_turn(start, number - 1, "the meeting")):
            break
        opinions = yield from _opinions(meeting)
        meeting.rounds.append(Minutes(opinions))
        summary = yield from _sum_up(meeting)
        against = yield from _vote(meeting)
        if not against:
            yield from note("agreed", f"all {len(roles)} agree with the summary of round {number}")
            return _answer(meeting, summary)
    how = f"{len(against)} of {len(roles)} disagree after {len(meeting.rounds)} rounds"
    if 2 * len(against) < len(roles):
        yield from note("majority", f"{how}: the majority's summary stays")
        return _answer(meeting, summary)
    yield from note("undecided", f"{how}: the {PRACTITIONER} decides")
    candidates = tuple(choice.diagnosis for choice in meeting.choices)
    ballots = yield from _each(meeting, FINAL, [PRACTITIONER], lambda _: {"candidates": candidates})
    return _answer(meeting, ballots[PRACTITIONER])


def _opinions(meeting: Meeting) -> Flow[dict[str, Opinion]]:
    """Opinions, the moderator's look at each, and those anew that hold an error."""
    answers = {"answers": str(meeting.options.answers)}
    opinions = yield from _each(meeting, OPINION, meeting.roles, lambda role: {"role": role, **answers})
    words = {role: spoken(opinion) for role, opinion in opinions.items()}
    corrections = yield from _each(
        meeting, REVIEW, meeting.roles, lambda role: {"role": role, "opinion": words[role]}, by=MODERATOR
    )
    wrong = [role for role in meeting.roles if corrections[role]]

    def again(role: str) -> dict[str, SlotValue]:
        return {"role": role, "opinion": words[role], "correction": corrections[role], **answers}

    if wrong:
        opinions |= yield from _each(meeting, REVISE, wrong, again)
    return opinions


def _sum_up(meeting: Meeting) -> Flow[tuple[str, ...]]:
    """The moderator's summary; gives its differential."""
    slots: dict[str, SlotValue] = {
        "candidates": tuple(choice.diagnosis for choice in meeting.choices),
        "k": str(meeting.options.k),
    }
    summaries = yield from _each(meeting, SUMMARY, [MODERATOR], lambda _: slots)
    meeting.rounds[-1].summary = summaries[MODERATOR]
    return summaries[MODERATOR].differential


def _vote(meeting: Meeting) -> Flow[list[str]]:
    """Who disagrees with the summary."""
    summary = meeting.rounds[-1].summary
    differential = summary.differential if summary else ()
    votes = yield from _each(meeting, VOTE, meeting.roles, lambda role: {"role": role, "differential": differential})
    meeting.rounds[-1].objections = votes
    return [role for role, objection in votes.items() if objection]


def _answer(meeting: Meeting, order: Iterable[str]) -> Differential:
    """Diagnoses in the order given; the score of a diagnosis is 1 / its place."""
    by_name = {choice.diagnosis: choice for choice in meeting.choices}
    ranked = [by_name[name] for name in order][: meeting.options.k]
    scores = [1 / place for place in range(1, len(ranked) + 1)]
    return decided(meeting.case, ranked, scores, "reciprocal_place", (PRACTITIONER, *meeting.roles, MODERATOR))


def _each(
    meeting: Meeting,
    step: Step[A],
    roles: Iterable[str],
    slots: Callable[[str], Mapping[str, SlotValue]],
    by: str = "",
) -> Flow[dict[str, A]]:
    """One question for each role, answered by it or by `by`, with the minutes in the fullest detail that fits."""
    seats = list(roles)
    temperature = meeting.options.temperature if step.name in OF_SPECIALISTS else None

    def build(detail: Detail) -> dict[str, Ask[Any]]:
        shown = {"case": meeting.case.text, "record": render(meeting.record, detail)}
        return {role: Ask(step, {**shown, **slots(role)}, by or role, temperature) for role in seats}

    return (yield from ask_fitting(build))
