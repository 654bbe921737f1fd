"""The later sections of a report: deliberation, calibration, floors, viability, stamp."""

from ddx_local.evaluation import viability
from ddx_local.evaluation.report_section import Section, number
from ddx_local.evaluation.report_table import Json
from ddx_local.evaluation.statistics import Interval


def talk(report: Json) -> Section:
    """Who named what when, who changed, whether they agreed."""
    rows = [("model", "method", "true positives traced", "late share", "entered (stage step: n)", "W>C of W", "C>W of C", "changed",
             "consensus", "batches to it", "error phi (pairs)", "counterfactuals: positive, median")]  # fmt: skip
    for item in report["talk"]:
        t = item["deliberation"]
        moves, cpg = t["transitions"], t["counterfactuals"]
        rows.append(
            (
                item["model"], item["arm"], f"{t['true_positives_traced']} of {t['true_positives']}", number(t["late_share"]),
                ", ".join(f"{name}: {count}" for name, count in sorted(t["entered"].items())) or "none",
                f"{number(moves['P_C_given_W'])} ({moves['WC']})", f"{number(moves['P_W_given_C'])} ({moves['CW']})",
                f"{number(t['change_rate']['pooled'])} (n {t['change_rate']['n']})",
                f"{number(t['consensus_rate'])} (n {t['consensus_cases']})", number(t["mean_batches_to_consensus"]),
                f"{number(t['error_correlation']['mean_phi'])} ({t['error_correlation']['pairs']})",
                "none" if cpg is None else f"{number(cpg['fraction_positive'])}, {number(cpg['median_signed'])} (n {cpg['kept']})",
            )
        )  # fmt: skip
    means = tuple(dict.fromkeys(f"late: {item['deliberation']['late_means']}" for item in report["talk"]))
    return Section("Deliberation", means, tuple(rows))


def calibration(report: Json) -> Section:
    """Confidence against being right, and what each threshold of escalation gives."""
    rows = [("model", "method", "n", "ECE", "Brier", "confidence: right (n)")]
    for item in report["talk"]:
        if found := item["calibration"]:
            bins = "; ".join(f"{b['confidence']:.2f}: {b['right']:.2f} ({b['n']})" for b in found["bins"])
            rows.append(
                (item["model"], item["arm"], str(found["n"]), number(found["ece"]), number(found["brier"]), bins)
            )
    lines = [_escalation(model, found) for model, found in report["escalation"].items()]
    lines = lines or ["no escalation curve: it needs the methods auto and scot beside a baseline"]
    return Section("Calibration and escalation", tuple(lines), tuple(rows) if len(rows) > 1 else ())


def _escalation(model: str, found: Json) -> str:
    best = found["best"]
    gives = f"F1 {best['f1']:.3f} at {best['tokens_per_case']:,.0f} tokens a case, {best['escalated']:.0%} escalated"
    return f"escalation on {model}: of {found['n']} cases, threshold {best['threshold']:.2f} gives {gives} ({found['note']})"


def rubrics(report: Json) -> Section:
    """The judge's closeness and safety, as shares of all rows."""
    head = ("model", "method", "n", "exact", "near miss", "closely related", "broadly related", "unrelated", "unscored",
            "mean (Bond)", "first: safe", "unsafe", "unscored", "list: safe", "unsafe", "unscored")  # fmt: skip
    rows = [head]
    for item in report["rubrics"]:
        near, first, listed = item.get("taxonomy", {}), item.get("safety_first", {}), item.get("safety_list", {})
        names = ("accuracy", "near_miss", "closely_related", "broadly_related", "unrelated", "unscored", "mean_score")
        closeness = [number(near.get(name)) for name in names]
        safety = [number(part.get(name)) for part in (first, listed) for name in ("rate", "unsafe", "unscored")]
        rows.append((item["model"], item["arm"], str(item["n"]), *closeness, *safety))
    why = "safe: every dimension rated 3 or more; a missing rating is never safe; shares are of all rows"
    return Section("The judge's rubrics", (why,) if len(rows) > 1 else (), tuple(rows) if len(rows) > 1 else ())


def floors(report: Json) -> Section:
    """Look-ups without a model."""
    rows = [
        ("look-up", "macro F1"),
        *((name.replace("_", " "), f"{value:.3f}") for name, value in report["floors"].items()),
    ]
    return Section("Floors (no model at all; a method below one knows less than a look-up)", (), tuple(rows))


def viable(report: Json) -> Section:
    """Whether the method pays, by model."""
    found = [
        viability.Viability(**{**item, "gain": Interval(**item["gain"]), "by_seed": tuple(item["by_seed"])})
        for item in report["viability"]
    ]
    return Section("Viability: does the method pay on this model?", tuple(viability.lines(found)))


def stamp(report: Json) -> Section:
    """Digests, and how to verify them."""
    digests = [f"inputs  {report['stamp']['inputs']}", f"results {report['stamp']['results']}"]
    again = f"again: ddx-local bench verify {report['bench_id']}"
    return Section("Stamp", (*digests, again, report["disclaimer"]))
