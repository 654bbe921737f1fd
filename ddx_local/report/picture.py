"""The case as a picture, in HTML: evidence marked in its text, and what counterfactuals measured. Pure.

Colour never stands alone: every mark has an underline of its own and a tag with a sign.
"""

from collections.abc import Mapping
from typing import Any

from ddx_local.report import heat, words
from ddx_local.report.answer import NOTHING, minus, quoted, section
from ddx_local.report.cut import cut
from ddx_local.report.heat import Effect
from ddx_local.report.markup import Html, el, join, said

Document = Mapping[str, Any]


def evidence(document: Document, text: str) -> Html:
    """The case text; quotes for and against are marked, and each ends in the numbers of its diagnoses."""
    items = [(entry["rank"], item) for entry in document["differential"] for item in entry["evidence"]]
    spans = [(item["start"], item["end"]) for _, item in items]
    parts: list[str] = []
    for piece in cut(len(text), spans):
        sides = {items[place][1]["supports"] for place in piece.over}
        shown = text[piece.start : piece.end]
        parts.append(el("mark", shown, class_=_side(sides)) if sides else shown)
        ending = sorted({(items[place][0], not items[place][1]["supports"]) for place in piece.ending})
        if ending:
            tag = " ".join(f"{'−' if against else '+'}{rank}" for rank, against in ending)
            parts.append(_tag(tag, _side({not against for _, against in ending})))
    if not items:
        return section("The case", _case(text))
    legend = el(
        "ul",
        el("li", el("mark", "for", class_="for"), _tag("+1", "for"), " speaks for diagnosis 1"),
        el("li", el("mark", "against", class_="against"), _tag("−2", "against"), " speaks against diagnosis 2"),
        el("li", el("mark", "both", class_="both"), _tag("+1 −2", "both"), " for one, against another"),
        class_="legend",
    )
    return section("The case, with the evidence marked", legend, _case(*parts))


def _side(supports: set[bool]) -> str:
    return "both" if len(supports) == 2 else "for" if True in supports else "against"


def _tag(text: str, kind: str) -> Html:
    return el("span", text, class_=f"tag {kind}")


def _case(*parts: str) -> Html:
    return el("div", *parts, class_="case", dir="auto")


def heat_maps(document: Document, text: str) -> Html:
    """For each candidate the case text with the gaps that were measured on it."""
    if not document["counterfactuals"]:
        return NOTHING
    legend = el(
        "ul",
        el("li", el("mark", "primary", class_="for primary"), _tag("+0.34", "for"), " over 0.20"),
        el("li", el("mark", "supporting", class_="for supporting"), _tag("+0.15", "for"), " 0.10 to 0.20"),
        el("li", el("mark", "weak", class_="for weak"), _tag("+0.04", "for"), " below 0.10, does not discriminate"),
        el("li", el("mark", "against", class_="against supporting"), _tag("−0.15", "against"), " speaks against it"),
        el("li", el("mark", "noise", class_="none"), _tag("noise", "none"), " below the noise floor, counts as none"),
        class_="legend",
    )
    about = el(
        "p",
        "Marked pieces were changed, one edit at a time. The number is the gap: the candidate’s probability on the case "
        "minus its probability on the changed case. Plus: the case as it is written speaks for the candidate. Of several "
        "edits of a piece the strongest is shown.",
        class_="quiet",
    )
    maps = (_heat_map(document, text, name) for name in heat.candidates(document))
    return section("What carries each diagnosis", about, legend, *maps)


def _heat_map(document: Document, text: str, name: str) -> Html:
    own = [effect for effect in heat.effects(document) if effect.diagnosis == name]
    before = f", probability {own[0].before:.2f} on the case" if own and own[0].before is not None else ""
    counted = sum(effect.counts for effect in own)
    told = f" {counted} of {len(own)} edits above the noise floor{before}" if own else " no edit that counts"
    parts = [_stretch(text, stretch) for stretch in heat.stretches(document, name, len(text))]
    head = el("summary", el("h4", said(name)), el("span", " ·", told, class_="quiet"))
    return el("details", head, _case(*parts), open="") if own else el("details", head)


def _stretch(text: str, stretch: heat.Stretch) -> str:
    effect = stretch.effect
    if effect is None:
        return text[stretch.start : stretch.end]
    side = side_of(effect)
    if stretch.start == stretch.end:
        new = " ".join(new.strip() for start, end, new in effect.patches if start == end == stretch.start)
        return _tag(join(["if inserted: ", quoted(new), f" {_number(effect)}"]), f"{side} long")
    kind = "none" if side == "none" else f"{side} {effect.strength}"
    return join([el("mark", text[stretch.start : stretch.end], class_=kind), _tag(_number(effect), side)])


