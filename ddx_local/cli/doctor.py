"""`ddx-local doctor`: what keeps the program from working here, or from being offline, and what to do."""

from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
    ddx-local doctor
    ddx-local doctor --offline --json
"""


def doctor(
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Also let the model write with every offline layer on, and count connections."),
    ] = False,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON, for monitoring.")] = False,
    model: Annotated[str | None, typer.Option(help="Model to look at. [the settings']")] = None,
    engine: Annotated[str | None, typer.Option(help="vllm, transformers or scripted. [the settings']")] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port that `serve` is to listen on.")] = 8000,
) -> None:
    """Check this machine, each finding with what to do. Exit code: 0 well, 1 to be looked at, 2 does not work."""
    import dataclasses
    import textwrap

    from ddx_local import offline as guard
    from ddx_local.airgap.doctor import examine
    from ddx_local.airgap.doctor_check import worst
    from ddx_local.cli.out import print_json
    from ddx_local.settings import load

    guard.go_offline()
    checks = examine(load(model=model, engine=engine), offline=offline, port=port)
    code = worst(checks)
    if json_out:
        print_json(
            {"schema": "ddx-local/doctor/1", "exit_code": code, "checks": [dataclasses.asdict(item) for item in checks]}
        )
        raise typer.Exit(code)
    for item in checks:
        text = f"{item.found}. {item.todo}" if item.todo else item.found
        mark = {"ok": "ok", "warning": "LOOK", "error": "FAULT"}[item.level]
        print(
            textwrap.fill(
                text, 110, initial_indent=f"{mark:6}{item.name:21} ", subsequent_indent=" " * 28, break_long_words=False
            )
        )
    raise typer.Exit(code)
