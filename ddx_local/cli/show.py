"""A result document for people: the ranked differential, evidence marked in the case, triage, can't-miss list, what was degraded."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ddx_local.cli.say import harmless
from ddx_local.clinical.quotes import Span, highlight_spans

Document = Mapping[str, Any]


def print_result(document: Document, text: str, console: Console | None = None) -> None:
    """Print one result document.

    Args:
        document: The result document.
        text: The case text.
        console: Where to; standard output by default.
    """
    console = console or Console(highlight=False)
    console.print()
    console.rule(escape(f"{document['case_id']}: {document['method']} on {document['model']['name']}"))
    if document["error"]:
        error = document["error"]
        console.print(
            f"[red]failed[/red] ({escape(error['kind'])}): {escape(error['message'])}. {escape(error['hint'])}"
        )
    if document["differential"]:
        console.print(_differential(document))
        _evidence(document, console)
        console.print("\n[bold]The case[/bold], with evidence [green]for[/green] and [red]against[/red]:")
        console.print(marked(document, text))
    _beside(document, console)
    for kind in ("degraded", "notes"):
        for item in document[kind]:
            style = "yellow" if kind == "degraded" else "dim"
            console.print(f"[{style}]{kind.rstrip('s')}: {escape(item['detail'])}[/{style}]")
    totals = document["totals"]
    console.print(
        f"[dim]{totals['calls']} calls in {totals['batches']} batches, {totals['prompt_tokens']:,} prompt tokens "
        f"({totals['prompt_tokens_computed']:,} computed), {totals['generated_tokens']:,} generated, "
        f"{totals['seconds']:.0f} s[/dim]"
    )
    console.print(f"[italic]{escape(document['disclaimer'])}[/italic]")


def _differential(document: Document) -> Table:
    table = Table(title=f"Differential (score: {document['score_kind'].replace('_', ' ')})", title_justify="left")
    for name in ("#", "Diagnosis", "Score", "Places given", "Final positions", ""):
        table.add_column(name, justify="right" if name in ("#", "Score") else "left", overflow="fold")
    for entry in document["differential"]:
        votes = ", ".join(f"{role} {place}" for role, place in list(entry["votes"].items())[:8])
        stances = ", ".join(f"{_MARK[stance]}{role}" for role, stance in entry["stances"].items() if stance in _MARK)
        flags = [
            *(["critical"] if entry["critical"] else []),
            *(["late"] if entry["entered_in"] == "refinement" else []),
        ]
        table.add_row(
            str(entry["rank"]),
            escape(entry["diagnosis"]),
            f"{entry['score']:.2f}",
            escape(votes),
            escape(stances),
            ", ".join(flags),
        )
    return table


_MARK = {"support": "+", "challenge": "-", "withdrawn": "x"}


def _evidence(document: Document, console: Console) -> None:
    for entry in document["differential"]:
        console.print(f"[bold]{entry['rank']}. {escape(entry['diagnosis'])}[/bold]  {escape(entry['reasoning'])}")
        for item in entry["evidence"]:
            style, word = ("green", "for") if item["supports"] else ("red", "against")
            quote = " ".join(harmless(item["quote"]).split())
            console.print(f"   [{style}]{word}[/{style}] “{escape(quote)}”  [dim]{escape(', '.join(item['by']))}[/dim]")


def marked(document: Document, text: str) -> Text:
    """The case text with all quotes of the differential marked; what speaks against something is red."""
    result = Text(harmless(text))  # its own cleaning leaves out carriage returns, which would move all later quotes
    for supports, style in ((True, "green underline"), (False, "red underline")):
        spans = [
            Span(item["start"], item["end"])
            for entry in document["differential"]
            for item in entry["evidence"]
            if item["supports"] is supports
        ]
        for span in highlight_spans(spans):
            result.stylize(style, span.start, span.end)
    return result


def _beside(document: Document, console: Console) -> None:
    if document["triage"]:
        console.print("\n[bold]Triage[/bold]")
        order = {"emergent": 0, "urgent": 1, "routine": 2}
        for item in sorted(document["triage"], key=lambda item: order[item["urgency"]]):
            console.print(
                f"  {escape(item['urgency'])}: {escape(item['finding'])}; {escape(item['step'])}  [dim]{escape(item['by'])}[/dim]"
            )
    if document["cant_miss"]:
        console.print("\n[bold red]Not to be missed[/bold red] (beside the differential; they do not change its order)")
        for item in document["cant_miss"]:
            by = escape(", ".join(item["by"]))
            console.print(
                f"  {escape(item['diagnosis'])}: {escape(item['why'])}; excluded by {escape(item['test'])}  [dim]{by}[/dim]"
            )
