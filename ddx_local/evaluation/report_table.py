"""Rows by arm: one denominator, means with intervals, ranks, failures by kind, cost, groups. Scores in, JSON values out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ddx_local.evaluation.metrics import cost, hit_probability, median_rank, micro, mrr, top_k
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.stamp import DDOF
from ddx_local.evaluation.statistics import Interval, bootstrap_mean, spread, wilson
from ddx_local.evaluation.suite import Suite

FORMAT_FAILURES = ("ParseError", "GrammarDeadEnd", "EmptyAnswer", "LengthStop", "ContextLengthExceeded")
"""A model that cannot hold the form, apart from one that does not know the answer."""

MOST_GROUPS = 12
FEWEST_CASES = 4
"""Cases for each value of a group, on average, from which the group is shown."""

KS = (1, 3, 5, 10)

Json = dict[str, Any]
Arms = Mapping[tuple[str, str], Sequence[CaseScore]]
"""(model, arm) -> its rows of all seeds."""


def by_arm(rows: Iterable[CaseScore]) -> dict[tuple[str, str], list[CaseScore]]:
    """Rows by model and arm, in the order in which they come."""
    found: dict[tuple[str, str], list[CaseScore]] = {}
    for row in rows:
        found.setdefault((row.model, row.arm), []).append(row)
    return found


def by_case(rows: Iterable[CaseScore], value: str = "f1") -> dict[str, float]:
    """Case id -> mean over the seeds of a value of its row: f1, precision, recall, hit (first place right), tp, tokens."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.case_id, []).append(number(row, value))
    return {case_id: sum(values) / len(values) for case_id, values in found.items()}


def number(row: CaseScore, value: str) -> float:
    if value == "hit":
        return float(row.first == 1)
    if value == "tp":
        return float(row.tp)
    return float(row.usage.tokens) if value == "tokens" else float(getattr(row.prf, value))


def arm_json(model: str, arm: str, rows: Sequence[CaseScore], suite: Suite, *, ranked: bool) -> Json:
    """One line of the main table, with what stands behind it."""
    seeds = sorted({row.seed for row in rows})
    failed = [row for row in rows if row.status == "failed"]
    n = len(rows)
    firsts = [row.first for row in rows]
    sets = [row.sets for row in rows]
    scored = [row for row in rows if row.status == "finished"]
    f1_by_seed = [_mean(row.prf.f1 for row in rows if row.seed == seed) for seed in seeds]
    pooled = micro(sets)
    return {
        "model": model,
        "arm": arm,
        "role": next((item.role for item in suite.arms if item.label == arm), "method"),
        "k": next((item.k for item in suite.arms if item.label == arm), "free"),
        "seeds": seeds,
        "n_cases": len({row.case_id for row in rows}),
        "n_selected": n,
        "n_scored": len(scored),
        "n_failed": len(failed),
        "n_missing": sum(row.status == "missing" for row in rows),
        "n_empty": sum(row.status == "finished" and not row.predictions for row in rows),
        "failures": dict(Counter(row.error for row in failed)),
        "failed_cases": sorted({row.case_id for row in failed}),
        "format_failures": sum(row.error in FORMAT_FAILURES for row in failed) / n,
        "nothing_right": sum(row.tp == 0 for row in scored) / n,
        "macro": {name: asdict(_over_cases(rows, name)) for name in ("precision", "recall", "f1")},
        "micro": asdict(pooled),
        "f1_if_failures_were_dropped": _mean(row.prf.f1 for row in scored) if scored else None,
        "f1_by_seed": f1_by_seed,
        "f1_sd": spread(f1_by_seed, DDOF),
        "sd_ddof": DDOF,
        "top": {str(k): asdict(_share(rows, k)) for k in KS},
        "top_k_of_all_rows": {str(k): top_k(firsts, k) for k in KS},
        "mrr": mrr(firsts),
        "median_rank": {"value": median_rank(firsts, 10), "miss_counts_as": 11},
        "primary": asdict(_primary(rows)) if ranked else None,
        "hit_probability": _hit_probability(rows) if ranked else None,
        "ddxplus": _ddxplus(rows),
        "unread_verdicts": sum(row.unread for row in rows),
        "f1_bounds": _bounds(rows),
        "usage": _usage(rows, suite),
        "degraded": dict(Counter(kind for row in rows for kind in set(row.degraded))),
        "groups": _groups(rows),
    }


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def _over_cases(rows: Sequence[CaseScore], value: str) -> Interval:
    """Mean over cases of the mean over seeds; the bootstrap draws cases, since seeds of one case are not independent."""
    return bootstrap_mean(list(by_case(rows, value).values()))


