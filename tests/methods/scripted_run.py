"""A method on the real driver and the scripted engine, from the case to its result document, which must obey its schema."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import Policy, ScriptedEngine, by_policy
from ddx_local.flow import Similarity
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.methods.table import METHODS
from ddx_local.recorder import Consultant
from ddx_local.request import LoglikelihoodRequest
from ddx_local.result import schema
from ddx_local.store import Store


def document(
    method: str,
    case: Case,
    policy: Policy = "walk",
    seed: int = 0,
    consultants: Mapping[type, Consultant] | None = None,
    score: Callable[[LoglikelihoodRequest, str], float] | None = None,
    **options: Any,
) -> Mapping[str, Any]:
    """The result document of one case; a replay from the record alone must give the same."""
    chosen = METHODS[method]
    store = Store(None)
    job = jobs.Job(chosen, chosen.options(**options), "scripted", "scripted", seed, {}, (case,))
    others: dict[type, Consultant] = {Similarity: spelling_similarity}
    engine = ScriptedEngine(by_policy(policy), **({"score": score} if score else {}))
    opened = Opened(engine, {**others, **consultants_of_files(others), **(consultants or {})})
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    (found,) = jobs.documents(store, run_id)
    jsonschema.validate(found, schema(), format_checker=jsonschema.FormatChecker())
    assert json.dumps(asyncio.run(jobs.replay(run_id, store))) == json.dumps([found])
    store.close()
    return found


def quotes_stand_in(case: Case, found: Mapping[str, Any]) -> bool:
    """Whether every piece of evidence stands in the case where the document says."""
    items = [item for entry in found["differential"] for item in entry["evidence"]]
    return all(case.text[item["start"] : item["end"]] == item["quote"] for item in items)