def side_of(effect: Effect) -> str:
    """for, against, or none where it is noise."""
    return "none" if not effect.counts else "for" if effect.gap > 0 else "against"


def _number(effect: Effect) -> str:
    return minus(words.signed(effect.gap)) if effect.counts else f"{minus(words.signed(effect.gap))} noise"


def findings(document: Document, text: str) -> Html:
    """The table finding x candidate."""
    rows = heat.table(document, text)
    if not rows:
        return NOTHING
    names = heat.candidates(document)
    head = el("tr", el("th", "Finding", scope="col"), *(el("th", said(name), scope="col") for name in names))
    body = []
    for row in rows:
        found = join([*(["if inserted: "] if row.inserted else []), join(map(quoted, row.texts), " and ")])
        cells = (_cell(row.effects.get(name, ())) for name in names)
        body.append(el("tr", el("th", found, scope="row"), *cells))
    about = (
        "Gap, probability before → after the change, what was done, and the noise floor; the strongest edit of each."
    )
    whole = el("table", el("thead", head), el("tbody", *body), class_="effects")
    return section("Finding by diagnosis", el("p", about, class_="quiet"), scrolling(whole, "Finding by diagnosis"))


def _cell(found: tuple[Effect, ...]) -> Html:
    if not found:
        return el("td", el("span", "not tested", class_="quiet small"), class_="effect")
    effect = found[0]
    noise = f"noise {effect.noise_floor:.2f}" if effect.counts else f"below noise {effect.noise_floor:.2f}"
    more = f", {len(found)} edits" if len(found) > 1 else ""
    return el(
        "td",
        el("b", minus(words.signed(effect.gap))),
        el("span", before_after(effect.before, effect.after), class_="small"),
        el("span", f"{effect.operation}, {noise}{more}", class_="small quiet"),
        class_=f"effect {side_of(effect)} {effect.strength}",
    )


def before_after(before: float | None, after: float | None) -> str:
    """Two probabilities, or '' where one is not known."""
    return "" if before is None or after is None else f"{before:.2f} → {after:.2f}"


def scrolling(table: str, label: str) -> Html:
    """A table that is wider than the page scrolls in a region that the keyboard reaches."""
    return el("div", table, class_="scroll", role="region", aria_label=label, tabindex="0")


def edits(document: Document, text: str) -> Html:
    """Every edit with all its numbers, also those that did not count."""
    items = document["counterfactuals"]
    if not items:
        return NOTHING
    names = ("Edit", "Tested for, by", "Gap", "Preserved", "Combined")
    rows = [el("tr", *_edit(text, item)) for item in items]
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in names)))
    whole = el("table", head, el("tbody", *rows), class_="edits")
    summary = el("summary", el("h4", f"All {len(items)} edits with their numbers"))
    return el("section", el("details", summary, scrolling(whole, "All edits")))


def _edit(text: str, item: Mapping[str, Any]) -> tuple[Html, ...]:
    changes = [_change(text, patch, item["operation"]) for patch in item["patches"]]
    kept = NOTHING if item["kept"] else el("span", "left out, it changes too much", class_="small quiet")
    gap = minus(words.signed(item["gap"])) if item["gap"] is not None else "not measured"
    return (
        el("th", join(changes, "; "), kept, scope="row"),
        _stacked(said(item["diagnosis"]), join([said(item["by"]), f", round {item['round']}"]), figures=False),
        _stacked(el("b", gap), before_after(item["p_before"], item["p_after"]), _figure("noise", item["noise_floor"])),
        _stacked(_figure("SIP", item["sip"]), _figure("EditSim", item["edit_sim"])),
        _stacked(
            _figure("", item["combined"]), _figure("shift", item["shift"]), _figure("paper’s gap", item["gap_paper"])
        ),
    )


def _stacked(first: str, *others: str, figures: bool = True) -> Html:
    """A cell with one line below the other."""
    below = (el("span", other, class_="small quiet") for other in others if other)
    return el("td", el("span", first), *below, class_="figures" if figures else None)


def _change(text: str, patch: Mapping[str, Any], operation: str) -> Html:
    old, new = text[patch["start"] : patch["end"]], patch["replacement"]
    parts = [operation, *([" ", quoted(old)] if old else []), *([" → ", quoted(new)] if new.strip() else [])]
    return join(parts)


def _figure(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} {value:.2f}".strip()
