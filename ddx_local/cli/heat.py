"""Counterfactuals at a terminal: the case text with the gaps on it for each candidate, and the table finding x candidate.

Brackets, signs and numbers say all that the colours say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ddx_local.cli.say import harmless
from ddx_local.report import heat, words
from ddx_local.report.heat import Effect, Finding

Document = Mapping[str, Any]

FINDING, CELL = 26, 16
"""Columns of the table: of a finding at least, and of a candidate."""

# Both colours are given as numbers, so that text is legible whatever a terminal's own colours are.
_STYLES: Mapping[tuple[bool, str], str] = {
    (True, "primary"): "bold rgb(255,255,255) on rgb(0,90,190)",
    (True, "supporting"): "rgb(255,255,255) on rgb(58,88,120)",
    (False, "primary"): "bold rgb(255,255,255) on rgb(180,55,10)",
    (False, "supporting"): "rgb(255,255,255) on rgb(118,74,50)",
}
WEAK = "underline"


def print_heat(document: Document, text: str, console: Console) -> None:
    """Print the heat maps and the table of a result document that has counterfactuals."""
    console.print(Text("\nWhat carries each diagnosis", "bold"))
    console.print(
        Text(
            "[piece +0.34]: the diagnosis's probability on the case minus that on the case with the piece changed. Plus: "
            "the case as it is written speaks for it. Over 0.20 primary, 0.10 to 0.20 supporting, below not discriminating.",
            "dim",
        )
    )
    names = heat.candidates(document)
    found = heat.effects(document)
    for place, name in enumerate(names, start=1):
        own = [effect for effect in found if effect.diagnosis == name]
        counted = f"{sum(effect.counts for effect in own)} of {len(own)} edits above noise" if own else "no edit counts"
        console.print(Text.assemble("\n", (f"{place}. {_line(name)}", "bold"), (f"  {counted}", "dim")))
        if own:
            console.print(heat_map(document, name, text.rstrip()))
    rows = heat.table(document, text)
    if rows:
        console.print(Text("\nFinding by diagnosis", "bold"))
        fit = max(1, (console.width - FINDING) // (CELL + 2))
        numbered = [(f"{place}. {_line(name)}", name) for place, name in enumerate(names, start=1)]
        for first in range(0, len(numbered), fit):
            console.print(_table(rows, numbered[first : first + fit]))


def heat_map(document: Document, name: str, text: str) -> Text:
    """The case text; each piece that was changed stands in brackets with the strongest gap of the candidate."""
    clean = harmless(text)
    result = Text()
    for stretch in heat.stretches(document, name, len(text)):
        effect = stretch.effect
        if effect is None:
            result.append(clean[stretch.start : stretch.end])
            continue
        said = clean[stretch.start : stretch.end]
        if stretch.start == stretch.end:
            new = " ".join(_line(new) for start, end, new in effect.patches if start == end == stretch.start)
            said = f"if inserted: “{new}”"
            result.append(" ")
        noise = "" if effect.counts else " noise"
        result.append(f"[{said} {words.signed(effect.gap)}{noise}]", _style(effect))
    return result


def _table(rows: Sequence[Finding], columns: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("Finding", min_width=FINDING - 2, overflow="fold")
    for title, _ in columns:
        table.add_column(Text(title), width=CELL, overflow="fold")
    for row in rows:
        cells = [_cell(row.effects.get(name, ())) for _, name in columns]
        if any(row.effects.get(name) for _, name in columns):
            named = " and ".join(f"“{_line(piece)}”" for piece in row.texts)
            table.add_row(Text(f"if inserted: {named}" if row.inserted else named), *cells)
    return table


def _cell(found: Sequence[Effect]) -> Text:
    if not found:
        return Text("not tested", "dim")
    effect = found[0]
    change = "" if effect.before is None or effect.after is None else f"\n{effect.before:.2f} -> {effect.after:.2f}"
    noise = f"\n{'' if effect.counts else 'below '}noise {effect.noise_floor:.2f}"
    more = f"\n1 of {len(found)} edits" if len(found) > 1 else ""
    return Text.assemble(
        (words.signed(effect.gap), _style(effect)), f" {effect.operation}{change}", (noise + more, "dim")
    )


def _style(effect: Effect) -> str:
    """Noise has none: brackets and the word say it."""
    return _STYLES.get((effect.gap > 0, effect.strength), WEAK) if effect.counts else ""


def _line(text: str) -> str:
    return " ".join(harmless(text).split())
