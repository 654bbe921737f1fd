"""The answer as HTML: the ranked differential with its reasons, what must not be missed, triage, what was degraded. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from ddx_local.report import words
from ddx_local.report.markup import Html, el, join, listed, said

Document = Mapping[str, Any]

NOTHING = Html("")
URGENCY = ("emergent", "urgent", "routine")


def section(title: str, *children: str) -> Html:
    """A part of a case's report."""
    return el("section", el("h3", title), *children)


def quoted(text: str) -> Html:
    """A quote of the case, on one line."""
    return said(f"“{' '.join(text.split())}”")


def minus(text: str) -> str:
    """The same with a minus sign in place of the hyphen."""
    return text.replace("-", "−")


def failure(document: Document) -> Html:
    """Why there is no answer."""
    error = document["error"]
    if error:
        what = f"This case failed ({error['kind']}): "
        return el("div", el("p", el("strong", what), f"{error['message']}. {error['hint']}"), class_="box alarm")
    if document["status"] != "finished":
        return el("div", el("p", el("strong", "This case was not finished: it was cancelled.")), class_="box alarm")
    return NOTHING


def degraded(document: Document) -> Html:
    """What a reader has to know before reading the answer."""
    items = [el("li", said(item["detail"])) for item in document["degraded"]]
    return el("div", el("p", el("strong", "Degraded: ")), el("ul", *items), class_="box care") if items else NOTHING


def differential(document: Document) -> Html:
    """The ranked list; each entry with its score, votes, final positions and evidence."""
    entries = document["differential"]
    if not entries:
        return section("Differential", el("p", "No diagnosis was given.")) if not document["error"] else NOTHING
    kind = document["score_kind"]
    # These scores are shares of 1; any other is shown against the best.
    whole = 1.0 if kind in ("probability", "share_of_samples", "reciprocal_place") else entries[0]["score"] or 1.0
    panel = el("p", "Panel: ", listed(document["panel"]), class_="quiet") if document["panel"] else NOTHING
    about = el("p", f"Ranked, the most likely first. Score: {words.score_kind(kind)}.", class_="quiet")
    items = (_entry(entry, whole) for entry in entries)
    return section("Differential", about, panel, el("ol", *items, class_="differential"))


def _entry(entry: Mapping[str, Any], whole: float) -> Html:
    width = max(0.0, min(1.0, entry["score"] / whole))
    probability = entry["probability"]
    told = probability is not None and probability != entry["score"]
    facts = [
        *_fact("Places", _places(entry["votes"])),
        *_fact("Positions", _positions(entry["stances"])),
        *_fact("Probability", f"{probability:.2f}" if told else ""),
        *_fact("Proposed by", listed(role for role in entry["proposed_by"] if role != entry["entered_in"])),
        *_fact("ICD-10", _icd10(entry["icd10"])),
    ]
    return el(
        "li",
        el(
            "div",
            el("span", str(entry["rank"]), class_="rank"),
            el("h4", said(entry["diagnosis"]), *_flags(entry)),
            el("span", f"{entry['score']:.2f}", class_="score"),
            class_="head",
        ),
        el("div", el("div", style=f"width:{width:.1%}"), class_="bar", aria_hidden="true"),
        el(
            "div",
            *([el("p", said(entry["reasoning"]))] if entry["reasoning"] else []),
            *([el("dl", *facts, class_="facts")] if facts else []),
            _evidence(entry["evidence"]),
            class_="body",
        ),
        class_="entry",
    )


def _flags(entry: Mapping[str, Any]) -> Iterable[Html]:
    if entry.get("kind"):
        yield el("span", entry["kind"], class_="flag plain")
    if entry["critical"]:
        yield el("span", "critical", class_="flag alarm")
    if entry["entered_in"] == "refinement":
        yield el("span", "added late", class_="flag plain")


def _fact(name: str, value: str) -> tuple[Html, ...]:
    return (el("dt", name), el("dd", value)) if value else ()


