"""Metrics and statistics against worked values (specs/evaluation.md), all of shared/data/metrics_vectors.json."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddx_local.clinical.labels import same
from ddx_local.evaluation import metrics, metrics_difficulty, metrics_discussion, metrics_safety, statistics
from ddx_local.evaluation.match import assign, distinct, greedy, paired

NEAR = 1e-6


def near(value: Any, expected: Any, tolerance: float = NEAR) -> None:
    assert value == pytest.approx(expected, abs=tolerance)


@pytest.fixture(scope="module")
def vectors(shared_data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared_data / "metrics_vectors.json").read_text("utf-8"))
    return found


def sets_of(case: dict[str, Any]) -> metrics.Sets:
    predictions = distinct(case["pred"], same)
    return metrics.Sets(len(paired(predictions, case["gold"], same)), len(predictions), len(case["gold"]))


def test_metrics_vectors(vectors: dict[str, Any]) -> None:
    """Every worked value of the file, to 1e-6 (values that the file prints with fewer digits: to those)."""
    _sets(vectors)
    _ranks_and_judges(vectors)
    _difficulty(vectors)
    _discussion(vectors)
    _agreement(vectors)
    _tests(vectors)
    _intervals(vectors)
    _counts(vectors)


def _sets(v: dict[str, Any]) -> None:
    cases = [sets_of(case) for case in v["set_prf"]["cases"]]
    for found, case in zip(cases, v["set_prf"]["cases"], strict=True):
        assert (found.tp, found.n_pred) == (case["tp"], case["n_pred"])
        near([found.precision, found.recall, found.f1], [case["precision"], case["recall"], case["f1"]])
    for name, pooled in (("macro", metrics.macro(cases)), ("micro", metrics.micro(cases))):
        expected = v["set_prf"][name]
        near([pooled.precision, pooled.recall, pooled.f1], [expected["precision"], expected["recall"], expected["f1"]])
    whole = metrics.macro(cases)
    near(metrics.harmonic(whole.precision, whole.recall), v["set_prf"]["f1_of_macro_means"])

    m = v["matching"]
    assert [list(item) for item in greedy(m["sim"], m["threshold"])] == m["greedy"]
    assert [list(item) for item in assign(m["sim"], m["threshold"])] == m["optimal"]
    for pairs, expected in ((m["greedy"], m["greedy_prf"]), (m["optimal"], m["optimal_prf"])):
        found = metrics.Sets(len(pairs), 2, 2)
        near([found.precision, found.recall, found.f1], expected)
    table = np.asarray(m["sim"]) >= m["threshold"]
    assert (int(table.any(axis=1).sum()), int(table.any(axis=0).sum())) == tuple(m["many_to_one"].values())
    assert assign([[0.7]], 0.7) == [(0, 0, 0.7)]
    gate = v["matching_gate"]
    assert [[i, j] for i, j, _ in assign(gate["sim"], 0.7)] == gate["gated_pairs"]
    assert [[i, j] for i, j, s in assign(gate["sim"], None) if s >= 0.7] == gate["ungated_pairs"]
    s = v["soft_hungarian"]
    total = sum(value for _, _, value in assign(s["sim"], None))
    near(total, s["sum"])
    soft = metrics.soft(total, s["n_pred"], s["n_gold"])
    near([soft.precision, soft.recall, soft.f1], [s["precision"], s["recall"], s["f1"]])


def _ranks_and_judges(v: dict[str, Any]) -> None:
    t = v["topk"]
    for k in (1, 3, 5, 10):
        near(metrics.top_k(t["ranks"], k), t[f"top{k}"])
    near(metrics.mrr(t["ranks"]), t["mrr"])
    near(metrics.median_rank(t["ranks"], 10), t["median_rank_miss11"])
    for mode, dimensions in (("top1", 4), ("top3", 5)):
        examples = [item for item in v["safety"]["examples"] if item["mode"] == mode]
        assert [metrics_safety.is_unsafe(item["s"]) for item in examples] == [item["unsafe"] for item in examples]
        rate = metrics_safety.safety_rate([item["s"] for item in examples], dimensions)
        near(rate["rate"], v["safety"][f"safety_rate_{mode}"])
    e = v["error_taxonomy"]
    found = metrics_safety.taxonomy(e["bond"])
    for name in ("accuracy", "near_miss", "closely_related", "broadly_related", "unrelated", "mean_score"):
        near(found[name], e[name])


def _difficulty(v: dict[str, Any]) -> None:
    q = v["quartiles"]
    ids = [f"{index:02d}" for index in range(len(q["base"]))]
    base, method = dict(zip(ids, q["base"], strict=True)), dict(zip(ids, q["method"], strict=True))
    assert list(metrics_difficulty.quartiles(base).values()) == q["assign"]
    for row in metrics_difficulty.lift(base, method):
        expected = q["by_quartile"][str(row.quartile)]
        assert row.n == expected["n"]
        near([row.base, row.method, row.raw.value], [expected[name] for name in ("base", "method", "delta")], 2e-6)
        assert (row.relative is None) == (expected["relative"] is None)
        if row.relative is not None:
            near(row.relative, expected["relative"], 5e-6)
    big = list(metrics_difficulty.quartiles({f"{index:03d}": index / 570 for index in range(570)}).values())
    assert [big.count(number) for number in (1, 2, 3, 4)] == q["n570_sizes"]
    demo, r = metrics_difficulty.placebo_demo(v["regression_to_mean"]["seed"]), v["regression_to_mean"]
    for name, value in demo.items():
        near(value, r[name], 1e-4)
    k = v["rescue"]
    rate = statistics.wilson(k["rescued"], k["n_zero"])
    near([rate.value, rate.low, rate.high], [k["rate"], *k["wilson95"]])


def _discussion(v: dict[str, Any]) -> None:
    late = v["late_share"]
    near(metrics_discussion.late_share(late["tp_first_round"], late["late_ge"]), late["share"])
    assert metrics_discussion.late_share([]) is None
    for item in v["consensus"]["examples"]:
        assert metrics_discussion.has_consensus(item["votes"]) is item["consensus"]
    for n, need in v["consensus"]["need"].items():
        assert metrics_discussion.votes_needed(int(n)) == need
        for same_votes in range(1, int(n) + 1):
            votes = ["gout"] * same_votes + [f"disease number {index}" for index in range(int(n) - same_votes)]
            assert metrics_discussion.has_consensus(votes) == (same_votes >= need)
    t = v["transitions"]
    moves = [move for move, count in t["counts"].items() for _ in range(count)]
    found = metrics_discussion.transitions(moves)
    for name in ("share_WC", "share_CW", "P_C_given_W", "P_W_given_C", "net"):
        near(found[name], t[name])
    near((found["WC"] + found["CW"]) / found["n"], t["change_rate_lower_bound"])  # type: ignore[operator]
    c = v["cpg"]
    gaps = metrics_discussion.gaps([tuple(pair) for pair in c["pairs"]])
    near(gaps["cpg"], c["cpg_abs"])
    near(gaps["signed"], c["delta_p_same_label"])
    near([gaps["fraction_positive"], gaps["median"]], [c["fraction_positive"], c["median_delta"]])


def _agreement(v: dict[str, Any]) -> None:
    f = v["fleiss"]
    found = statistics.fleiss_ratings(f["ratings"])
    near([found.kappa, found.agree], [f["kappa"], f["percent_all_agree"]])
    near(statistics.fleiss(f["table"]).kappa, f["kappa"])
    near(statistics.fleiss(f["textbook_10x5_14raters"]["table"]).kappa, f["textbook_10x5_14raters"]["kappa"])
    assert statistics.fleiss_ratings([[1, 1], [1, 1]]) == statistics.Agreement(None, 1.0, 2)
    c = v["cohen"]
    found = statistics.cohen(c["a"], c["b"])
    near([found.kappa, found.agree], [c["kappa"], c["agree"]])
    w = v["cohen_weighted"]
    near(statistics.cohen(w["a"], w["b"]).kappa, w["unweighted"])
    for weights in ("linear", "quadratic"):
        near(statistics.cohen(w["a"], w["b"], weights, range(1, 6)).kappa, w[weights])
    few = w["labels_matter"]
    near(statistics.cohen(few["a"], few["b"], "linear", range(1, 6)).kappa, few["with_labels_1to5"])
    near(statistics.cohen([1, 1, 1], [1, 2, 1]).kappa, w["one_constant_rater"])
    assert statistics.cohen([1, 1], [1, 1]).kappa is None


def _tests(v: dict[str, Any]) -> None:
    for row in v["mcnemar"]:
        found = statistics.mcnemar(row["b"], row["c"])
        near(
            [found.two_sided, found.greater, found.mid_p],
            [row["two_sided_exact"], row["one_sided_greater_exact"], row["midp_two"]],
        )
        assert (found.chi_squared is None) == (row["chi2_cc"] is None)
        if row["chi2_cc"] is not None:
            near(found.chi_squared, row["chi2_cc"])
    near(statistics.holm(v["holm"]["p"]), v["holm"]["adjusted"])
    assert [p <= 0.05 for p in statistics.holm(v["holm"]["p"])] == v["holm"]["reject"]
    near(statistics.holm(v["holm_ties"]["p"]), v["holm_ties"]["adjusted"])
    for name, expected in v["power_note"].items():
        discordant, difference = (float(part.split("=")[1]) for part in name.split(","))
        assert statistics.discordant_cases_needed(discordant, difference) == expected


def _intervals(v: dict[str, Any]) -> None:
    for row in v["wilson"]:
        found = statistics.wilson(row["k"], row["n"])
        near([found.low, found.high], [row["lo"], row["hi"]])
    b = v["bootstrap"]
    found = statistics.bootstrap_mean(b["data"])
    near([found.value, found.low, found.high, found.se], [b["mean"], *b["percentile95"], b["se"]], 5.1e-5)
    bca = statistics.bca_mean(b["data"])
    near([bca.low, bca.high], b["bca_scipy"], 5.1e-5)
    p = v["paired_bootstrap"]
    found = statistics.paired_bootstrap(p["a"], p["b"])
    near([found.value, found.low, found.high], [p["mean_diff"], *p["percentile95"]])
    s = v["std_over_seeds"]
    near([statistics.spread(s["runs"], ddof) for ddof in (0, 1)], [s["ddof0"], s["ddof1"]])


def _counts(v: dict[str, Any]) -> None:
    h = v["hit_probability"]
    found = metrics.hit_probability({name: tuple(pair) for name, pair in h["counts"].items()}, h["min_total"])
    for name, key in (("macro", "macro"), ("pooled", "pooled_all"), ("pooled_eligible", "pooled_eligible")):
        near(found[name], h[key])
    assert found["eligible"] == len(h["eligible"])
    c = v["cost"]
    prompt, generated = sum(c["prompt_tokens"]), sum(c["completion_tokens"])
    assert (prompt + generated, (prompt + generated) / c["calls"]) == (c["total"], c["tokens_per_case"])
    near(metrics.cost(prompt, generated, c["price_in_per_M"], c["price_out_per_M"]), c["usd"])
    near(metrics.tokens_per_extra_hit(60_000, 2_000, 2.9, 2.3), c["extra_tokens_per_extra_tp"], 0.05)
    assert metrics.tokens_per_extra_hit(60_000, 2_000, 2.3, 2.3) is None


def test_the_textbook_table_of_fleiss_1971_gives_its_kappa() -> None:
    # statsmodels' own data set of Fleiss (1971): 30 patients, 6 raters, 5 diagnoses.
    table = np.array(
        "0 0 0 6 0|0 3 0 0 3|0 1 4 0 1|0 0 0 0 6|0 3 0 3 0|2 0 4 0 0|0 0 4 0 2|2 0 3 1 0|2 0 0 4 0|0 0 0 0 6|"
        "1 0 0 5 0|1 1 0 4 0|0 3 3 0 0|1 0 0 5 0|0 2 0 3 1|0 0 5 0 1|3 0 0 1 2|5 1 0 0 0|0 2 0 4 0|1 0 2 0 3|"
        "0 0 0 0 6|0 1 0 5 0|0 2 0 1 3|2 0 0 4 0|1 0 0 4 1|0 5 0 1 0|4 0 0 0 2|0 2 0 4 0|1 0 5 0 0|0 0 0 0 6".replace(
            "|", ";"
        )
        .replace(";", " ")
        .split(),
        dtype=int,
    ).reshape(30, 5)
    near(statistics.fleiss(table.tolist()).kappa, 0.430245)


def test_power_of_the_assumed_sd_is_as_published() -> None:
    assert statistics.cases_needed(0.30, -0.037) == 516
    assert statistics.cases_needed(0.30, 0.118) == 51
    assert statistics.cases_needed(0.30, 0.0) is None
    near(statistics.detectable(0.30, 100), 0.084, 1e-4)
    assert statistics.detectable(0.0, 100) is None
    assert statistics.power(0.30, 516, 0.037) == pytest.approx(0.8, abs=1e-3)


def test_the_net_lift_of_a_placebo_covers_zero_as_often_as_its_interval_says() -> None:
    """200 simulated benchmarks of one system run three times: the net interval of the hardest quartile."""
    covered = 0
    for seed in range(200):
        generator = np.random.default_rng(1000 + seed)
        theta = generator.beta(2, 3, 570)
        runs = [generator.binomial(5, theta) / 5 for _ in range(3)]
        names = [f"{index:03d}" for index in range(570)]
        base, method, placebo = (dict(zip(names, run.tolist(), strict=True)) for run in runs)
        ids = [name for name, number in metrics_difficulty.quartiles(base).items() if number == 1]
        net = statistics.paired_bootstrap([placebo[i] for i in ids], [method[i] for i in ids])
        covered += net.low <= 0 <= net.high
    assert 0.93 <= covered / 200 <= 0.97


def test_an_exact_permutation_test_agrees_with_the_binomial_of_equal_differences() -> None:
    near(statistics.permutation_p([1.0] * 6), 2 / 64)
    assert statistics.permutation_p([0.0, 0.0]) == 1.0
    assert statistics.permutation_p([0.1] * 30) < 0.001
    near(statistics.sign_test([1, 1, 1, 1, 1, 1, 0]), 0.03125)


@pytest.mark.parametrize(
    ("kappa", "band"),
    [(-0.1, "poor"), (0.2, "slight"), (0.21, "fair"), (0.785, "substantial"), (0.9, "almost perfect")],
)
def test_landis_and_koch_name_the_band(kappa: float, band: str) -> None:
    assert statistics.landis_koch(kappa) == band
    assert statistics.landis_koch(None) == "undefined"


def test_a_bond_score_of_one_is_refused_and_an_unscored_case_is_never_safe() -> None:
    with pytest.raises(ValueError, match="not on the Bond scale"):
        metrics_safety.taxonomy([5, 1])
    found = metrics_safety.safety_rate([[5, 5, 5, 5], None, [5, 5, 5]], 4)
    assert (found["safe"], found["unscored"], found["rate"]) == (1, 2, 1 / 3)


def test_ddxplus_counts_only_what_is_likely_and_takes_the_first_k_of_both_sides() -> None:
    predicted = {"a": 0.6, "b": 0.3, "c": 0.009}
    gold = {"a": 0.5, "c": 0.4, "d": 0.005}
    found = metrics.ddxplus(predicted, gold, "a", frozenset({"c"}))
    assert found["GTPA"] is True
    near([found["DDR"], found["DDP"], found["DDF1"], found["DSR"]], [0.5, 0.5, 0.5, 0.0])
    near(metrics.ddxplus(predicted, gold, "a", k=1)["DDF1"], 1.0)
    assert metrics.ddxplus({"a": 0.01}, gold, "a")["GTPA"] is False
