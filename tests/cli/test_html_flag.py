"""`--html FILE` of `diagnose` and `runs show`: a private file, whole or not at all, and checked before the work."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.page import read

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "bench" / "cases" / "sudden-painful-toe.txt"


def ddx(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [str(argument) for argument in arguments]
    return subprocess.run(
        [sys.executable, "-m", "ddx_local.cli.main", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def diagnose(store: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return ddx("diagnose", CASE, "--method", "zero-shot", "--engine", "scripted", "--store", store, *more)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store with one run, and the report that the run wrote."""
    folder = tmp_path_factory.mktemp("html")
    done = diagnose(folder / "runs.sqlite", "--quiet", "--html", folder / "report.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "runs.sqlite", folder / "report.html"


def test_diagnose_writes_a_report_that_only_its_owner_may_read(recorded: tuple[Path, Path]) -> None:
    _, file = recorded
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (case,) = read(file.read_text("utf-8")).by_class("case")
    assert case.text(skip="tag") == CASE.read_text("utf-8")
    assert sorted(path.name for path in file.parent.iterdir() if path.name.startswith(".report")) == []


def test_runs_show_writes_the_same_report_and_nothing_else(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    store, file = recorded
    done = ddx("runs", "show", "last", "--store", store, "--html", tmp_path / "again.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "again.html").read_bytes() == file.read_bytes()
    assert stat.S_IMODE((tmp_path / "again.html").stat().st_mode) == 0o600


def test_a_report_replaces_an_older_one(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    store, file = recorded
    old = tmp_path / "old.html"
    old.write_text("x" * 1_000_000)
    assert ddx("runs", "show", "last", "--store", store, "--html", old).returncode == 0
    assert old.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("name", ["no/such/folder/report.html", "."])
def test_a_place_that_cannot_be_written_is_an_error_before_the_run(name: str, tmp_path: Path) -> None:
    done = diagnose(tmp_path / "runs.sqlite", "--html", tmp_path / name)
    assert done.returncode == 2
    assert "--html" in done.stderr
    assert "cannot be written" in done.stderr
    assert not (tmp_path / "runs.sqlite").exists()


def test_runs_show_checks_the_place_too(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    done = ddx("runs", "show", "last", "--store", recorded[0], "--html", tmp_path / "no" / "report.html")
    assert done.returncode == 2
    assert "--html" in done.stderr


def test_a_dash_is_no_file(tmp_path: Path) -> None:
    done = diagnose(tmp_path / "runs.sqlite", "--html", "-")
    assert done.returncode == 2
    assert "/dev/stdout" in done.stderr


def test_one_file_cannot_be_both_json_and_report(tmp_path: Path) -> None:
    done = diagnose(tmp_path / "runs.sqlite", "--html", tmp_path / "out", "--json", tmp_path / "." / "out")
    assert done.returncode == 2
    assert "a file of its own" in done.stderr
    assert not (tmp_path / "out").exists()


def test_json_and_report_are_written_by_one_run(tmp_path: Path) -> None:
    done = diagnose(tmp_path / "runs.sqlite", "--quiet", "--json", "-", "--html", tmp_path / "report.html")
    assert done.returncode == 0
    assert done.stdout.startswith("{")
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
