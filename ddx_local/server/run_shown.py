"""A recorded run as it leaves the server: whole as JSON, as a report to read or print, and its heat maps as spans."""

from typing import Any

from ddx_local import jobs
from ddx_local.events import to_json
from ddx_local.report import heat
from ddx_local.report.html import report
from ddx_local.server.replies import Reply, dumped
from ddx_local.store import RunRow, Store

Json = dict[str, Any]

_PAPER = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def as_json_file(store: Store, row: RunRow) -> Reply:
    """The whole run, as `runs export` gives it."""
    whole = {
        "schema": "ddx-local/run/1",
        "run_id": row.run_id,
        "events": [to_json(item) for item in store.events(row.run_id)],
        "texts": dict(store.all_texts(row.run_id)),
        "results": list(jobs.documents(store, row.run_id)),
    }
    return Reply(dumped(whole), headers=_attached(row, "json"))


def as_html_file(store: Store, row: RunRow) -> Reply:
    """The report, as `runs show --html` writes it."""
    _, cases = jobs.recorded(store, row.run_id)
    text = report(jobs.documents(store, row.run_id), {case.id: case.text for case in cases})
    headers = {**_attached(row, "html"), "content-security-policy": _PAPER}
    return Reply(text.encode(errors="replace"), content_type="text/html; charset=utf-8", headers=headers)


def _attached(row: RunRow, ending: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="ddx-local-{row.run_id}.{ending}"'}


def heat_of(document: Json, text: str) -> Json:
    """For each candidate the stretches of the case with what their change did."""
    if not document["counterfactuals"]:
        return {}
    return {
        name: [
            {
                "start": item.start,
                "end": item.end,
                "gap": item.effect.gap if item.effect else None,
                "counts": bool(item.effect and item.effect.counts),
                "strength": item.effect.strength if item.effect else "none",
                "operation": item.effect.operation if item.effect else "",
            }
            for item in heat.stretches(document, name, len(text))
        ]
        for name in heat.candidates(document)
    }
