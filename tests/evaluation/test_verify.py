"""Verification: what is as it was says so, and one changed byte of data, answers or scores is found."""

import json
import sqlite3
import zlib
from pathlib import Path

import pytest

from ddx_local.evaluation.match import Labels
from ddx_local.evaluation.suite_match import Match
from ddx_local.evaluation.verify import Finding, scored, verify
from tests.evaluation.world import BASE, PLACEBO, SETTINGS, THREE, World, suite_of, write_cases


@pytest.fixture
async def finished(tmp_path: Path) -> tuple[World, str, Path]:
    path = write_cases(tmp_path / "cases.jsonl", 8)
    world = World(tmp_path)
    bench_id, _ = await world.run(suite_of(path, [BASE, PLACEBO, THREE], (0, 1)))
    await scored(bench_id, world.record, world.store, Labels(), Match())
    return world, bench_id, path


async def wrong(world: World, bench_id: str) -> list[Finding]:
    return [item for item in await verify(bench_id, world.record, world.store, SETTINGS) if item.ok is False]


async def test_an_untouched_benchmark_verifies_every_number_without_an_engine(
    finished: tuple[World, str, Path],
) -> None:
    world, bench_id, _ = finished
    found = await verify(bench_id, world.record, world.store, SETTINGS)
    assert [item.what for item in found if item.ok is not True] == []
    assert any("48 rows, every number" in item.what for item in found)


async def test_one_changed_byte_of_the_data_file_is_found(finished: tuple[World, str, Path]) -> None:
    world, bench_id, path = finished
    path.write_text(path.read_text("utf-8").replace("fever", "Fever", 1), "utf-8")
    (found,) = await wrong(world, bench_id)
    assert found.what == "data file"
    path.unlink()
    assert await wrong(world, bench_id) == []
    assert any(
        item.ok is None and "not here" in item.detail
        for item in await verify(bench_id, world.record, world.store, SETTINGS)
    )


async def test_a_changed_score_is_found(finished: tuple[World, str, Path]) -> None:
    world, bench_id, _ = finished
    body = world.record.scores(bench_id)["labels"]
    body["rows"][0]["tp"] += 1
    world.record.save_scores(bench_id, "labels", body)
    (found,) = await wrong(world, bench_id)
    assert found.detail == "rows"
    body["report"]["arms"][0]["macro"]["f1"]["value"] = 0.99
    world.record.save_scores(bench_id, "labels", body)
    (found,) = await wrong(world, bench_id)
    assert "arms" in found.detail


async def test_a_changed_answer_in_the_store_is_found(finished: tuple[World, str, Path], tmp_path: Path) -> None:
    world, bench_id, _ = finished
    run = world.record.load(bench_id).runs[0]
    with sqlite3.connect(tmp_path / "runs.sqlite") as connection:
        rows = connection.execute("SELECT address, body FROM texts WHERE run_id = ?", (run.run_id,)).fetchall()
        address = next(a for a, body in rows if b"differential" in zlib.decompress(body))
        connection.execute("UPDATE texts SET body = ? WHERE address = ?", (zlib.compress(b"{}"), address))
    (found,) = await wrong(world, bench_id)
    assert "damaged or was changed" in found.detail


async def test_a_report_is_the_same_from_every_process(finished: tuple[World, str, Path], tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    world, bench_id, _ = finished
    before = json.dumps(world.record.scores(bench_id)["labels"]["report"], sort_keys=True)
    program = (
        "import asyncio, json, sys; from pathlib import Path; from tests.evaluation.world import World\n"
        "from ddx_local.evaluation.match import Labels; from ddx_local.evaluation.suite_match import Match\n"
        "from ddx_local.evaluation.verify import scored\n"
        f"world = World(Path({str(tmp_path)!r}))\n"
        f"body = asyncio.run(scored({bench_id!r}, world.record, world.store, Labels(), Match()))\n"
        "print(json.dumps(body, sort_keys=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == before
