"""Metrics of answers against gold: sets, ranks, soft matches, probabilities. It is given matches and knows no matcher.

Exact meanings and worked values: specs/evaluation.md, sections 2.1 and 2.2. Macro is the mean of per-case values, micro
pools true positives; both are always reported under their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

LIKELY = 0.01
"""DDXPlus: a diagnosis belongs to a differential when its probability is above this."""


@dataclass(frozen=True, slots=True)
class Sets:
    """One case: true positives, predictions and golds, and what follows from them."""

    tp: int
    n_pred: int
    n_gold: int

    @property
    def precision(self) -> float:
        return self.tp / self.n_pred if self.n_pred else 0.0

    @property
    def recall(self) -> float:
        return self.tp / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.tp / (self.n_pred + self.n_gold) if self.tp else 0.0


@dataclass(frozen=True, slots=True)
class PRF:
    precision: float
    recall: float
    f1: float


def macro(cases: Sequence[Sets]) -> PRF:
    """Means of the cases' values; an empty prediction counts as 0."""
    n = len(cases)
    return PRF(*(sum(getattr(case, name) for case in cases) / n for name in ("precision", "recall", "f1")))


def micro(cases: Sequence[Sets]) -> PRF:
    """From pooled counts."""
    pooled = Sets(*(sum(getattr(case, name) for case in cases) for name in ("tp", "n_pred", "n_gold")))
    return PRF(pooled.precision, pooled.recall, pooled.f1)


def harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def soft(total: float, n_pred: int, n_gold: int) -> PRF:
    """Soft Hungarian: `total` is the sum of the matched similarities."""
    precision, recall = (total / n_pred if n_pred else 0.0), (total / n_gold if n_gold else 0.0)
    return PRF(precision, recall, harmonic(precision, recall))


Rank = int | None
"""Place from 1 of the first distinct prediction that matches an acceptable gold; None is a miss."""


def top_k(ranks: Sequence[Rank], k: int) -> float:
    """Share of cases with a hit among the first k; fewer predictions than k are allowed."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


def mrr(ranks: Sequence[Rank]) -> float:
    """Mean reciprocal rank; a miss counts 0."""
    return sum(1 / rank for rank in ranks if rank is not None) / len(ranks)


def median_rank(ranks: Sequence[Rank], k: int) -> float:
    """Median rank; a miss counts k + 1."""
    return float(np.median([k + 1 if rank is None else rank for rank in ranks]))


def recall_at(matched: Sequence[int], n_gold: int, k: int) -> float:
    """Recall of the first k predictions; `matched` holds the places (from 0) of predictions that have a gold."""
    return sum(place < k for place in matched) / n_gold if n_gold else 0.0


def hit_probability(counts: Mapping[str, tuple[int, int]], least: int = 10) -> dict[str, float | int | None]:
    """DxChain's hit probability by disease: hits and total each.

    Returns:
        `macro` over the diseases with at least `least` cases, `pooled` over all, `pooled_eligible` over those.
    """
    eligible = {name: pair for name, pair in counts.items() if pair[1] >= least}
    hits, total = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    e_hits, e_total = (sum(pair[i] for pair in eligible.values()) for i in (0, 1))
    return {
        "macro": sum(h / t for h, t in eligible.values()) / len(eligible) if eligible else None,
        "pooled": hits / total if total else None,
        "pooled_eligible": e_hits / e_total if e_total else None,
        "eligible": len(eligible),
    }


def ddxplus(
    predicted: Mapping[str, float],
    gold: Mapping[str, float],
    primary: str,
    severe: frozenset[str] = frozenset(),
    k: int | None = None,
) -> dict[str, float | bool]:
    """DDXPlus' per-patient DDR, DDP, DDF1, GTPA and the same three over severe diseases (DSR, DSP, DSF1).

    Args:
        predicted: Diagnosis -> probability, names already made the gold's own.
        gold: The same of the data set.
        primary: The pathology that the patient was made with.
        severe: Diseases of the severe classes.
        k: Take the first k of both sides; None takes all.
    """

    def first(values: Mapping[str, float]) -> list[str]:
        likely = sorted((name for name, p in values.items() if p > LIKELY), key=lambda name: -values[name])
        return likely if k is None else likely[:k]

    p, g = first(predicted), first(gold)
    whole = Sets(len(set(p) & set(g)), len(p), len(g))
    ps, gs = set(p) & severe, set(g) & severe
    bad = Sets(len(ps & gs), len(ps), len(gs))
    found: dict[str, float | bool] = {"GTPA": primary in p}
    for prefix, sets in (("DD", whole), ("DS", bad)):
        found |= {f"{prefix}R": sets.recall, f"{prefix}P": sets.precision, f"{prefix}F1": sets.f1}
    return found


def cost(prompt_tokens: int, generated_tokens: int, in_per_million: float, out_per_million: float) -> float:
    """In the currency of the two prices."""
    return (prompt_tokens * in_per_million + generated_tokens * out_per_million) / 1e6


def tokens_per_extra_hit(method: float, baseline: float, method_tp: float, baseline_tp: float) -> float | None:
    """Extra tokens for each extra true positive; None where there is none more."""
    extra = method_tp - baseline_tp
    return (method - baseline) / extra if abs(extra) > 1e-12 else None
