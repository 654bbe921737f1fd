"""How a method came to its answer, in HTML: its trace, comments, notes, rounds with tokens and seconds, settings. Pure."""

from collections.abc import Mapping
from typing import Any

from ddx_local.report.answer import NOTHING, section
from ddx_local.report.markup import Html, el, join, said
from ddx_local.report.picture import scrolling

Document = Mapping[str, Any]


def trace(document: Document) -> Html:
    """The discussion's end in words, and what would change it."""
    found = document["trace"]
    if not found:
        return NOTHING
    how = (
        "The specialists agreed."
        if found["by_consensus"]
        else "The specialists did not agree; a judge chose from the list."
    )
    outside = (el("dt", "Named outside of the list"), el("dd", said(found["outside"]))) if found["outside"] else ()
    facts = el(
        "dl",
        el("dt", "How it ended"),
        el("dd", how),
        *outside,
        el("dt", "What would change it"),
        el("dd", said(found["would_change"])),
        class_="facts",
    )
    return section("Reasoning", el("p", said(found["conclusion"])), facts)


def settled(document: Document) -> Html:
    """The conflicts that a role settled, and what stays uncertain."""
    if not (document["conflicts"] or document["uncertainty"]):
        return NOTHING
    rows = [
        el("li", said(item["kept"]), ", not ", said(item["over"]), ": ", said(item["why"]), _by(item["by"]))
        for item in document["conflicts"]
    ]
    uncertain = (el("p", "Uncertain: ", said(document["uncertainty"])),) if document["uncertainty"] else ()
    listed = (el("ul", *rows, class_="items"),) if rows else ()
    return section("Conflicts and uncertainty", *listed, *uncertain)


def _by(role: str) -> Html:
    return el("span", " (", said(role), ")", class_="by")


def comments(document: Document) -> Html:
    """What a person said between the rounds."""
    rows = [
        el("li", said(item["text"]), el("span", f" (after round {item['round']}, ", said(item["by"]), ")", class_="by"))
        for item in document["comments"]
    ]
    return section("Comments", el("ul", *rows, class_="items")) if rows else NOTHING


def notes(document: Document) -> Html:
    """What the program decided by itself."""
    rows = [el("li", said(item["detail"])) for item in document["notes"]]
    return section("Notes", el("ul", *rows)) if rows else NOTHING


def rounds(document: Document) -> Html:
    """The batches with their tokens and seconds."""
    items = document["rounds"]
    if not items:
        return NOTHING
    totals = document["totals"]
    names = ("Calls", "Prompt tokens", "of them computed", "Generated tokens", "Seconds")
    head = el("tr", el("th", "Round", scope="col"), *(el("th", name, class_="number", scope="col") for name in names))
    body = [el("tr", el("th", said(item["name"]), scope="row"), *_figures(item, "questions")) for item in items]
    last = el("tr", el("th", f"{totals['batches']} rounds", scope="row"), *_figures(totals, "calls"))
    whole = el("table", el("thead", head), el("tbody", *body), el("tfoot", last))
    return section("Rounds", scrolling(whole, "Rounds"))


def _figures(item: Mapping[str, Any], calls: str) -> tuple[Html, ...]:
    counts = (item[calls], item["prompt_tokens"], item["prompt_tokens_computed"], item["generated_tokens"])
    texts = (*(f"{count:,}" for count in counts), f"{item['seconds']:.1f}")
    return tuple(el("td", text, class_="number") for text in texts)


def settings(document: Document) -> Html:
    """What ran, so that it can be run again."""
    model = document["model"]
    pairs: list[tuple[str, str]] = [
        ("Run", document["run_id"]),
        ("Began", document["created_at"]),
        ("Method", document["method"]),
        ("Options", ", ".join(f"{name}={_value(value)}" for name, value in document["options"].items())),
        ("Model", model["name"]),
        *((f"Model of the {role}", other["name"]) for role, other in model["roles"].items()),
        ("Engine", document["engine"]),
        ("Seed", str(document["seed"])),
        ("ddx-local", document["package_version"]),
        ("Result format", document["schema"]),
        *((f"Fingerprint: {name}", value) for name, value in model["fingerprint"].items()),
    ]
    rows = join(join([el("dt", said(name)), el("dd", said(value))]) for name, value in pairs if value)
    return section("What ran", el("dl", rows, class_="facts"))


def _value(value: Any) -> str:
    return "+".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
