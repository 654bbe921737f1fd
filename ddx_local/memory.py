"""Memory Agent: what past runs were and how they ended. The program counts; a model only puts it into words.

Source: the user panel of the DMoA paper. The record that the model reads holds settings, diagnoses and failures, no case
text. What does not fit the model's context is left out from its oldest end, and the summary says how much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.errors import ContextLengthExceeded
from ddx_local.flow import Ask, Flow, Step, ask, sizes
from ddx_local.launch import Opened
from ddx_local.result import Json
from ddx_local.run import unrecorded
from ddx_local.store import Store

SUMMARY: Step[Mapping[str, str]] = Step("memory/summary", lambda answer: answer)

_TOP = 3
"""Diagnoses of a case that the record shows."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Cases of some runs by how they ended; `open` are those of running or interrupted runs."""

    runs: int
    cases: int
    finished: int
    failed: int
    open: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model says of the runs, beside what is counted; `left_out` runs did not fit its context."""

    counts: Counts
    tried: str
    ended: str
    failed: str
    left_out: int


def counts(documents: Sequence[Json], runs: int) -> Counts:
    """Count result documents by status."""
    status = [document["status"] for document in documents]
    finished, failed = status.count("finished"), status.count("failed")
    return Counts(runs, len(status), finished, failed, len(status) - finished - failed)


def entry(documents: Sequence[Json]) -> str:
    """One run as the record shows it: how it was set up, and case by case how it ended."""
    first = documents[0]
    options = ", ".join(f"{name}={value}" for name, value in first["options"].items())
    lines = [
        f"{first['created_at'][:16]} {first['method']} on {first['model']['name']}, seed {first['seed']} ({options})"
    ]
    return "\n".join(lines + [f"  {document['case_id']}: {_ending(document)}" for document in documents])


def _ending(document: Json) -> str:
    if document["error"] is not None:
        return f"failed, {document['error']['kind']}"
    if document["status"] != "finished":
        return "not finished"
    return "; ".join(item["diagnosis"] for item in document["differential"][:_TOP]) or "finished without a diagnosis"


async def summarize(store: Store, run_ids: Sequence[str], opened: Opened, *, seed: int = 0) -> Summary:
    """Let a model say what was tried and how it ended.

    Args:
        store: The run store.
        run_ids: Runs, the newest first.
        opened: The engine.
        seed: Of the one question.

    Raises:
        ContextLengthExceeded: Not even the newest run fits.
        DdxLocalError: The engine failed, or its answer is none.
    """
    found = [jobs.documents(store, run_id) for run_id in run_ids]
    entries = [entry(documents) for documents in found]
    said, shown = await unrecorded(_flow(entries), Case("summary", ""), opened.engine, seed)
    whole = [document for documents in found for document in documents]
    return Summary(counts(whole, len(found)), said["tried"], said["ended"], said["failed"], len(entries) - shown)


def _flow(entries: Sequence[str]) -> Flow[tuple[Mapping[str, str], int]]:
    """Ask about as many runs as fit, the newest first."""
    shown = len(entries)
    while True:
        record = "\n".join(entries[:shown])
        (size,) = yield from sizes([Ask(SUMMARY, {"record": record})])
        if size.fits:
            return (yield from ask(SUMMARY, role="memory", record=record)), shown
        if shown == 1:
            raise ContextLengthExceeded(size.prompt, size.answer, size.context, "runs summarize")
        # By the share that fits: each turn shrinks it, and few turns are needed.
        shown = max(1, min(shown - 1, shown * (size.context - size.answer) // max(size.prompt, 1)))
