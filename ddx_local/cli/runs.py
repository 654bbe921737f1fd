"""`ddx-local runs`: the history of this machine: list, show, resume, replay, export, remove, purge."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="List, show, resume, replay, export and remove recorded runs.", no_args_is_help=True, rich_markup_mode=None
)

StoreOption = Annotated[Path | None, typer.Option("--store", help="Run store to use.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the unique beginning of one, or `last`.")]


def _open(path: Path | None) -> Any:
    """The store; where there is none yet an empty one in memory, so that looking makes no file."""
    from ddx_local.errors import StoreError
    from ddx_local.settings import load
    from ddx_local.store import Store

    found = load(store=path).store_path
    if path is not None and not found.exists():
        raise StoreError(f"--store {path}: no such file", "Give the store of an earlier run, or leave it out.")
    return Store(found if found.exists() else None)


def _record(opened: Any, action: str, run_id: str = "", **facts: Any) -> None:
    """Write the audit record before anything is shown or done; a store in memory has none."""
    from ddx_local.cli.audited import record

    if opened.path is not None:
        record(action, run_id, store=opened.path, **facts)


@app.command("list", epilog="Example: ddx-local runs list --json")
def list_runs(
    store: StoreOption = None, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """All recorded runs, the newest first."""
    import dataclasses
    import json

    opened = _open(store)
    rows = opened.runs()
    _record(opened, "runs.list")
    ended = {row.run_id: opened.ended(row.run_id) for row in rows}
    if json_out:
        found = [
            dataclasses.asdict(row) | dict(zip(("finished", "failed"), ended[row.run_id], strict=True)) for row in rows
        ]
        print(json.dumps(found))
        return
    if not rows:
        print("No runs yet. Try: ddx-local diagnose case.txt")
    for row in rows:
        status = "running or interrupted" if row.status == "running" else row.status
        done = ", ".join(
            f"{count} {word}" for count, word in zip(ended[row.run_id], ("finished", "failed"), strict=True) if count
        )
        print(
            f"{row.run_id}  {row.method:16} {row.model:16} {row.cases:4} cases  {status}{f' ({done})' if done else ''}"
        )


@app.command("show", epilog="Example: ddx-local runs show last --html report.html")
def show(
    run: Run,
    store: StoreOption = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    html_out: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE", help="As a report to read or print, one self-contained file, and no more."
        ),
    ] = None,
) -> None:
    """The results of a run."""
    from ddx_local import jobs
    from ddx_local.cli.out import Out, one_or_list, print_json, write_report
    from ddx_local.cli.show import print_result

    Out(html=html_out).check()
    opened = _open(store)
    row = opened.find(run)
    documents = jobs.documents(opened, row.run_id)
    _record(opened, "run.show", row.run_id)
    texts = {case.id: case.text for case in jobs.recorded(opened, row.run_id)[1]}
    if html_out is not None:
        write_report(Path(html_out), documents, texts, "Nothing was written.")
    if json_out:
        print_json(one_or_list(documents))
    if json_out or html_out is not None:
        return
    for document in documents:
        print_result(document, texts[document["case_id"]])


@app.command("resume", epilog="Example: ddx-local runs resume last")
def resume(
    run: Run,
    store: StoreOption = None,
    json_out: Annotated[
        str | None, typer.Option("--json", metavar="OUT", help="Write the result document to a file or -.")
    ] = None,
    html_out: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a report to read or print, one self-contained file."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view and no report.")] = False,
    supervise: Annotated[
        bool, typer.Option("--supervise", help="After each round wait for your comment; it enters all later questions.")
    ] = False,
) -> None:
    """Finish an interrupted run; no finished call is repeated."""
    from ddx_local import offline
    from ddx_local.cli import run_live
    from ddx_local.cli.out import Out

    offline.go_offline()
    opened = _open(store)
    out = Out(json_out, html_out, quiet)
    run_live.resume(opened, opened.find(run).run_id, out, supervise=supervise)


@app.command("replay", epilog="Example: ddx-local runs replay last")
def replay(
    run: Run,
    store: StoreOption = None,
    json_out: Annotated[bool, typer.Option("--json", help="The results as JSON.")] = False,
) -> None:
    """Work a run out again from its recorded answers, without a model, and check that the same comes out."""
    import asyncio

    from ddx_local import jobs
    from ddx_local.cli.out import one_or_list, print_json

    opened = _open(store)
    run_id = opened.find(run).run_id
    _record(opened, "run.replay", run_id)
    documents = asyncio.run(jobs.replay(run_id, opened))
    if json_out:
        print_json(one_or_list(documents))
    else:
        count = f"{len(documents)} cases" if len(documents) > 1 else "one case"
        print(f"{count} worked out again from the recorded answers: the same results")


@app.command("summarize", epilog="Example: ddx-local runs summarize --last 10")
def summarize(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids of runs; the newest ones where none is given.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="How many runs, where none is named.")] = 20,
    store: StoreOption = None,
    model: Annotated[str | None, typer.Option(help="Model that writes the summary. [the settings' model]")] = None,
    engine: Annotated[str | None, typer.Option(help="vllm, transformers or scripted. [vllm]")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Let the model say what was tried in past runs and how it ended; the counts are the program's own."""
    import asyncio
    import dataclasses
    import sys

    from ddx_local import DISCLAIMER, memory, offline
    from ddx_local.cli.out import print_json
    from ddx_local.errors import UsageError
    from ddx_local.launch import open_all
    from ddx_local.settings import load

    offline.go_offline()
    opened_store = _open(store)
    rows = [opened_store.find(run) for run in runs] if runs else list(opened_store.runs()[:last])
    if not rows:
        raise UsageError("runs summarize: there are no runs yet", "Try: ddx-local diagnose case.txt")
    _record(opened_store, "runs.summarize", count=len(rows))
    given = {name: value for name, value in (("model", model), ("engine", engine)) if value is not None}
    settings = load(**given, store=store)
    say = lambda line: print(line, file=sys.stderr)  # noqa: E731

    async def whole() -> memory.Summary:
        opened = await open_all(settings, embedding=False, say=say, store=opened_store.path)
        try:
            return await memory.summarize(
                opened_store, list(dict.fromkeys(row.run_id for row in rows)), opened, seed=settings.seed
            )
        finally:
            await opened.engine.aclose()

    found = asyncio.run(whole())
    if json_out:
        print_json({**dataclasses.asdict(found), "disclaimer": DISCLAIMER})
        return
    count = found.counts
    print(
        f"{count.runs} runs, {count.cases} cases: {count.finished} finished, {count.failed} failed, {count.open} open"
    )
    if found.left_out:
        print(f"The {found.left_out} oldest runs did not fit the model's context: it has not read them.")
    print(f"Tried:  {found.tried}\nEnded:  {found.ended}\nFailed: {found.failed}\n\nWritten by the model. {DISCLAIMER}")


