"""Pictures of a report as inline SVG: gains with intervals, lift with placebo, calibration, cost against F1, rounds.

They are drawn as text, so that a report needs no drawing library and stays one file that works offline.
"""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from ddx_local.evaluation.report_table import Json

WIDTH, ROW, LEFT, RIGHT = 760, 26, 230, 40
INK, SOFT, ONE, TWO, THREE = "#222", "#999", "#2463a8", "#c06014", "#4a8a3c"


def forest(report: Json) -> str:
    """Difference of F1 from the baseline, with 95% intervals."""
    items = [(f"{c['method']} - {c['baseline']} ({c['model']})", c["delta_f1"]) for c in report["comparisons"]]
    if not items:
        return ""
    reach = max(0.05, *(max(abs(d["low"]), abs(d["high"])) for _, d in items)) * 1.1
    x = _scale(-reach, reach)
    body = [_line(x(0), 10, x(0), 20 + ROW * len(items), SOFT)]
    for place, (name, d) in enumerate(items):
        y = 24 + ROW * place
        body += [_label(name, y), _line(x(d["low"]), y, x(d["high"]), y, ONE, 2), _dot(x(d["value"]), y, ONE)]
        body.append(_text(x(d["high"]) + 6, y + 4, f"{d['value']:+.3f}", INK))
    return _svg(
        "Gain in F1 over the baseline (95% interval)", body + _axis(x, -reach, reach, 30 + ROW * len(items)), len(items)
    )


def lift(report: Json) -> str:
    """Raw lift, the placebo's and the net, by quartile."""
    bars: list[tuple[str, float, str]] = []
    for c in report["comparisons"]:
        for row in c["lift"]:
            if row["placebo"] is not None and row["net"] is not None:
                name = f"{c['method']} ({c['model']}) Q{row['quartile']}"
                bars += [
                    (f"{name} raw", row["raw"]["value"], ONE),
                    (f"{name} placebo", row["placebo"], SOFT),
                    (f"{name} net", row["net"]["value"], TWO),
                ]
    return _bars("Lift by quartile of the baseline: raw, placebo, net", bars)


def cost_against_f1(report: Json) -> str:
    """Tokens a case against macro F1."""
    points = [
        (arm["usage"]["tokens_per_case"], arm["macro"]["f1"]["value"], f"{arm['arm']} ({arm['model']})")
        for arm in report["arms"]
    ]
    return _scatter("Tokens a case against macro F1", points, "tokens a case", "F1")


def calibration(report: Json) -> str:
    """Confidence against the share that is right."""
    points = [
        (b["confidence"], b["right"], f"{item['arm']} n={b['n']}")
        for item in report["talk"] if item["calibration"] for b in item["calibration"]["bins"]
    ]  # fmt: skip
    return _scatter(
        "Calibration: confidence of the first diagnosis against the share that is right",
        points,
        "confidence",
        "right",
        diagonal=True,
    )


def rounds(report: Json) -> str:
    """Where the true positives were first named."""
    bars = [
        (f"{item['arm']} ({item['model']}) {name}", float(count), THREE)
        for item in report["talk"]
        for name, count in sorted(item["deliberation"]["entered"].items())
    ]
    return _bars("Rounds in which true positives were first named", bars, digits=0)


def thresholds(report: Json) -> str:
    """What each threshold of escalation costs and gives."""
    points = [
        (item["tokens_per_case"], item["f1"], f"{item['threshold']:.2f}" if place % 4 == 0 else "")
        for found in report["escalation"].values()
        for place, item in enumerate(found["curve"])
    ]
    return _scatter("Escalation: tokens a case against F1 by threshold", points, "tokens a case", "F1")


def pictures(report: Json) -> list[str]:
    """All pictures that the report has data for."""
    return [
        picture
        for draw in (forest, lift, cost_against_f1, calibration, thresholds, rounds)
        if (picture := draw(report))
    ]


def _bars(title: str, bars: Sequence[tuple[str, float, str]], digits: int = 3) -> str:
    if not bars:
        return ""
    low, high = min(0.0, *(v for _, v, _ in bars)), max(0.0, *(v for _, v, _ in bars))
    x = _scale(low, high if high > low else low + 1)
    body = []
    for place, (name, value, colour) in enumerate(bars):
        y = 14 + ROW * place
        left, right = sorted((x(0), x(value)))
        body += [
            _label(name, y + 10),
            f'<rect x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="{ROW - 10}" fill="{colour}"/>',
            _text(right + 5, y + 13, f"{value:+.{digits}f}" if digits else f"{value:.0f}", INK),
        ]
    return _svg(title, body, len(bars))


def _scatter(
    title: str, points: Sequence[tuple[float, float, str]], across: str, up: str, *, diagonal: bool = False
) -> str:
    if not points:
        return ""
    most_x, most_y = (
        (1.0, 1.0) if diagonal else (max(p[0] for p in points) * 1.1 or 1.0, max(p[1] for p in points) * 1.2 or 1.0)
    )
    height = 10 * ROW
    x = _scale(0, most_x, left=70)

    def y(value: float) -> float:
        return height - value / most_y * (height - 30)

    body = [_line(70, height, WIDTH - RIGHT, height, SOFT), _line(70, 20, 70, height, SOFT)]
    body += [_line(x(0), y(0), x(1), y(1), SOFT)] if diagonal else []
    for place, (a, b, name) in enumerate(points):
        body += [_dot(x(a), y(b), (ONE, TWO, THREE)[place % 3]), _text(min(x(a) + 7, WIDTH - 220), y(b) - 5, name, INK)]
    body += [
        _text(WIDTH - 160, height + 18, f"{across}: 0 to {most_x:,.2f}", SOFT),
        _text(8, 16, f"{up}: 0 to {most_y:.2f}", SOFT),
    ]
    return _svg(title, body, 10)


def _scale(low: float, high: float, left: int = LEFT) -> Callable[[float], float]:
    room = WIDTH - left - RIGHT - 40
    return lambda value: left + (value - low) / (high - low) * room


def _axis(x: Callable[[float], float], low: float, high: float, y: float) -> list[str]:
    return [_text(x(value) - 14, y + 14, f"{value:+.2f}", SOFT) for value in (low, 0.0, high)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{escape(text)}</text>'


def _label(text: str, y: float) -> str:
    shown = text if len(text) <= 36 else text[:35] + "…"
    return f'<text x="4" y="{y + 4:.1f}" fill="{INK}"><title>{escape(text)}</title>{escape(shown)}</text>'


def _svg(title: str, body: Sequence[Any], count: int) -> str:
    height = 50 + ROW * count
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-size="12" font-family="sans-serif">{"".join(body)}</svg></figure>'
    )
