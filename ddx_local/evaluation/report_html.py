"""A report as one self-contained HTML file: no script, no font, no address but its own."""

import json
from html import escape

from ddx_local.evaluation.report_section import Section
from ddx_local.evaluation.report_sections import sections
from ddx_local.evaluation.report_svg import pictures
from ddx_local.evaluation.report_table import Json

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #bbb}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.86em}
th,td{text-align:left;vertical-align:top;padding:.25em .6em;border-bottom:1px solid #ddd}
th{background:#f3f3f3}ul{padding-left:1.2em}figure{margin:1.5em 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}
pre{white-space:pre-wrap}.note{color:#555}"""


def html(report: Json) -> str:
    """The whole page."""
    title = f"Benchmark {report['suite']['name']}"
    found = sections(report)
    parts = [_section(found[0]), "<h2>Pictures</h2>", *pictures(report), *(_section(item) for item in found[1:])]
    stamp = escape(json.dumps(report["stamp"]["of"], indent=1, ensure_ascii=False))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="note">{escape(report["disclaimer"])}</p>{"".join(parts)}'
        f"<details><summary>What the stamp covers</summary><pre>{stamp}</pre></details></body></html>\n"
    )


def _section(section: Section) -> str:
    if not section.lines and len(section.table) < 2:
        return ""
    lines = "".join(f"<li>{escape(line.strip())}</li>" for line in section.lines)
    body = f"<ul>{lines}</ul>" if lines else ""
    if len(section.table) > 1:
        head, *rows = section.table
        cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
        lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        body += (
            f'<div class="wide" tabindex="0"><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>'
        )
    return f"<h2>{escape(section.title)}</h2>{body}"
