"""A method in the real driver on the scripted engine: answers that only their grammars bound, by policy and seed."""

import asyncio
import json
import random

import jsonschema

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import Policy, ScriptedEngine, by_policy
from ddx_local.flow import Similarity
from ddx_local.launch import Opened
from ddx_local.methods.table import METHODS
from ddx_local.request import LoglikelihoodRequest
from ddx_local.result import Json, schema
from ddx_local.store import Store

HARD = (
    Case("brackets", 'He says "my chest hurts" {{case}} [sic] (twice), and \\n his IgG4 level is 9 g/L, was 3 g/L.\n'),
    Case("greek", "Η β-θαλασσαιμία της ασθενούς και ο πυρετός 39 °C επιμένουν εδώ και τρεις ημέρες."),
    Case("no-quote", "fever 39"),
)
"""Cases whose text is hard to quote, or has nothing to quote."""


def scored(request: LoglikelihoodRequest, label: str) -> float:
    """Logprobs that differ from question to question."""
    return -3 * random.Random(f"{request.messages[-1].content} {label}").random()


def finished(method: str, policy: Policy, seed: int, case: Case, **options: object) -> Json:
    """The result document of a case, checked: finished, of its schema, ranked, and the same when replayed."""
    store, chosen = Store(None), METHODS[method]
    job = jobs.Job(chosen, chosen.options(**options), "scripted", "scripted", seed, {}, (case,))
    opened = Opened(ScriptedEngine(by_policy(policy), score=scored), {Similarity: spelling_similarity})
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    (document,) = jobs.documents(store, run_id)
    assert document["status"] == "finished", document["error"]
    jsonschema.validate(document, schema())
    entries = document["differential"]
    assert [entry["rank"] for entry in entries] == list(range(1, len(entries) + 1))
    assert entries
    scores = [entry["score"] for entry in entries]
    assert scores == sorted(scores, reverse=True)
    assert json.dumps(asyncio.run(jobs.replay(run_id, store))) == json.dumps([document])
    store.close()
    return document
