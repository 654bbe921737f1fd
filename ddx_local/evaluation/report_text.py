"""A report as plain text, Markdown or LaTeX tables."""

from collections.abc import Sequence

from ddx_local.evaluation.report_section import Section
from ddx_local.evaluation.report_sections import sections
from ddx_local.evaluation.report_table import Json

_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}"}  # fmt: skip

NARROW = 124
"""Columns that a text table may take."""


def text(report: Json) -> str:
    """For a terminal: tables that are too wide become blocks."""
    out = []
    for section in sections(report):
        if section.lines or len(section.table) > 1:
            out += ["", section.title, "=" * len(section.title), *section.lines, *_plain(section)]
    return "\n".join(out).lstrip("\n") + "\n"


def _plain(section: Section) -> list[str]:
    """The table as it is, turned (a column for each row) where that is narrower, or one block a row."""
    if len(section.table) < 2:
        return []
    shown = _without_constants(section.table)
    for table in (shown, list(zip(*shown, strict=True))):
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        if sum(widths) + 2 * len(widths) <= NARROW:
            return [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
            ]
    name = max(map(len, shown[0]))
    blocks = (
        ["", *(f"  {head.ljust(name)}  {cell}" for head, cell in zip(shown[0], row, strict=True))] for row in shown[1:]
    )
    return [line for block in blocks for line in block][1:]


def _without_constants(table: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without the column of the model where there is but one: the first section names it."""
    if table[0][0] == "model" and len({row[0] for row in table[1:]}) == 1:
        return [row[1:] for row in table]
    return list(table)


def markdown(report: Json) -> str:
    """GitHub-style tables."""
    out = []
    for section in sections(report):
        if not section.lines and len(section.table) < 2:
            continue
        out += [f"## {section.title}", ""]
        out += [f"- {line.strip()}" for line in section.lines] + ([""] if section.lines else [])
        if len(section.table) > 1:
            head, *rows = section.table
            out += [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows), ""]
    return "\n".join(out)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def latex(report: Json) -> str:
    """One tabular for each table (booktabs)."""
    out = [r"% \usepackage{booktabs}"]
    for section in sections(report):
        if len(section.table) < 2:
            continue
        head, *rows = section.table
        out += [
            rf"\begin{{table}}\caption{{{escaped(section.title)}}}",
            rf"\begin{{tabular}}{{{'l' * len(head)}}}\toprule",
            " & ".join(map(escaped, head)) + r" \\ \midrule",
            *(" & ".join(map(escaped, row)) + r" \\" for row in rows),
            r"\bottomrule\end{tabular}\end{table}",
            "",
        ]
    return "\n".join(out)


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(character, character) for character in text)
