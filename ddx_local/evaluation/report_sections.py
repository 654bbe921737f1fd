"""A report as titled tables and lines, which every rendering shares: text, Markdown, LaTeX, HTML."""

from collections.abc import Mapping
from typing import Any

from ddx_local.evaluation.report_section import Section, number, span
from ddx_local.evaluation.report_sections_talk import calibration, floors, rubrics, stamp, talk, viable
from ddx_local.evaluation.report_table import Json


def sections(report: Json) -> list[Section]:
    """The report from top to bottom."""
    return [
        _about(report),
        _main(report),
        _seeds(report),
        _failures(report),
        _comparisons(report),
        _lift(report),
        _rescue(report),
        _groups(report),
        talk(report),
        rubrics(report),
        calibration(report),
        floors(report),
        viable(report),
        stamp(report),
    ]


def _about(report: Json) -> Section:
    data, suite, policies = report["data"], report["suite"], report["policies"]
    chosen = f"{data['n']} cases, {data['golds']} golds" + ("" if data["ranked"] else ", gold without order")
    models = dict.fromkeys(arm["model"] for arm in report["arms"])
    rows = [
        f"suite {suite['name']}: {suite['description']}".rstrip(": "),
        f"benchmark {report['bench_id']}, {report['created_at']}, {report['status']}, ddx-local {report['package_version']}",
        f"data {data['name']} ({chosen}), sha256 {data['sha256'][:16]}, licence: {data['licence']}",
        f"models {', '.join(models)}; seeds {', '.join(map(str, suite['seeds']))} (a placebo's are others)",
        f"matcher: {report['matcher']['error_line']}",
        f"hierarchy {policies['hierarchy']}; k {', '.join(f'{arm}: {k}' for arm, k in policies['k'].items())}",
        f"denominator: {policies['denominator']}; {policies['seeds']}",
        f"intervals {policies['intervals']}; standard deviations with ddof {policies['ddof']}",
    ]
    if any(arm["model"] == "scripted" for arm in report["arms"]):
        rows.insert(
            1, "SCRIPTED ENGINE: random words in the right form, no model; the figures say nothing about a method"
        )
    if reliability := report["matcher"].get("reliability"):
        rows.append(
            f"judge: {reliability['pairs']} verdicts, {reliability['unread']} unread, agrees with itself in "
            f"{number(reliability['self_agreement'])} of {reliability['repeated']} repeats (GPT-4: 0.967)"
        )
    return Section("What was run", (*rows, *(f"note: {note}" for note in data["notes"])))


def _main(report: Json) -> Section:
    head = ("model", "method", "n (cases x seeds)", "failed", "macro P", "macro R", "macro F1", "micro F1", "top-1", "top-5", "MRR",
            "tokens/case", "calls", "s/case", "cost")  # fmt: skip
    rows = [head]
    for arm in report["arms"]:
        usage, macro = arm["usage"], arm["macro"]
        rows.append(
            (
                arm["model"], _named(arm), f"{arm['n_selected']} ({arm['n_cases']} x {len(arm['seeds'])})",
                f"{arm['n_failed']}" + (f" + {arm['n_missing']} missing" if arm["n_missing"] else ""),
                span(macro["precision"]), span(macro["recall"]), span(macro["f1"]), f"{arm['micro']['f1']:.3f}",
                span(arm["top"]["1"]), span(arm["top"]["5"]), f"{arm['mrr']:.3f}", f"{usage['tokens_per_case']:,.0f}",
                f"{usage['calls_per_case']:.1f}", f"{usage['seconds_per_case']:.1f}",
                "no price" if usage["cost"] is None else f"{usage['cost']:.4f}",
            )
        )  # fmt: skip
    notes = [
        f"{_named(arm)} on {arm['model']}: {arm['unread_verdicts']} unread verdicts, F1 between {arm['f1_bounds'][0]:.3f} (all no) "
        f"and {arm['f1_bounds'][1]:.3f} (all yes)"
        for arm in report["arms"]
        if arm["f1_bounds"]
    ]
    return Section("Results", tuple(notes), tuple(rows))


def _named(arm: Mapping[str, Any]) -> str:
    role = "" if arm["role"] == "method" else f" ({arm['role']})"
    return f"{arm['arm']}{role}" + ("" if arm["k"] == "free" else f" k={arm['k']}")


def _seeds(report: Json) -> Section:
    head = (
        "model",
        "method",
        "F1 by seed",
        "sd (ddof 1)",
        "primary top-1",
        "hit probability (10+ cases)",
        "median rank (miss 11)",
        "empty",
    )
    rows = [head]
    for arm in report["arms"]:
        by_seed = ", ".join(f"{seed}: {value:.3f}" for seed, value in zip(arm["seeds"], arm["f1_by_seed"], strict=True))
        primary = span(arm["primary"]) if arm["primary"] else "no order"
        hits = arm["hit_probability"]
        often = f"{number(hits['macro'])} ({hits['eligible']} diseases)" if hits else "no order"
        ranks = f"{arm['median_rank']['value']:g}"
        rows.append(
            (arm["model"], _named(arm), by_seed, number(arm["f1_sd"]), primary, often, ranks, str(arm["n_empty"]))
        )
    own = [
        f"{_named(arm)} on {arm['model']}, DDXPlus' own metrics: {', '.join(f'{k} {v:.3f}' for k, v in arm['ddxplus'].items())}"
        for arm in report["arms"]
        if arm["ddxplus"]
    ]
    return Section("By seed", tuple(own), tuple(rows))


