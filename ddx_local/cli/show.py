"""A result document for people at a terminal: the ranked differential with its reasons, what to act on, the case with evidence.

Everything is plain text first: colour repeats what words and signs say, and lines hold at 80 columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ddx_local.cli.heat import print_heat
from ddx_local.cli.say import harmless
from ddx_local.report import words
from ddx_local.report.cut import cut

Document = Mapping[str, Any]

INDENT = 4
"""Columns by which an entry's block stands in from its heading."""


def print_result(document: Document, text: str, console: Console | None = None) -> None:
    """Print one result document.

    Args:
        document: The result document.
        text: The case text.
        console: Where to; standard output by default.
    """
    console = console or Console(highlight=False)
    console.print()
    console.rule(Text(_line(f"{document['case_id']}: {document['method']} on {document['model']['name']}")))
    for role, other in document["model"]["roles"].items():
        console.print(Text(f"{_line(role)}: {_line(other['name'])}", "dim"))
    if document["error"]:
        error = document["error"]
        told = f" ({_line(error['kind'])}): {_line(error['message'])}. {_line(error['hint'])}"
        console.print(Text.assemble(("failed", "red"), told))
    for item in document["degraded"]:
        console.print(Text(f"degraded: {_line(item['detail'])}", "yellow"))
    if document["differential"]:
        _ranking(document, console)
        for entry in document["differential"]:
            _entry(entry, console)
    _beside(document, console)
    _turns(document, console)
    if document["differential"]:
        sides = (("for", FOR), ", ", ("against", AGAINST), " or ", ("both", BOTH), ":")
        heading = Text.assemble(("The case", "bold"), ", with evidence ", *sides)
        console.print(Text("\n") + heading)
        console.print(marked(document, text.rstrip()))
    if document["counterfactuals"]:
        print_heat(document, text, console)
    if document["trace"]:
        _trace(document["trace"], console)
    _settled(document, console)
    console.print()
    for item in document["notes"]:
        console.print(Text(f"note: {_line(item['detail'])}", "dim"))
    totals = document["totals"]
    console.print(
        f"[dim]{totals['calls']} calls in {totals['batches']} batches, {totals['prompt_tokens']:,} prompt tokens "
        f"({totals['prompt_tokens_computed']:,} computed), {totals['generated_tokens']:,} generated, "
        f"{totals['seconds']:.0f} s[/dim]"
    )
    console.print(Text(document["disclaimer"], "italic"))


FOR, AGAINST, BOTH = "green underline", "red underline", "magenta underline"


def _line(text: str) -> str:
    """On one line, with nothing in it that steers a terminal."""
    return " ".join(harmless(text).split())


