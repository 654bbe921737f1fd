"""`ddx-local case`: a case's sections, its text as methods read it, and whether it can be diagnosed at all."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Split, show and check cases, without diagnosing them.", no_args_is_help=True, rich_markup_mode=None
)

FILES = """\b
Files: text, Markdown, JSON ({"text": ...}, the six sections, or an object of texts), JSON Lines, CSV, a FHIR R4 bundle
(JSON, or NDJSON of one patient's resources), or - for standard input."""

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A case file, or - for standard input.")]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="PART=NAME", help="Key or column of a part: text, id or a section; repeatable."),
]
DiagnosesOption = Annotated[
    bool, typer.Option("--with-diagnoses", help="Keep the diagnoses of a FHIR bundle, which may be the answer.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON on standard output.")]


@app.command(
    "split",
    epilog=f"""\b
Examples:
    ddx-local case split case.txt
    ddx-local case split notes.jsonl --column text=note,id=case --json
    ddx-local case split case.txt --model smollm2-135m --out case.json
    ddx-local diagnose case.json

{FILES}""",
)
def split(
    file: FileArgument,
    json_out: JsonOption = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the JSON to a file.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Let this model assign the sentences that have no section yet.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="vllm, transformers or scripted; with --model. [vllm]")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda; with --model. [auto]")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; with --model. [0]")] = None,
    column: ColumnOption = None,
    with_diagnoses: DiagnosesOption = False,
) -> None:
    """Split a case into basic information, presentation, examination, history, initial and further tests.

    Sections are stretches of the text, never rewritten; what belongs to none is unassigned. Headings decide, then words that
    leave no doubt, then the model, if one is given.
    """
    from ddx_local.cli import case_work

    case_work.split(
        file,
        case_work.reading(column, with_diagnoses=with_diagnoses),
        json_out=json_out,
        out=out,
        flags={"model": model, "engine": engine, "device": device, "seed": seed},
    )


@app.command(
    "show",
    epilog=f"""\b
Examples:
    ddx-local case show bundle.json
    ddx-local case show cases.csv --column text=history --json

{FILES}""",
)
def show(
    file: FileArgument,
    json_out: JsonOption = False,
    column: ColumnOption = None,
    with_diagnoses: DiagnosesOption = False,
) -> None:
    """Print the case text exactly as methods read it; what did not become text is listed on standard error."""
    from ddx_local.cli import case_work

    case_work.show(file, case_work.reading(column, with_diagnoses=with_diagnoses), json_out=json_out)


@app.command(
    "check",
    epilog=f"""\b
Examples:
    ddx-local case check case.txt
    ddx-local case check bundle.json --json && ddx-local diagnose bundle.json

Exit codes: 0 the file can be diagnosed; 2 a wrong option; 3 it cannot, and why.

{FILES}""",
)
def check(
    file: FileArgument,
    json_out: JsonOption = False,
    model: Annotated[
        str | None, typer.Option(help="Model whose context the case has to fit. [the default model]")
    ] = None,
    column: ColumnOption = None,
    with_diagnoses: DiagnosesOption = False,
) -> None:
    """Say whether a file can be diagnosed: its form, length and sections, and what of it was not understood."""
    from ddx_local.cli import case_work

    case_work.check(file, case_work.reading(column, with_diagnoses=with_diagnoses), json_out=json_out, model=model)
