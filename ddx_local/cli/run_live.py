"""Behind `diagnose` and `runs resume`: settings, engine, live view, results, and a clean end on Ctrl-C."""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ddx_local import jobs, options, retention
from ddx_local.cli.audited import record
from ddx_local.cli.case_work import tell
from ddx_local.cli.failure import say
from ddx_local.cli.live import LiveView
from ddx_local.cli.out import Out, json_text, one_or_list, print_json, write_private, write_report
from ddx_local.cli.supervise import at_terminal, check_terminal
from ddx_local.clinical.intake import parse_columns, read_all
from ddx_local.clinical.taken import Reading
from ddx_local.errors import DdxLocalError, ReplayMismatch, UsageError
from ddx_local.home import expanded
from ddx_local.launch import Opened, engine_settings, main_model, open_all
from ddx_local.settings import Settings, load
from ddx_local.store import Store

Work = Callable[[Opened], Awaitable[str]]
"""Does the work on a running engine; returns the run's id."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of `diagnose`; `flags` holds settings by name."""

    sources: tuple[str, ...]
    method: str | None
    options: tuple[str, ...]
    json_out: str | None
    html_out: str | None
    quiet: bool
    no_store: bool
    dry_run: bool
    supervise: bool
    flags: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    with_diagnoses: bool = False


def run(asked: Asked) -> None:
    """Run the cases; exits with 6 where one failed and with 130 on Ctrl-C."""
    from ddx_local import offline

    offline.go_offline()
    settings = load(**asked.flags)
    method = jobs.method(asked.method or settings.default_method)
    chosen = jobs.method_options(method, settings.method, options.parse_pairs(asked.options))
    roles = jobs.roles(method, settings.roles, asked.flags.get("roles", {}))
    taken = read_all(asked.sources, Reading(parse_columns(asked.columns), asked.with_diagnoses))
    job = jobs.Job(
        method=method,
        options=chosen,
        model=main_model(settings),
        engine=settings.engine,
        seed=settings.seed,
        settings={**engine_settings(settings), "roles": roles},
        cases=tuple(item.case for item in taken),
    )
    out = Out(asked.json_out, asked.html_out, asked.quiet)
    out.check([*(item.source for item in taken), *_files(chosen)])
    if asked.supervise:
        check_terminal(asked.sources)
    if not asked.quiet:
        tell(taken)
    if asked.dry_run:
        _forecast(job, out)
        return
    store = Store(None if asked.no_store else settings.store_path)
    retention.apply(store, settings.retention_days)
    view = LiveView(quiet=out.quiet)
    supervise = at_terminal(settings.supervisor, view.ask) if asked.supervise else None
    work: Work = lambda opened: jobs.start(  # noqa: E731
        job, opened, store, view.hear, settings.at_once, supervise=supervise
    )
    finish(store, settings, roles, method.embedding(chosen), work, view, out, kept=not asked.no_store)


def _files(chosen: Any) -> list[str]:
    """The files that a method's options name: past cases, solved cases."""
    values = options.as_json(chosen).values()
    named = [expanded(value) for value in values if isinstance(value, str) and value]
    return [str(path) for path in named if path.is_file()]


def _forecast(job: jobs.Job, out: Out) -> None:
    """What the job would cost: as text, or where --json says; there is no result to report."""
    from ddx_local.cli.forecast import costs, print_forecast

    if out.html is not None:
        raise UsageError("--html: a dry run has no result to report", "Leave out --html, or --dry-run.")
    if out.json is None:
        print_forecast(job)
        return
    document = {"schema": "ddx-local/forecast/1", "method": job.method.name, "cost": costs(job)}
    if out.json == "-":
        print_json(document)
    else:
        write_private(Path(out.json), json_text(document), "--json", "Nothing was written.")


def resume(store: Store, run_id: str, out: Out, *, supervise: bool = False) -> None:
    """Finish an interrupted run with the model and engine settings that it began with."""
    header, _ = jobs.recorded(store, run_id)
    method = jobs.method(header.method)
    chosen = options.parse(method.options, header.options, method.name)
    out.check()
    if supervise:
        check_terminal(())
    if jobs.is_whole(store, run_id):
        _give(store, run_id, out, kept=True)
        return
    engine = {"engine": header.engine, **({"model": header.model} if header.engine != "scripted" else {})}
    # Also what was not set then stays not set now, whatever the settings file says meanwhile.
    settings = load().model_copy(update={**header.settings, **engine})
    view = LiveView(quiet=out.quiet)
    person = at_terminal(settings.supervisor, view.ask) if supervise else None
    work: Work = lambda opened: jobs.resume(  # noqa: E731
        run_id, opened, store, view.hear, settings.at_once, supervise=person
    )
    roles = header.settings.get("roles", {})
    finish(store, settings, roles, method.embedding(chosen), work, view, out, kept=True)


def finish(
    store: Store,
    settings: Settings,
    roles: Mapping[str, str],
    embedding: bool,
    work: Work,
    view: LiveView,
    out: Out,
    *,
    kept: bool,
) -> None:
    """Open the engine, do the work under a live view, print and write the results."""

    async def whole() -> str:
        opened = await open_all(settings, embedding=embedding, say=view.say, store=store.path, roles=roles)
        try:
            return await work(opened)
        finally:
            await opened.aclose()

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
    _give(store, run_id, out, kept=kept)


def _give(store: Store, run_id: str, out: Out, *, kept: bool) -> None:
    documents = jobs.documents(store, run_id)
    header, cases = jobs.recorded(store, run_id)
    texts = {case.id: case.text for case in cases}
    if store.path is not None:
        statuses = [document["status"] for document in documents]
        record(
            "run",
            run_id,
            "ok" if all(status == "finished" for status in statuses) else "failed",
            store=store.path,
            method=header.method,
            model=header.model,
            cases=len(cases),
        )
    store.close()

    def again(flag: str) -> str:
        return (
            f"The run is recorded: `{_command('show', store, run_id)} {flag}`."
            if kept
            else "Nothing was kept (--no-store)."
        )

    if out.json == "-":
        print_json(one_or_list(documents))
    elif out.json is not None:
        write_private(Path(out.json), json_text(one_or_list(documents)), "--json", again("--json"))
    if out.html is not None:
        write_report(Path(out.html), documents, texts, again("--html FILE"))
    if not out.quiet and out.json != "-":
        from ddx_local.cli.show import print_result

        for document in documents:
            print_result(document, texts[document["case_id"]])
        if kept:
            print(f"Recorded as {run_id}: `{_command('show', store, run_id)}`", file=sys.stderr)
    failed = [document for document in documents if document["status"] == "failed"]
    if failed and out.quiet:  # neither a live view nor a report has said why
        for document in failed:
            error = document["error"]
            say(f"case `{document['case_id']}` failed ({error['kind']}): {error['message']}", error["hint"])
    if failed:
        raise typer.Exit(6)


def _command(verb: str, store: Store, run_id: str) -> str:
    """What to type to come back to a run, wherever it is stored."""
    elsewhere = store.path is not None and store.path != load().store_path
    return f"ddx-local runs {verb} {run_id}" + (f" --store {shlex.quote(str(store.path))}" if elsewhere else "")
