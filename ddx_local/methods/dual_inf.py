"""Dual-Inf: from the findings to diseases, back from each disease to its findings, and an examination of both.

Source: "Explainable differential diagnosis with dual-inference large language models" (Dual-Inf, Open-XDDx).

The paper says / we do:
- forward inference: diagnoses with the facts that support them / facts are quotes of the case
- backward inference: what a textbook gives for each diagnosis / its prompt holds no case, so that none is copied from it
- examination: is the fact a finding of the disease, does the case mention the textbook's finding / yes or no by
  probability, all of an iteration in one batch; what was examined once is not examined again
- a mentioned finding is added / by the piece of the case that says so, and each piece of the case counts once
- diagnoses with two facts at most are doubtful, and forward inference is asked again, at most five times in all / also
  ends when a list brings nothing new
- the authors' program answers with the last list, unfiltered and unranked / facts that failed are left out, a diagnosis of
  an earlier list stays if it is not doubtful, and the order is by the expected number of confirmed findings
- ten examples in its prompts are cases that it is evaluated on; it reads answers by `eval`, stops the run at a list that it
  cannot read, keeps a fact on any answer but an exact "No" / no examples, grammars, two labels
- about 71 calls an iteration, one after another with pauses / at most 4 batches an iteration
"""

from collections.abc import Sequence

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.flow import Ask, Flow, SlotValue, ask, note, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.dual_inf_examination import backward, examine, place
from ddx_local.methods.dual_inf_result import FORWARD_ROLE, UNEXAMINED, Suspect, answer, doubtful, examined, rank
from ddx_local.methods.dual_inf_steps import FORWARD, REFLECT, Options
from ddx_local.methods.fitting import Detail, ask_fitting, render
from ddx_local.methods.proposals import Proposal


def dual_inf(case: Case, options: Options) -> Flow[Differential]:
    """Iterations until no diagnosis is doubtful, or nothing new is said."""
    suspects: list[Suspect] = []
    last: list[Suspect] = []
    start = yield from spending()
    for number in range(1, options.iterations + 1):
        if not (yield from pays_for_turn(start, number - 1, "the loop")):
            break
        proposals = yield from _forward(case, options, suspects, last)
        fresh = _enter(suspects, proposals, number)
        last = [item for item in suspects if item.listed_in == number]
        if not fresh:
            yield from note("settled", f"iteration {number} brings nothing new: it is the last one")
            break
        yield from backward(options, fresh)
        yield from examine(case, suspects)
        yield from place(case, options, suspects)
        if not doubtful(last, case, options):
            break
    if low := doubtful(last, case, options):
        yield from note("doubtful", f"few confirmed findings at the end: {', '.join(item.diagnosis for item in low)}")
    weak = doubtful(suspects, case, options)
    kept = [item for item in suspects if item in last or item not in weak]
    if earlier := [item.diagnosis for item in kept if item not in last]:
        yield from note("kept", f"confirmed earlier, not on the last list: {', '.join(earlier)}")
    ranked = rank(kept, case, options)
    for score in dict.fromkeys(score for _, score in ranked):
        tied = [item.diagnosis for item, its_score in ranked if its_score == score]
        if len(tied) > 1:
            yield from note("tie", f"equal score, ordered by the later list, then by place on it: {', '.join(tied)}")
    return answer(ranked, case, options)


def _forward(
    case: Case, options: Options, suspects: Sequence[Suspect], last: Sequence[Suspect]
) -> Flow[tuple[Proposal, ...]]:
    """The list; after the first one with what the examination found."""
    bounds = {"case": case.text, "k": str(options.k), "facts": str(options.facts)}
    if not last:
        return (yield from ask(FORWARD, role=FORWARD_ROLE, temperature=options.temperature, **bounds))
    names = tuple(item.diagnosis for item in doubtful(last, case, options))

    def build(detail: Detail) -> dict[str, Ask[tuple[Proposal, ...]]]:
        record = render([examined(suspects, case, options)], detail)
        slots: dict[str, SlotValue] = {"record": record, "doubtful": names, **bounds}
        return {FORWARD_ROLE: Ask(REFLECT, slots, FORWARD_ROLE, options.temperature)}

    found: tuple[Proposal, ...] = (yield from ask_fitting(build))[FORWARD_ROLE]
    return found


def _enter(suspects: list[Suspect], proposals: Sequence[Proposal], number: int) -> list[Suspect]:
    """Put a list among the suspects, each diagnosis once under any name; gives those with something to examine."""
    entered_in = "forward" if number == 1 else f"reflect {number}"
    fresh: dict[str, Suspect] = {}
    for at, proposal in enumerate(proposals, start=1):
        found = next((item for item in suspects if labels.same(item.diagnosis, proposal.diagnosis)), None)
        if found is None:
            found = Suspect(proposal.diagnosis, proposal.reason, entered_in)
            suspects.append(found)
            fresh[found.diagnosis] = found
        if found.listed_in < number:
            found.place, found.listed_in = at, number
        for quote in proposal.evidence:
            if quote not in found.facts:
                found.facts[quote] = UNEXAMINED
                fresh[found.diagnosis] = found
    return list(fresh.values())