@app.command("export", epilog="Example: ddx-local runs export last --out run.json")
def export(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
    store: StoreOption = None,
) -> None:
    """A whole run as JSON: settings, events, texts, results. It holds the case texts."""
    from ddx_local import jobs
    from ddx_local.cli.out import check_writable, json_text, print_json, write_private
    from ddx_local.events import to_json

    if out is not None:
        check_writable(out, "--out")
    opened = _open(store)
    run_id = opened.find(run).run_id
    _record(opened, "run.export", run_id)
    whole = {
        "schema": "ddx-local/run/1",
        "run_id": run_id,
        "events": [to_json(event) for event in opened.events(run_id)],
        "texts": dict(opened.all_texts(run_id)),
        "results": jobs.documents(opened, run_id),
    }
    if out is None:
        print_json(whole)
    else:
        write_private(out, json_text(whole), "--out", "Nothing was written.")


@app.command("rm", epilog="Example: ddx-local runs rm 20260101-120000-1a2b3c4d")
def remove(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")],
    store: StoreOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete runs with all their texts; this cannot be undone."""
    from ddx_local.errors import UsageError

    opened = _open(store)
    rows = list(dict.fromkeys(opened.find(run) for run in runs))
    if not yes and not _confirmed(f"Delete {len(rows)} run(s) with their texts?"):
        raise UsageError("nothing was deleted", "Give --yes to delete without being asked.")
    for row in rows:
        _record(opened, "run.delete", row.run_id)
        opened.remove(row.run_id)
        print(f"deleted {row.run_id}")


@app.command("purge", epilog="Example: ddx-local runs purge --before 2026-01-01 --yes")
def purge(
    before: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="A date such as 2026-01-31 (UTC), or an age such as 30d. [the setting retention_days]"
        ),
    ] = None,
    store: StoreOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete all runs from before a day, with their texts; this cannot be undone."""
    from ddx_local import retention
    from ddx_local.errors import UsageError
    from ddx_local.settings import load

    limit = retention.limit(before, load(store=store).retention_days)
    opened = _open(store)
    old = retention.expired(opened, limit)
    if not old:
        print(f"no runs from before {limit:%Y-%m-%d %H:%M} UTC")
        return
    if not yes and not _confirmed(
        f"Delete {len(old)} run(s) from before {limit:%Y-%m-%d %H:%M} UTC, with their texts?"
    ):
        raise UsageError("nothing was deleted", "Give --yes to delete without being asked.")
    _record(opened, "runs.purge", count=len(old))
    gone = retention.purge(opened, old)
    kept = f"; {len(old) - len(gone)} are being worked on and stay" if len(gone) < len(old) else ""
    print(f"deleted {len(gone)} run(s){kept}")


def _confirmed(question: str) -> bool:
    """A yes on a terminal; without one nobody can be asked."""
    import sys

    return sys.stdin is not None and sys.stdin.isatty() and typer.confirm(question)
