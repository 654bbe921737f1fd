"""`ddx-local cache`: the label probabilities that are kept beside a run store: what is there, and how to forget it."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Show and clear the label probabilities that are kept from earlier runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

StoreOption = Annotated[Path | None, typer.Option("--store", help="Run store beside which they are kept.")]


def _path(store: Path | None) -> Path:
    from ddx_local.errors import StoreError
    from ddx_local.score_file import beside
    from ddx_local.settings import load

    found = load(store=store).store_path
    if store is not None and not found.parent.is_dir():
        raise StoreError(f"--store {store}: no such folder", "Give the store of an earlier run, or leave it out.")
    path = beside(found)
    assert path is not None
    return path


@app.command("stats", epilog="Example: ddx-local cache stats --json")
def stats(
    store: StoreOption = None, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """How many probabilities are kept, of which models, and how often they were used.

    A hit is a probability that was there when a run asked for it; a miss had to be computed.
    """
    import dataclasses
    from contextlib import closing

    from ddx_local.cli.out import print_json
    from ddx_local.score_cache import ScoreCache

    path = _path(store)
    # Looking makes no file.
    with closing(ScoreCache(path if path.exists() else None)) as cache:
        found = cache.stats()
    size = found.bytes if path.exists() else 0
    if json_out:
        models = [dataclasses.asdict(model) for model in found.models]
        numbers = {"entries": found.entries, "bytes": size, "hits": found.hits, "misses": found.misses}
        print_json({"path": str(path), **numbers, "models": models})
        return
    print(f"{path}: {found.entries} probabilities, {size / 1024:.0f} KiB, {found.hits} hits, {found.misses} misses")
    for model in found.models:
        print(f"  {model.name:20} {model.entries:8} probabilities  {model.hits:8} hits  {model.misses:8} misses")


@app.command("clear", epilog="Example: ddx-local cache clear --yes")
def clear(
    store: StoreOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget all kept probabilities; they are computed again when they are needed. A damaged file is deleted."""
    import sys

    from ddx_local import score_file
    from ddx_local.errors import UsageError

    path = _path(store)
    if not path.exists():
        print(f"{path}: nothing is kept")
        return
    asked = sys.stdin is not None and sys.stdin.isatty()
    if not yes and not (asked and typer.confirm(f"Forget all probabilities in {path}?")):
        raise UsageError("nothing was cleared", "Give --yes to clear without being asked.")
    print(f"{path}: {score_file.clear(path)} probabilities forgotten")
