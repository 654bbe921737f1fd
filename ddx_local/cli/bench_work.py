"""Behind `ddx-local bench`: settings, record and store, progress, a clean end on Ctrl-C, reports on their way out."""

import asyncio
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ddx_local import offline
from ddx_local.cli.bench_out import Out, chosen, elsewhere, found, look, opened, rows
from ddx_local.cli.out import print_json, write_private
from ddx_local.errors import DdxLocalError, ReplayMismatch, UsageError, nearest
from ddx_local.evaluation import plan, runner
from ddx_local.evaluation import suite as suites
from ddx_local.evaluation import verify as verifying
from ddx_local.evaluation.compare import between
from ddx_local.evaluation.export import FORMATS
from ddx_local.evaluation.match_open import matcher as open_matcher
from ddx_local.evaluation.record import Record
from ddx_local.evaluation.report_section import span
from ddx_local.settings import Settings, load
from ddx_local.store import Store


def run(
    name: str,
    data: Path | None,
    limit: int | None,
    models: tuple[str, ...],
    flags: Mapping[str, Any],
    out: Out,
    *,
    dry_run: bool,
) -> None:
    """Run a suite, score it, report."""
    offline.go_offline()
    path = suites.find(name)
    suites.read(path)
    raw = plan.with_flags(tomllib.loads(path.read_text("utf-8")), limit=limit, data=data, models=models)
    suite = suites.parse(raw, path)
    # Paths are kept as they were found, so that a resume needs no folder of the suite.
    for key in ("path", "medqa"):
        if value := getattr(suite.data, key):
            raw["data"][key] = value
    settings = load(**{**suite.engine, **flags})
    out.check()
    if dry_run:
        _forecast(suite, settings)
        return
    store, record = opened(settings.store_path)
    bench_id = plan.begin(suite, raw, settings, record)
    _drive(bench_id, record, store, settings, out)


def resume(name: str, store_path: Path | None, at_once: int | None, out: Out) -> None:
    """Go on with a benchmark, with the engine settings that it began with."""
    offline.go_offline()
    settings = load(**{k: v for k, v in {"store": store_path, "at_once": at_once}.items() if v is not None})
    store, record = opened(settings.store_path, must_exist=True)
    bench_id = record.find(name)
    out.check()
    settings = settings.model_copy(update=record.load(bench_id).body["settings"])
    _drive(bench_id, record, store, settings, out)


def _drive(bench_id: str, record: Record, store: Store, settings: Settings, out: Out) -> None:
    def show(line: str) -> None:
        if not out.quiet:
            print(line, file=sys.stderr, flush=True)

    show(f"benchmark {bench_id}")

    async def whole() -> dict[str, Any]:
        await runner.drive(bench_id, record, store, settings, say=show, show=show, at_once=settings.at_once)
        choice = plan.suite_of(record.load(bench_id)).match
        async with open_matcher(choice, settings, record, show) as matcher:
            return await verifying.scored(bench_id, record, store, matcher, choice)

    again = f"ddx-local bench resume {bench_id}{elsewhere(store)}"
    try:
        report = asyncio.run(whole())
    except KeyboardInterrupt:
        print(f"\nStopped. Nothing is lost; go on with:  {again}", file=sys.stderr)
        raise typer.Exit(130) from None
    except DdxLocalError as error:
        if not isinstance(error, ReplayMismatch):
            error.hint = f"{error.hint} What was finished is kept: `{again}`."
        raise
    out.give(report)
    if any(arm["n_failed"] for arm in report["arms"]):
        raise typer.Exit(6)


def list_all(store_path: Path | None, *, shipped: bool, as_json: bool) -> None:
    """Benchmarks, or the suites that ship."""
    if shipped:
        for path in suites.shipped():
            print(f"{path.stem:12} {suites.read(path).description}")
        return
    record = look(store_path)[1]
    benches = record.rows() if record else ()
    if as_json:
        print_json([asdict(row) for row in benches])
        return
    if not benches:
        print("No benchmarks yet. Try: ddx-local bench run quick")
    for row in benches:
        status = "running or killed" if row.status == "running" else row.status
        print(f"{row.bench_id}  {row.suite:14} {row.created_at[:16]}  {status}")


def report(name: str, store_path: Path | None, label: str | None, out: Out) -> None:
    """The saved report; where there is none yet, what is recorded is scored by the default matcher."""
    store, record, bench = found(name, store_path)
    out.check()
    saved = record.scores(bench.row.bench_id)
    if not saved or (label is None and bench.row.status != "finished"):
        choice = suites.Match()
        out.give(asyncio.run(_score(bench.row.bench_id, record, store, load(), choice)))
        return
    out.give(chosen(saved, label, bench)["report"])


