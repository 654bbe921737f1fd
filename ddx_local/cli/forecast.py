"""`diagnose --dry-run` and `methods show`: what a method would ask, from scripted answers that end early and late."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import Policy, ScriptedEngine, by_policy
from ddx_local.errors import CaseError
from ddx_local.flow import Similarity
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.recorder import Consultant
from ddx_local.store import Store

EXAMPLE = (
    "A 54-year-old man has had pressing pain in the chest for two hours, with sweating and nausea. He smokes and takes a "
    "tablet for his blood pressure. Blood pressure 152/94 mmHg, heart rate 104/min, temperature 36.8 C. The lungs are clear. "
    "The ECG shows raised ST segments in leads II, III and aVF."
)

BYTES_OF_A_TOKEN = 4
"""Of English, about; a token is never less than one byte."""

SEEDS, FEW_CALLS = 5, 50
"""Seeds of a dry run that ends early, where it takes so few calls."""


def example() -> Case:
    """A short case of our own, where none is given."""
    return Case("example", EXAMPLE)


def costs(job: jobs.Job) -> list[dict[str, Any]]:
    """For each case its id (`case`) and the `least` and `most` of calls, batches, prompt_bytes, answer_bytes and tokens.

    What a model chooses (yes or no, who is asked) is drawn, which may decide how long a method goes on: a cheap one is run
    with several seeds. Where agreement ends it, it ends early only if the agents say the same, so that they do in some runs.
    The figures are what the runs came to, no proven bounds.
    """
    runs = [forecast(job, "longest")]
    for alike in (False, True):
        runs.append(forecast(job, "shortest", of_one_mind=alike))
        if sum(one["calls"] for one in runs[-1].values()) <= FEW_CALLS:
            others = [replace(job, seed=job.seed + more) for more in range(1, SEEDS)]
            runs += [forecast(other, "shortest", of_one_mind=alike) for other in others]
    found = []
    for case_id in runs[0]:
        all_of = [one[case_id] for one in runs]
        spans = {name.replace(" ", "_"): _span([one[name] for one in all_of]) for name in all_of[0]}
        tokens = [(one["prompt bytes"] + one["answer bytes"]) // BYTES_OF_A_TOKEN for one in all_of]
        found.append({"case": case_id, **spans, "tokens": _span(tokens)})
    return found


def _span(figures: Sequence[int]) -> dict[str, int]:
    return {"least": min(figures), "most": max(figures)}


def forecast(job: jobs.Job, policy: Policy, *, of_one_mind: bool = False) -> dict[str, dict[str, int]]:
    """Case id -> calls, batches, prompt bytes and answer bytes under a policy; nothing is stored, no model is asked.

    Args:
        job: What to run.
        policy: How early answers end.
        of_one_mind: The same question gets the same answer, whoever is asked.

    Raises:
        CaseError: A case failed, so that its figures would say too little.
    """
    store = Store(None)
    consultants: dict[type, Consultant] = {Similarity: spelling_similarity}
    reply = by_policy(policy)
    same = lambda request: reply(replace(request, sampling=replace(request.sampling, seed=job.seed)))  # noqa: E731
    opened = Opened(
        ScriptedEngine(same if of_one_mind else reply), {**consultants, **consultants_of_files(consultants)}
    )
    job = replace(job, settings={**job.settings, "icd10": False})  # codes are no questions of a model
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    found = {}
    for document in jobs.documents(store, run_id):
        if document["error"]:
            raise CaseError(
                f"dry run of case `{document['case_id']}`: {document['error']['message']}", document["error"]["hint"]
            )
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
    print(f"{job.method.name}: dry run, scripted answers that end early .. late; about 4 bytes to a token of English")
    for cost in costs(job):
        spans = ", ".join(
            f"{span['least']:,} .. {span['most']:,} {name.replace('_', ' ')}"
            for name, span in cost.items()
            if name not in ("case", "tokens")
        )
        print(f"{cost['case']}: {spans}")
