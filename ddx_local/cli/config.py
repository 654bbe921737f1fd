"""`ddx-local config`: the settings that hold here, where they come from, and what each one means."""

from typing import Annotated

import typer

app = typer.Typer(help="Show the settings, and where their file is.", no_args_is_help=True, rich_markup_mode=None)


@app.command(
    "path",
    epilog="Example: mkdir -p $(dirname $(ddx-local config path)) && ddx-local config show --defaults > $(ddx-local config path)",
)
def path() -> None:
    """Where the settings file is, whether it is there or not."""
    from ddx_local.settings import settings_path

    print(settings_path())


@app.command("show", epilog="Example: ddx-local config show --json")
def show(
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Every setting with its meaning, as a file to start from.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="With --defaults: as the page docs/settings.md.")
    ] = False,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """The settings that hold now, as the file and the environment make them."""
    from ddx_local import settings_text
    from ddx_local.cli.out import print_json
    from ddx_local.errors import UsageError
    from ddx_local.settings import load

    if markdown and not defaults:
        raise UsageError("config show --markdown: goes with --defaults")
    if defaults:
        print(settings_text.markdown() if markdown else settings_text.toml(), end="")
        return
    values = load()
    if json_out:
        print_json({name: {"value": value, "from": origin} for name, value, origin in settings_text.held(values)})
        return
    for name, value, origin in settings_text.held(values):
        print(f"{name:22} {settings_text.written(value):32} {origin}")
