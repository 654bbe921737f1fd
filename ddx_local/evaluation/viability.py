"""Viability: from which model size on does deliberation pay? Gain by model, with its interval, power, and what failed how.

A verdict needs an interval without 0 and a difference that the cases can show (power 0.8); anything else is undecided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ddx_local.evaluation.statistics import Interval, bootstrap_mean, cases_needed, detectable, power, sign_test

Verdict = Literal["above", "below", "undecided"]
LEAST_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Viability:
    """One model: whether the method is above or below its baseline, and what would settle it.

    `format_failures` and `nothing_right` are the method's shares of cases: it could not hold the form, or it answered in
    form with nothing right. A model that fails by form is not shown to lack knowledge.
    """

    model: str
    n: int
    gain: Interval
    sd: float
    mde: float | None
    power: float
    cases_needed: int | None
    by_seed: tuple[float, ...]
    sign_p: float
    format_failures: float
    baseline_format_failures: float
    nothing_right: float
    verdict: Verdict


def assess(
    model: str,
    differences: Sequence[float],
    by_seed: Sequence[float] = (),
    *,
    format_failures: float = 0.0,
    baseline_format_failures: float = 0.0,
    nothing_right: float = 0.0,
) -> Viability:
    """From per-case differences (method - baseline, mean over seeds)."""
    gain = bootstrap_mean(differences, seed=7)
    n = len(differences)
    sd = float(np.std(differences, ddof=1)) if n > 1 else 0.0
    able = power(sd, n, gain.value)
    found: Verdict = "undecided"
    if able >= LEAST_POWER and gain.low > 0:
        found = "above"
    elif able >= LEAST_POWER and gain.high < 0:
        found = "below"
    return Viability(
        model, n, gain, sd, detectable(sd, n), able, cases_needed(sd, gain.value), tuple(by_seed), sign_test(by_seed),
        format_failures, baseline_format_failures, nothing_right, found,
    )  # fmt: skip


def from_report(report: Mapping[str, Any], differences: Mapping[tuple[str, str], Sequence[float]]) -> list[Viability]:
    """One line for each model and method of a report, but for its placebo.

    Args:
        report: As `report.build` gives it.
        differences: (model, method) -> per-case differences from the baseline.
    """
    arms = {(item["model"], item["arm"]): item for item in report["arms"]}
    found = []
    for item in report["comparisons"]:
        arm = arms[item["model"], item["method"]]
        if arm["role"] != "method":
            continue
        found.append(
            assess(
                f"{item['model']}: {item['method']}",
                differences[item["model"], item["method"]],
                item["delta_f1_by_seed"],
                format_failures=arm["format_failures"],
                baseline_format_failures=arms[item["model"], item["baseline"]]["format_failures"],
                nothing_right=arm["nothing_right"],
            )
        )
    return found


def lines(found: Sequence[Viability]) -> list[str]:
    """For people."""
    out = []
    for item in found:
        seeds = ", ".join(f"{value:+.3f}" for value in item.by_seed)
        out += [
            f"{item.model}: {item.verdict}",
            (
                f"    gain {item.gain.value:+.3f} F1, 95% {item.gain.low:+.3f} to {item.gain.high:+.3f}, n = {item.n}, "
                f"power {item.power:.2f}, smallest difference that {item.n} cases show "
                f"{'undefined' if item.mde is None else f'{item.mde:.3f}'}"
            ),
            (
                f"    by seed: {seeds or 'one seed'}; sign test p = {item.sign_p:.3g}; cases needed for this gain: "
                f"{item.cases_needed if item.cases_needed is not None else 'none would do (no difference)'}"
            ),
            (
                f"    out of form: {item.format_failures:.1%} of its cases (baseline {item.baseline_format_failures:.1%}); "
                f"in form with nothing right: {item.nothing_right:.1%}"
            ),
        ]
    return out