def _failures(report: Json) -> Section:
    rows = [
        (
            "model",
            "method",
            "failed",
            "kinds",
            "out of form",
            "in form, nothing right",
            "F1",
            "F1 if failures were dropped",
        )
    ]
    for arm in report["arms"]:
        kinds = ", ".join(f"{kind} {count}" for kind, count in arm["failures"].items()) or "none"
        rows.append(
            (arm["model"], _named(arm), f"{arm['n_failed']} of {arm['n_selected']}", kinds, f"{arm['format_failures']:.1%}",
             f"{arm['nothing_right']:.1%}", f"{arm['macro']['f1']['value']:.3f}", number(arm["f1_if_failures_were_dropped"]))
        )  # fmt: skip
    said = [
        f"{_named(arm)} on {arm['model']} failed: {', '.join(arm['failed_cases'][:20])}"
        for arm in report["arms"]
        if arm["failed_cases"]
    ]
    return Section("What failed (failures count as wrong)", tuple(said), tuple(rows))


def _comparisons(report: Json) -> Section:
    head = ("model", "comparison", "n", "dF1", "dP", "dR", "p", "Holm", "MDE", "cases needed", "top-1 McNemar by seed",
            "dF1 by seed", "baseline's tokens", "tokens per extra hit", "verdict")  # fmt: skip
    rows = [head]
    for item in report["comparisons"]:
        tests = "; ".join(
            f"{t['b']}:{t['c']} p {t['two_sided']:.3g} (1-sided {t['greater']:.3g})" for t in item["mcnemar_top1"]
        )
        seen = "undefined" if item["mde"] is None else f"{item['mde']:.3f}"
        share, extra = item["tokens"]["baseline_share"], item["tokens_per_extra_hit"]
        rows.append(
            (
                item["model"], f"{item['method']} - {item['baseline']}", str(item["n_common"]), span(item["delta_f1"], sign="+"),
                span(item["delta_precision"], sign="+"), span(item["delta_recall"], sign="+"), f"{item['p']:.3g}",
                f"{item['p_holm']:.3g}" if "p_holm" in item else "placebo", seen, number(item["cases_needed"]),
                tests, ", ".join(f"{value:+.3f}" for value in item["delta_f1_by_seed"]),
                "undefined" if share is None else f"{share:.0%}", "undefined" if extra is None else f"{extra:,.0f}", item["verdict"],
            )
        )  # fmt: skip
    lines = () if report["comparisons"] else ("no baseline: nothing to compare with",)
    tested = [item["p_test"] for item in report["comparisons"][:1]]
    return Section(
        "Against the baseline (paired, the same cases)", (*lines, *tested), tuple(rows) if report["comparisons"] else ()
    )


def _lift(report: Json) -> Section:
    rows = [("model", "method", "quartile", "n", "baseline F1", "method F1", "raw lift", "placebo lift", "net lift")]
    for item in report["comparisons"]:
        for row in item["lift"]:
            label = {1: "1 (hardest)", 4: "4 (easiest)"}.get(row["quartile"], str(row["quartile"]))
            placebo = "no placebo" if row["placebo"] is None else f"{row['placebo']:+.3f}"
            rows.append((item["model"], item["method"], label, str(row["n"]), f"{row['base']:.3f}", f"{row['method']:.3f}",
                         span(row["raw"], sign="+"), placebo, span(row["net"], sign="+") if row["net"] else "no placebo"))  # fmt: skip
    why = "Quartiles are picked by the baseline's own noisy score: the placebo (the baseline again) shows what that gives for nothing."
    return Section("Lift by difficulty, net of the placebo", (why,), tuple(rows) if len(rows) > 1 else ())


def _rescue(report: Json) -> Section:
    rows = [("model", "method", "baseline zeros", "rescued", "rate", "recall of those", "placebo rate", "net")]
    for item in report["comparisons"]:
        r = item["rescue"]
        placebo = span(r["placebo"]) if r["placebo"] else "no placebo"
        net = span(r["net"], sign="+") if r["net"] else "no placebo"
        rate, recall = span(r["rate"]), number(r["recovered"])
        rows.append((item["model"], item["method"], str(r["n_zero"]), str(r["rescued"]), rate, recall, placebo, net))
    return Section("Rescue of the baseline's zeros", (), tuple(rows) if len(rows) > 1 else ())


def _groups(report: Json) -> Section:
    rows = [("model", "method", "group", "value", "n cases", "F1", "top-1")]
    for arm in report["arms"]:
        for group, values in arm["groups"].items():
            for value, part in values.items():
                shown = str(part["n_cases"]), span(part["f1"]), f"{part['top1']:.3f}"
                rows.append((arm["model"], _named(arm), group, value or "(none)", *shown))
    return Section("Apart by group", (), tuple(rows) if len(rows) > 1 else ())