def _ranking(document: Document, console: Console) -> None:
    """The list at a glance: place, score, name, what is special."""
    console.print(Text.assemble(("\nDifferential", "bold"), f" (score: {words.score_kind(document['score_kind'])})"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("right", "right", "left"):
        grid.add_column(justify=justify, no_wrap=justify == "right", overflow="fold")
    for entry in document["differential"]:
        name = Text.assemble((_line(entry["diagnosis"]), "bold"), *_flags(entry))
        grid.add_row(Text(str(entry["rank"])), Text(f"{entry['score']:.2f}"), name)
    console.print(Padding(grid, (0, 0, 0, 2)))


def _flags(entry: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if entry.get("kind"):
        yield (f"  {entry['kind']}", "dim")
    if entry["critical"]:
        yield ("  critical", "bold red")
    if entry["entered_in"] == "refinement":
        yield ("  late", "dim")


def _entry(entry: Mapping[str, Any], console: Console) -> None:
    """One entry's block: why, places, final positions and who holds them, evidence."""
    console.print(Text(f"\n{entry['rank']}. {_line(entry['diagnosis'])}", "bold"))
    if entry["reasoning"]:
        console.print(Padding(Text(_line(entry["reasoning"])), (0, 0, 0, INDENT)))
    rows = _grid()
    if entry["icd10"]:
        rows.add_row(Text("ICD-10", "dim"), Text(f"{_line(entry['icd10']['code'])}  {_line(entry['icd10']['name'])}"))
    if entry["votes"]:
        rows.add_row(Text("places", "dim"), Text(words.placed(entry["votes"])))
    if entry["stances"]:
        rows.add_row(Text("positions", "dim"), Text(words.standing(entry["stances"])))
    for position, roles in words.positions(entry["stances"]).items():
        sign = words.MARKS.get(position, f"{position}:")
        rows.add_row(Text(), Text(f"{sign} {_line(', '.join(roles))}", "dim"))
    for item in entry["evidence"]:
        style, word = (FOR, "for") if item["supports"] else (AGAINST, "against")
        quote = Text.assemble(f"“{_line(item['quote'])}”", _by(item["by"]))
        rows.add_row(Text(word, style.split()[0]), quote)
    if rows.row_count:
        console.print(Padding(rows, (0, 0, 0, INDENT)))


def _turns(document: Document, console: Console) -> None:
    """Points of treatment, and the turns of a planned investigation, of methods that have them."""
    if treatment := document.get("treatment", ()):
        console.print(Text("\nTreatment", "bold"))
        for point in treatment:
            console.print(Padding(Text(_line(point)), (0, 0, 0, INDENT)))
    if turns := document.get("investigations", ()):
        console.print(Text("\nInvestigation", "bold"))
        rows = _grid()
        for item in turns:
            outcome = ("planned anew", "red") if item["replanned"] else ("as expected", "green")
            told = Text.assemble(f"{_line(item['strategy'])}: ", outcome, f" (conflict {item['conflict']:.2f})")
            rows.add_row(Text(f"turn {item['turn']}", "dim"), told)
            for found in item["observations"]:
                answer = f"“{_line(found['quote'])}”" if found["quote"] else "not recorded"
                rows.add_row(Text(), Text.assemble(f"{_line(found['asked'])}: {answer}", _by([found["by"]])))
        console.print(Padding(rows, (0, 0, 0, INDENT)))


def _by(roles: Sequence[str]) -> tuple[str, str]:
    return (f"  ({_line(', '.join(roles))})" if roles else "", "dim")


def _trace(trace: Mapping[str, Any], console: Console) -> None:
    """How it ended, and what would change it."""
    ended = "by agreement" if trace["by_consensus"] else "by a judge, since the specialists did not agree"
    console.print(Text.assemble(("\nReasoning", "bold"), f" ({ended})"))
    rows = _grid()
    rows.add_row(Text("conclusion", "dim"), Text(_line(trace["conclusion"])))
    rows.add_row(Text("changed by", "dim"), Text(_line(trace["would_change"])))
    if trace["outside"]:
        rows.add_row(Text("off list", "dim"), Text(_line(trace["outside"])))
    console.print(Padding(rows, (0, 0, 0, INDENT)))


def _settled(document: Document, console: Console) -> None:
    """Which conflicts were settled how, and what stays uncertain."""
    if not (document["conflicts"] or document["uncertainty"]):
        return
    console.print(Text("\nConflicts and uncertainty", "bold"))
    rows = _grid()
    for item in document["conflicts"]:
        told = f"{_line(item['kept'])}, not {_line(item['over'])}: {_line(item['why'])}"
        rows.add_row(Text("settled", "dim"), Text.assemble(told, _by([item["by"]])))
    if document["uncertainty"]:
        rows.add_row(Text("uncertain", "dim"), Text(_line(document["uncertainty"])))
    console.print(Padding(rows, (0, 0, 0, INDENT)))


def _grid() -> Table:
    """A word and what it is about, wrapped within its own column."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("positions"))
    grid.add_column(overflow="fold")
    return grid


def marked(document: Document, text: str) -> Text:
    """The case text with all quotes of the differential marked, by whether they speak for something, against it, or both."""
    result = Text(harmless(text))  # its own cleaning leaves out carriage returns, which would move all later quotes
    items = [item for entry in document["differential"] for item in entry["evidence"]]
    for piece in cut(len(text), [(item["start"], item["end"]) for item in items]):
        sides = {items[place]["supports"] for place in piece.over}
        if sides:
            result.stylize(BOTH if len(sides) == 2 else FOR if True in sides else AGAINST, piece.start, piece.end)
    return result


def _beside(document: Document, console: Console) -> None:
    """Triage, the most urgent first, and what must not be missed."""
    if document["triage"]:
        console.print(Text("\nTriage", "bold"))
        order = {"emergent": 0, "urgent": 1, "routine": 2}
        rows = _grid()
        for item in sorted(document["triage"], key=lambda item: order[item["urgency"]]):
            told = f"{_line(item['finding']).rstrip('.')}; {_line(item['step'])}"
            style = "dim" if item["urgency"] == "routine" else "bold red"
            rows.add_row(Text(item["urgency"], style), Text.assemble(told, _by([item["by"]])))
        console.print(Padding(rows, (0, 0, 0, INDENT)))
    if document["cant_miss"]:
        head = Text.assemble(
            ("\nNot to be missed", "bold red"), " (beside the differential; they do not change its order)"
        )
        console.print(head)
        for item in document["cant_miss"]:
            told = f": {_line(item['why']).rstrip('.')}; excluded by {_line(item['test'])}"
            console.print(
                Padding(Text.assemble((_line(item["diagnosis"]), "bold"), told, _by(item["by"])), (0, 0, 0, INDENT))
            )
