"""Many cases: memory stays flat, a case's events stay small, scoring needs no model and little time."""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ddx_local.events import to_json
from tests.evaluation.world import World, suite_of, write_cases

MOST_BYTES = 64 * 1024


@pytest.mark.slow
def test_memory_after_a_thousand_cases_is_within_a_tenth_of_that_after_a_hundred(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.evaluation.scale", str(tmp_path), "1000"],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["rows"] == 2000
    assert found["after_all"] <= 1.10 * found["after_100"], found
    assert found["score_seconds"] / 2000 * 570 < 10


@pytest.mark.slow
async def test_the_events_of_a_case_of_five_agents_take_less_than_64_kilobytes(tmp_path: Path) -> None:
    world = World()
    bench_id, _ = await world.run(suite_of(write_cases(tmp_path / "cases.jsonl", 1), [{"name": "scot"}]))
    (run,) = world.record.load(bench_id).runs
    events = world.store.events(run.run_id, "case-0000")
    assert len(events) > 80
    assert sum(len(zlib.compress(json.dumps(to_json(event)).encode())) for event in events) < MOST_BYTES
