"""One self-contained HTML file of any method's results, to read on a screen or on paper: no script, nothing from elsewhere.

It knows the order of a report's parts. It doesn't know where documents come from or where the file goes.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from ddx_local.report import account, answer, picture
from ddx_local.report.markup import Html, el, join, said

Document = Mapping[str, Any]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report(documents: Sequence[Document], texts: Mapping[str, str]) -> str:
    """The report.

    Args:
        documents: Result documents, in the order in which they are to be shown.
        texts: Case id -> case text.

    Returns:
        A whole HTML document. Everything of the documents and texts is escaped; what HTML cannot hold (control
        characters, lone surrogates) is shown as U+FFFD.

    Raises:
        KeyError: A document's case has no text.
    """
    runs = list(dict.fromkeys(document["run_id"] for document in documents))
    count = "one case" if len(documents) == 1 else f"{len(documents)} cases"
    title = f"ddx-local report: {count}" + (f", run {runs[0]}" if len(runs) == 1 else "")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="robots", content="noindex"),
        el("title", title),
        el("style", Html(resources.files("ddx_local.report").joinpath("style.css").read_text("utf-8"))),
    )
    top = el(
        "header",
        el("h1", "Differential diagnosis"),
        el("p", _what_ran(documents, count), class_="quiet"),
        *(
            el("p", el("strong", "Not a diagnosis. "), text, class_="box care", role="note")
            for text in dict.fromkeys(document["disclaimer"] for document in documents)
        ),
        class_="top",
    )
    cases = [_case(document, texts[document["case_id"]], number) for number, document in enumerate(documents, start=1)]
    contents = (_contents(documents),) if len(documents) > 1 else ()
    versions = ", ".join(dict.fromkeys(document["package_version"] for document in documents))
    foot = el("footer", el("p", f"Made by ddx-local {versions}."))
    body = el("body", top, el("main", *contents, *cases), foot)
    return "<!doctype html>\n" + el("html", head, "\n", body, lang="en") + "\n"


def _what_ran(documents: Sequence[Document], count: str) -> Html:
    methods = ", ".join(dict.fromkeys(document["method"] for document in documents))
    models = ", ".join(dict.fromkeys(document["model"]["name"] for document in documents))
    times = ", ".join(dict.fromkeys(document["created_at"][:16].replace("T", " ") for document in documents))
    return join([f"{count} · method ", said(methods), " · model ", said(models), f" · {times} UTC"])


def _contents(documents: Sequence[Document]) -> Html:
    rows = []
    for number, document in enumerate(documents, start=1):
        first = document["differential"][0]["diagnosis"] if document["differential"] else document["status"]
        link = el("a", said(document["case_id"]), href=f"#case-{number}")
        rows.append(el("li", link, ": ", said(first)))
    return el("nav", el("h2", "Cases"), el("ol", *rows), aria_label="Cases")


def _case(document: Document, text: str, number: int) -> Html:
    parts = (
        answer.failure(document),
        answer.degraded(document),
        answer.differential(document),
        answer.cant_miss(document),
        answer.triage(document),
        answer.treatment(document),
        answer.investigations(document),
        picture.evidence(document, text),
        picture.heat_maps(document, text),
        picture.findings(document, text),
        picture.edits(document, text),
        account.trace(document),
        account.settled(document),
        account.comments(document),
        account.notes(document),
        account.rounds(document),
        account.settings(document),
    )
    name = el("h2", said(document["case_id"]), id=f"case-{number}-name")
    return el("article", name, *parts, id=f"case-{number}", aria_labelledby=f"case-{number}-name")
