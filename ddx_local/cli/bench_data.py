"""`ddx-local bench data`: which data sets can be read, how clean one is, how wrong the matcher is."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Data sets: which can be read, how clean one is; and how wrong a matcher is.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list", epilog="Example: ddx-local bench data list")
def list_sources() -> None:
    """The data sets that can be read. Nothing is downloaded: each takes the file that you have."""
    from ddx_local.evaluation.datasets import sources

    for source in sources().values():
        print(f"{source.name:18} {source.what} (licence: {source.licence})")


@app.command("check", epilog="Example: ddx-local bench data check open-xddx Open-XDDx.xlsx --medqa test.jsonl")
def check(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="See `bench data list`.")],
    path: Annotated[Path | None, typer.Argument(metavar="[PATH]", help="Your file or folder.")] = None,
    medqa: Annotated[
        Path | None, typer.Option(help="A MedQA jsonl file, to flag the cases that are its questions.")
    ] = None,
    sha256: Annotated[str | None, typer.Option(help="What the file has to be.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="KEY=COLUMN", help="For jsonl and csv: id, text, gold, separator."),
    ] = None,
    floors: Annotated[bool, typer.Option("--floors", help="Also what look-ups score on it.")] = False,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """The hygiene report: counts, spans, duplicates, leaks, mojibake, overlap with MedQA."""
    import dataclasses

    from ddx_local.cli.out import print_json
    from ddx_local.evaluation import datasets, datasets_hygiene
    from ddx_local.evaluation.floors import floors as scored
    from ddx_local.options import parse_pairs

    columns: dict[str, Any] = dict(parse_pairs(column or ()))
    data = datasets.load(source, path, sha256=sha256, options={"columns": columns} if columns else {})
    if medqa is not None:
        data = datasets_hygiene.flagged(data, medqa)
    found = datasets_hygiene.check(data)
    lowest = scored(data.cases) if floors else {}
    if json_out:
        print_json({"name": data.name, "sha256": data.sha256, **dataclasses.asdict(found), "floors": lowest})
        return
    for line in datasets_hygiene.lines(data, found):
        print(line)
    for name, value in lowest.items():
        print(f"  floor {name:21} F1 {value:.3f}")


@app.command("matcher", epilog="Example: ddx-local bench data matcher --same judged.jsonl --different other.jsonl")
def matcher(
    same: Annotated[Path | None, typer.Option(help="Judged pairs: pred, gold, label (1: the same).")] = None,
    different: Annotated[Path | None, typer.Option(help="Pairs of different diagnoses: a, b.")] = None,
    kind: Annotated[str, typer.Option("--matcher", help="labels, embedding, bertscore or judge.")] = "labels",
    threshold: Annotated[float | None, typer.Option(help="Similarity from which two names match.")] = None,
    hierarchy: Annotated[str, typer.Option(help="exact, broader_ok or either_ok (judge only).")] = "exact",
    model: Annotated[str, typer.Option(help="The judge's or the encoder's model.")] = "",
    engine: Annotated[str, typer.Option(help="The judge's engine.")] = "",
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Measure a matcher's own error; without files, say what was measured of the default one."""
    import asyncio
    import dataclasses

    from ddx_local import offline
    from ddx_local.cli.out import print_json
    from ddx_local.evaluation import match_error
    from ddx_local.evaluation.match_open import matcher as open_matcher
    from ddx_local.evaluation.record import Record
    from ddx_local.evaluation.suite import checked_match
    from ddx_local.settings import load

    if same is None and different is None:
        error, about = match_error.shipped()
        print(error.line())
        print(
            f"source: {about['source']}"
            + ("" if about["current"] else "; measured with an earlier version of the label code")
        )
        return
    offline.go_offline()
    given = {"kind": kind, "threshold": threshold, "hierarchy": hierarchy, "model": model, "engine": engine}
    choice = checked_match(
        {name: value for name, value in given.items() if value not in (None, "")}, "the command line"
    )

    async def measured() -> match_error.Error:
        async with open_matcher(choice, load(), Record(None), lambda _: None) as found:
            return await match_error.measure(found, same, different)

    error = asyncio.run(measured())
    if json_out:
        print_json(dataclasses.asdict(error))
    else:
        print(error.line())
