"""Runs that are past their time are deleted without a trace, and nothing else is."""

import subprocess
import sys
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ddx_local import retention
from ddx_local.audit import Audit, beside
from ddx_local.errors import StoreError, UsageError
from ddx_local.events import RunFinished, RunStarted
from ddx_local.store import Store
from tests.command import Command
from tests.test_store import started as made
from tests.toy import CANARY

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def started(run_id: str, at: datetime) -> RunStarted:
    return made(run_id, at.isoformat(timespec="milliseconds"))


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("runs"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Runs of 100, 31, 30, 1 and 0 days of age."""
    opened = Store(tmp_path / "folder" / "runs.sqlite")
    for days in (100, 31, 30, 1, 0):
        opened.append(
            f"run-{days}",
            [started(f"run-{days}", NOW - timedelta(days=days, minutes=1))],
            [f"{CANARY} {days} days old"],
        )
        opened.append(
            f"run-{days}", [RunFinished(at=NOW.isoformat(), status="finished", finished=1, failed=0, seconds=1.0)]
        )
    return opened


@pytest.mark.parametrize(
    ("before", "days", "expected"),
    [
        ("30d", None, NOW - timedelta(days=30)),
        (None, 7, NOW - timedelta(days=7)),
        ("30d", 7, NOW - timedelta(days=30)),
        ("2026-03-01", None, datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00:00+02:00", None, datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("0d", None, NOW),
    ],
)
def test_the_moment_is_a_date_or_an_age(before: str | None, days: int | None, expected: datetime) -> None:
    assert retention.limit(before, days, NOW) == expected


@pytest.mark.parametrize(
    ("before", "message"),
    [(None, "from before when"), ("soon", "no date"), ("2026-04-01", "in the future"), ("-3d", "no date")],
)
def test_a_moment_that_is_none_is_refused(before: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        retention.limit(before, None, NOW)


def test_what_is_past_its_time_goes_without_a_trace_and_the_deletion_is_recorded(store: Store, tmp_path: Path) -> None:
    text = zlib.compress(f"{CANARY} 100 days old".encode())
    assert text in files_of(tmp_path / "folder")
    old = retention.expired(store, NOW - timedelta(days=30))
    assert old == ("run-100", "run-31", "run-30")
    assert retention.purge(store, old) == old
    assert {row.run_id for row in store.runs()} == {"run-1", "run-0"}
    assert store.texts("run-1", [next(iter(dict(store.all_texts("run-1"))))])
    left = files_of(tmp_path / "folder")
    assert text not in left
    assert b"run-100" not in left
    chain = Audit(beside(store.path))
    assert [(item.action, item.object) for item in chain.records()] == [("run.purge", run_id) for run_id in old]


def test_a_run_that_is_worked_on_now_stays(store: Store) -> None:
    with store.claim("run-31"):
        other = Store(store.path)
        code = (
            "import sys; from pathlib import Path; from ddx_local.store import Store; from ddx_local import retention;"
            "print(retention.purge(Store(Path(sys.argv[1])), ('run-100', 'run-31')))"
        )
        done = subprocess.run([sys.executable, "-c", code, str(store.path)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "('run-100',)"
        assert "run-31" in {row.run_id for row in other.runs()}


def test_the_setting_deletes_when_a_run_starts_and_does_nothing_where_it_is_not_set(tmp_path: Path) -> None:
    command, path = Command(tmp_path), tmp_path / "own" / "runs.sqlite"
    store = Store(path)
    store.append("old", [started("old", datetime.now(UTC) - timedelta(days=40))], ["old text"])
    store.close()
    (tmp_path / "case.txt").write_text("A man of 60 with fever and a cough.")
    run = [
        "diagnose",
        str(tmp_path / "case.txt"),
        "--engine",
        "scripted",
        "--method",
        "zero-shot",
        "--store",
        str(path),
        "--quiet",
    ]
    assert command.run(*run).code == 0
    assert len(Store(path).runs()) == 2
    assert command.run(*run, env={"DDX_LOCAL_RETENTION_DAYS": "30"}).code == 0
    assert "old" not in {row.run_id for row in Store(path).runs()}
    assert len(Store(path).runs()) == 2
    command.close()


def test_the_command_asks_and_says_what_it_did(store: Store, tmp_path: Path) -> None:
    command, words = Command(tmp_path), ["runs", "purge", "--store", str(store.path)]
    refused = command.run(*words)
    assert refused.code == 2
    assert "from before when" in refused.paragraph
    refused = command.run(*words, "--before", "2026-03-02")
    assert refused.code == 2
    assert "nothing was deleted" in refused.paragraph
    assert len(store.runs()) == 5
    done = command.run(*words, "--before", "2026-03-02", "--yes")
    assert done.out == "deleted 3 run(s)\n"
    assert command.run(*words, "--before", "2026-03-02", "--yes").out.startswith(
        "no runs from before 2026-03-02 00:00 UTC"
    )
    command.close()


def test_a_reader_at_work_is_said_since_traces_stay(store: Store) -> None:
    reader = Store(store.path)
    cursor = reader._connection.cursor()
    cursor.execute("BEGIN")
    cursor.execute("SELECT count(*) FROM runs").fetchone()
    store._connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(StoreError, match="2 runs are deleted, but traces"):
        store.remove_all(["run-100", "run-31"])
    reader.close()
