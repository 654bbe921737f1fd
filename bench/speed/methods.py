"""Every method on the project's own cases with the embedded model: does every turn parse, does any case fail?"""

import asyncio
import sys
from collections.abc import Mapping, Sequence

from bench.speed.shared import Noting, ended, gate, opened, parse, run, vignettes
from ddx_local import jobs, launch, options
from ddx_local.methods.table import METHODS
from ddx_local.store import Store

CASES = 3

SHORTER: Mapping[str, Mapping[str, str]] = {
    "dxchain": {"turns": "3"},
    "best-of-n": {"n": "5"},
    "self-consistency": {"n": "5"},
}
"""Options by method, where the default asks the same question again and again."""


def methods() -> dict[str, float]:
    """All methods' cases through one gate, so that they share the engine's batches; `measure` says what is counted."""
    return measure(list(METHODS), opened(), CASES)


def measure(names: Sequence[str], through: launch.Opened, count: int) -> dict[str, float]:
    """Cases that failed, turns, turns that a JSON parser refuses, and turns that ended by length; by method on standard error."""

    async def told(name: str) -> dict[str, float]:
        figures = await _one(name, through, count)
        print(f"{name}: " + ", ".join(f"{value:g} {what}" for what, value in figures.items()), file=sys.stderr)
        return figures

    async def everything() -> list[dict[str, float]]:
        return await asyncio.gather(*(told(name) for name in names))

    totals: dict[str, float] = {"methods": len(names)}
    for figures in run(everything()):
        for what, value in figures.items():
            totals[f"methods_{what}"] = totals.get(f"methods_{what}", 0) + value
    return totals


async def _one(name: str, through: launch.Opened, count: int) -> dict[str, float]:
    noting = Noting(through.engine)
    method = jobs.method(name)
    chosen = options.parse(method.options, SHORTER.get(name, {}), name)
    job = jobs.Job(method, chosen, "smollm2-135m", "vllm", 0, {}, vignettes(count))
    store = Store(None)
    opened_ = launch.Opened(noting, through.consultants)
    documents = jobs.documents(store, await jobs.start(job, opened_, store, ended(name), gate()))
    for document in documents:
        if document["error"] is not None:
            error = document["error"]
            print(f"{name}, {document['case_id']}: {error['kind']}: {error['message']}", file=sys.stderr)
    bound = [answer for request, answer in noting.answered if request.grammar is not None]
    return {
        "cases": len(documents),
        "failed": sum(document["status"] != "finished" for document in documents),
        "turns": len(noting.answered),
        "turns_unread": sum(not _reads(answer.text) for answer in bound),
        "length_stops": sum(answer.finish_reason == "length" for _, answer in noting.answered),
        "batches": max(document["totals"]["batches"] for document in documents),
        "tokens": sum(answer.generated_tokens for _, answer in noting.answered),
    }


def _reads(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
