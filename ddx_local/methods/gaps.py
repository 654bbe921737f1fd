"""The numbers of counterfactual reasoning: probabilities, gaps, similarity, the combined score. Pure.

Source: "Improving Clinical Diagnosis with Counterfactual Multi-Agent Reasoning", section 4.4 (equation 2 is the gap).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddx_local.flow import Loglikelihood


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of SIP and of the combined score; the paper names them, its authors' program gives their values."""

    sem: float = 0.7
    edit: float = 0.3
    signal: float = 0.8
    shift: float = 0.75
    sip: float = 0.2


USUAL = Weights()


@dataclass(frozen=True, slots=True)
class Probabilities:
    """P(d | text) of every candidate: `raw` = exp of the summed logprobs, `normalised` = softmax over the candidates.

    Long names score lower in `raw`, since they are longer products. `noise` is the engine's error of a logprob, in nats.
    """

    raw: Mapping[str, float]
    normalised: Mapping[str, float]
    noise: float

    @property
    def most_likely(self) -> str:
        return max(self.normalised, key=lambda label: self.normalised[label])

    def noise_of(self, label: str) -> float:
        """By how much such an error of this label's logprob moves its normalised probability: dp = p (1 - p) dlogprob."""
        p = self.normalised[label]
        return p * (1 - p) * self.noise


def probabilities(scores: Sequence[Loglikelihood]) -> Probabilities:
    """Both probabilities from the logprobs of one text's candidates."""
    top = max(score.logprob for score in scores)
    weights = {score.label: math.exp(score.logprob - top) for score in scores}
    total = sum(weights.values())
    return Probabilities(
        raw={score.label: math.exp(score.logprob) for score in scores},
        normalised={label: weight / total for label, weight in weights.items()},
        noise=max(score.noise for score in scores),
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """What an edit does to a diagnosis.

    Args:
        signed: P(d | case) - P(d | edited), normalised; positive: the edited finding supports d.
        signed_raw: The same with raw probabilities.
        paper: The paper's |P(d | case) - P(d^ | edited)|, normalised; d^ is the most likely candidate on the edited case.
        paper_raw: The same with raw probabilities.
        noise_floor: A signed gap below it means nothing.
        flipped_to: d^ where it is not d, else ''.
    """

    signed: float
    signed_raw: float
    paper: float
    paper_raw: float
    noise_floor: float
    flipped_to: str


def gap(label: str, before: Probabilities, after: Probabilities) -> Gap:
    """The four gaps of a label between the case and an edited case."""
    most_likely = after.most_likely
    return Gap(
        signed=before.normalised[label] - after.normalised[label],
        signed_raw=before.raw[label] - after.raw[label],
        paper=abs(before.normalised[label] - after.normalised[most_likely]),
        paper_raw=abs(before.raw[label] - after.raw[most_likely]),
        noise_floor=before.noise_of(label) + after.noise_of(label),
        flipped_to="" if most_likely == label else most_likely,
    )


def sem_sim(cosine: float) -> float:
    """Similarity of meaning in [0, 1]: (cos + 1) / 2, clipped."""
    return min(1.0, max(0.0, (cosine + 1) / 2))


def sip(meaning: float, spelling: float, weights: Weights = USUAL) -> float:
    """How much of the case is preserved: 0.7 SemSim + 0.3 EditSim."""
    return weights.sem * meaning + weights.edit * spelling


def combined(signal: float, shift: float, preserved: float, weights: Weights = USUAL) -> float:
    """0.8 max(G, 0.75 DiagShift) + 0.2 SIP; `signal` is |the gap| that the options choose."""
    return weights.signal * max(signal, weights.shift * shift) + weights.sip * preserved


def needed(specialists: int, share: float) -> int:
    """How many must agree: the smallest whole number that is at least `share` of them."""
    return max(1, math.ceil(share * specialists - 1e-9))
