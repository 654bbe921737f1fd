"""`ddx-local bench`: run a suite, resume, report, compare, score again, verify, export; look at data sets."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddx_local.cli import bench_data

app = typer.Typer(
    help="Compare methods and models on labelled cases: run a suite, report, compare, score again, verify, export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bench_data.app, name="data")

StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Run store to use; the benchmark's record lies beside it.")
]
Bench = Annotated[
    str, typer.Argument(metavar="BENCH", help="A benchmark's id, the unique beginning of one, or `last`.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report, one self-contained file.")]
Json = Annotated[str | None, typer.Option("--json", metavar="OUT", help="Write the report as JSON to a file, or -.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write the tables as Markdown.")]
Latex = Annotated[Path | None, typer.Option("--latex", metavar="FILE", help="Write the tables as LaTeX (booktabs).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no report.")]

EXAMPLES = """\b
Examples:
    ddx-local bench run quick
    ddx-local bench run quick --engine scripted --limit 4
    ddx-local bench run viability --data Open-XDDx.xlsx --html report.html
"""


@app.command("run", epilog=EXAMPLES)
def run(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A suite that ships (`bench list --suites`), or a .toml file.")
    ],
    data: Annotated[Path | None, typer.Option(help="Your copy of the suite's data file or folder.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first cases only.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Model in place of the suite's; repeatable.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="vllm, transformers, or scripted (random words, no model).")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16.")] = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Cases in flight at once, over all methods and seeds.")
    ] = None,
    store: StoreOption = None,
    html: Html = None,
    json_out: Json = None,
    markdown: Markdown = None,
    latex: Latex = None,
    quiet: Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run; ask no model.")] = False,
) -> None:
    """Run a suite: all its methods, models and seeds, then score and report.

    Cases of all methods and seeds fill the engine together. Ctrl-C stops cleanly; `bench resume` goes on.
    """
    from ddx_local.cli import bench_out, bench_work

    given = {"engine": engine, "device": device, "dtype": dtype, "at_once": at_once, "store": store}
    flags = {name: value for name, value in given.items() if value is not None}
    out = bench_out.Out(html, json_out, markdown, latex, quiet)
    bench_work.run(suite, data, limit, tuple(model or ()), flags, out, dry_run=dry_run)


@app.command("resume", epilog="Example: ddx-local bench resume last")
def resume(
    bench: Bench,
    store: StoreOption = None,
    at_once: Annotated[int | None, typer.Option(min=1, help="Cases in flight at once.")] = None,
    html: Html = None,
    json_out: Json = None,
    quiet: Quiet = False,
) -> None:
    """Finish an interrupted benchmark; no finished call is repeated. Changed prompts are refused."""
    from ddx_local.cli import bench_out, bench_work

    bench_work.resume(bench, store, at_once, bench_out.Out(html, json_out, None, None, quiet))


@app.command("list", epilog="Example: ddx-local bench list --suites")
def list_benches(
    store: StoreOption = None,
    suites: Annotated[bool, typer.Option("--suites", help="The suites that ship, instead.")] = False,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """All benchmarks of this machine, the newest first."""
    from ddx_local.cli import bench_work

    bench_work.list_all(store, shipped=suites, as_json=json_out)


@app.command("report", epilog="Example: ddx-local bench report last --html report.html")
def report(
    bench: Bench,
    store: StoreOption = None,
    matcher: Annotated[str | None, typer.Option(help="Which of several scorings, by its matcher's label.")] = None,
    html: Html = None,
    json_out: Json = None,
    markdown: Markdown = None,
    latex: Latex = None,
    quiet: Quiet = False,
) -> None:
    """The report of a benchmark, from what is recorded; an interrupted one is scored as far as it came."""
    from ddx_local.cli import bench_out, bench_work

    bench_work.report(bench, store, matcher, bench_out.Out(html, json_out, markdown, latex, quiet))


@app.command("compare", epilog="Example: ddx-local bench compare bench-2026 last --arms zero-shot,scot")
def compare(
    one: Bench,
    two: Bench,
    store: StoreOption = None,
    arms: Annotated[
        str | None, typer.Option(help="A method of each, with a comma, where they are called differently.")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """The second benchmark against the first: paired on the cases of both, failures included."""
    from ddx_local.cli import bench_work

    bench_work.compare(one, two, store, arms, as_json=json_out)


@app.command("rescore", epilog="Example: ddx-local bench rescore last --matcher embedding --threshold 0.7")
def rescore(
    bench: Bench,
    store: StoreOption = None,
    matcher: Annotated[str | None, typer.Option(help="labels, embedding, bertscore or judge. [the suite's]")] = None,
    threshold: Annotated[float | None, typer.Option(help="Similarity from which two names match.")] = None,
    assignment: Annotated[str | None, typer.Option(help="optimal or greedy.")] = None,
    hierarchy: Annotated[str | None, typer.Option(help="exact, broader_ok or either_ok (judge only).")] = None,
    model: Annotated[str | None, typer.Option(help="The judge's or the encoder's model.")] = None,
    engine: Annotated[str | None, typer.Option(help="The judge's engine.")] = None,
    repeat: Annotated[
        int | None, typer.Option(help="2 asks the judge twice, to measure its agreement with itself.")
    ] = None,
    html: Html = None,
    json_out: Json = None,
    quiet: Quiet = False,
) -> None:
    """Score again from recorded events; no engine is needed but a judge's own."""
    from ddx_local.cli import bench_out, bench_work

    given: dict[str, Any] = {
        "kind": matcher, "threshold": threshold, "assignment": assignment, "hierarchy": hierarchy, "model": model,
        "engine": engine, "repeat": repeat,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    bench_work.rescore(bench, store, changes, bench_out.Out(html, json_out, None, None, quiet))


@app.command("verify", epilog="Example: ddx-local bench verify last")
def verify(
    bench: Bench,
    store: StoreOption = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Score again without a model and compare every number; check data, prompts and code. Exits with 8 where something differs."""
    from ddx_local.cli import bench_work

    bench_work.verify(bench, store, as_json=json_out)


@app.command("export", epilog="Example: ddx-local bench export last --format inspect --out logs/")
def export(
    bench: Bench,
    out: Annotated[Path, typer.Option(help="Folder to write into.")],
    form: Annotated[str, typer.Option("--format", help="csv, jsonl, inspect or lm-eval.")] = "jsonl",
    store: StoreOption = None,
    matcher: Annotated[str | None, typer.Option(help="Which of several scorings, by its matcher's label.")] = None,
) -> None:
    """The rows for other tools. Inspect's and lm-eval's hold the case texts."""
    from ddx_local.cli import bench_work

    bench_work.export(bench, store, form, out, matcher)
