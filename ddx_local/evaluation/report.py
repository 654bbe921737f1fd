"""The report of a benchmark as JSON values: what was run, on what, scored how, what came out, and how sure that is.

Every figure has its n, its interval and its denominator. Rendering is in `report_text`, `report_html`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ddx_local import DISCLAIMER, __version__
from ddx_local.evaluation import stamp, viability
from ddx_local.evaluation.floors import floors
from ddx_local.evaluation.match_error import shipped
from ddx_local.evaluation.plan import describe, suite_of
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.report_compare import comparisons
from ddx_local.evaluation.report_table import Arms, Json, arm_json, by_arm, by_case
from ddx_local.evaluation.report_talk import escalation, part
from ddx_local.evaluation.rubrics import Rating, summary
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.suite import Suite

SCHEMA = "ddx-local/bench-report/1"


def build(
    bench: Bench,
    rows: Sequence[CaseScore],
    matcher: str,
    reliability: dict[str, Any] | None = None,
    ratings: Sequence[Rating] = (),
) -> Json:
    """The whole report.

    Args:
        bench: The recorded benchmark.
        rows: Its scores.
        matcher: The matcher's label.
        reliability: Of a judge: how many verdicts were read, and how often it agrees with itself.
        ratings: Of a judge: its rubrics, one a row.
    """
    suite = suite_of(bench)
    arms = by_arm(rows)
    ranked = bool(bench.body["data"]["ranked"])
    inputs = stamp.inputs(suite, bench.body["data"], bench.body["fingerprints"], matcher)
    # What decides the numbers is what ran, not what lies here now: `verify` compares the two.
    inputs |= {"prompts": bench.body["prompts"], "code": bench.body["code"]}
    report: Json = {
        "schema": SCHEMA,
        "bench_id": bench.row.bench_id,
        "created_at": bench.row.created_at,
        "status": bench.row.status,
        "package_version": __version__,
        "suite": describe(suite),
        "data": {
            **bench.body["data"],
            "golds": sum(len(case.gold) for case in bench.cases),
            "notes": bench.body["notes"],
        },
        "models": bench.body["fingerprints"],
        "matcher": _matcher(matcher, suite, reliability),
        "policies": {
            "denominator": f"every selected case; {stamp.FAILURES}",
            "seeds": "values of a case are the mean over its seeds; intervals resample cases (bootstrap, B = 10,000)",
            "intervals": "95%; Wilson for shares of one seed, percentile bootstrap otherwise",
            "ddof": stamp.DDOF,
            "k": {arm.label: arm.k for arm in suite.arms},
            "hierarchy": suite.match.hierarchy,
        },
        "arms": [arm_json(model, arm, items, suite, ranked=ranked) for (model, arm), items in arms.items()],
        "comparisons": comparisons(arms, suite),
        "floors": floors(bench.cases),
        "talk": [{"model": model, "arm": arm, **part(items)} for (model, arm), items in arms.items()],
        "rubrics": summary(ratings, suite.match.rubrics),
        "escalation": {model: found for model in {m for m, _ in arms} if (found := escalation(arms, suite, model))},
        "stamp": {"inputs": stamp.digest(inputs), "results": stamp.results(rows), "of": inputs},
        "disclaimer": DISCLAIMER,
    }
    viable = viability.from_report(report, _differences(arms, suite))
    report["viability"] = [asdict(item) for item in viable]
    return report


def _differences(arms: Arms, suite: Suite) -> dict[tuple[str, str], list[float]]:
    base = suite.arm("baseline")
    if base is None:
        return {}
    found = {}
    for (model, arm), rows in arms.items():
        if (model, base.label) in arms:
            one, two = by_case(arms[model, base.label]), by_case(rows)
            found[model, arm] = [two[i] - one[i] for i in one if i in two]
    return found


def _matcher(label: str, suite: Suite, reliability: dict[str, Any] | None) -> Json:
    """The matcher with its own error: the shipped one of the default matcher, a judge's agreement with itself."""
    found: Json = {"label": label, "hierarchy": suite.match.hierarchy, "reliability": reliability}
    if label == "labels":
        error, about = shipped()
        stale = "" if about["current"] else " (measured with an earlier version of the label code: measure it again)"
        return {**found, "error": asdict(error), "error_line": error.line() + stale, "source": about["source"]}
    return {
        **found,
        "error": None,
        "error_line": f"{label}: not measured here; `ddx-local bench data matcher` measures it on pairs that you have",
    }
