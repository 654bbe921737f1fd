"""The command `ddx-local`: adds the verbs, prints errors as one paragraph, maps them to exit codes.

Verbs import what they need when they run, so that `--help` answers at once.
"""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from ddx_local import DISCLAIMER, __version__
from ddx_local.cli import (
    audit,
    bench,
    bundle,
    cache,
    case,
    config,
    diagnose,
    doctor,
    keys,
    methods,
    models,
    runs,
    serve,
)
from ddx_local.cli.failure import EXIT_CODES, report, say
from ddx_local.errors import DdxLocalError

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
app.add_typer(case.app, name="case")
app.add_typer(runs.app, name="runs")
app.add_typer(models.app, name="models")
app.add_typer(cache.app, name="cache")
app.add_typer(bundle.app, name="bundle")
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.add_typer(config.app, name="config")
app.add_typer(bench.app, name="bench")
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.add_typer(keys.app, name="keys")
app.add_typer(audit.app, name="audit")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ddx-local {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point. `DDX_LOCAL_DEBUG=1` shows tracebacks."""
    # Where a stream was closed by who started us (`2>&-`), Python has none at all.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without “quotes” must not end a run
    code = _flushed(_run())
    if "vllm" in sys.modules:
        os._exit(code)  # everything is written; waiting for the libraries' own threads can take seconds
    sys.exit(code)


def _run() -> int:
    try:
        # Not standalone: typer then raises what is wrong with a command line instead of printing it over several lines.
        done = app(prog_name="ddx-local", standalone_mode=False)
    except SystemExit as error:
        return 141 if error.code == 1 else error.code if isinstance(error.code, int) else 0  # 1: a closed pipe
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own; it comes with typer or from click, by version
            return _misused(error)
        if os.environ.get("DDX_LOCAL_DEBUG") == "1" and not isinstance(error, DdxLocalError):
            raise
        return report(error)
    return done if isinstance(done, int) else 0


def _misused(error: Any) -> int:
    """A command line that typer cannot read; a verb of several without one of them shows its help, as the command itself does."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return 0
    command = error.ctx.command_path if getattr(error, "ctx", None) else "ddx-local"
    say(error.format_message(), f"See `{command} --help`.")
    return 2


def _flushed(code: int) -> int:
    """Write out what is buffered, and say so where that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter must not try once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return code or 141
        say(f"standard output cannot be written: {error.strerror}", "What was recorded is kept: `ddx-local runs list`.")
        return code or 2
    return code


if __name__ == "__main__":
    main()
