"""`ddx-local runs`: the history of this machine: list, show, resume, replay, export, remove."""

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


@app.command("list", epilog="Example: ddx-local runs list --json")
def list_runs(
    store: StoreOption = None, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """All recorded runs, the newest first."""
    import dataclasses
    import json

    rows = _open(store).runs()
    if json_out:
        print(json.dumps([dataclasses.asdict(row) for row in rows]))
        return
    if not rows:
        print("No runs yet. Try: ddx-local diagnose case.txt")
    for row in rows:
        status = "running or interrupted" if row.status == "running" else row.status
        print(f"{row.run_id}  {row.method:12} {row.model:16} {row.cases:4} cases  {status}")


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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view and no report.")] = False,
) -> None:
    """Finish an interrupted run; no finished call is repeated."""
    from ddx_local import offline
    from ddx_local.cli import run_live

    offline.go_offline()
    opened = _open(store)
    run_live.resume(opened, opened.find(run).run_id, json_out, quiet=quiet)


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
    documents = asyncio.run(jobs.replay(opened.find(run).run_id, opened))
    if json_out:
        print_json(one_or_list(documents))
    else:
        count = f"{len(documents)} cases" if len(documents) > 1 else "one case"
        print(f"{count} worked out again from the recorded answers: the same results")


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
        opened.remove(row.run_id)
        print(f"deleted {row.run_id}")


def _confirmed(question: str) -> bool:
    """A yes on a terminal; without one nobody can be asked."""
    import sys

    return sys.stdin is not None and sys.stdin.isatty() and typer.confirm(question)