def _places(votes: Mapping[str, int]) -> Html:
    """Each place with those who gave it."""
    parts = [
        join([f"{words.ordinal(place)} by {len(roles)} of {len(votes)} (", listed(roles), ")"])
        for place, roles in words.places(votes).items()
    ]
    return join(parts, "; ")


def _positions(stances: Mapping[str, str]) -> Html:
    """Each final position with those who hold it, the sign first."""
    parts = [
        join([f"{minus(words.MARKS.get(name, ''))}{len(roles)} {name} (", listed(roles), ")"])
        for name, roles in words.positions(stances).items()
    ]
    return join(parts, "; ")


def _icd10(code: Mapping[str, str] | None) -> Html:
    return join([said(code["code"]), " ", said(code["name"])]) if code else NOTHING


def _evidence(items: Iterable[Mapping[str, Any]]) -> Html:
    rows = []
    for item in items:
        side, sign = ("for", "+ for") if item["supports"] else ("against", "− against")
        by = el("span", listed(item["by"]), class_="by") if item["by"] else NOTHING
        rows.append(el("li", el("span", sign, class_=f"sign {side}"), " ", quoted(item["quote"]), " ", by))
    return el("ul", *rows, class_="quotes") if rows else NOTHING


def cant_miss(document: Document) -> Html:
    """Life-threatening conditions beside the differential."""
    rows = []
    for item in document["cant_miss"]:
        quote = (el("br"), quoted(item["quote"])) if item["quote"] else ()
        by = el("span", " (", listed(item["by"]), ")", class_="by")
        rest = (said(item["why"]), " Excluded by: ", said(item["test"]), by, *quote)
        rows.append(el("li", el("strong", said(item["diagnosis"])), el("br"), *rest))
    if not rows:
        return NOTHING
    about = el("p", "Beside the differential; they do not change its order.", class_="quiet")
    return section("Not to be missed", about, el("ul", *rows, class_="items"))


def triage(document: Document) -> Html:
    """What needs treatment now, the most urgent first."""
    rows = []
    for item in sorted(document["triage"], key=lambda item: URGENCY.index(item["urgency"])):
        kind = "flag plain" if item["urgency"] == "routine" else "flag alarm"
        quote = (el("br"), quoted(item["quote"])) if item["quote"] else ()
        by = el("span", " (", said(item["by"]), ")", class_="by")
        named = el("strong", said(item["finding"]))
        rows.append(el("li", named, el("span", item["urgency"], class_=kind), el("br"), said(item["step"]), by, *quote))
    return section("Triage", el("ul", *rows, class_="items")) if rows else NOTHING


def treatment(document: Document) -> Html:
    """Points of treatment, of methods that give any."""
    rows = [el("li", said(point)) for point in document.get("treatment", ())]
    return section("Treatment", el("ul", *rows, class_="items")) if rows else NOTHING


def investigations(document: Document) -> Html:
    """The turns of a planned investigation: what was expected, what the case says, whether it was planned anew."""
    rows = []
    for item in document.get("investigations", ()):
        outcome, kind = ("planned anew", "flag alarm") if item["replanned"] else ("as expected", "flag plain")
        found = [_observation(one) for one in item["observations"]]
        conflict = f" Conflict with what was found: {item['conflict']:.2f}."
        head = (el("strong", f"Turn {item['turn']}: ", said(item["strategy"])), el("span", outcome, class_=kind))
        rows.append(el("li", *head, el("br"), "Expected: ", said(item["expected"]), conflict, el("ul", *found)))
    return section("Investigation", el("ol", *rows, class_="items")) if rows else NOTHING


def _observation(item: Mapping[str, Any]) -> Html:
    answer = quoted(item["quote"]) if item["quote"] else Html("not recorded")
    return el(
        "li",
        said(item["asked"]),
        ": ",
        answer,
        " ",
        said(item["means"]),
        el("span", " (", said(item["by"]), ")", class_="by"),
    )
