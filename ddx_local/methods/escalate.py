"""Escalation (`auto`): a single agent first; the panel only where the single agent is not sure.

Source: the difficulty-conditioned results of the SCoT paper (its panel lifts the hardest quartile's F1 from 0.212 to 0.363 and
costs 8.3 points of precision on the easiest).

The paper says / we do:
- escalation is proposed, without a rule / confidence = the smaller of the normalised probability of the single agent's first
  diagnosis among its own list (with that of other names for it), and the share of 5 further samples that put it first;
  under 0.6 the panel is asked
- the threshold is not calibrated for any model yet, and the result says so, whichever way it goes
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ddx_local.case import Case, Differential
from ddx_local.clinical import labels
from ddx_local.flow import Ask, Flow, Weigh, ask_each, note, weigh
from ddx_local.methods import scot_options
from ddx_local.methods.baselines import DIFFERENTIAL, ROLE
from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.counterfactual_steps import PROBABILITY
from ddx_local.methods.gaps import probabilities
from ddx_local.methods.lists import listed
from ddx_local.methods.proposals import Proposal
from ddx_local.methods.scot import scot


@dataclass(frozen=True, slots=True)
class Options:
    """Options of escalation.

    Args:
        threshold: Confidence under which the panel is asked, in [0, 1] (not calibrated yet).
        samples: Samples that tell how stable the first diagnosis is.
        k: Diagnoses at most, of either way.
        temperature: Sampling temperature of the single agent's answer.
        sample_temperature: Sampling temperature of the samples.
        agents: Seats of the panel.
    """

    threshold: float = 0.6
    samples: int = 5
    k: int = 5
    temperature: float = 0.3
    sample_temperature: float = 0.7
    agents: int = 5

    def __post_init__(self) -> None:
        check_bounds(self, {"threshold": (0, 1), "samples": (1, 50)})
        if not (0 <= self.temperature <= 2 and 0 <= self.sample_temperature <= 2):
            raise ValueError("temperatures must be 0 to 2")
        scot_options.Options(agents=self.agents, k=self.k)


def auto(case: Case, options: Options) -> Flow[Differential]:
    """One batch of answers, one of probabilities; then the single agent's answer, or SCoT."""
    slots = {"case": case.text, "k": str(options.k)}
    questions = {ROLE: Ask(DIFFERENTIAL, slots, ROLE, options.temperature)}
    for number in range(1, options.samples + 1):
        questions[f"sample {number}"] = Ask(DIFFERENTIAL, slots, f"sample {number}", options.sample_temperature)
    answers: Mapping[str, tuple[Proposal, ...]] = yield from ask_each(questions)
    proposals = answers[ROLE]
    first = proposals[0].diagnosis
    firsts = Counter(labels.same(first, answers[key][0].diagnosis) for key in questions if key != ROLE)
    share = firsts[True] / options.samples
    names = tuple(item.diagnosis for item in proposals)
    scores = yield from weigh({ROLE: Weigh(PROBABILITY, {"case": case.text}, names)})
    probability = probabilities(scores[ROLE]).normalised
    # Two names of one diagnosis on the list share its probability.
    certainty = min(1.0, sum(value for name, value in probability.items() if labels.same(first, name)))
    confidence = min(certainty, share)
    how = f"confidence {confidence:.3g}: probability {certainty:.3g}, first in {share:.3g} of {options.samples} samples"
    threshold = f"{options.threshold:g} (not calibrated yet)"
    if confidence >= options.threshold - 1e-9:  # a sum of shares may fall short by its last digit
        yield from note("single", f"{how}. It reaches {threshold}: the single answer stays")
        answer = listed(case, proposals, ROLE)
        return replace(
            answer, entries=tuple(replace(entry, probability=probability[entry.diagnosis]) for entry in answer.entries)
        )
    yield from note("escalated", f"{how}. It is under {threshold}: the panel decides")
    return (yield from scot(case, scot_options.Options(agents=options.agents, k=options.k)))
