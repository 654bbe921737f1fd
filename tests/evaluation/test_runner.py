"""Benchmarks end to end on an engine without a model: one denominator, resume, equal budgets, the same digest in any order."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ddx_local.case import Case
from ddx_local.errors import EngineError, ReplayMismatch, StoreError
from ddx_local.evaluation import report, stamp
from ddx_local.evaluation.budget import WITHIN
from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.match import Labels
from ddx_local.evaluation.report_table import by_arm
from ddx_local.evaluation.report_talk import talk
from ddx_local.evaluation.score import from_json, score, to_json
from ddx_local.events import Answered
from ddx_local.store_file import claimed
from tests.evaluation.world import (
    BASE,
    PLACEBO,
    SETTINGS,
    THREE,
    World,
    failing,
    opener,
    reply,
    suite_of,
    write_cases,
    zero_shot,
)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_cases(tmp_path / "cases.jsonl", 12)


async def test_every_case_of_every_method_and_seed_has_a_row_and_the_figures_are_those_of_the_golds(
    cases: Path,
) -> None:
    world = World()
    bench_id, rows = await world.run(suite_of(cases, [BASE, PLACEBO, THREE], (0, 1)))
    assert len(rows) == 12 * 3 * 2
    assert {row.status for row in rows} == {"finished"}
    assert world.record.load(bench_id).row.status == "finished"
    built = report.build(world.record.load(bench_id), rows, "labels")
    base = built["arms"][0]
    assert (base["n_selected"], base["n_scored"], base["n_failed"], base["n_cases"]) == (24, 24, 0, 12)
    right = sum(row.first == 1 for row in rows if row.arm == "zero-shot") / 24
    assert base["top"]["1"]["value"] == pytest.approx(right)
    assert 0.3 < right < 0.9
    assert {arm["seeds"][0] for arm in built["arms"] if arm["role"] == "placebo"} == {1_000_003}


async def test_a_case_that_fails_in_one_method_counts_as_wrong_there_and_is_compared(cases: Path) -> None:
    world = World()
    bench_id, rows = await world.run(suite_of(cases, [BASE, THREE]), opener(failing(3, 0.7)))
    built = report.build(world.record.load(bench_id), rows, "labels")
    one, two = built["arms"]
    assert (one["n_failed"], two["n_failed"], two["n_selected"]) == (0, 1, 12)
    assert two["failures"] == {"LengthStop": 1}
    assert two["failed_cases"] == ["case-0003"]
    assert two["f1_if_failures_were_dropped"] > two["macro"]["f1"]["value"]
    (compared,) = built["comparisons"]
    assert compared["n_common"] == 12
    assert compared["failed"] == {"baseline": 0, "method": 1}


@pytest.mark.parametrize("at_once", [2, 4])
async def test_order_and_parallelism_change_no_digest(tmp_path: Path, at_once: int) -> None:
    path = write_cases(tmp_path / "few.jsonl", 3)
    arms: list[dict[str, Any]] = [BASE, PLACEBO, THREE, {"name": "scot", "options": {"agents": 2, "k": 2}}]
    digests = [stamp.results((await World().run(suite_of(path, arms), at_once=n))[1]) for n in (1, at_once)]
    assert digests[0] == digests[1]


async def test_one_changed_answer_changes_the_digest(cases: Path) -> None:
    one = (await World().run(suite_of(cases, [BASE])))[1]
    other = (await World().run(suite_of(cases, [BASE]), opener(lambda r: reply(r).replace("It fits.", "It fits!"))))[1]
    third = (await World().run(suite_of(cases, [BASE], (5,))))[1]
    assert stamp.results(one) == stamp.results(other), "reasons are not scored"
    assert stamp.results(one) != stamp.results(third)


async def test_an_equal_budget_baseline_uses_the_methods_tokens_within_five_percent(cases: Path) -> None:
    seven = {"name": "best-of-n", "label": "seven", "options": {"n": 7}}
    equal = {"name": "best-of-n", "label": "equal", "role": "equal-budget", "tokens_of": "seven"}
    world = World()
    bench_id, rows = await world.run(suite_of(cases, [BASE, seven, equal], (0, 1)))
    tokens = {arm: sum(row.usage.tokens for row in part) for (_, arm), part in by_arm(rows).items()}
    assert abs(tokens["equal"] / tokens["seven"] - 1) <= WITHIN
    chosen = {run.options["n"] for run in world.record.load(bench_id).runs if run.arm == "equal"}
    assert chosen == {7}


async def test_a_gain_over_a_baseline_with_a_fraction_of_the_tokens_is_not_claimed(cases: Path) -> None:
    raw = suite_of(
        cases, [BASE, {"name": "best-of-n", "label": "many", "options": {"n": 9, "threshold": 0.1}}], (0, 1, 2)
    )
    bench_id, rows = await (world := World()).run(raw)
    (compared,) = report.build(world.record.load(bench_id), rows, "labels")["comparisons"]
    assert compared["tokens"]["baseline_share"] < 0.2
    assert compared["budget_refused"] == (compared["delta_f1"]["value"] > 0)


async def test_oracle_k_gives_each_case_the_number_of_its_golds_and_says_so(tmp_path: Path) -> None:
    path = write_cases(tmp_path / "cases.jsonl", 4)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0]["gold"] = ["gout"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    world = World()
    bench_id = world.begin(suite_of(path, [{"name": "zero-shot", "k": "oracle"}]))
    runs = world.record.load(bench_id).runs
    assert {(run.options["k"], run.cases) for run in runs} == {
        (1, ("case-0000",)),
        (2, ("case-0001", "case-0002", "case-0003")),
    }


async def test_an_interrupted_benchmark_resumes_and_repeats_no_finished_call(cases: Path, tmp_path: Path) -> None:
    raw = suite_of(cases, [BASE, THREE], (0, 1))
    whole = stamp.results((await World().run(raw))[1])
    world = World(tmp_path)
    bench_id = world.begin(raw)
    asked = 0

    def until_cut(request: Any) -> str:
        nonlocal asked
        asked += 1
        if asked == 40:
            raise EngineError("the engine is gone")
        return reply(request)

    with pytest.raises(EngineError):
        await world.drive(bench_id, opener(until_cut))
    assert world.record.load(bench_id).row.status == "interrupted"
    again = opener()
    await world.drive(bench_id, again)
    assert stamp.results(await world.rows(bench_id)) == whole
    calls = 24 + 72
    assert len(again.engines[0].requests) < calls - 30
    third = opener()
    await world.drive(bench_id, third)
    assert third.engines == [], "nothing is owed: no engine is opened"


@pytest.mark.slow
async def test_a_benchmark_killed_at_twenty_random_points_ends_byte_identical_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    """Kill -9 of the process itself after a random number of answers, again and again, until it ends."""
    path = write_cases(tmp_path / "cases.jsonl", 60)
    raw = suite_of(path, [BASE, PLACEBO], (0, 1))
    whole = World()
    _, expected = await whole.run(raw)
    world = World(tmp_path)
    bench_id = world.begin(raw)
    world.store.close()
    world.record.close()
    kills = 0
    for number in range(60):
        done = subprocess.run(
            [sys.executable, "-m", "tests.evaluation.killed", str(tmp_path), bench_id, str(number), "16"], check=False
        )
        if done.returncode == 0:
            break
        assert done.returncode == -9
        kills += 1
    assert kills >= 20
    world = World(tmp_path)
    rows = await world.rows(bench_id)
    assert stamp.results(rows) == stamp.results(expected)
    assert sum(row.usage.tokens for row in rows) == sum(row.usage.tokens for row in expected)
    for run in world.record.load(bench_id).runs:
        answered = [(e.case_id, e.round, e.key) for e in world.store.events(run.run_id) if isinstance(e, Answered)]
        assert len(answered) == len(set(answered)) == 60
    asked = (tmp_path / "asked.log").read_text().splitlines()
    assert len(set(asked)) == 240
    # What was in flight when the process died was never finished: at most one answer for each of the 4 cases in flight.
    assert len(asked) - 240 <= 4 * kills


async def test_a_resume_with_another_version_of_a_prompt_is_refused_with_its_name(cases: Path) -> None:
    world = World()
    bench_id = world.begin(suite_of(cases, [BASE]))
    body = world.record.load(bench_id).body
    changed = {**body, "prompts": {**body["prompts"], "zero_shot/differential": "0" * 64}}
    world.record.update(bench_id, body=changed)
    with pytest.raises(ReplayMismatch, match="zero_shot/differential"):
        await world.drive(bench_id)


async def test_a_resume_on_another_engine_is_refused_with_what_differs(cases: Path) -> None:
    world = World()
    bench_id = world.begin(suite_of(cases, [BASE]))
    body = world.record.load(bench_id).body
    world.record.update(bench_id, body={**body, "fingerprints": {"scripted": {"weights": "0", "engine": "scripted"}}})
    with pytest.raises(ReplayMismatch, match="weights"):
        await world.drive(bench_id)


async def test_two_processes_do_not_work_on_one_benchmark(cases: Path, tmp_path: Path) -> None:
    world = World(tmp_path)
    bench_id = world.begin(suite_of(cases, [BASE]))
    holder = (
        "import sys, time; from pathlib import Path; from ddx_local.store_file import claimed\n"
        f"with claimed(Path({str(world.record.path)!r}), {bench_id!r}):\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreError, match="another process"):
            await world.drive(bench_id)
        process.kill()
    assert world.record.path is not None
    with claimed(world.record.path, bench_id):
        pass


async def test_no_gold_stands_in_any_prompt_slot_or_answer_of_any_method(tmp_path: Path) -> None:
    """Golds that no text holds: if one is found in what was asked, evaluation leaked it."""
    path = tmp_path / "cases.jsonl"
    secret = ["zyxogravic fever", "quobbler syndrome"]
    text = "Case 1: a patient with fever and cough came to the clinic today. He has a rash on both arms."
    path.write_text(json.dumps({"id": "one", "text": text, "gold": secret}) + "\n", "utf-8")
    arms: list[dict[str, Any]] = [
        BASE,
        THREE,
        {"name": "scot", "options": {"agents": 2, "k": 2}},
        {"name": "counterfactual", "options": {"rounds": 0}},
    ]
    world, open_all = World(), opener()
    bench_id, rows = await world.run(suite_of(path, arms) | {"data": {"source": "jsonl", "path": str(path)}}, open_all)
    seen = [m.content for engine in open_all.engines for request in engine.requests for m in request.messages]
    seen += [m.content for engine in open_all.engines for request in engine.scored for m in request.messages]
    seen += [request.grammar or "" for engine in open_all.engines for request in engine.requests]
    seen += [text for run in world.record.load(bench_id).runs for _, text in world.store.all_texts(run.run_id)]
    assert len(seen) > 50
    assert [name for name in ("zyxogravic", "quobbler") for text in seen if name in text.lower()] == []
    gaps = talk([row for row in rows if row.arm == "counterfactual"])["counterfactuals"]
    assert gaps["edits"] > 0
    assert gaps["differ_from_recorded"] == 0, "worked out again from the recorded probabilities"


def test_a_labelled_case_is_no_case_so_that_a_job_cannot_be_given_one() -> None:
    assert not issubclass(LabelledCase, Case)
    assert not hasattr(Case("a", "b"), "gold")
    assert not hasattr(LabelledCase(Case("a", "b"), ("gout",)), "text")


async def test_progress_says_cases_speed_time_left_and_cost(cases: Path) -> None:
    world = World()
    await world.run(suite_of(cases, [BASE], cost={"input": 1.0, "output": 2.0}))
    last = world.lines[-1]
    for part in ("12 of 12 cases", "0 failed", "generated tokens/s", "left", "cost 0."):
        assert part in last


def test_settings_of_the_tests_ask_no_model() -> None:
    assert SETTINGS.engine == "scripted"


async def test_a_set_with_probabilities_gets_its_own_metrics(tmp_path: Path) -> None:
    path = write_cases(tmp_path / "release_test_patients.jsonl", 1)
    world = World()
    bench_id = world.begin(suite_of(path, [BASE]))
    bench = world.record.load(bench_id)
    weighed = replace(
        bench.cases[0], weights={"gout": 0.7, "malaria": 0.2, "scurvy": 0.001}, severe=frozenset({"malaria"})
    )
    await world.drive(bench_id, opener(lambda request: zero_shot(request, right=1.0)))
    (found,) = await score(replace(bench, cases=(weighed,)), world.store, Labels())
    assert found.ddxplus is not None
    assert (found.ddxplus["GTPA"], found.ddxplus["DDR"], found.ddxplus["DSR"]) == (1.0, 0.5, 0.0)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
