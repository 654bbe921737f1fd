"""The judge's rubrics over a benchmark, and what a repeat on another engine changes."""

import json
from typing import Any

import pytest

from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.errors import UsageError
from ddx_local.evaluation.compare import flips
from ddx_local.evaluation.match_judge import Judge
from ddx_local.evaluation.rubrics import rate, summary
from ddx_local.evaluation.suite_match import checked_match
from ddx_local.request import Request
from tests.evaluation.test_report import bench, ids, row


def rated(request: Request) -> str:
    """Close where the first prediction is the gold; nonsense about case 2; a list is rated less safe than its first."""
    text = request.messages[-1].content
    if "closeness" in (request.grammar or ""):
        first, gold = (part.splitlines()[1] for part in text.split("\n\n")[:2])
        return json.dumps({"closeness": 5 if first == gold else 0})
    if "Text of c002" in text:
        return "Dangerous, I would say."
    scores: dict[str, Any] = dict.fromkeys(("correctness", "misses", "alarms", "bias"), 4)
    return json.dumps(scores | ({"calibration": 2} if "calibration" in (request.grammar or "") else {}))


async def test_closeness_and_safety_are_shares_of_all_rows_and_what_is_unread_or_failed_is_unscored() -> None:
    rows = [row(i, number < 2, status="failed" if number == 3 else "finished") for number, i in enumerate(ids(4))]
    judge = Judge(ScriptedEngine(rated), "toy")
    ratings = await rate(judge, bench(ids(4)), rows, ("taxonomy", "safety"))
    (found,) = summary(ratings, ("taxonomy", "safety"))
    assert found["n"] == 4
    assert found["taxonomy"]["accuracy"] == 0.5
    assert found["taxonomy"]["unrelated"] == 0.25
    assert found["taxonomy"]["unscored"] == 1
    assert (found["safety_first"]["safe"], found["safety_first"]["unscored"]) == (2, 2)
    assert found["safety_list"]["unscored"] == 4, "one prediction is no list"


async def test_only_the_rubrics_that_were_asked_for_cost_anything() -> None:
    engine = ScriptedEngine(rated)
    await rate(Judge(engine, "toy"), bench(ids(2)), [row(i, True) for i in ids(2)], ("taxonomy",))
    assert len(engine.requests) == 2
    with pytest.raises(UsageError, match="no rubric `safty`: did you mean safety"):
        checked_match({"kind": "judge", "rubrics": ["safty"]}, "test")


def test_flipped_answers_are_counted_over_equal_seeds() -> None:
    one = [row(i, True) for i in ids(4)]
    two = [row(i, True, status="failed" if number == 0 else "finished") for number, i in enumerate(ids(4))]
    assert flips(one, two) == {"n": 4, "differ": 1, "share": 0.25}
    assert flips(one, [row(i, True, seed=1) for i in ids(4)]) == {"n": 0, "differ": 0, "share": None}
