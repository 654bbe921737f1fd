"""Matchers: the default one with its measured error, embeddings, BERTScore, and a judge that may talk nonsense."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.errors import UsageError
from ddx_local.evaluation import match_error
from ddx_local.evaluation.match import Labels, assign, distinct, greedy
from ddx_local.evaluation.match_judge import RULES, Judge, read_closeness, read_ratings, read_verdict
from ddx_local.evaluation.match_models import BertScore, Embedding, bert_f1
from ddx_local.evaluation.match_open import matcher, reliability
from ddx_local.evaluation.record import Record
from ddx_local.evaluation.suite import checked_match
from ddx_local.request import LoglikelihoodRequest, Request
from tests.evaluation.world import SETTINGS


async def test_the_default_matcher_reaches_its_error_on_pairs_judged_by_people(shared_data: Path) -> None:
    error = await match_error.measure(
        Labels(),
        shared_data / "same-diagnosis-pairs-dev.jsonl",
        shared_data / "different-diagnosis-pairs-dev.jsonl",
    )
    assert (error.pairs, error.different) == (204, 2469)
    assert error.precision is not None
    assert error.precision >= 0.99
    assert error.recall is not None
    assert error.recall >= 0.70
    assert error.false_matches <= 2
    shipped, about = match_error.shipped()
    if about["current"]:
        assert error == pytest.approx(shipped) or (round(error.recall, 4) == round(shipped.recall or 0, 4))
    assert "precision" in shipped.line()
    assert "0.785" in shipped.line()


async def test_ranks_count_distinct_predictions_and_the_primary_is_the_first_gold() -> None:
    predictions = distinct(["Gout", "gout", "malaria", "dengue"])
    assert predictions == ["Gout", "malaria", "dengue"]
    found = await Labels().match(predictions, ["dengue", "malaria"])
    assert (found.first, found.primary) == (2, 3)
    assert [(i, j) for i, j, _ in found.pairs] == [(1, 1), (2, 0)]
    nothing = await Labels().match(["gout"], ["scurvy"])
    assert (nothing.pairs, nothing.first) == ((), None)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_optimal_pairs_are_one_to_one_and_never_fewer_than_greedy_ones(rows: int, columns: int, seed: int) -> None:
    table = np.random.default_rng(seed).random((rows, columns)).round(2).tolist()
    best, quick = assign(table, 0.5), greedy(table, 0.5)
    assert len(best) >= len(quick)
    for pairs in (best, quick):
        assert len({i for i, _, _ in pairs}) == len({j for _, j, _ in pairs}) == len(pairs)
        assert all(value >= 0.5 for _, _, value in pairs)


async def test_embeddings_match_at_the_threshold_greedily_or_optimally() -> None:
    values = {("a", "x"): 0.90, ("a", "y"): 0.85, ("b", "x"): 0.80, ("b", "y"): 0.10}

    async def meaning(pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        return [values[pair] for pair in pairs]

    optimal = await Embedding(meaning, "made", 0.7).match(["a", "b"], ["x", "y"])
    by_greed = await Embedding(meaning, "made", 0.7, "greedy").match(["a", "b"], ["x", "y"])
    assert (len(optimal.pairs), len(by_greed.pairs)) == (2, 1)
    assert "made >= 0.7 greedy" in Embedding(meaning, "made", 0.7, "greedy").label
    assert (await Embedding(meaning, "made").match([], ["x"])).pairs == ()


async def test_bertscore_is_soft_without_a_threshold_and_the_hungarian_way_takes_the_highest_sum() -> None:
    unit = {"a": [[1.0, 0.0]], "b": [[0.0, 1.0]], "both": [[1.0, 0.0], [0.0, 1.0]], "none": []}

    def embed(text: str) -> np.ndarray:
        return np.asarray(unit[text], dtype=float).reshape(-1, 2)

    assert bert_f1(embed("a"), embed("a")) == 1.0
    assert bert_f1(embed("a"), embed("b")) == 0.0
    assert bert_f1(embed("a"), embed("both")) == pytest.approx(2 / 3)
    assert bert_f1(embed("none"), embed("a")) == 0.0
    found = await BertScore(embed, "toy").match(["a", "b"], ["b", "both"])
    assert found.total == pytest.approx(1 + 2 / 3)
    assert found.pairs == ()
    assert len((await BertScore(embed, "toy", 0.9).match(["a", "b"], ["b", "both"])).pairs) == 1


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"correct": "yes"}', "yes"),
        ('{"correct": "no"}', "no"),
        ("Yes, the diagnosis is correct", "yes"),
        ("yes", "yes"),
        ("No. They differ.", "no"),
        ("The diagnosis is correct", "unread"),
        ("nothing to say", "unread"),
        ("yesterday", "unread"),
        ('{"correct": true}', "unread"),
        ('{"answer": "yes"}', "unread"),
        ('["yes"]', "unread"),
        ("", "unread"),
    ],
)
def test_a_verdict_is_read_from_its_form_or_its_first_word_and_nothing_else(reply: str, verdict: str) -> None:
    assert read_verdict(reply) == verdict


def test_of_a_thousand_malformed_replies_none_is_scored() -> None:
    chance = random.Random(0)
    alphabet = '{}[]":,abcdefg 0123456789\n'
    for _ in range(1000):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 60)))
        assert read_verdict(text) == "unread"
        assert read_closeness(text) is None
        assert read_ratings(text) is None


def judged(request: Request) -> str:
    """Says yes for equal first letters, nonsense for names in capitals, and changes its mind about gout in a repeat."""
    text = request.messages[-1].content
    prediction, gold = (part.splitlines()[1] for part in (text.split("\n\n")[0], text.split("\n\n")[1]))
    if prediction.isupper():
        return "I would rather not say."
    if prediction == "gout" and request.sampling.temperature > 0:
        return '{"correct": "no"}'
    return json.dumps({"correct": "yes" if prediction[0] == gold[0] else "no"})


async def test_unread_verdicts_are_an_outcome_of_their_own_with_bounds() -> None:
    judge = Judge(ScriptedEngine(judged), "toy")
    found = await judge.match(["gout", "MALARIA"], ["giant cell arteritis", "malaria"])
    assert len(found.pairs) == 1
    assert found.unread == 2
    assert found.upper == 2
    assert judge.reliability()["unread"] == 2


async def test_a_repeat_measures_how_far_the_judge_agrees_with_itself() -> None:
    judge = Judge(ScriptedEngine(judged), "toy", repeat=2)
    await judge.match(["gout", "malaria"], ["giant cell arteritis", "measles"])
    about = judge.reliability()
    assert (about["pairs"], about["repeated"]) == (4, 4)
    assert about["self_agreement"] == 0.75


async def test_a_pair_is_asked_once_and_probability_comes_from_the_label_alone() -> None:
    def score(_: LoglikelihoodRequest, label: str) -> float:
        return -0.1 if label.startswith("yes") else -2.0

    engine = ScriptedEngine(judged, score=score)
    judge = Judge(engine, "toy", weigh=True)
    await judge.match(["gout"], ["gallstones"])
    await judge.match(["gout"], ["gallstones"])
    assert len(engine.requests) == 1
    assert judge.known["gout", "gallstones"].probability == pytest.approx(1 / (1 + np.exp(-1.9)))


async def test_the_hierarchy_rule_is_in_the_prompt_and_in_the_label() -> None:
    for rule, words in RULES.items():
        engine = ScriptedEngine(judged)
        judge = Judge(engine, "toy", rule)
        await judge.match(["gout"], ["gallstones"])
        assert words in engine.requests[0].messages[-1].content
        assert rule in judge.label
        assert engine.requests[0].grammar is not None


async def test_ratings_and_closeness_are_bound_to_their_scales() -> None:
    def reply(request: Request) -> str:
        if "closeness" in (request.grammar or ""):
            return '{"closeness": 4}'
        extra = ', "calibration": 2' if "calibration" in (request.grammar or "") else ""
        return '{"correctness": 5, "misses": 4, "alarms": 3, "bias": 5' + extra + "}"

    judge = Judge(ScriptedEngine(reply), "toy")
    assert await judge.closeness([("a", "b")]) == [4]
    assert await judge.safety([("A case.", ["gout"], "gout"), ("A case.", ["gout", "malaria"], "gout")]) == [
        (5, 4, 3, 5),
        (5, 4, 3, 5, 2),
    ]
    assert read_closeness('{"closeness": 1}') is None
    assert read_closeness('{"closeness": true}') is None
    assert read_ratings('{"correctness": 5, "misses": 4, "alarms": 3}') is None
    assert read_ratings('{"correctness": 6, "misses": 4, "alarms": 3, "bias": 1}') is None


async def test_a_judge_on_an_engine_without_a_model_gives_verdicts_that_are_kept_for_a_rescore_without_it() -> None:
    record = Record(None)
    choice = checked_match({"kind": "judge", "engine": "scripted", "repeat": 2}, "test")
    async with matcher(choice, SETTINGS, record, lambda _: None) as judge:
        first = await judge.match(["gout", "malaria"], ["gout"])
        assert reliability(judge)
    async with matcher(choice, SETTINGS, record, lambda _: None, opener=None) as judge:
        assert await judge.match(["gout", "malaria"], ["gout"]) == first
        with pytest.raises(UsageError, match="not all recorded"):
            await judge.match(["dengue"], ["gout"])


async def test_the_embedding_matcher_of_a_suite_without_a_model_compares_spelling() -> None:
    choice = checked_match({"kind": "embedding", "engine": "scripted", "threshold": 0.9}, "test")
    async with matcher(choice, SETTINGS, Record(None), lambda _: None) as found:
        assert len((await found.match(["gouty arthritis", "malaria"], ["gouty arthritiss"])).pairs) == 1
