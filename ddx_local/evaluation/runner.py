"""Run a suite: plan its runs, write the record, drive all runs of a model together on one engine, resume what was cut off.

Each arm and seed is an ordinary run of the ordinary store; their cases share one gate, so that the engine is full whatever
each method does next. Methods get `Case` values: golds stay in the record.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from ddx_local import jobs, options
from ddx_local.case import Case
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import ReplayMismatch
from ddx_local.evaluation import stamp
from ddx_local.evaluation.budget import sample_count
from ddx_local.evaluation.plan import models_of, planned, some_options, suite_of
from ddx_local.evaluation.progress import Progress
from ddx_local.evaluation.record import Bench, PlannedRun, Record
from ddx_local.evaluation.suite import Arm, Suite
from ddx_local.launch import Opened, engine_settings, main_model, open_all
from ddx_local.settings import Settings
from ddx_local.store import Store
from ddx_local.store_file import claimed

Say = Callable[[str], None]


async def drive(
    bench_id: str,
    record: Record,
    store: Store,
    settings: Settings,
    *,
    say: Say,
    show: Say,
    at_once: int,
    opener: Callable[..., Any] = open_all,
) -> None:
    """Run what is owed of a benchmark to its end.

    Args:
        bench_id: A recorded benchmark.
        record: Its record.
        store: The run store.
        settings: How engines are opened.
        say: Hears what happens.
        show: Hears lines of progress.
        at_once: Cases in flight, over all runs.
        opener: Opens an engine, as `launch.open_all` does.

    Raises:
        ReplayMismatch: A prompt, grammar or the engine is no longer that of the benchmark; it says which.
    """
    bench = record.load(bench_id)
    suite = suite_of(bench)
    _same_prompts(bench, suite)
    with ExitStack() as held:
        if record.path is not None:
            held.enter_context(claimed(record.path, bench_id))
        try:
            progress = Progress(_owed(bench, store), (suite.price_in, suite.price_out), show)
            for model in models_of(suite, settings):
                await _drive_model(bench_id, model, suite, record, store, settings, say, progress, at_once, opener)
        except BaseException:
            record.update(bench_id, status="interrupted")
            raise
        show(progress.line())
    record.update(bench_id, status="finished")


async def _drive_model(
    bench_id: str,
    model: str,
    suite: Suite,
    record: Record,
    store: Store,
    settings: Settings,
    say: Say,
    progress: Progress,
    at_once: int,
    opener: Callable[..., Any],
) -> None:
    """All runs of a model: first what needs no count of tokens, then the equal-budget arms."""
    bench = record.load(bench_id)
    equal = [arm for arm in suite.arms if arm.role == "equal-budget"]
    due = [run for run in _unfinished(bench, store) if run.model == model]
    unplanned = [arm for arm in equal if not any(r.arm == arm.label and r.model == model for r in bench.runs)]
    if not due and not unplanned:
        return
    here = settings if settings.engine == "scripted" else settings.model_copy(update={"model": model})
    embedding = any(
        jobs.method(arm.method).embedding(options.parse(jobs.method(arm.method).options, some_options(arm), arm.method))
        for arm in suite.arms
    )
    opened: Opened = await opener(here, embedding=embedding, say=say, store=store.path)
    try:
        _same_engine(bench, model, opened, record)
        gate = asyncio.Semaphore(at_once)
        cases = {case.id: case.case for case in bench.cases}
        arms = {arm.label: arm for arm in suite.arms}

        async def run(item: PlannedRun) -> None:
            await _run(item, arms[item.arm], cases, opened, store, here, progress, gate)

        await all_or_first_error([run(item) for item in due])
        if unplanned:
            counts = {
                arm.label: sample_count(arm, suite, record.load(bench_id), store, model, say) for arm in unplanned
            }
            more = planned(suite, unplanned, model, bench.cases, counts)
            record.add_runs(bench_id, more)
            progress.add(Counter((item.arm, item.model) for item in more for _ in item.cases))
            await all_or_first_error([run(item) for item in more])
    finally:
        await opened.aclose()


async def _run(
    item: PlannedRun,
    arm: Arm,
    cases: Mapping[str, Case],
    opened: Opened,
    store: Store,
    settings: Settings,
    progress: Progress,
    gate: asyncio.Semaphore,
) -> None:
    def hear(event: Any, _: Mapping[str, str]) -> None:
        progress.hear(item.arm, item.model, event)

    if any(row.run_id == item.run_id for row in store.runs()):
        await jobs.resume(item.run_id, opened, store, hear, gate)
        return
    method = jobs.method(arm.method)
    job = jobs.Job(
        method=method,
        options=options.parse(method.options, item.options, method.name),
        model=main_model(settings),
        engine=settings.engine,
        seed=item.seed,
        settings={**engine_settings(settings), "roles": {}},
        cases=tuple(cases[case_id] for case_id in item.cases),
    )
    await jobs.start(job, opened, store, hear, gate, run_id=item.run_id)


def _unfinished(bench: Bench, store: Store) -> list[PlannedRun]:
    """Runs that have not ended; one whose cases failed has."""
    status = {row.run_id: row.status for row in store.runs()}
    return [run for run in bench.runs if status.get(run.run_id) != "finished"]


def _owed(bench: Bench, store: Store) -> Counter[tuple[str, str]]:
    return Counter((run.arm, run.model) for run in _unfinished(bench, store) for _ in run.cases)


def _same_prompts(bench: Bench, suite: Suite) -> None:
    now_here = stamp.prompts(arm.method for arm in suite.arms)
    if changed := stamp.changed(bench.body["prompts"], now_here):
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ReplayMismatch(
            f"benchmark {bench.row.bench_id}: prompt or grammar files are no longer those of its beginning: "
            f"{', '.join(changed[:3])}{more}",
            "Its numbers would mix two versions: start a new benchmark, or go back to the version that began this one.",
        )


def _same_engine(bench: Bench, model: str, opened: Opened, record: Record) -> None:
    here = json.loads(json.dumps(dict(opened.engine.fingerprint)))
    before = bench.body["fingerprints"].get(model)
    if before is None:
        body = {**bench.body, "fingerprints": {**bench.body["fingerprints"], model: here}}
        record.update(bench.row.bench_id, body=body)
    elif changed := stamp.changed(before, here):
        raise ReplayMismatch(
            f"benchmark {bench.row.bench_id}: the engine differs from the one that it began with in {', '.join(changed)}"
        )
