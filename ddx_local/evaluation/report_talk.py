"""Deliberation and confidence of an arm, over its cases: late entries, transitions, consensus, correlated errors, calibration."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ddx_local.evaluation.metrics_discussion import change_rate, transitions
from ddx_local.evaluation.report_table import Arms, Json, by_case
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.statistics import phi
from ddx_local.evaluation.suite import Suite

BINS = 5
THRESHOLDS = tuple(step / 20 for step in range(21))


def talk(rows: Sequence[CaseScore]) -> Json:
    """What the discussions of an arm's cases did; shares with their denominators."""
    held = [(row, row.discussion) for row in rows if row.discussion]
    hits = [(row.predictions[i], found) for row, found in held for i, _, _ in row.pairs]
    known = [(name, found) for name, found in hits if name in found["first_named"]]
    late = sum(found["late"][name] for name, found in known)
    votes = [found["consensus"] for _, found in held if found["consensus"] is not None]
    when = [found["consensus_batch"] for _, found in held if found["consensus_batch"]]
    return {
        "cases": len(held),
        "true_positives": len(hits),
        "true_positives_traced": len(known),
        "late": late,
        "late_share": late / len(known) if known else None,
        "late_means": "SCoT: named first in round 5 or later (round 7 never enters the list); others: after the first lists",
        "entered": dict(
            Counter(f"{found['first_named'][name][0]} {found['first_named'][name][1]}" for name, found in known)
        ),
        "transitions": transitions([move for _, found in held for move in found["moves"].values()]),
        "change_rate": change_rate([list(found["changed"].values()) for _, found in held]),
        "consensus_rate": sum(votes) / len(votes) if votes else None,
        "consensus_cases": len(votes),
        "mean_batches_to_consensus": sum(when) / len(when) if when else None,
        "error_correlation": error_correlation(rows),
        "counterfactuals": _gaps(rows),
    }


def error_correlation(rows: Sequence[CaseScore]) -> Json:
    """Mean phi of two seats' first answers being right, over all pairs of seats that both vary.

    Seats are by order of speaking: specialties change from case to case. Agents that err together add nothing to one.
    """
    held = [list(row.discussion["firsts"].values()) for row in rows if row.discussion and row.discussion["firsts"]]
    seats = max(map(len, held), default=0)
    values = []
    for one, two in combinations(range(min(seats, 40)), 2):
        both = [(firsts[one], firsts[two]) for firsts in held if len(firsts) > max(one, two)]
        if both and (value := phi([a for a, _ in both], [b for _, b in both])) is not None:
            values.append(value)
    return {"seats": seats, "pairs": len(values), "mean_phi": sum(values) / len(values) if values else None}


def _gaps(rows: Sequence[CaseScore]) -> Json | None:
    """Counterfactual gaps, worked out again from the recorded probabilities and compared with those that the method gave."""
    every = [gap for row in rows for gap in row.gaps]
    if not every:
        return None
    kept = [gap for gap in every if gap[4]]
    signed = sorted(before - after for before, after, _, _, _ in kept)
    n = len(signed)
    return {
        "edits": len(every),
        "kept": n,
        "mean_signed": sum(signed) / n if n else None,
        "median_signed": (signed[(n - 1) // 2] + signed[n // 2]) / 2 if n else None,
        "fraction_positive": sum(value > 1e-12 for value in signed) / n if n else None,
        "mean_paper_gap": sum(gap[3] for gap in kept) / n if n else None,
        "differ_from_recorded": sum(abs((before - after) - gap) > 1e-9 for before, after, gap, _, _ in every),
    }


def calibration(rows: Sequence[CaseScore]) -> Json | None:
    """Confidence of the first diagnosis against whether it is right; None where the method gives none."""
    pairs = [(row.confidence, row.first == 1) for row in rows if row.confidence is not None]
    if not pairs:
        return None
    bins = []
    for place in range(BINS):
        low, high = place / BINS, (place + 1) / BINS
        inside = [(c, hit) for c, hit in pairs if low <= c < high or (place == BINS - 1 and c >= high)]
        if inside:
            mean, right = sum(c for c, _ in inside) / len(inside), sum(hit for _, hit in inside) / len(inside)
            bins.append({"low": low, "high": high, "n": len(inside), "confidence": mean, "right": right})
    return {
        "n": len(pairs),
        "bins": bins,
        "ece": sum(item["n"] * abs(item["confidence"] - item["right"]) for item in bins) / len(pairs),
        "brier": sum((c - hit) ** 2 for c, hit in pairs) / len(pairs),
    }


def escalation(arms: Arms, suite: Suite, model: str) -> Json | None:
    """What each threshold of escalation would cost and give, from a run of `auto`, the baseline and a panel method.

    A case whose confidence is under the threshold takes the panel's answer and pays for both.
    """
    labels = {arm.method: arm.label for arm in suite.arms if (model, arm.label) in arms}
    base = suite.arm("baseline")
    if "auto" not in labels or "scot" not in labels or base is None or (model, base.label) not in arms:
        return None
    said: dict[str, list[float]] = {}
    for row in arms[model, labels["auto"]]:
        if row.confidence is not None and row.escalated is not None:
            said.setdefault(row.case_id, []).append(row.confidence)
    single, panel = arms[model, base.label], arms[model, labels["scot"]]
    one, two, cheap, dear = by_case(single), by_case(panel), by_case(single, "tokens"), by_case(panel, "tokens")
    ids = [i for i in said if i in one and i in two]
    if not ids:
        return None
    curve = []
    for threshold in THRESHOLDS:
        up = {i for i in ids if sum(said[i]) / len(said[i]) < threshold}
        curve.append(
            {
                "threshold": threshold,
                "escalated": len(up) / len(ids),
                "f1": sum(two[i] if i in up else one[i] for i in ids) / len(ids),
                "tokens_per_case": sum(cheap[i] + (dear[i] if i in up else 0.0) for i in ids) / len(ids),
            }
        )
    best = max(curve, key=lambda item: (item["f1"], -item["tokens_per_case"]))
    return {"n": len(ids), "curve": curve, "best": best, "note": "chosen on these very cases: check it on others"}


def part(rows: Sequence[CaseScore]) -> dict[str, Any]:
    """Deliberation and calibration of one arm."""
    return {"deliberation": talk(rows), "calibration": calibration(rows)}
