"""Result documents of whole runs of the methods on the scripted engine, for the reports' tests."""

import asyncio
import random
from typing import Any

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.flow import Similarity
from ddx_local.launch import Opened
from ddx_local.methods.table import METHODS
from ddx_local.request import LoglikelihoodRequest
from ddx_local.store import Store


def scored(request: LoglikelihoodRequest, label: str) -> float:
    """Logprobs that depend on the case text, so that edits have gaps."""
    return -3 * random.Random(f"{request.messages[-1].content} {label}").random()


def documents_of(method: str, cases: tuple[Case, ...]) -> tuple[Any, ...]:
    """Result documents of a real run of a method on the scripted engine."""
    store = Store(None)
    chosen = METHODS[method]
    job = jobs.Job(chosen, chosen.options(), "scripted", "scripted", 0, {}, cases)
    opened = Opened(ScriptedEngine(by_policy("walk"), score=scored), {Similarity: spelling_similarity})
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    found = jobs.documents(store, run_id)
    store.close()
    return found
