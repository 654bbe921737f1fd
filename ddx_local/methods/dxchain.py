"""DxChain: memory first, then navigation of a tree of strategies, then a debate on what stays ambiguous.

Source: "Thinking Like a Clinician: A Cognitive AI Agent for Clinical Diagnosis via Panoramic Profiling and Adversarial Debate".

The paper says / we do:
- perception and profile in parallel, from the raw text; the profile never changes / one batch; the profile is in every later
  prompt and is never condensed; the abstract comes after them; facts are quotes of the case
- two or three strategies with a committed expectation, one is picked / every open branch is rated, those of earlier turns too
  (the stack, at most 6), the best is taken: going back to an earlier one is noted as `backtrack`
- experts request tests / they report what the case records, as a quote, or "not recorded"; a result is never invented
- a judge answers yes or no, a conflict of tau or more replans / P(no) against P(yes), without sampling; where the record answers
  nothing there is nothing to judge, which is noted
- up to 20 turns / a turn is one strategy, until the review passes; at the limit the last synthesis stands, noted as degraded
- past cases from a corpus apart from the test cases / off without `cases`; the case itself is never retrieved
- only ambiguous diagnoses are debated, in two rounds, then the verdicts / that; all of a case in one prompt per side
- primary and secondary diagnoses with ICD-10 names and codes / the coder chooses among the closest entries of the classification,
  and code checks the choice against the name; what cannot be coded is said so

Differs from the authors' prompts: there one model plays both sides and the judge in one answer; here each speaks for itself.
"""

from ddx_local.case import Case, Differential
from ddx_local.flow import Flow, note, spending
from ddx_local.methods.budget import pays_for_turn
from ddx_local.methods.dxchain_debate import adjudicate
from ddx_local.methods.dxchain_memory import anchor
from ddx_local.methods.dxchain_record import Chain, Investigated
from ddx_local.methods.dxchain_report import left, report
from ddx_local.methods.dxchain_result import differential
from ddx_local.methods.dxchain_steps import Options
from ddx_local.methods.dxchain_tree import act, check, expand, look_up, reflect, select, synthesise


def dxchain(case: Case, options: Options) -> Flow[Differential]:
    """Three phases: 2 batches, 4 to 6 a turn, and 2 or 5; without the third 2 and 4 to 6 a turn; the first alone 3."""
    past = yield from look_up(case, options)
    chain = Chain(case, options, (yield from anchor(case, options)), past=past)
    if options.phases == "1":
        yield from synthesise(chain, 0)
    else:
        yield from navigate(chain)
    diagnoses = chain.syntheses[max(chain.syntheses)].diagnoses
    if options.phases != "1+2+3":
        return differential(chain, diagnoses)
    debate = yield from adjudicate(chain, diagnoses)
    kept = yield from left(debate, diagnoses)
    return (yield from report(chain, debate, kept))


def navigate(chain: Chain) -> Flow[None]:
    """Expand, select, act, check; then synthesise and reflect, or plan anew; until the review passes."""
    options = chain.options
    start = yield from spending()
    for turn in range(1, options.turns + 1):
        if not (yield from pays_for_turn(start, turn - 1, "the search")):
            break
        branches = yield from expand(chain, turn)
        branch = yield from select(chain, turn, branches)
        reports = yield from act(chain, branch)
        conflict = yield from check(chain, branch, reports)
        replan = conflict >= options.tau
        chain.history.append(Investigated(turn, branch, reports, conflict, replan))
        if replan:
            yield from note("replan", f"turn {turn}: conflict {conflict:.2f} with the expectation of {branch.label}")
            continue
        yield from synthesise(chain, turn)
        review = yield from reflect(chain)
        if review.passes:
            yield from note("stop", f"the review passed in turn {turn}")
            return
        chain.objections[turn] = review.weakness
    last = chain.history[-1]
    limit = f"turn limit {options.turns}" if last.turn == options.turns else f"budget spent after turn {last.turn}"
    yield from note("stop", f"{limit}: no synthesis passed the review", degraded=True)
    if last.replanned:
        yield from synthesise(chain, last.turn)  # with what the last turns found
