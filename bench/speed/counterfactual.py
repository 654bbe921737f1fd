"""Counterfactual reasoning: what an edit costs beside a rewritten case, and how many scores a second run computes."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from bench.speed.shared import Noting, gate, opened, run, vignettes
from ddx_local import jobs, launch, options
from ddx_local.case import Case
from ddx_local.engines.cached import CachedEngine
from ddx_local.request import Completion, Request
from ddx_local.score_cache import ScoreCache
from ddx_local.store import Store

SMALL: dict[str, Any] = {"specialists": 2, "candidates": 2, "rounds": 0, "without": "clinician"}
"""A short run: what is measured does not depend on how many take part."""


def edit_token_ratio() -> dict[str, float]:
    """Generated tokens for each proposed edit / tokens of the case, which a rewriting model would generate; 6 cases."""
    noting = Noting(opened().engine)
    cases = vignettes(6)
    documents(cases, launch.Opened(noting, opened().consultants), **SMALL)
    engine: Any = opened().engine
    return {"edit_token_ratio": ratio(noting.answered, cases, lambda text: len(engine._chat.plain_ids(text)))}


def second_run() -> dict[str, float]:
    """Scoring calls that reach the engine in the second run of the same case and seed; the first run's for comparison."""
    first, second = scoring_calls(vignettes(1), opened())
    return {"counterfactual_first_run_scoring_calls": first, "counterfactual_second_run_scoring_calls": second}


def scoring_calls(cases: Sequence[Case], through: launch.Opened) -> tuple[int, int]:
    """Scoring calls that reach an engine behind an empty cache in a run and in the same run again."""
    cached = CachedEngine(through.engine, ScoreCache(None))
    for _ in range(2):
        before = cached.counts["scoring_calls"]
        documents(cases, launch.Opened(cached, through.consultants), **SMALL)
    return before, cached.counts["scoring_calls"] - before


def documents(cases: Sequence[Case], through: launch.Opened, *, seed: int = 0, **values: Any) -> Any:
    """Run the method on cases; returns the result documents. Raises `RuntimeError` where a case failed."""
    method = jobs.method("counterfactual")
    chosen = options.parse(method.options, {name: str(value) for name, value in values.items()}, method.name)
    job = jobs.Job(method, chosen, "smollm2-135m", "vllm", seed, {}, tuple(cases))
    store = Store(None)
    found = jobs.documents(store, run(jobs.start(job, through, store, None, gate())))
    if failed := [document["case_id"] for document in found if document["status"] != "finished"]:
        raise RuntimeError(f"cases that failed: {', '.join(failed)}")
    return found


def ratio(answered: Sequence[tuple[Request, Completion]], cases: Sequence[Case], tokens: Callable[[str], int]) -> float:
    """Tokens of all answers that propose edits / tokens of as many copies of their cases.

    Args:
        answered: All that was asked and answered.
        cases: The cases; each request holds the text of one.
        tokens: Counts the tokens of a text.
    """
    sizes = {case.text: tokens(case.text) for case in cases}
    generated = copies = 0
    for request, answer in answered:
        if request.what == "counterfactual/edit":
            text = next(text for text in sizes if text in request.messages[-1].content)
            generated += answer.generated_tokens
            copies += sizes[text] * len(json.loads(answer.text)["edits"])
    return generated / copies
