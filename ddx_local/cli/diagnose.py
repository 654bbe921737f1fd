"""`ddx-local diagnose`: cases in, differentials out, with a live view of who says what."""

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """\b
Examples:
    ddx-local diagnose case.txt
    ddx-local diagnose - --method zero-shot < case.txt
    ddx-local diagnose cases/ --agents 3 --seed 7 --json results.json --quiet
    ddx-local diagnose case.txt --method counterfactual --html report.html
    ddx-local diagnose case.txt --option k=3 --option without=triage,cant_miss
    ddx-local diagnose bundle.json
    ddx-local diagnose cases.csv --column text=history,id=case
    ddx-local diagnose case.txt --method dmoa --role aggregator=gemma3-270m
"""


def diagnose(
    cases: Annotated[
        list[str],
        typer.Argument(
            metavar="CASE...", help="Case files (text, Markdown, JSON, JSON Lines, CSV, FHIR R4), folders, or -."
        ),
    ],
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Method: see `ddx-local methods list`. [scot]")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model: see `ddx-local models list`. [smollm2-135m]")] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="ROLE=MODEL", help="Another model for a role of the method (`methods show`); repeatable."
        ),
    ] = None,
    agents: Annotated[int | None, typer.Option(help="Size of the panel; the same as --option agents=N.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the same seed gives the same run. [0]")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="Option of the method; repeatable.")
    ] = None,
    json_out: Annotated[
        str | None,
        typer.Option("--json", metavar="OUT", help="Write the result document to a file, or - for standard output."),
    ] = None,
    html_out: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a report to read or print, one self-contained file."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view and no report.")] = False,
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Keep nothing on disk; the run cannot be resumed.")
    ] = False,
    store: Annotated[Path | None, typer.Option(help="Run store to use.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="vllm, transformers, or scripted (random words, no model). [vllm]")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda. [auto]")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="auto, float32, bfloat16 or float16. [auto: float32 on a CPU]")
    ] = None,
    probability_dtype: Annotated[
        str | None,
        typer.Option(help="Number format of label probabilities; a second engine where it differs. [--dtype]"),
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Context in tokens. [the model's]")] = None,
    kv_cache_gib: Annotated[float | None, typer.Option(help="KV cache on a CPU, in GiB. [2]")] = None,
    gpu_memory_fraction: Annotated[float | None, typer.Option(help="Share of the GPU's memory. [0.9]")] = None,
    tensor_parallel: Annotated[int | None, typer.Option(help="GPUs that share each layer. [1]")] = None,
    pipeline_parallel: Annotated[int | None, typer.Option(help="GPUs that share the layers. [1]")] = None,
    quantization: Annotated[
        str | None, typer.Option(help="As vLLM names it; transformers: bitsandbytes-4bit or -8bit.")
    ] = None,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Let a thinking model think first.")
    ] = None,
    at_once: Annotated[int | None, typer.Option(help="Cases in flight at once. [8]")] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens a case may use: samplers use it up, loops end early; who is over it fails. [no limit]"
        ),
    ] = None,
    supervise: Annotated[
        bool, typer.Option("--supervise", help="After each round wait for your comment; it enters all later questions.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show calls, batches and output size; ask no model.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="PART=NAME", help="Key or column of a part: text, id or a section; repeatable."
        ),
    ] = None,
    with_diagnoses: Annotated[
        bool, typer.Option("--with-diagnoses", help="Keep the diagnoses of a FHIR bundle, which may be the answer.")
    ] = False,
) -> None:
    """Work out the differential diagnosis of one or more cases.

    One case gives one result document, several give a list; many cases run at once. Ctrl-C stops cleanly and says how to
    resume.
    """
    from ddx_local.cli.run_live import Asked, run
    from ddx_local.options import parse_pairs

    run(
        Asked(
            sources=tuple(cases),
            method=method,
            options=(*(option or []), *([f"agents={agents}"] if agents is not None else [])),
            json_out=json_out,
            html_out=html_out,
            quiet=quiet,
            no_store=no_store,
            dry_run=dry_run,
            supervise=supervise,
            flags=_given(
                model=model,
                roles=parse_pairs(role, "--role", "ROLE=MODEL") if role else None,
                seed=seed,
                store=store,
                engine=engine,
                device=device,
                dtype=dtype,
                probability_dtype=probability_dtype,
                max_model_len=max_model_len,
                kv_cache_gib=kv_cache_gib,
                gpu_memory_fraction=gpu_memory_fraction,
                tensor_parallel=tensor_parallel,
                pipeline_parallel=pipeline_parallel,
                quantization=quantization,
                thinking=thinking,
                at_once=at_once,
                budget_tokens=budget_tokens,
            ),
            columns=tuple(column or ()),
            with_diagnoses=with_diagnoses,
        )
    )


def _given(**flags: Any) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}
