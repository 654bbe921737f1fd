"""A result document as Markdown, for chat programs and for reading. Pure; everything said stays as it was said."""

import re
from collections.abc import Mapping
from typing import Any

from ddx_local.report import words

Document = Mapping[str, Any]

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")


def report(document: Document) -> str:
    """The whole report."""
    parts = [
        *_error(document),
        *_list("Degraded", [item["detail"] for item in document["degraded"]]),
        *_differential(document),
        *_cant_miss(document),
        *_triage(document),
        *_trace(document),
        *_list("Comments", [f"{item['by']}: {item['text']}" for item in document["comments"]]),
        *_totals(document),
        f"*{document['disclaimer']}*",
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))


def _error(document: Document) -> list[str]:
    error = document["error"]
    if error:
        return [f"**This case failed ({error['kind']}).** {plain(error['message'])}. {plain(error['hint'])}"]
    return [] if document["status"] == "finished" else ["**This case was not finished: it was cancelled.**"]


def _list(title: str, items: list[str]) -> list[str]:
    return [f"## {title}\n\n" + "\n".join(f"- {plain(item)}" for item in items)] if items else []


def _differential(document: Document) -> list[str]:
    entries = document["differential"]
    if not entries:
        return []
    about = f"Ranked, the most likely first. Score: {words.score_kind(document['score_kind'])}."
    rows = []
    for entry in entries:
        facts = [f"score {entry['score']:.2f}"]
        facts += [placed] if (placed := words.placed(entry["votes"])) else []
        facts += [f"ICD-10 {entry['icd10']['code']} {plain(entry['icd10']['name'])}"] if entry["icd10"] else []
        facts += ["**critical**"] if entry["critical"] else []
        rows.append(f"{entry['rank']}. **{plain(entry['diagnosis'])}** ({'; '.join(facts)})")
        for item in entry["evidence"]:
            sign = "for" if item["supports"] else "against"
            rows.append(f"   - {sign}: “{plain(item['quote'])}”")
    return [f"## Differential diagnosis\n\n{about}\n\n" + "\n".join(rows)]


def _cant_miss(document: Document) -> list[str]:
    rows = [
        f"- **{plain(item['diagnosis'])}**: {plain(item['why'])} Excluded by: {plain(item['test'])}"
        for item in document["cant_miss"]
    ]
    about = "Beside the differential; they do not change its order."
    return [f"## Not to be missed\n\n{about}\n\n" + "\n".join(rows)] if rows else []


def _triage(document: Document) -> list[str]:
    rows = [f"- {item['urgency']}: {plain(item['finding'])}: {plain(item['step'])}" for item in document["triage"]]
    return ["## Triage\n\n" + "\n".join(rows)] if rows else []


def _trace(document: Document) -> list[str]:
    trace = document["trace"]
    if not trace:
        return []
    return [f"## Reasoning\n\n{plain(trace['conclusion'])}\n\nWhat would change it: {plain(trace['would_change'])}"]


def _totals(document: Document) -> list[str]:
    totals = document["totals"]
    what = f"Method {document['method']} on {plain(document['model']['name'])}"
    cost = f"{totals['calls']} calls in {totals['batches']} rounds, {totals['generated_tokens']} tokens"
    return [f"{what}: {cost}, {totals['seconds']:.1f} s, run {document['run_id']}."]
