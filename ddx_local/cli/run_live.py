"""Behind `diagnose` and `runs resume`: settings, engine, live view, results, and a clean end on Ctrl-C."""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ddx_local import jobs, options
from ddx_local.cli.out import check_writable, json_text, one_or_list, print_json, write_private
from ddx_local.clinical.intake import read_cases
from ddx_local.errors import DdxLocalError, ReplayMismatch
from ddx_local.launch import Opened, engine_settings, open_all
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
    _check_out(json_out)
    if jobs.is_whole(store, run_id):
        _give(store, run_id, json_out, quiet=quiet, kept=True)
        return
    engine = {"engine": header.engine, **({"model": header.model} if header.engine != "scripted" else {})}
    # Also what was not set then stays not set now, whatever the settings file says meanwhile.
    settings = load().model_copy(update={**header.settings, **engine})
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
            print(f"\nStopped. Nothing is lost; go on with:  {_command('resume', store, view.run_id)}", file=sys.stderr)
        else:
            print("\nStopped.", file=sys.stderr)
        raise typer.Exit(130) from None
    except DdxLocalError as error:
        if kept and view.run_id and not isinstance(error, ReplayMismatch):
            error.hint = f"{error.hint} What was finished is kept: `{_command('resume', store, view.run_id)}`."
        raise
    _give(store, run_id, json_out, quiet=quiet, kept=kept)


def _give(store: Store, run_id: str, json_out: str | None, *, quiet: bool, kept: bool) -> None:
    documents = jobs.documents(store, run_id)
    texts = {case.id: case.text for case in jobs.recorded(store, run_id)[1]}
    store.close()
    if json_out == "-":
        print_json(one_or_list(documents))
    elif json_out is not None:
        again = f"The run is recorded: `{_command('show', store, run_id)} --json`."
        hint = again if kept else "Nothing was kept (--no-store)."
        write_private(Path(json_out), json_text(one_or_list(documents)), "--json", hint)
    if not quiet and json_out != "-":
        from ddx_local.cli.show import print_result

        for document in documents:
            print_result(document, texts[document["case_id"]])
        if kept:
            print(f"Recorded as {run_id}: `{_command('show', store, run_id)}`", file=sys.stderr)
    if any(document["status"] == "failed" for document in documents):
        raise typer.Exit(6)


def _command(verb: str, store: Store, run_id: str) -> str:
    """What to type to come back to a run, wherever it is stored."""
    elsewhere = store.path is not None and store.path != load().store_path
    return f"ddx-local runs {verb} {run_id}" + (f" --store {shlex.quote(str(store.path))}" if elsewhere else "")


def _check_out(json_out: str | None) -> None:
    if json_out not in (None, "-"):
        check_writable(Path(str(json_out)), "--json")
