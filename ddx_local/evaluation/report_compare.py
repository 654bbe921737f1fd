"""Comparisons with the baseline: paired on the same cases, failures included; lift and rescue net of the placebo.

A gain over a baseline that used less than half of the tokens is not called one, unless the suite says that it may be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ddx_local.evaluation import statistics
from ddx_local.evaluation.metrics import tokens_per_extra_hit
from ddx_local.evaluation.metrics_difficulty import lift, rescue
from ddx_local.evaluation.report_table import Arms, Json, by_case, number
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.suite import Suite

ENOUGH_TOKENS = 0.5
"""Share of the method's tokens that a baseline must have used for a difference to be called a gain."""


def comparisons(arms: Arms, suite: Suite) -> list[Json]:
    """Every arm against the baseline of the same model, with Holm's correction over the methods of all models."""
    base = suite.arm("baseline")
    if base is None:
        return []
    placebo = suite.arm("placebo")
    found = []
    for (model, arm), rows in arms.items():
        if arm == base.label or (model, base.label) not in arms:
            continue
        # Against itself the placebo has nothing to be net of.
        other = arms.get((model, placebo.label)) if placebo and arm != placebo.label else None
        found.append(compare(arms[model, base.label], rows, other, allow_unequal=suite.allow_unequal_budget))
    tested = [item for item in found if placebo is None or item["method"] != placebo.label]
    for item, p in zip(tested, statistics.holm([item["p"] for item in tested]), strict=True):
        item["p_holm"], item["holm_over"] = p, len(tested)
    for item in found:
        item["verdict"] = verdict(item)
    return found


def compare(
    base: Sequence[CaseScore],
    method: Sequence[CaseScore],
    placebo: Sequence[CaseScore] | None,
    *,
    allow_unequal: bool = False,
) -> Json:
    """One comparison, on the cases that both selected; a failed case counts 0 in either."""
    ids = [case_id for case_id in by_case(base) if case_id in by_case(method)]
    paired = {name: _paired(base, method, ids, name) for name in ("f1", "precision", "recall", "hit")}
    differences = paired["f1"][1]
    sd = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    mean = paired["f1"][0].value
    tokens = {name: by_case(rows, "tokens") for name, rows in (("base", base), ("method", method))}
    spent = {name: sum(values[i] for i in ids) / len(ids) for name, values in tokens.items()}
    ratio = spent["base"] / spent["method"] if spent["method"] else None
    tp = {
        name: sum(by_case(rows, "tp")[i] for i in ids) / len(ids) for name, rows in (("base", base), ("method", method))
    }
    by_seed = _by_seed(base, method, ids)
    return {
        "model": method[0].model,
        "method": method[0].arm,
        "baseline": base[0].arm,
        "n_common": len(ids),
        "only_baseline": len(by_case(base)) - len(ids),
        "only_method": len(by_case(method)) - len(ids),
        "failed": {"baseline": _failed(base, ids), "method": _failed(method, ids)},
        **{f"delta_{name}": asdict(interval) for name, (interval, _) in paired.items()},
        "p": statistics.permutation_p(differences),
        "p_test": "paired sign-flip permutation of per-case F1 (mean over seeds), two-sided",
        "sd_of_differences": sd,
        "sd_ddof": 1,
        "mde": statistics.detectable(sd, len(ids)),
        "cases_needed": statistics.cases_needed(sd, mean),
        "power_at_this_difference": statistics.power(sd, len(ids), mean),
        "mcnemar_top1": _mcnemar(base, method, ids),
        "delta_f1_by_seed": by_seed,
        "sign_test_over_seeds": statistics.sign_test(by_seed),
        "tokens": {**spent, "baseline_share": ratio},
        "budget_refused": bool(ratio is not None and ratio < ENOUGH_TOKENS and mean > 0 and not allow_unequal),
        "tokens_per_extra_hit": tokens_per_extra_hit(spent["method"], spent["base"], tp["method"], tp["base"]),
        "lift": _lift(base, method, placebo, ids),
        "rescue": _rescue(base, method, placebo, ids),
    }


