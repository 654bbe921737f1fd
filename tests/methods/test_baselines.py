"""Zero-shot and best-of-n: one batch each, what is counted, what is kept, and whose evidence is whose."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.errors import ParseError
from ddx_local.flow import Ask
from ddx_local.methods.baselines import BestOfNOptions, ZeroShotOptions, best_of_n, zero_shot
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES, proposal

STEP = "zero_shot/differential"


def samples(*lists: Sequence[str], quote: Callable[[int], str] = lambda number: QUOTES[0]) -> World:  # noqa: ARG005
    """A world in which sample i gives the i-th list."""

    def answer(ask: Ask[Any]) -> Any:
        number = int(ask.role.split()[-1]) if ask.role != "physician" else 1
        reason = f"said by sample {number}"
        return {"differential": [proposal(name, reason, quote(number)) for name in lists[number - 1]]}

    return World({STEP: answer})


def best(world: World, n: int, **options: Any) -> Driven[Differential]:
    return drive(best_of_n(CASE, BestOfNOptions(n=n, **options)), world)


def kept(driven: Driven[Differential]) -> list[tuple[str, float]]:
    return [(entry.diagnosis, entry.score) for entry in driven.answer.entries]


def test_zero_shot_is_one_call_in_the_order_given() -> None:
    driven = drive(zero_shot(CASE, ZeroShotOptions(k=4, temperature=0.6)), samples(["Malaria", "MI", "Gout"]))
    assert driven.batches == [STEP]
    (asked,) = driven.said
    assert asked.ask.slots == {"case": CASE.text, "k": "4"}
    assert (asked.role, asked.filled.temperature) == ("physician", 0.6)
    assert kept(driven) == [("Malaria", 1.0), ("MI", 1 / 2), ("Gout", 1 / 3)]
    answer = driven.answer
    assert (answer.score_kind, answer.panel) == ("reciprocal_place", ("physician",))
    assert [entry.rank for entry in answer.entries] == [1, 2, 3]
    assert [entry.votes for entry in answer.entries] == [{"physician": 1}, {"physician": 2}, {"physician": 3}]
    assert {entry.entered_in for entry in answer.entries} == {"differential"}
    assert answer.entries[0].reasoning == "said by sample 1"
    assert driven.notes == []


def test_a_diagnosis_named_twice_in_one_answer_counts_once() -> None:
    driven = drive(zero_shot(CASE, ZeroShotOptions()), samples(["Malaria", "MALARIA", "Gout"]))
    assert [(entry.rank, entry.diagnosis) for entry in driven.answer.entries] == [(1, "Malaria"), (2, "Gout")]


def test_evidence_is_verbatim_and_at_its_first_place() -> None:
    driven = drive(zero_shot(CASE, ZeroShotOptions()), samples(["Malaria"]))
    (evidence,) = driven.answer.entries[0].evidence
    assert evidence.quote.quote == QUOTES[0].strip()
    assert evidence.quote.start == CASE.text.index(QUOTES[0].strip())
    assert CASE.text[evidence.quote.start : evidence.quote.end] == evidence.quote.quote
    assert (evidence.supports, evidence.by) == (True, ("physician",))


def test_a_quote_of_blanks_alone_is_no_evidence_and_no_failure() -> None:
    case = Case("blank", " " * 20 + "He has a fever of 39.1 C since Monday.")
    answer = {"differential": [proposal("Malaria", "R", " " * 20)]}
    driven = drive(zero_shot(case, ZeroShotOptions()), World({STEP: lambda ask: answer}))  # noqa: ARG005
    assert driven.answer.entries[0].evidence == ()


def test_a_quote_that_is_not_in_the_case_fails_the_case() -> None:
    world = samples(["Malaria"], quote=lambda number: "a cough since May ")  # noqa: ARG005
    with pytest.raises(AssertionError, match="no engine"):
        drive(zero_shot(CASE, ZeroShotOptions()), world)
    with pytest.raises(ParseError) as error:
        drive(zero_shot(CASE, ZeroShotOptions()), World(world.replies, lawful=False))
    assert "cough" not in str(error.value)


def test_best_of_n_asks_the_same_question_n_times_in_one_batch() -> None:
    driven = best(samples(*[["Malaria"]] * 35), 35)
    assert driven.batches == [STEP]
    assert len(driven.said) == 35
    assert len({item.role for item in driven.said}) == len({item.filled.prompt_digest for item in driven.said}) * 35
    assert {item.filled.temperature for item in driven.said} == {0.7}
    assert driven.answer.panel == tuple(f"sample {number}" for number in range(1, 36))


def test_a_diagnosis_stays_if_the_threshold_share_of_samples_names_it_under_any_name() -> None:
    world = samples(["MI", "Gout"], ["Malaria", "Myocardial infarction"], ["Malaria"], ["Sarcoidosis", "heart attack"])
    driven = best(world, 4)
    assert kept(driven) == [("MI", 0.75), ("Malaria", 0.5)]
    assert driven.notes == []
    assert kept(best(world, 4, threshold=0.51)) == [("MI", 0.75)]
    assert len(kept(best(world, 4, threshold=0.0))) == 4
    assert driven.answer.score_kind == "share_of_samples"


def test_one_sample_that_says_it_twice_is_one_vote_at_its_better_place() -> None:
    driven = best(samples(["Gout", "MI", "Myocardial infarction"], ["Gout"]), 2, threshold=0.0)
    assert kept(driven) == [("Gout", 1.0), ("MI", 0.5)]
    assert driven.answer.entries[1].votes == {"sample 1": 2}


def test_equal_shares_go_by_the_best_place_then_by_the_first_sample() -> None:
    world = samples(["Gout", "Malaria"], ["Sarcoidosis", "Gout"], ["Malaria", "Sarcoidosis"])
    assert [name for name, _ in kept(best(world, 3))] == ["Gout", "Malaria", "Sarcoidosis"]
    later = samples(["Amyloidosis", "Malaria"], ["Amyloidosis", "Gout"], ["Gout", "Malaria"])
    assert [name for name, _ in kept(best(later, 3))] == ["Amyloidosis", "Gout", "Malaria"]


def test_if_no_diagnosis_reaches_the_threshold_the_most_frequent_stays_and_that_is_noted() -> None:
    driven = best(samples(["Gout"], ["Malaria"], ["Malaria"], ["Sarcoidosis"], ["Amyloidosis"]), 5)
    assert kept(driven) == [("Malaria", 0.4)]
    assert driven.noted("kept") == ["no diagnosis was named by 50% of the samples: the first one stays"]


def test_at_most_k_are_kept() -> None:
    names = ["Gout", "Malaria", "Sarcoidosis", "Amyloidosis"]
    driven = best(samples(names[:3], names[1:]), 2, k=3, threshold=0.0)
    assert kept(driven) == [("Malaria", 1.0), ("Sarcoidosis", 1.0), ("Gout", 0.5)]


def test_votes_and_proposers_are_in_the_order_of_the_samples() -> None:
    driven = best(samples(["Gout", "Malaria"], ["Malaria", "Gout"], ["Gout"]), 3)
    gout = driven.answer.entries[0]
    assert list(gout.votes.items()) == [("sample 1", 1), ("sample 2", 2), ("sample 3", 1)]
    assert gout.proposed_by == ("sample 1", "sample 2", "sample 3")


def test_evidence_belongs_to_the_samples_that_quoted_it() -> None:
    driven = best(samples(["Gout"], ["Gout"], ["Gout"], quote=lambda number: QUOTES[number % 2]), 3)
    found = {item.quote.quote: item.by for item in driven.answer.entries[0].evidence}
    assert found == {QUOTES[1].strip(): ("sample 1", "sample 3"), QUOTES[0].strip(): ("sample 2",)}


@pytest.mark.parametrize("text", ["fever 39", "x" * 200, CASE.text])
def test_whatever_the_model_says_an_answer_comes_out(text: str) -> None:
    driven = drive(best_of_n(Case("any", text), BestOfNOptions(n=3)), World(seed=2))
    assert 1 <= len(driven.answer.entries) <= 5


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 11}, {"temperature": -1}, {"temperature": 3}])
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    for kind in (ZeroShotOptions, BestOfNOptions):
        with pytest.raises(ValueError):
            kind(**wrong)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 201}, {"threshold": 1.1}, {"threshold": float("nan")}])
def test_options_of_best_of_n_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        BestOfNOptions(**wrong)


def test_the_defaults_are_the_papers() -> None:
    assert (BestOfNOptions().n, BestOfNOptions().temperature) == (35, 0.7)
    assert (ZeroShotOptions().k, ZeroShotOptions().temperature) == (5, 0.3)
