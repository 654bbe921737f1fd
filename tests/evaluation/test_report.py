"""Reports: the acceptance figures on made-up scores, and that every rendering says what a reader must know."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ddx_local.case import Case
from ddx_local.evaluation import report, report_compare, stamp, viability
from ddx_local.evaluation.compare import between
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.deliberation import discussion
from ddx_local.evaluation.export import FORMATS
from ddx_local.evaluation.metrics import PRF
from ddx_local.evaluation.record import Bench, BenchRow, PlannedRun
from ddx_local.evaluation.report_compare import compare
from ddx_local.evaluation.report_html import html
from ddx_local.evaluation.report_svg import pictures
from ddx_local.evaluation.report_table import Json, arm_json
from ddx_local.evaluation.report_talk import calibration, escalation, talk
from ddx_local.evaluation.report_text import latex, markdown, text
from ddx_local.evaluation.score import CaseScore, Usage, from_json, to_json
from ddx_local.evaluation.suite import parse
from ddx_local.events import Answered, Asked, Event, sha256

SUITE = {
    "name": "made",
    "models": ["m"],
    "data": {"source": "vignettes"},
    "method": [
        {"name": "zero-shot", "role": "baseline"},
        {"name": "zero-shot", "label": "again", "role": "placebo"},
        {"name": "scot"},
        {"name": "auto"},
    ],
}


def row(
    case_id: str, right: bool, *, arm: str = "zero-shot", status: str = "finished", tokens: int = 100, seed: int = 0
) -> CaseScore:
    tp = int(right and status == "finished")
    predictions = ("gout",) if status == "finished" else ()
    return CaseScore(
        arm=arm, model="m", seed=seed, case_id=case_id, status=status, error="" if status == "finished" else "LengthStop",
        predictions=predictions, golds=("gout" if right else "malaria",), tp=tp, prf=PRF(tp, tp, tp),
        first=1 if tp else None, primary=1 if tp else None, pairs=((0, 0, 1.0),) if tp else (), unread=0, upper=tp,
        usage=Usage(1, 1, tokens, 0, 1.0),
    )  # fmt: skip


def ids(count: int) -> list[str]:
    return [f"c{number:03d}" for number in range(count)]


def bench(cases: list[str]) -> Bench:
    labelled = tuple(LabelledCase(Case(i, f"Text of {i}: <b>&amp;</b> fever."), ("gout",)) for i in cases)
    data = {
        "name": "made", "path": "", "sha256": "0" * 64, "rows": stamp.rows_digest(labelled), "licence": "none",
        "ranked": True, "n": len(cases),
    }  # fmt: skip
    body = {
        "suite": SUITE,
        "data": data,
        "notes": ["a note"],
        "prompts": {},
        "code": {},
        "fingerprints": {"m": {"weights": "1"}},
    }
    runs = tuple(PlannedRun(f"r-{arm}", arm, "m", 0, {}, tuple(cases)) for arm in ("zero-shot", "again", "scot"))
    return Bench(BenchRow("bench-1", "2026-01-01T00:00:00.000+00:00", "made", "finished"), body, runs, labelled)


def test_ten_errors_and_eighty_right_of_a_hundred_are_point_eight_and_never_point_889() -> None:
    rows = [row(i, number < 80, status="finished" if number < 90 else "failed") for number, i in enumerate(ids(100))]
    found = arm_json("m", "zero-shot", rows, parse(SUITE, Path("made.toml")), ranked=True)
    assert (found["n_selected"], found["n_scored"], found["n_failed"]) == (100, 90, 10)
    assert found["top"]["1"]["value"] == 0.8
    assert found["macro"]["f1"]["value"] == pytest.approx(0.8)
    assert found["f1_if_failures_were_dropped"] == pytest.approx(80 / 90)
    assert found["format_failures"] == 0.1


def test_two_runs_with_different_failures_are_compared_on_all_cases() -> None:
    one = [row(i, True, status="failed" if number < 5 else "finished") for number, i in enumerate(ids(100))]
    two = [
        row(i, True, arm="scot", status="failed" if number > 89 else "finished") for number, i in enumerate(ids(100))
    ]
    found = compare(one, two, None)
    assert found["n_common"] == 100
    assert found["failed"] == {"baseline": 5, "method": 10}
    assert found["delta_f1"]["value"] == pytest.approx(-0.05)
    (test,) = found["mcnemar_top1"]
    assert (test["b"], test["c"], test["n"]) == (5, 10, 100)


def test_two_benchmarks_pair_by_case_and_refuse_another_text_under_the_same_id() -> None:
    one = [row(i, number % 2 == 0) for number, i in enumerate(ids(20))]
    two = [row(i, True) for i in ids(20)]
    (found,) = between((bench(ids(20)), one), (bench(ids(20)), two))
    assert found["n_common"] == 20
    assert found["delta_f1"]["value"] == pytest.approx(0.5)
    assert found["p_holm"] == found["p"] < 0.01
    other = bench(ids(20))
    changed = LabelledCase(Case("c000", "Another text."), ("gout",))
    other = Bench(other.row, other.body, other.runs, (changed, *other.cases[1:]))
    with pytest.raises(Exception, match="another text or gold"):
        between((bench(ids(20)), one), (other, two))


def test_lift_and_rescue_of_a_noisy_placebo_come_to_nothing_net() -> None:
    generator = np.random.default_rng(3)
    theta = generator.beta(2, 3, 400)
    arms = {}
    for arm in ("zero-shot", "again", "scot"):
        hits = generator.random(400) < theta
        arms[arm] = [row(i, bool(hit), arm=arm) for i, hit in zip(ids(400), hits, strict=True)]
    found = compare(arms["zero-shot"], arms["scot"], arms["again"])
    hardest = found["lift"][0]
    assert hardest["raw"]["low"] > 0.1, "the raw lift of nothing looks like one"
    assert hardest["net"]["low"] <= 0 <= hardest["net"]["high"]
    assert found["rescue"]["rate"]["value"] > 0.15
    assert found["rescue"]["net"]["low"] <= 0 <= found["rescue"]["net"]["high"]


@pytest.mark.parametrize(
    ("mean", "n", "verdict"), [(-0.037, 570, "below"), (0.118, 570, "above"), (-0.037, 100, "undecided")]
)
def test_viability_of_the_published_differences(mean: float, n: int, verdict: str) -> None:
    drawn = np.random.default_rng(1).normal(size=n)
    differences = mean + 0.30 * (drawn - drawn.mean()) / drawn.std(ddof=1)
    found = viability.assess("m", differences.tolist(), [mean] * 5)
    assert found.verdict == verdict
    assert found.gain.value == pytest.approx(mean)
    if verdict == "undecided":
        assert found.mde == pytest.approx(0.084, abs=5e-4)
        assert found.power < 0.8
    else:
        assert found.power >= 0.8
        assert found.mde is not None
        assert found.mde < abs(mean)


def test_differences_that_do_not_vary_do_not_promise_that_any_difference_would_be_seen() -> None:
    found = viability.assess("m", [0.0] * 12, [0.0, 0.0])
    assert (found.verdict, found.mde) == ("undecided", None)
    assert "show undefined" in viability.lines([found])[1]
    item = {"delta_f1": {"low": 0.0, "high": 0.0}, "n_common": 12, "mde": None}
    assert report_compare.verdict(item) == (
        "undecided: all 12 cases differ by the same, which says nothing of what they can show"
    )


def said(step: str, number: int, role: str, answer: object) -> tuple[list[Event], str]:
    body = json.dumps(answer)
    asked = Asked(round=number, key=(role,), step=step, role=role, slots={}, seed=0, temperature=0.3, digest="d")
    return [asked, Answered(round=number, key=(role,), digest="d", text=sha256(body), finish_reason="stop")], body


def talked(*answers: tuple[list[Event], str]) -> tuple[list[Event], Callable[[str], str]]:
    texts = {sha256(body): body for _, body in answers}
    return [event for events, _ in answers for event in events], texts.__getitem__


def test_the_deliberation_record_says_who_named_what_when_and_who_changed() -> None:
    lists = [{"differential": [{"diagnosis": name}]} for name in ("gout", "malaria", "malaria")]
    events, text_of = talked(
        *(said("scot/differential", 3, f"seat {n}", item) for n, item in enumerate(lists)),
        said("scot/positions", 5, "seat 0", {"positions": [], "missing": [{"diagnosis": "scurvy"}]}),
        *(said("scot/vote", 9, f"seat {n}", {"ballot": ["gout", "scurvy"], "scores": []}) for n in range(3)),
        said("scot/cant_miss", 10, "seat 0", {"conditions": [{"diagnosis": "sepsis"}], "critical": []}),
    )
    found = discussion(events, text_of, ["Gout", "scurvy", "sepsis"], ["gout"])
    assert found.first_named == {"Gout": (3, "scot/differential"), "scurvy": (5, "scot/positions")}
    assert found.late == {"Gout": False, "scurvy": True}
    assert found.firsts == {"seat 0": True, "seat 1": False, "seat 2": False}
    assert found.moves == {"seat 0": "CC", "seat 1": "WC", "seat 2": "WC"}
    assert found.changed == {"seat 0": False, "seat 1": True, "seat 2": True}
    assert (found.consensus, found.consensus_batch) == (True, 3)


def test_late_shares_transitions_and_gaps_add_up_over_cases() -> None:
    lists = [{"differential": [{"diagnosis": name}]} for name in ("gout", "malaria")]
    events, text_of = talked(
        said("mac/doctor", 0, "a", lists[0]),
        said("mac/doctor", 0, "b", lists[1]),
        said("mac/doctor", 1, "a", {"diagnosis": "dengue"}),
    )
    spoken = discussion(events, text_of, ["gout", "dengue"], ["gout", "dengue"])
    as_json = json.loads(json.dumps(vars_of(spoken)))
    rows = []
    for number in range(4):
        item = to_json(row(f"c{number}", True))
        item |= {
            "predictions": ["gout", "dengue"], "pairs": [[0, 0, 1.0], [1, 1, 1.0]], "discussion": as_json,
            "gaps": [[0.9, 0.5, 0.4, 0.4, True], [0.4, 0.5, -0.1, 0.1, True], [0.9, 0.1, 0.8, 0.8, False]],
        }  # fmt: skip
        rows.append(from_json(item))
    found = talk(rows)
    assert (found["true_positives"], found["late"], found["late_share"]) == (8, 4, 0.5)
    assert found["entered"] == {"1 mac/doctor": 4, "2 mac/doctor": 4}
    assert found["transitions"]["CC"] == 4
    assert found["counterfactuals"]["fraction_positive"] == 0.5
    assert found["counterfactuals"]["median_signed"] == pytest.approx(0.15)
    assert found["counterfactuals"]["differ_from_recorded"] == 0


def vars_of(spoken: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(spoken)  # type: ignore[call-overload,no-any-return]


def test_errors_of_independent_agents_do_not_correlate_and_those_of_a_copied_agent_do() -> None:
    generator = np.random.default_rng(5)

    def rows_of(copied: bool) -> list[CaseScore]:
        found = []
        for number in range(300):
            a, b = (bool(x) for x in generator.random(2) < 0.5)
            item = to_json(row(f"c{number}", True))
            firsts = {"a": a, "b": a if copied else b}
            item["discussion"] = {
                "first_named": {}, "late": {}, "firsts": firsts, "moves": {}, "changed": {}, "consensus": None,
                "consensus_batch": None, "batches": 1,
            }  # fmt: skip
            found.append(from_json(item))
        return found

    assert talk(rows_of(True))["error_correlation"]["mean_phi"] == pytest.approx(1.0)
    assert abs(talk(rows_of(False))["error_correlation"]["mean_phi"]) < 0.15


def test_calibration_and_the_escalation_curve_come_from_recorded_confidence() -> None:
    rows, arms = [], {}
    for number, i in enumerate(ids(40)):
        sure = number < 20
        item = to_json(row(i, sure, arm="auto")) | {"confidence": 0.9 if sure else 0.1, "escalated": not sure}
        rows.append(from_json(item))
    arms[("m", "auto")] = rows
    arms[("m", "zero-shot")] = [row(i, number < 20, tokens=100) for number, i in enumerate(ids(40))]
    arms[("m", "scot")] = [row(i, number >= 10, arm="scot", tokens=1000) for number, i in enumerate(ids(40))]
    found = calibration(rows)
    assert found is not None
    assert found["ece"] == pytest.approx(0.1)
    curve = escalation(arms, parse(SUITE, Path("made.toml")), "m")
    assert curve is not None
    assert curve["best"]["f1"] == 1.0
    assert 0.1 < curve["best"]["threshold"] <= 0.9
    assert curve["best"]["tokens_per_case"] == pytest.approx(100 + 1000 / 2)
    assert curve["curve"][0]["tokens_per_case"] == 100


def made() -> Json:
    rows = [row(i, number % 3 == 0) for number, i in enumerate(ids(12))]
    rows += [row(i, number % 4 == 0, arm="again") for number, i in enumerate(ids(12))]
    rows += [
        row(i, number % 2 == 0, arm="scot", tokens=900, status="failed" if number == 11 else "finished")
        for number, i in enumerate(ids(12))
    ]
    return report.build(bench(ids(12)), rows, "labels")


def test_a_report_reads_in_every_form_and_names_matcher_error_denominator_seeds_and_failures() -> None:
    built = made()
    for shown in (text(built), markdown(built), html(built)):
        for part in (
            "precision 1.000",
            "every selected case",
            "seeds",
            "LengthStop 1",
            "c011",
            "net lift",
            "MDE",
            "ddof 1",
            "a note",
        ):
            assert part in shown, part
    assert "zero-shot again" not in latex(built)
    assert r"\begin{tabular}" in latex(built)
    assert "100\\%" in latex(built) or "\\%" in latex(built)


def test_the_html_report_is_one_file_with_pictures_and_no_address_or_script() -> None:
    page = html(made())
    assert page.count("<svg") >= 3
    for picture in pictures(made()):
        drawn = ElementTree.fromstring(picture)
        assert all(0 <= float(item.get("cx", 0)) <= 760 for item in drawn.iter("circle"))
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<b>&amp;" not in page


def test_a_comparison_says_that_a_baseline_of_a_ninth_of_the_tokens_shows_no_gain() -> None:
    found = compare([row(i, False) for i in ids(50)], [row(i, True, arm="scot", tokens=900) for i in ids(50)], None)
    assert found["budget_refused"]
    free = compare(
        [row(i, False) for i in ids(50)],
        [row(i, True, arm="scot", tokens=900) for i in ids(50)],
        None,
        allow_unequal=True,
    )
    assert not free["budget_refused"]


def test_the_stamp_changes_with_any_input() -> None:
    suite = parse(SUITE, Path("made.toml"))
    data = {"sha256": "0" * 64, "rows": "1" * 64}
    first = stamp.inputs(suite, data, {"m": {"weights": "1"}}, "labels")
    others = [
        stamp.inputs(suite, {**data, "rows": "1" * 63 + "2"}, {"m": {"weights": "1"}}, "labels"),
        stamp.inputs(suite, data, {"m": {"weights": "2"}}, "labels"),
        stamp.inputs(suite, data, {"m": {"weights": "1"}}, "judge m exact"),
        stamp.inputs(parse({**SUITE, "seeds": [1]}, Path("made.toml")), data, {"m": {"weights": "1"}}, "labels"),
        {**first, "prompts": {**first["prompts"], "scot/vote": "0" * 64}},
        {**first, "code": {**first["code"], "methods": "0" * 64}},
    ]
    assert len({stamp.digest(item) for item in (first, *others)}) == 7
    assert stamp.changed(first, others[4]) == ["prompts.scot/vote"]
    case = LabelledCase(Case("a", "Text."), ("gout",))
    assert stamp.rows_digest([case]) != stamp.rows_digest([LabelledCase(Case("a", "Text!"), ("gout",))])


def test_scores_come_back_from_json_as_they_were() -> None:
    for item in (row("a", True), row("b", False, status="failed")):
        assert from_json(json.loads(json.dumps(to_json(item)))) == item


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_export_has_a_line_for_every_case_failures_included(form: str) -> None:
    rows = [row(i, number % 2 == 0, status="failed" if number == 3 else "finished") for number, i in enumerate(ids(6))]
    files = FORMATS[form](bench(ids(6)), rows)
    if form == "csv":
        assert len(files["scores.csv"].splitlines()) == 7
    elif form == "jsonl":
        assert [json.loads(line)["case_id"] for line in files["scores.jsonl"].splitlines()] == ids(6)
    elif form == "inspect":
        ((name, body),) = files.items()
        log = json.loads(body)
        # Inspect's own pattern: a folder's listing shows no other file.
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}[^_]*_[^_]+_[0-9a-f]{22}\.json", name)
        assert name.endswith(f"_{log['eval']['task_id']}.json")
        assert (log["version"], log["results"]["total_samples"], log["results"]["completed_samples"]) == (2, 6, 5)
        assert {"eval", "plan", "results", "stats", "samples", "status"} <= set(log)
        assert log["samples"][3]["error"]["message"] == "LengthStop"
        assert log["samples"][0]["scores"]["f1"]["value"] == 1.0
        assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == pytest.approx(0.5 - 0 / 6)
    else:
        samples = next(body for name, body in files.items() if "samples_made_zero_shot_" in name)
        lines = [json.loads(line) for line in samples.splitlines()]
        assert len(lines) == 6
        assert {
            "doc_id",
            "doc",
            "target",
            "arguments",
            "resps",
            "filtered_resps",
            "doc_hash",
            "prompt_hash",
            "target_hash",
        } <= set(lines[0])
        results = json.loads(next(body for name, body in files.items() if "results_" in name))
        assert results["n-samples"]["made_zero_shot"] == {"original": 6, "effective": 6}
        assert results["results"]["made_zero_shot"]["f1,none"] == pytest.approx(0.5)
