"""Difficulty: quartiles by the baseline, lift net of a placebo, rescue. Scores by case id in, tables out.

Whoever picks hard cases by a noisy score sees them get easier when the same system runs again: regression to the mean. So
each lift is shown beside a placebo's (a second run of the baseline) and net of it. specs/evaluation.md, section 1.1, 2.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ddx_local.evaluation.statistics import Interval, bootstrap_means, paired_bootstrap, wilson

QUARTILES = (1, 2, 3, 4)


def quartiles(baseline: Mapping[str, float]) -> dict[str, int]:
    """Case id -> 1 (hardest) to 4, by place in the order of (score, id): equal sizes whatever the ties."""
    order = sorted(baseline, key=lambda case_id: (baseline[case_id], case_id))
    return {case_id: 4 * place // len(order) + 1 for place, case_id in enumerate(order)}


@dataclass(frozen=True, slots=True)
class Lift:
    """A quartile's lift. `raw`: method - baseline; `placebo`: second baseline run - baseline; `net`: method - second run."""

    quartile: int
    n: int
    base: float
    method: float
    raw: Interval
    relative: float | None
    placebo: float | None
    net: Interval | None


def lift(
    baseline: Mapping[str, float], method: Mapping[str, float], placebo: Mapping[str, float] | None = None
) -> tuple[Lift, ...]:
    """By quartile of the baseline's own score; cases are those of `baseline`."""
    home = quartiles(baseline)
    found = []
    for number in QUARTILES:
        ids = [case_id for case_id in baseline if home[case_id] == number]
        if not ids:
            continue
        base, new = [baseline[i] for i in ids], [method[i] for i in ids]
        again = [placebo[i] for i in ids] if placebo else None
        raw = paired_bootstrap(base, new)
        mean = float(np.mean(base))
        found.append(
            Lift(
                quartile=number,
                n=len(ids),
                base=mean,
                method=float(np.mean(new)),
                raw=raw,
                relative=raw.value / mean if mean else None,
                placebo=float(np.mean(again)) - mean if again else None,
                net=paired_bootstrap(again, new) if again else None,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Rescue:
    """Cases without a true positive in the baseline, and how many of them get one; `recovered` is their mean recall."""

    n_zero: int
    rescued: int
    rate: Interval | None
    recovered: float | None
    placebo: Interval | None = None
    net: Interval | None = None


def rescue(
    baseline_tp: Mapping[str, int],
    method_tp: Mapping[str, int],
    method_recall: Mapping[str, float],
    placebo_tp: Mapping[str, int] | None = None,
) -> Rescue:
    """Rescue of the baseline's zeros, the placebo's own rescue, and the difference with a paired bootstrap interval."""
    zeros = [case_id for case_id, tp in baseline_tp.items() if tp == 0]
    n = len(zeros)
    if not n:
        return Rescue(0, 0, None, None)
    saved = [method_tp[i] >= 1 for i in zeros]
    again = [placebo_tp[i] >= 1 for i in zeros] if placebo_tp is not None else None
    return Rescue(
        n_zero=n,
        rescued=sum(saved),
        rate=wilson(sum(saved), n),
        recovered=float(np.mean([method_recall[i] for i in zeros])),
        placebo=wilson(sum(again), n) if again is not None else None,
        net=paired_bootstrap(again, saved) if again is not None else None,
    )


def placebo_demo(seed: int = 0, cases: int = 570) -> dict[str, float]:
    """The same system twice, on made-up cases: how much lift and rescue come for nothing.

    Latent difficulty ~ Beta(2, 3); a score is Binomial(5, theta) / 5.
    """
    generator = np.random.default_rng(seed)
    theta = generator.beta(2, 3, cases)
    one, two = (generator.binomial(5, theta) / 5 for _ in range(2))
    ids = [f"{index:06d}" for index in range(cases)]
    found = lift(dict(zip(ids, one.tolist(), strict=True)), dict(zip(ids, two.tolist(), strict=True)))
    zero = one == 0
    return {
        "q1_run1": found[0].base,
        "q1_run2": found[0].method,
        "q1_placebo_gain": found[0].raw.value,
        "q4_run1": found[3].base,
        "q4_run2": found[3].method,
        "q4_placebo_gain": found[3].raw.value,
        "zero_cases": float(zero.sum()),
        "placebo_rescue": float((two[zero] > 0).mean()),
    }


def pooled_interval(values: Sequence[float], seed: int = 12345) -> tuple[float, float]:
    """The percentile interval alone."""
    low, high = np.percentile(bootstrap_means(values, seed), [2.5, 97.5])
    return float(low), float(high)