def verdict(item: Mapping[str, Any]) -> str:
    """What may be said of a comparison, in words."""
    delta, n = item["delta_f1"], item["n_common"]
    if not (delta["low"] > 0 or delta["high"] < 0):
        if item["mde"] is None:
            return f"undecided: all {n} cases differ by the same, which says nothing of what they can show"
        return f"undecided: the interval holds 0; {n} cases can show a difference of {item['mde']:.3f} or more"
    if delta["high"] < 0:
        return "worse than the baseline"
    if item["budget_refused"]:
        share = item["tokens"]["baseline_share"]
        return f"higher, but no gain is claimed: the baseline used {share:.0%} of the tokens (an equal-budget baseline is needed)"
    corrected = item.get("p_holm", item["p"])
    return "better than the baseline" if corrected < 0.05 else "higher, but not after Holm's correction"


def _paired(
    base: Sequence[CaseScore], method: Sequence[CaseScore], ids: Sequence[str], name: str
) -> tuple[statistics.Interval, list[float]]:
    one, two = by_case(base, name), by_case(method, name)
    differences = [two[i] - one[i] for i in ids]
    return statistics.bootstrap_mean(differences, seed=7), differences


def _failed(rows: Sequence[CaseScore], ids: Sequence[str]) -> int:
    return sum(row.status != "finished" for row in rows if row.case_id in set(ids))


def _seeds(base: Sequence[CaseScore], method: Sequence[CaseScore]) -> list[tuple[int, int]]:
    """Seeds in order, the first of the one with the first of the other."""
    return list(zip(sorted({row.seed for row in base}), sorted({row.seed for row in method}), strict=False))


def _by_seed(base: Sequence[CaseScore], method: Sequence[CaseScore], ids: Sequence[str]) -> list[float]:
    found = []
    for one, two in _seeds(base, method):
        a = by_case(row for row in base if row.seed == one)
        b = by_case(row for row in method if row.seed == two)
        common = [i for i in ids if i in a and i in b]
        found.append(sum(b[i] - a[i] for i in common) / len(common) if common else 0.0)
    return found


def _mcnemar(base: Sequence[CaseScore], method: Sequence[CaseScore], ids: Sequence[str]) -> list[Json]:
    """Top-1 right or wrong, for each pair of seeds: over seeds the pairs would not be independent."""
    found = []
    for one, two in _seeds(base, method):
        a = {row.case_id: number(row, "hit") for row in base if row.seed == one}
        b = {row.case_id: number(row, "hit") for row in method if row.seed == two}
        common = [i for i in ids if i in a and i in b]
        gained, lost = sum(b[i] > a[i] for i in common), sum(b[i] < a[i] for i in common)
        found.append({"seeds": [one, two], "n": len(common), **asdict(statistics.mcnemar(gained, lost))})
    return found


def _lift(
    base: Sequence[CaseScore], method: Sequence[CaseScore], placebo: Sequence[CaseScore] | None, ids: Sequence[str]
) -> list[Json]:
    one, two = by_case(base), by_case(method)
    three = by_case(placebo) if placebo else None
    picked = {i: one[i] for i in ids}
    return [asdict(row) for row in lift(picked, two, three)]


def _rescue(
    base: Sequence[CaseScore], method: Sequence[CaseScore], placebo: Sequence[CaseScore] | None, ids: Sequence[str]
) -> Json:
    """Over all seeds: a case is zero where no seed of the baseline has a true positive."""

    def hits(rows: Sequence[CaseScore]) -> dict[str, int]:
        totals: dict[str, int] = {}
        for row in rows:
            totals[row.case_id] = totals.get(row.case_id, 0) + row.tp
        return totals

    one = hits(base)
    picked = {i: one[i] for i in ids}
    return asdict(rescue(picked, hits(method), by_case(method, "recall"), hits(placebo) if placebo else None))
