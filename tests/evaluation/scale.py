"""Runs a benchmark of many cases without a model and prints, as JSON, the peak memory after some of them and after all."""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.evaluation.progress import Progress
from ddx_local.launch import Opened
from tests.evaluation.world import BASE, THREE, World, suite_of, write_cases, zero_shot


def main(folder: Path, count: int) -> None:
    """Peaks in KiB at 100 cases of each of the two methods and at the end, seconds of the run and of a new scoring."""
    world = World(folder)
    raw = suite_of(write_cases(folder / "cases.jsonl", count), [BASE, THREE])
    bench_id = world.begin(raw)
    peaks: dict[int, int] = {}
    before = Progress.hear

    def hear(self: Progress, arm: str, model: str, event: Any) -> None:
        before(self, arm, model, event)
        peaks.setdefault(sum(self.done.values()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    Progress.hear = hear  # type: ignore[method-assign]

    async def open_all(_: Any, **__: Any) -> Opened:
        return Opened(ScriptedEngine(zero_shot, keep=False), {})

    began = time.perf_counter()
    asyncio.run(world.drive(bench_id, open_all, 8))
    ran = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    rows = asyncio.run(world.rows(bench_id))
    print(json.dumps({
        "after_100": peaks[100], "after_all": peak, "rows": len(rows), "run_seconds": ran,
        "score_seconds": time.perf_counter() - began,
    }))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