def rescore(name: str, store_path: Path | None, changes: Mapping[str, Any], out: Out) -> None:
    """Score again by the suite's matcher, or by what the flags put in its place."""
    offline.go_offline()
    store, record, bench = found(name, store_path)
    out.check()
    before = {k: v for k, v in asdict(plan.suite_of(bench).match).items() if v is not None}
    base = {} if changes.get("kind", before["kind"]) != before["kind"] else before
    choice = suites.checked_match({**base, **changes}, "the command line")
    settings = load().model_copy(update=bench.body["settings"])
    out.give(asyncio.run(_score(bench.row.bench_id, record, store, settings, choice)))


async def _score(
    bench_id: str, record: Record, store: Store, settings: Settings, choice: suites.Match
) -> dict[str, Any]:
    async with open_matcher(choice, settings, record, lambda line: print(line, file=sys.stderr)) as matcher:
        return await verifying.scored(bench_id, record, store, matcher, choice)


def compare(one: str, two: str, store_path: Path | None, arms: str | None, *, as_json: bool) -> None:
    """Two benchmarks, paired."""
    _, record, first = found(one, store_path)
    second = record.load(record.find(two))
    pair = tuple(part.strip() for part in arms.split(",")) if arms else None
    if pair is not None and len(pair) != 2:
        raise UsageError(f"--arms {arms}: must be two names with a comma between them")
    items = between((first, rows(record, first)), (second, rows(record, second)), (pair[0], pair[1]) if pair else None)
    if as_json:
        print_json(items)
        return
    for item in items:
        tests = "; ".join(f"{t['b']} gained, {t['c']} lost, exact p {t['two_sided']:.3g}" for t in item["mcnemar_top1"])
        print(
            f"{item['method']} ({second.row.bench_id}) - {item['baseline']} ({first.row.bench_id}) on {item['model']}"
        )
        print(
            f"  cases in common {item['n_common']} ({item['only_baseline']} only in the first); failed {item['failed']}"
        )
        print(f"  F1 {span(item['delta_f1'], sign='+')}  precision {span(item['delta_precision'], sign='+')}  "
              f"recall {span(item['delta_recall'], sign='+')}")  # fmt: skip
        print(
            f"  p {item['p']:.3g}, Holm {item['p_holm']:.3g} over {item['holm_over']}; smallest difference shown {item['mde']:.3f}"
        )
        print(f"  top-1 by seed: {tests}")
        differ = item["answers_that_differ"]
        print(f"  answers that differ with the same seed: {differ['differ']} of {differ['n']}")
        print(f"  {item['verdict']}")


def verify(name: str, store_path: Path | None, *, as_json: bool) -> None:
    """Every number again; exits with 8 where something differs."""
    store, record, bench = found(name, store_path)
    settings = load().model_copy(update=bench.body["settings"])
    checks = asyncio.run(verifying.verify(bench.row.bench_id, record, store, settings))
    if as_json:
        print_json([asdict(item) for item in checks])
    else:
        for item in checks:
            mark = {True: "ok", False: "DIFFERS", None: "note"}[item.ok]
            print(f"{mark:8} {item.what}{': ' + item.detail if item.detail else ''}")
    if any(item.ok is False for item in checks):
        raise typer.Exit(8)


def export(name: str, store_path: Path | None, form: str, out: Path, label: str | None) -> None:
    """Files for other tools."""
    if form not in FORMATS:
        raise UsageError(f"--format {form}: no such format: {nearest(form, list(FORMATS))}")
    _, record, bench = found(name, store_path)
    files = FORMATS[form](bench, rows(record, bench, label))
    for file, text in files.items():
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, text, "--out", "Nothing more was written.")
        print(path)


def _forecast(suite: suites.Suite, settings: Settings) -> None:
    data = plan.data_of(suite)
    counts = Counter(
        (run.arm, run.model, run.seed)
        for model in plan.models_of(suite, settings)
        for run in plan.planned(suite, suite.arms, model, data.cases)
        for _ in run.cases
    )
    print(f"{data.name}: {len(data.cases)} cases, sha256 {data.sha256}")
    for (arm, model, seed), count in counts.items():
        print(f"{arm:28} {model:16} seed {seed:<8} {count} cases")
    for later in (item for item in suite.arms if item.role == "equal-budget"):
        print(f"{later.label:28} after {later.tokens_of}, with as many samples as use its tokens")
    print(
        f"{sum(counts.values())} cases in all; matcher {suite.match.kind}; `ddx-local methods show NAME` has the calls of a case"
    )
