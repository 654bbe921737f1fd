"""`ddx-local cache`: what is kept between runs, as a person and as a program sees it, and how it is forgotten."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddx_local.score_cache import Score, ScoreCache
from ddx_local.settings import load

ROOT = Path(__file__).resolve().parents[2]
CASE = "Ann, 54, has had a swollen red toe since yesterday. She has a fever of 38.5 and drinks wine."


def default_store() -> Path:
    """The store of a test that names none: a folder's of its own."""
    return load().store_path


def ddx(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ddx_local.cli.main", *arguments],
        cwd=ROOT,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )


def said(*arguments: str) -> str:
    done = ddx(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def stats(*more: str) -> Any:
    return json.loads(said("cache", "stats", "--json", *more))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Three probabilities of two models, one of them used."""
    path = tmp_path / "scores.sqlite"
    cache = ScoreCache(path)
    cache.put_many("big", {bytes([number]) * 32: Score(-1.0, 3) for number in (1, 2)})
    cache.put_many("small", {bytes([3]) * 32: Score(-1.0, 3)})
    cache.get_many("big", [bytes([1]) * 32, bytes([9]) * 32])
    cache.close()
    return path


def diagnose(tmp_path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "case.txt").write_text(CASE)
    arguments = ("--engine", "scripted", "--method", "counterfactual", "--option", "rounds=1", "--quiet")
    return ddx("diagnose", str(tmp_path / "case.txt"), *arguments, *more)


def test_looking_where_nothing_is_kept_says_so_and_makes_no_file() -> None:
    path = default_store().with_name("scores.sqlite")
    assert stats() == {"path": str(path), "entries": 0, "bytes": 0, "hits": 0, "misses": 0, "models": []}
    assert said("cache", "stats") == f"{path}: 0 probabilities, 0 KiB, 0 hits, 0 misses\n"
    assert said("cache", "clear") == f"{path}: nothing is kept\n"
    assert not path.exists()


def test_the_numbers_are_given_together_and_by_model(kept: Path, store: Path) -> None:
    found = stats("--store", str(store))
    assert (found["entries"], found["hits"], found["misses"]) == (3, 1, 1)
    assert found["bytes"] == kept.stat().st_size
    assert found["models"] == [
        {"name": "big", "entries": 2, "hits": 1, "misses": 1},
        {"name": "small", "entries": 1, "hits": 0, "misses": 0},
    ]
    first, big, small = said("cache", "stats", "--store", str(store)).splitlines()
    assert first == f"{kept}: 3 probabilities, {kept.stat().st_size // 1024} KiB, 1 hits, 1 misses"
    assert big.split() == ["big", "2", "probabilities", "1", "hits", "1", "misses"]
    assert small.split() == ["small", "1", "probabilities", "0", "hits", "0", "misses"]


def test_clearing_asks_and_without_a_terminal_wants_yes(kept: Path, store: Path) -> None:
    refused = ddx("cache", "clear", "--store", str(store))
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert stats("--store", str(store))["entries"] == 3
    assert said("cache", "clear", "--yes", "--store", str(store)) == f"{kept}: 3 probabilities forgotten\n"
    assert stats("--store", str(store))["models"] == []


def test_a_damaged_file_is_one_paragraph_with_the_way_out(kept: Path, store: Path, tmp_path: Path) -> None:
    kept.write_bytes(b"junk " * 3000)
    for done in (ddx("cache", "stats", "--store", str(store)), diagnose(tmp_path, "--store", str(store))):
        assert (done.returncode, done.stdout) == (7, "")
        text = " ".join(done.stderr.split())
        assert text.startswith("ddx-local: the probability cache")
        assert "is damaged" in text
        assert "`ddx-local cache clear`" in text
    said("cache", "clear", "--yes", "--store", str(store))
    assert stats("--store", str(store))["entries"] == 0


def test_a_store_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = ddx("cache", "stats", "--store", str(tmp_path / "nowhere" / "runs.sqlite"))
    assert done.returncode == 7
    assert "no such folder" in " ".join(done.stderr.split())
    assert not (tmp_path / "nowhere").exists()


def test_a_second_run_of_a_case_computes_nothing_again(tmp_path: Path, store: Path) -> None:
    numbers = []
    for _ in range(2):
        done = diagnose(tmp_path, "--store", str(store))
        assert done.returncode == 0, done.stderr
        numbers.append(stats("--store", str(store)))
    first, second = numbers
    assert first["entries"] == second["entries"] == first["misses"] == second["misses"] > 0
    # What the rounds of one run share is a hit already then; the second run finds everything.
    assert second["hits"] == 2 * first["hits"] + first["misses"]
    assert [model["name"] for model in second["models"]] == ["scripted"]


def test_no_store_keeps_nothing_on_the_disk(tmp_path: Path) -> None:
    assert diagnose(tmp_path, "--no-store").returncode == 0
    assert not default_store().exists()
    assert not default_store().with_name("scores.sqlite").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["case.txt"]


def test_the_setting_turns_it_off(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDX_LOCAL_PROBABILITY_CACHE", "false")
    assert diagnose(tmp_path, "--store", str(store)).returncode == 0
    assert store.exists()
    assert not (tmp_path / "scores.sqlite").exists()


@pytest.mark.parametrize("verb", ["stats", "clear"])
def test_the_help_ends_with_an_example(verb: str) -> None:
    assert f"Example: ddx-local cache {verb}" in said("cache", verb, "--help")


def test_without_a_verb_it_shows_its_help() -> None:
    text = ddx("cache").stdout
    assert "stats" in text
    assert "clear" in text
