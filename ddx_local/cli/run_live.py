"""Behind `diagnose` and `runs resume`: settings, engine, live view, results, and a clean end on Ctrl-C."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ddx_local import jobs, options
from ddx_local.clinical.intake import read_cases
from ddx_local.errors import DdxLocalError, UsageError
from ddx_local.launch import Opened, engine_settings, open_all
from ddx_local.result import Json
from ddx_local.settings import Settings, load
from ddx_local.store import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of `diagnose`; `flags` holds settings by name."""

    sources: tuple[str, ...]
    method: str | None
    options: tuple[str, ...]
    json_out: str | None
    quiet: bool
    no_store: bool
    dry_run: bool
    flags: Mapping[str, Any]


def run(asked: Asked) -> None:
    """Run the cases; exits with 6 where one failed and with 130 on Ctrl-C."""
    from ddx_local import offline

    offline.go_offline()
    settings = load(**asked.flags)
    method = jobs.method(asked.method or settings.default_method)
    values = {**settings.method.get(method.name, {}), **options.parse_pairs(asked.options)}
    chosen = options.parse(method.options, values, method.name)
    job = jobs.Job(
        method=method,
        options=chosen,
        model=settings.model if settings.engine != "scripted" else "scripted",
        engine=settings.engine,
        seed=settings.seed,
        settings=engine_settings(settings),
        cases=read_cases(asked.sources),
    )
    _check_out(asked.json_out)
    if asked.dry_run:
        from ddx_local.cli.forecast import print_forecast

        print_forecast(job)
        return
    store = Store(None if asked.no_store else settings.store_path)
    work: Callable[[Opened, jobs.Listener], Awaitable[str]] = lambda opened, hear: jobs.start(  # noqa: E731
        job, opened, store, hear, settings.at_once
    )
    finish(store, settings, method.embedding(chosen), work, asked.json_out, quiet=asked.quiet, kept=not asked.no_store)


def resume(store: Store, run_id: str, json_out: str | None, *, quiet: bool) -> None:
    """Finish an interrupted run with the model and engine settings that it began with."""
    header, _ = jobs.recorded(store, run_id)
    method = jobs.method(header.method)
    chosen = options.parse(method.options, header.options, method.name)
    own = {name: value for name, value in header.settings.items() if value is not None}
    engine = {"engine": header.engine, **({"model": header.model} if header.engine != "scripted" else {})}
    settings = load(**{**own, **engine})
    _check_out(json_out)
    work: Callable[[Opened, jobs.Listener], Awaitable[str]] = lambda opened, hear: jobs.resume(  # noqa: E731
        run_id, opened, store, hear, settings.at_once
    )
    finish(store, settings, method.embedding(chosen), work, json_out, quiet=quiet, kept=True)


def finish(
    store: Store,
    settings: Settings,
    embedding: bool,
    work: Callable[[Opened, jobs.Listener], Awaitable[str]],
    json_out: str | None,
    *,
    quiet: bool,
    kept: bool,
) -> None:
    """Open the engine, do the work under a live view, print and write the results."""
    from ddx_local.cli.live import LiveView

    view = LiveView(quiet=quiet)

    async def whole() -> str:
        opened = await open_all(settings, embedding=embedding, say=view.say)
        try:
            return await work(opened, view.hear)
        finally:
            await opened.engine.aclose()

    try:
        with view:
            run_id = asyncio.run(whole())
    except KeyboardInterrupt:
        if kept and view.run_id:
            print(f"\nStopped. Nothing is lost; go on with:  ddx-local runs resume {view.run_id}", file=sys.stderr)
        else:
            print("\nStopped.", file=sys.stderr)
        raise typer.Exit(130) from None
    except DdxLocalError as error:
        if kept and view.run_id:
            error.hint = f"{error.hint} What was finished is kept: `ddx-local runs resume {view.run_id}`."
        raise
    documents = jobs.documents(store, run_id)
    texts = {case.id: case.text for case in jobs.recorded(store, run_id)[1]}
    store.close()
    _write(json_out, documents)
    if not quiet and json_out != "-":
        from ddx_local.cli.show import print_result

        for document in documents:
            print_result(document, texts[document["case_id"]])
        if kept:
            print(f"Recorded as {run_id}: `ddx-local runs show {run_id}`", file=sys.stderr)
    if any(document["status"] == "failed" for document in documents):
        raise typer.Exit(6)


def _check_out(json_out: str | None) -> None:
    """Find out before the work, not after it, that the result cannot be written."""
    if json_out in (None, "-"):
        return
    path = Path(str(json_out))
    if path.is_dir() or not os.access(path.parent if path.parent != Path() else ".", os.W_OK):
        raise UsageError(f"--json {path}: cannot be written", "Give a file in a folder that exists and is writable.")


def _write(json_out: str | None, documents: Sequence[Json]) -> None:
    if json_out is None:
        return
    whole = documents[0] if len(documents) == 1 else list(documents)
    text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
    if json_out == "-":
        sys.stdout.write(text)
        return
    path = Path(json_out)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Made readable by the owner alone from the start: it quotes the case.
        with os.fdopen(os.open(scratch, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise UsageError(f"--json {path}: cannot be written: {error.strerror}", "The run itself is recorded.") from None
