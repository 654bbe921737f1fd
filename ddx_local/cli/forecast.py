"""`diagnose --dry-run`: what a method would ask, from driving it with scripted answers that end early and late."""

import asyncio
from dataclasses import replace

from ddx_local import jobs
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import Policy, ScriptedEngine, by_policy
from ddx_local.flow import Similarity
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.rounds import Consultant
from ddx_local.store import Store


def forecast(job: jobs.Job, policy: Policy) -> dict[str, dict[str, int]]:
    """Case id -> calls, batches, prompt bytes and answer bytes under a policy; nothing is stored, no model is asked."""
    store = Store(None)
    consultants: dict[type, Consultant] = {Similarity: spelling_similarity}
    opened = Opened(ScriptedEngine(by_policy(policy)), {**consultants, **consultants_of_files(consultants)})
    job = replace(job, settings={**job.settings, "icd10": False})  # codes are no questions of a model
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    found = {}
    for document in jobs.documents(store, run_id):
        totals = document["totals"]
        found[document["case_id"]] = {
            "calls": totals["calls"],
            "batches": totals["batches"],
            "prompt bytes": totals["prompt_tokens"],
            "answer bytes": totals["generated_tokens"],
        }
    store.close()
    return found


def print_forecast(job: jobs.Job) -> None:
    """Least and most of each, by case. A token is about four bytes of English and never less than one."""
    least, most = forecast(job, "shortest"), forecast(job, "longest")
    print(f"{job.method.name}: dry run, scripted answers that end early .. late; about 4 bytes to a token of English")
    for case_id, low in least.items():
        high = most[case_id]
        spans = ", ".join(f"{low[name]:,} .. {high[name]:,} {name}" for name in low)
        print(f"{case_id}: {spans}")
