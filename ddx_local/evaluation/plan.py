"""From a suite to the runs that it means, written down before anything is opened."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ddx_local import jobs
from ddx_local.errors import UsageError
from ddx_local.evaluation import stamp
from ddx_local.evaluation.datasets import DataSet, LabelledCase, choose, load
from ddx_local.evaluation.datasets_hygiene import flagged
from ddx_local.evaluation.record import Bench, BenchRow, PlannedRun, Record
from ddx_local.evaluation.suite import PLACEBO_SEED, Arm, Suite, parse
from ddx_local.launch import engine_settings
from ddx_local.recorder import now
from ddx_local.settings import Settings


def data_of(suite: Suite) -> DataSet:
    """The suite's cases; raises what loading and choosing raise."""
    chosen = suite.data
    path = Path(chosen.path) if chosen.path else None
    data = load(chosen.source, path, sha256=chosen.sha256 or None, options=chosen.options)
    if chosen.medqa:
        data = flagged(data, Path(chosen.medqa))
    return choose(data, chosen.limit, chosen.cases, chosen.where)


def begin(suite: Suite, raw: Mapping[str, Any], settings: Settings, record: Record) -> str:
    """Plan a benchmark and write it down, before any engine is opened; returns its id.

    Args:
        suite: What to run.
        raw: The suite as it was written, with flags applied, for a resume.
        settings: How engines are opened.
        record: Where it is kept.
    """
    data = data_of(suite)
    bench_id = f"bench-{jobs.new_run_id()}"
    body = {
        "suite": dict(raw),
        "data": {
            "name": data.name, "path": data.path, "sha256": data.sha256, "rows": stamp.rows_digest(data.cases),
            "licence": data.licence, "ranked": data.ranked, "n": len(data.cases),
        },
        "notes": list(data.notes),
        "settings": {**engine_settings(settings), "engine": settings.engine, "embedding_model": settings.embedding_model},
        "prompts": stamp.prompts(arm.method for arm in suite.arms),
        "code": stamp.code(),
        "fingerprints": {},
    }  # fmt: skip
    runs = [run for model in models_of(suite, settings) for run in planned(suite, suite.arms, model, data.cases)]
    record.add(BenchRow(bench_id, now(), suite.name, "running"), body, runs, data.cases)
    return bench_id


def models_of(suite: Suite, settings: Settings) -> tuple[str, ...]:
    return suite.models if settings.engine != "scripted" else ("scripted",)


def planned(
    suite: Suite,
    arms: Sequence[Arm],
    model: str,
    cases: Sequence[LabelledCase],
    counts: Mapping[str, int] | None = None,
) -> list[PlannedRun]:
    """The runs of some arms on a model; equal-budget arms only once their sample counts are known."""
    found = []
    for arm in arms:
        if arm.role == "equal-budget" and (counts is None or arm.label not in counts):
            continue
        for seed in suite.seeds:
            used = seed + PLACEBO_SEED if arm.role == "placebo" else seed
            for values, ids in _parts(arm, cases, (counts or {}).get(arm.label)):
                found.append(PlannedRun(jobs.new_run_id(), arm.label, model, used, values, ids))
    return found


def _parts(arm: Arm, cases: Sequence[LabelledCase], count: int | None) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """Options and case ids of an arm's runs: one run, or one for each number of golds under the oracle policy."""
    values = dict(arm.options)
    if count is not None:
        values[_count_option(arm)] = count
    if arm.k != "oracle":
        return [(values, tuple(case.id for case in cases))]
    sizes = sorted(Counter(len(case.gold) for case in cases))
    return [({**values, "k": size}, tuple(case.id for case in cases if len(case.gold) == size)) for size in sizes]


def _count_option(arm: Arm) -> str:
    method = jobs.method(arm.method)
    for name in ("n", "samples"):
        if hasattr(method.options(), name):
            return name
    raise UsageError(
        f"`{arm.label}`: method `{arm.method}` has no number of samples to choose", "Use best-of-n with `tokens_of`."
    )


def suite_of(bench: Bench) -> Suite:
    """The recorded suite."""
    return parse(bench.body["suite"], Path(f"{bench.row.suite}.toml"))


def with_flags(
    raw: Mapping[str, Any], *, limit: int | None, data: Path | None, models: Sequence[str]
) -> dict[str, Any]:
    """A suite's decoded TOML with what a command line puts in its place."""
    found = json.loads(json.dumps(dict(raw)))
    if limit is not None:
        found.setdefault("data", {})["limit"] = limit
    if data is not None:
        found.setdefault("data", {})["path"] = str(data.resolve())
    if models:
        found["models"] = list(models)
    return dict(found)


def describe(suite: Suite) -> dict[str, Any]:
    """A suite as JSON."""
    return asdict(replace(suite))


def some_options(arm: Arm) -> dict[str, Any]:
    """An arm's options as its method takes them, also where k is only known case by case."""
    return {**arm.options, **({"k": 1} if arm.k == "oracle" else {})}
