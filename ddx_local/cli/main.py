"""The command `ddx-local`: adds the verbs, prints errors as one paragraph, maps them to exit codes.

Verbs import what they need when they run, so that `--help` answers at once.
"""

import os
import sys
from typing import Annotated

import typer

from ddx_local import DISCLAIMER, __version__
from ddx_local.cli import diagnose, methods, models, runs
from ddx_local.cli.failure import EXIT_CODES, report

HELP = """Multi-agent differential diagnosis with a small open language model on this machine, offline.

\b
First thing to try:
    ddx-local models pull smollm2-135m
    ddx-local models pull all-minilm-l6-v2
    ddx-local diagnose case.txt
"""

EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + f"\n\n{DISCLAIMER}"

app = typer.Typer(
    name="ddx-local",
    help=HELP,
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("diagnose", epilog=diagnose.EXAMPLES)(diagnose.diagnose)
app.add_typer(methods.app, name="methods")
app.add_typer(runs.app, name="runs")
app.add_typer(models.app, name="models")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ddx-local {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point. `DDX_LOCAL_DEBUG=1` shows tracebacks."""
    code = 0
    try:
        app()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if os.environ.get("DDX_LOCAL_DEBUG") == "1":
            raise
        code = report(error)
    sys.stdout.flush()
    sys.stderr.flush()
    if "vllm" in sys.modules:
        os._exit(code)  # everything is written; waiting for the libraries' own threads can take seconds
    sys.exit(code)


if __name__ == "__main__":
    main()