def _share(rows: Sequence[CaseScore], k: int) -> Interval:
    """Top-k with Wilson's interval for one seed, with cases drawn for several."""
    hits = {(row.case_id, row.seed): row.first is not None and row.first <= k for row in rows}
    return _interval(hits)


def _primary(rows: Sequence[CaseScore]) -> Interval:
    """First prediction against the first gold."""
    return _interval({(row.case_id, row.seed): row.primary == 1 for row in rows})


def _hit_probability(rows: Sequence[CaseScore]) -> Json:
    """By primary diagnosis, over diseases with ten cases or more (DxChain), beside the pooled share."""
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        hits, total = counts.get(row.golds[0].casefold(), (0, 0))
        counts[row.golds[0].casefold()] = (hits + (row.primary == 1), total + 1)
    return hit_probability(counts)


def _ddxplus(rows: Sequence[CaseScore]) -> Json | None:
    """Means of DDXPlus' metrics over all rows; None for a data set without probabilities."""
    if not any(row.ddxplus for row in rows):
        return None
    names = dict.fromkeys(name for row in rows if row.ddxplus for name in row.ddxplus)
    return {name: _mean((row.ddxplus or {}).get(name, 0.0) for row in rows) for name in names}


def _interval(hits: Mapping[tuple[str, int], bool]) -> Interval:
    if len({seed for _, seed in hits}) == 1:
        return wilson(sum(hits.values()), len(hits))
    cases: dict[str, list[bool]] = {}
    for (case_id, _), hit in hits.items():
        cases.setdefault(case_id, []).append(hit)
    return bootstrap_mean([sum(values) / len(values) for values in cases.values()])


def _bounds(rows: Sequence[CaseScore]) -> list[float] | None:
    """Macro F1 if all unread verdicts were no, and if all were yes; None where all were read."""
    if not any(row.unread for row in rows):
        return None
    high = [2 * row.upper / (len(row.predictions) + len(row.golds)) if row.predictions else 0.0 for row in rows]
    return [_mean(row.prf.f1 for row in rows), _mean(high)]


def _usage(rows: Sequence[CaseScore], suite: Suite) -> Json:
    """Per case and seed; seconds are of a case from its start to its end, while others ran beside it."""
    n = len(rows)
    total = {
        name: sum(getattr(row.usage, name) for row in rows)
        for name in ("calls", "batches", "prompt_tokens", "generated_tokens")
    }
    spent = cost(total["prompt_tokens"], total["generated_tokens"], suite.price_in, suite.price_out)
    return {
        **{f"{name}_per_case": value / n for name, value in total.items()},
        "tokens_per_case": (total["prompt_tokens"] + total["generated_tokens"]) / n,
        "tokens": total["prompt_tokens"] + total["generated_tokens"],
        "seconds_per_case": _mean(row.usage.seconds for row in rows),
        "cost": spent if suite.price_in or suite.price_out else None,
    }


def _groups(rows: Sequence[CaseScore]) -> Json:
    """F1 and top-1 by each group of the data set that has few values."""
    found: Json = {}
    for name in sorted({name for row in rows for name in row.groups}):
        parts: dict[str, list[CaseScore]] = {}
        for row in rows:
            parts.setdefault(row.groups.get(name, ""), []).append(row)
        if 2 <= len(parts) <= MOST_GROUPS and len({row.case_id for row in rows}) >= FEWEST_CASES * len(parts):
            found[name] = {
                value: {
                    "n_cases": len({row.case_id for row in part}),
                    "f1": asdict(_over_cases(part, "f1")),
                    "top1": _mean(number(row, "hit") for row in part),
                }
                for value, part in sorted(parts.items())
            }
    return found
