"""Suites: what is wrong with one is said before anything is opened, with the nearest names."""

from pathlib import Path
from typing import Any

import pytest

from ddx_local.errors import UsageError
from ddx_local.evaluation import suite
from ddx_local.evaluation.record import BenchRow, PlannedRun, Record, beside

ZERO = {"name": "zero-shot", "role": "baseline"}


def parsed(**given: Any) -> suite.Suite:
    return suite.parse({"method": [ZERO], **given}, Path("made.toml"))


def test_the_suites_that_ship_are_whole() -> None:
    names = {path.stem: suite.read(path) for path in suite.shipped()}
    assert {"quick", "small", "viability"} <= set(names)
    assert names["viability"].models == ("qwen2.5-1.5b", "qwen2.5-3b")
    assert names["small"].models == ("smollm2-135m", "gemma3-270m")
    quick = names["quick"]
    assert [(arm.method, arm.role) for arm in quick.arms] == [
        ("zero-shot", "baseline"),
        ("zero-shot", "placebo"),
        ("scot", "method"),
    ]
    assert (quick.data.limit, quick.seeds, dict(quick.arms[2].options)) == (12, (0, 1), {"agents": 3})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"methods": []}, "unknown key `methods`: did you mean method"),
        ({"method": []}, r"has no \[\[method\]\]"),
        ({"method": [{"name": "skot"}]}, "no method `skot`: did you mean scot"),
        ({"method": [{"label": "x"}]}, "has no `name`"),
        ({"method": [{**ZERO, "option": {}}]}, "unknown key `option`: did you mean options"),
        ({"method": [{**ZERO, "options": {"agents": 3}}]}, "no option `agents`"),
        ({"method": [{**ZERO, "options": {"k": 99}}]}, "k must be 1 to 10"),
        ({"method": [ZERO, ZERO]}, "two methods are called `zero-shot`"),
        ({"method": [ZERO, {**ZERO, "label": "b"}]}, "more than one baseline"),
        ({"method": [{**ZERO, "role": "basline"}]}, "no role `basline`: did you mean baseline"),
        (
            {"method": [ZERO, {"name": "zero-shot", "label": "p", "role": "placebo", "options": {"k": 3}}]},
            "placebo differs",
        ),
        ({"method": [{**ZERO, "k": "orakel"}]}, "k must be free, oracle or fixed:N"),
        (
            {"method": [ZERO, {"name": "best-of-n", "role": "equal-budget", "tokens_of": "scott"}]},
            "tokens_of names no method",
        ),
        ({"seeds": [0, 0]}, "seeds must be different"),
        ({"seeds": [True]}, "seeds must be different whole numbers"),
        ({"data": {"source": "open-xdx"}}, "no data set `open-xdx`: did you mean open-xddx"),
        ({"data": {"limit": 0}}, "limit must be a whole number"),
        ({"engine": {"name": "vlm"}}, "no engine `vlm`: did you mean vllm"),
        ({"engine": {"dtyp": "float32"}}, "unknown key `dtyp`: did you mean dtype"),
        ({"match": {"kind": "label"}}, "no kind `label`: did you mean labels"),
        ({"match": {"hierarchy": "broader_ok"}}, "needs the judge"),
        ({"judge": {"repeat": 3}}, "repeat must be 1 or 2"),
        ({"cost": {"in": 1}}, "unknown key `in`"),
    ],
)
def test_a_wrong_suite_is_refused_with_what_is_wrong_and_the_nearest_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parsed(**given)


def test_a_suite_is_found_by_name_or_path_and_the_nearest_is_shown(tmp_path: Path) -> None:
    assert suite.find("quick").stem == "quick"
    with pytest.raises(UsageError, match="no suite `quik`: did you mean quick"):
        suite.find("quik")
    with pytest.raises(UsageError, match="no such file"):
        suite.find("missing.toml")
    (tmp_path / "a.toml").write_text("name = ", "utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        suite.read(suite.find(str(tmp_path / "a.toml")))


def test_k_policy_budget_judge_and_prices_are_read() -> None:
    found = parsed(
        method=[{**ZERO, "k": "fixed:3"}],
        judge={"model": "qwen2.5-3b", "hierarchy": "either_ok"},
        budget={"tokens": 5000, "allow_unequal": True},
        cost={"input": 0.15, "output": 0.6},
    )
    assert found.arms[0].options["k"] == 3
    assert (found.match.kind, found.match.model, found.match.hierarchy) == ("judge", "qwen2.5-3b", "either_ok")
    assert (found.engine["budget_tokens"], found.allow_unequal_budget) == (5000, True)
    assert (found.price_in, found.price_out) == (0.15, 0.6)


def test_data_paths_are_against_the_suites_folder(tmp_path: Path) -> None:
    found = suite.parse({"method": [ZERO], "data": {"source": "jsonl", "path": "c.jsonl"}}, tmp_path / "s.toml")
    assert found.data.path == str(tmp_path / "c.jsonl")


def test_the_record_finds_benchmarks_by_unique_beginning_and_is_private(tmp_path: Path) -> None:
    path = beside(tmp_path / "runs.sqlite")
    record = Record(path)
    for name in ("bench-a1", "bench-a2"):
        record.add(BenchRow(name, name, "s", "running"), {"x": 1}, [PlannedRun("r", "a", "m", 0, {}, ("c",))], [])
    assert record.find("last") == "bench-a2"
    assert record.find("bench-a1") == "bench-a1"
    for name, said in (("bench-a", "2 begin with that"), ("bench-b", "no benchmark `bench-b`: did you mean")):
        with pytest.raises(UsageError, match=said):
            record.find(name)
    assert record.load("bench-a1").runs[0].cases == ("c",)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
