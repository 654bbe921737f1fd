"""`ddx-local methods`: what there is, and what each method does."""

from typing import Annotated

import typer

app = typer.Typer(help="List and show the methods.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list", epilog="Example: ddx-local methods list --json")
def list_methods(json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """All methods."""
    import json

    from ddx_local.methods.table import METHODS

    if json_out:
        print(
            json.dumps(
                [{"name": item.name, "summary": item.summary, "citation": item.citation} for item in METHODS.values()]
            )
        )
        return
    for item in METHODS.values():
        print(f"{item.name:16} {item.summary}")


@app.command("show", epilog="Example: ddx-local methods show scot")
def show(
    name: Annotated[str, typer.Argument(help="The method.")],
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Citation, rounds, options, and how we differ from the paper."""
    import dataclasses
    import inspect
    import json

    from ddx_local import jobs

    item = jobs.method(name)
    values = {field.name: field.default for field in dataclasses.fields(item.options)}
    doc = inspect.getdoc(inspect.getmodule(item.flow)) or ""
    about = _arguments(inspect.getdoc(item.options) or "")
    if json_out:
        print(
            json.dumps(
                {"name": name, "citation": item.citation, "rounds": item.rounds, "options": values, "about": doc}
            )
        )
        return
    print(f"{item.name}: {item.summary}\n\nSource: {item.citation}\n\nRounds:")
    for line in item.rounds:
        print(f"  {line}")
    print("\nOptions (--option NAME=VALUE, or [method." + name + "] in the settings file):")
    for field, value in values.items():
        print(f"  {field} = {value!r}  {about.get(field, '')}")
    print(f"\n{doc}")


def _arguments(doc: str) -> dict[str, str]:
    """The `Args:` section of a docstring, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in doc.partition("Args:")[2].splitlines():
        head, mark, rest = line.strip().partition(": ")
        if mark and head.isidentifier():
            name, found[head] = head, rest
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found
