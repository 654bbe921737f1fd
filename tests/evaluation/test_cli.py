"""`ddx-local bench` as a user runs it, on the engine without a model."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Command

SUITE = """name = "tiny"
description = "two cases, twice"
[data]
source = "vignettes"
limit = 2
[engine]
name = "scripted"
[[method]]
name = "zero-shot"
role = "baseline"
options = { k = 1 }
[[method]]
name = "zero-shot"
label = "again"
role = "placebo"
options = { k = 1 }
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DDX_LOCAL_STORE", str(tmp_path / "runs.sqlite"))
    path = tmp_path / "tiny.toml"
    path.write_text(SUITE, "utf-8")
    return path


def test_a_suite_runs_reports_verifies_rescores_compares_and_exports(
    command: Command, suite: Path, tmp_path: Path
) -> None:
    page, tables = tmp_path / "report.html", tmp_path / "report.tex"
    done = command.run("bench", "run", suite, "--html", page, "--latex", tables, "--json", "-")
    assert done.code == 0, done.err
    first = done.json
    assert "4 of 4 cases" in done.err
    assert [arm["n_selected"] for arm in first["arms"]] == [2, 2]
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "tabular" in tables.read_text("utf-8")

    shown = command.run("bench", "report", "last")
    assert "SCRIPTED ENGINE" in shown.out
    assert "not a medical device" in shown.out
    assert command.run("bench", "verify", "last").code == 0
    again = command.run("bench", "rescore", "last", "--json", "-").json
    assert again["stamp"]["results"] == first["stamp"]["results"]
    other = command.run("bench", "rescore", "last", "--matcher", "judge", "--engine", "scripted", "--json", "-").json
    assert other["matcher"]["label"].startswith("judge scripted exact")
    assert other["stamp"]["inputs"] != first["stamp"]["inputs"]
    assert command.run("bench", "verify", "last").code == 0, "the judge's verdicts are kept, so no engine is needed"

    assert command.run("bench", "run", suite, "--quiet").code == 0
    benches = [row["bench_id"] for row in command.run("bench", "list", "--json").json]
    assert len(benches) == 2
    compared = command.run("bench", "compare", benches[1], benches[0], "--json").json
    assert [item["delta_f1"]["value"] for item in compared] == [0.0, 0.0], "the same seeds give the same answers"
    for form in ("csv", "jsonl", "inspect", "lm-eval"):
        files = command.run("bench", "export", "last", "--format", form, "--out", tmp_path / form).out.split()
        assert files
        assert all(Path(file).stat().st_size > 100 for file in files)


def test_ctrl_c_stops_a_benchmark_cleanly_and_resume_ends_it(command: Command, suite: Path) -> None:
    import os
    import signal

    number = command.begin("bench", "run", suite, env={"DDX_TEST_DELAY": "20"})
    time.sleep(6)
    os.kill(number, signal.SIGINT)
    done = command.end()
    assert done.code == 130, done.err
    assert "ddx-local bench resume bench-" in done.paragraph
    assert "interrupted" in command.run("bench", "list").out
    done = command.run("bench", "resume", "last", "--json", "-")
    assert done.code == 0, done.err
    assert [arm["n_scored"] for arm in done.json["arms"]] == [2, 2]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "quik"), 2, "no suite `quik`: did you mean quick"),
        (("run", "viability", "--engine", "scripted"), 2, "data set `open-xddx` needs a path"),
        (("run", "quick", "--data", "/nowhere/x.jsonl"), 3, "no such file"),
        (("report", "last"), 2, "none was run yet"),
        (("verify", "bench-1"), 2, "none was run yet"),
        (("data", "check", "medqua"), 2, "no data set `medqua`: did you mean medqa"),
        (("export", "last", "--format", "xml", "--out", "x"), 2, "no such format"),
    ],
)
def test_bad_input_is_one_paragraph_with_the_nearest_name(
    command: Command, suite: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    assert suite.exists()
    done = command.run("bench", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.paragraph
    assert "Traceback" not in done.err


def test_a_changed_data_file_is_refused_where_the_suite_pins_its_digest(
    command: Command, suite: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "cases.jsonl"
    rows.write_text(json.dumps({"id": "1", "text": "Fever.", "gold": "malaria"}) + "\n", "utf-8")
    pinned = f'source = "jsonl"\npath = "cases.jsonl"\nsha256 = "{"0" * 64}"'
    suite.write_text(SUITE.replace('source = "vignettes"\nlimit = 2', pinned), "utf-8")
    done = command.run("bench", "run", suite)
    assert done.code == 3
    assert "the suite pins 0000" in done.paragraph


def test_a_dry_run_and_the_lists_ask_no_model(command: Command, suite: Path, tmp_path: Path) -> None:
    done = command.run("bench", "run", suite, "--dry-run")
    assert "4 cases in all" in done.out
    assert not (tmp_path / "runs.sqlite").exists()
    assert "viability" in command.run("bench", "list", "--suites").out
    assert "No benchmarks yet" in command.run("bench", "list").out
    assert "phenopackets" in command.run("bench", "data", "list").out
    assert "near-duplicate pairs        0" in command.run("bench", "data", "check", "vignettes").out
    assert "floor commonest" in command.run("bench", "data", "check", "vignettes", "--floors").out
    assert "precision 1.000" in command.run("bench", "data", "matcher").out
    assert command.run("bench", "data", "check", "vignettes", "--json").json["cases"] == 14


def test_the_matcher_is_measured_on_the_users_own_pairs(command: Command, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    rows = [
        {"pred": "MI", "gold": "myocardial infarction", "label": 1},
        {"pred": "gout", "gold": "pseudogout", "label": 0},
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = command.run("bench", "data", "matcher", "--same", pairs, "--json").json
    assert (found["pairs"], found["precision"], found["recall"]) == (2, 1.0, 1.0)
