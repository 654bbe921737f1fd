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
    from ddx_local.settings import load
    from ddx_local.store import Store

    return Store(load(store=path).store_path)


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


@app.command("show", epilog="Example: ddx-local runs show last")
def show(
    run: Run, store: StoreOption = None, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """The results of a run."""
    import json

    from ddx_local import jobs
    from ddx_local.cli.show import print_result

    opened = _open(store)
    row = opened.find(run)
    documents = jobs.documents(opened, row.run_id)
    if json_out:
        print(json.dumps(documents[0] if len(documents) == 1 else documents, ensure_ascii=False, indent=2))
        return
    texts = {case.id: case.text for case in jobs.recorded(opened, row.run_id)[1]}
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
    import json

    from ddx_local import jobs

    opened = _open(store)
    documents = asyncio.run(jobs.replay(opened.find(run).run_id, opened))
    if json_out:
        print(json.dumps(documents[0] if len(documents) == 1 else documents, ensure_ascii=False, indent=2))
    else:
        print(f"{len(documents)} cases worked out again from the recorded answers: the same results")


@app.command("export", epilog="Example: ddx-local runs export last --out run.json")
def export(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
    store: StoreOption = None,
) -> None:
    """A whole run as JSON: settings, events, texts, results. It holds the case texts."""
    import json
    import os

    from ddx_local import jobs
    from ddx_local.errors import UsageError
    from ddx_local.events import to_json

    opened = _open(store)
    run_id = opened.find(run).run_id
    whole = {
        "schema": "ddx-local/run/1",
        "run_id": run_id,
        "events": [to_json(event) for event in opened.events(run_id)],
        "texts": dict(opened.all_texts(run_id)),
        "results": jobs.documents(opened, run_id),
    }
    text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with os.fdopen(os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error.strerror}") from None


@app.command("rm", epilog="Example: ddx-local runs rm 20260101-120000-1a2b3c4d")
def remove(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")],
    store: StoreOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete runs with all their texts; this cannot be undone."""
    opened = _open(store)
    rows = [opened.find(run) for run in runs]
    if not yes:
        typer.confirm(f"Delete {len(rows)} run(s) with their texts?", abort=True)
    for row in rows:
        opened.remove(row.run_id)
        print(f"deleted {row.run_id}")
