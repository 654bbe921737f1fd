"""Equal budgets: samplers use them up, loops end within them and say so, and what is over them fails with the numbers."""

import asyncio
from itertools import product
from typing import Any

import pytest

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.flow import Similarity, Spending
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.methods.budget import affordable
from ddx_local.methods.table import METHODS
from ddx_local.recorder import Consultant
from ddx_local.store import Store

CASE = Case(
    "fever", "A man of 54 has had fever of 39 C and a productive cough for two days. There are crackles on the right."
)


def run(method: str, budget: int | None, seed: int = 0, **options: Any) -> Any:
    chosen, store = METHODS[method], Store(None)
    settings = {"budget_tokens": budget}
    job = jobs.Job(chosen, chosen.options(**options), "scripted", "scripted", seed, settings, (CASE,))
    alike: dict[type, Consultant] = {Similarity: spelling_similarity}
    opened = Opened(ScriptedEngine(by_policy("walk")), {**alike, **consultants_of_files(alike)})
    run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
    (found,) = jobs.documents(store, run_id)
    if found["status"] == "finished":
        (again,) = asyncio.run(jobs.replay(run_id, store))
        assert again["differential"] == found["differential"]
    return found


def spent(document: Any) -> int:
    return int(document["totals"]["prompt_tokens"] + document["totals"]["generated_tokens"])


@pytest.mark.parametrize(("method", "part"), [("best-of-n", 1), ("self-consistency", 2)])
@pytest.mark.parametrize("samples", [7, 30, 60])
def test_a_sampler_uses_a_budget_up_to_within_a_twentieth(method: str, part: int, samples: int) -> None:
    one = spent(run(method, None, n=20)) / 20
    budget = round(one * samples)
    found = run(method, budget, n=3)
    assert spent(found) == pytest.approx(budget, rel=max(0.05, 0.6 / samples))
    (note,) = [item["detail"] for item in found["notes"] if item["kind"] == "budget"]
    assert note.endswith(f"of {budget:,} tokens (n without: 3)")
    assert found["totals"]["calls"] == part * int(note.split()[0])


def test_without_a_budget_n_decides_and_nothing_is_noted() -> None:
    found = run("best-of-n", None, n=4)
    assert (found["totals"]["calls"], found["totals"]["batches"]) == (4, 1)
    assert [item for item in found["notes"] if item["kind"] == "budget"] == []


def test_the_least_budget_still_draws_one_sample() -> None:
    assert run("best-of-n", 1, n=4)["totals"]["calls"] == 1


LOOPS = ("mac", "kamac", "mam", "dual-inf", "medagents", "mdagents", "counterfactual", "dxchain")


@pytest.mark.parametrize("method", LOOPS)
def test_a_loop_ends_within_its_budget_with_an_answer_and_says_so(method: str) -> None:
    options = {"complexity": "moderate"} if method == "mdagents" else {}
    ended: list[Any] = []
    for seed, share in product(range(4), (0.9, 0.7, 0.5)):
        whole = run(method, None, seed, **options)
        assert whole["status"] == "finished"
        budget = round(spent(whole) * share)
        found = run(method, budget, seed, **options)
        if found["status"] == "failed":
            assert found["error"]["kind"] == "BudgetSpent"
            continue
        assert found["differential"]
        ended += [item for item in found["degraded"] if item["kind"] == "budget"]
        if ended:
            break
    assert ended, "at some budget the loop ends early and concludes"


def test_a_method_of_fixed_length_that_is_over_its_budget_fails_with_the_numbers_and_what_to_do() -> None:
    found = run("scot", 500, agents=1)
    assert found["status"] == "failed"
    assert found["error"]["kind"] == "BudgetSpent"
    assert "of 500 tokens were used up before round" in found["error"]["message"]
    assert "--budget-tokens" in found["error"]["hint"]


def test_what_is_left_is_counted_in_whole_samples_of_mean_cost() -> None:
    assert affordable(Spending(0, 1000), Spending(100, 1000), 1) == 9
    assert affordable(Spending(50, 1000), Spending(350, 1000), 3) == 6
    assert affordable(Spending(0, 100), Spending(300, 100), 1) == 0
