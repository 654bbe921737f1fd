"""`ddx-local audit`: verify and export the chain of audit records."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Verify and export the audit records.", no_args_is_help=True, rich_markup_mode=None)

StoreOption = Annotated[Path | None, typer.Option("--store", help="Run store whose records are meant.")]


def _chain(store: Path | None) -> Any:
    from ddx_local.audit import Audit, beside
    from ddx_local.errors import StoreError
    from ddx_local.settings import load

    path = beside(load(store=store).store_path)
    if path is None or not path.exists():
        raise StoreError(
            f"audit file {path}: no such file", "Records begin with the first run, or with `ddx-local serve`."
        )
    return Audit(path)


@app.command("verify", epilog="Example: ddx-local audit verify")
def verify(
    store: StoreOption = None,
    head: Annotated[str | None, typer.Option(help="Hash that was noted earlier: the chain must hold it.")] = None,
) -> None:
    """Work the hash chain out again; note the head elsewhere, to see later whether records were cut off."""
    from ddx_local.cli.failure import say

    chain = _chain(store)
    verdict = chain.verify()
    if verdict.broken_at is not None:
        say(
            f"the audit chain is broken at record {verdict.broken_at}: {verdict.reason}",
            "Keep the file; find out who changed it.",
        )
        raise typer.Exit(1)
    if head is not None and all(item.hash != head for item in chain.records()):
        say("the audit chain does not hold the given head: records were cut off or replaced", "Keep the file as it is.")
        raise typer.Exit(1)
    print(f"{verdict.records} records hold; head {verdict.head}")


@app.command("export", epilog="Example: ddx-local audit export --out audit.jsonl")
def export(
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
    store: StoreOption = None,
    after: Annotated[int, typer.Option(min=0, help="Only records behind this number.")] = 0,
) -> None:
    """The records as JSON Lines, with their hashes."""
    import json
    import sys

    from ddx_local.cli.out import check_writable, write_private

    if out is not None:
        check_writable(out, "--out")
    chain = _chain(store)
    text = "".join(json.dumps(item.as_json()) + "\n" for item in chain.records(after))
    chain.append("local", "audit.export", surface="cli")
    if out is None:
        sys.stdout.write(text)
    else:
        write_private(out, text, "--out", "Nothing was written.")
