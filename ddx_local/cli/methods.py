"""`ddx-local methods`: what there is, and what each method does."""

from collections.abc import Iterable
from typing import Annotated, Any

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


@app.command("show", epilog="Example: ddx-local methods show dmoa case.txt")
def show(
    name: Annotated[str, typer.Argument(help="The method.")],
    case: Annotated[
        str | None, typer.Argument(metavar="[CASE]", help="Case to reckon the cost for; a short example without one.")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Citation, rounds, calls, depth, tokens, options, roles, and how we differ from the paper and from its program.

    The cost comes from a dry run: scripted answers that end as early and as late as they may. No model is asked.
    """
    import dataclasses
    import json

    from ddx_local import jobs
    from ddx_local.cli.forecast import costs, example
    from ddx_local.cli.method_about import about, options_about
    from ddx_local.clinical.intake import read_cases

    item = jobs.method(name)
    cases = read_cases((case,)) if case is not None else (example(),)
    job = jobs.Job(item, item.options(), "scripted", "scripted", 0, {}, tuple(cases))
    options, said, cost = options_about(item), about(item), costs(job)
    if json_out:
        whole = {
            "name": name,
            "summary": item.summary,
            "citation": item.citation,
            "source": said.source,
            "rounds": item.rounds,
            "roles": item.roles,
            "options": {option: dataclasses.asdict(one) for option, one in options.items()},
            "differences": {
                "paper": [{"paper": theirs, "ours": ours} for theirs, ours in said.paper],
                "program": said.program,
            },
            "remarks": said.remarks,
            "cost": cost,
        }
        print(json.dumps(whole))
        return
    print(f"{item.name}: {item.summary}\n\nSource: {item.citation}")
    _list("Rounds:", item.rounds)
    _list("Cost of a case, least .. most, from a dry run with the options as they are:", _costs(cost))
    print(f"\nOptions (--option NAME=VALUE, or [method.{name}] in the settings file):")
    for option, one in options.items():
        print(f"  {option} = {_value(one.default)}  ({one.type}) {one.meaning}")
    _list("Roles (--role ROLE=MODEL):", [", ".join(item.roles) or "none can be given another model"])
    _list("The paper says / we do:", [" / ".join(part for part in pair if part) for pair in said.paper], "- ")
    _list("Differs from the authors' program:", said.program, "- ")
    _list("Beside that:", said.remarks)


def _value(value: Any) -> str:
    """A default as it would be typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return (",".join(value) if isinstance(value, list) else str(value)) or "none"


def _list(heading: str, lines: Iterable[str], mark: str = "") -> None:
    """A heading with its lines below it, wrapped; nothing where there are none."""
    import textwrap

    found = list(lines)
    if found:
        print(f"\n{heading}")
    for line in found:
        after = " " * (2 + len(mark or "  "))
        print(textwrap.fill(line, 118, initial_indent=f"  {mark}", subsequent_indent=after, break_on_hyphens=False))


def _costs(cost: Iterable[dict[str, Any]]) -> Iterable[str]:
    for one in cost:
        figures = {
            name: f"{pair['least']:,} .. {pair['most']:,}" for name, pair in one.items() if isinstance(pair, dict)
        }
        yield (
            f"{one['case']}: {figures['calls']} calls, depth {figures['batches']} batches, about {figures['tokens']} tokens "
            f"({figures['prompt_bytes']} bytes of prompts, {figures['answer_bytes']} of answers; 4 to a token of English)"
        )
