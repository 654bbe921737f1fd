"""Chain of thought and self-consistency: who thinks, who sees which thoughts, how the majority is counted."""

from collections.abc import Sequence
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods import cot as chain
from ddx_local.methods import self_consistency as many
from ddx_local.methods.cot import cot
from ddx_local.methods.self_consistency import self_consistency
from tests.grammars import POLICIES
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES, proposal
from tests.methods.scripted_run import document, quotes_stand_in

THINK, ANSWER = "cot/think", "cot/answer"


def number(ask: Ask[Any]) -> int:
    return int(ask.role.split()[-1]) if ask.role.startswith("sample") else 1


def world(*lists: Sequence[str]) -> World:
    """Sample i thinks "Thought i." and gives the i-th list."""

    def answer(ask: Ask[Any]) -> Any:
        at = number(ask)
        return {"differential": [proposal(name, f"said by {at}", QUOTES[at % 2]) for name in lists[at - 1]]}

    return World({THINK: lambda ask: {"thoughts": [f"Thought {number(ask)}.", "And more."]}, ANSWER: answer})


def sampled(*lists: Sequence[str], **options: Any) -> Driven[Differential]:
    return drive(self_consistency(CASE, many.Options(n=len(lists), **options)), world(*lists))


def kept(driven: Driven[Differential]) -> list[tuple[str, float]]:
    return [(entry.diagnosis, entry.score) for entry in driven.answer.entries]


def test_cot_is_two_rounds_of_one_call_and_the_answer_sees_the_thoughts() -> None:
    driven = drive(cot(CASE, chain.Options(k=3, temperature=0.6)), world(["Malaria", "Gout"]))
    assert [(item.batch, item.step, item.role) for item in driven.said] == [
        (0, THINK, "physician"),
        (1, ANSWER, "physician"),
    ]
    assert driven.batches == [THINK, ANSWER]
    thought, answered = driven.said
    assert thought.filled.longest < 4096
    assert "Thought 1." not in thought.prompt
    assert "YOUR THOUGHTS\nThought 1.\nAnd more.\n(end" in answered.prompt
    assert {item.filled.temperature for item in driven.said} == {0.6}
    assert kept(driven) == [("Malaria", 1.0), ("Gout", 0.5)]
    assert driven.answer.panel == ("physician",)
    assert driven.notes == []


def test_the_answers_prompt_begins_with_the_whole_beginning_of_the_thoughts_prompt() -> None:
    thought, answered = drive(cot(CASE, chain.Options()), world(["Malaria"])).said
    beginning = thought.prompt.index("(end of the case)")
    assert answered.prompt[:beginning] == thought.prompt[:beginning]
    assert answered.filled.messages[0] == thought.filled.messages[0]


def test_the_answer_is_not_searched_for_in_the_thoughts() -> None:
    thought = "The answer is: Malaria. So the final answer is Malaria."
    replies = {**world(["Gout"]).replies, THINK: lambda ask: {"thoughts": [thought]}}  # noqa: ARG005
    assert kept(drive(cot(CASE, chain.Options()), World(replies))) == [("Gout", 1.0)]


def test_self_consistency_is_two_batches_of_n_and_every_sample_sees_its_own_thoughts_alone() -> None:
    driven = sampled(["Malaria"], ["Gout"], ["Malaria"], ["Malaria"])
    assert driven.batches == [THINK, ANSWER]
    assert [len(round_.questions) for round_ in driven.rounds if round_.is_batch] == [4, 4]
    for role, item in driven.of(ANSWER).items():
        seen = [other for other in range(1, 5) if f"Thought {other}." in item.prompt]
        assert seen == [int(role.split()[-1])]
    assert {item.filled.temperature for item in driven.said} == {0.7}


def test_the_samples_are_asked_with_keys_of_their_own_so_that_their_seeds_differ() -> None:
    driven = sampled(["Malaria"], ["Gout"], ["Gout"])
    assert list(next(round_ for round_ in driven.rounds if round_.is_batch).questions) == [
        (f"sample {at}",) for at in (1, 2, 3)
    ]


def test_the_majority_of_the_first_diagnoses_wins_under_any_name_however_often_another_is_named_below() -> None:
    driven = sampled(["MI", "Gout"], ["Myocardial infarction", "Gout"], ["Gout"], ["Malaria", "Gout"])
    assert kept(driven) == [("MI", 0.5), ("Gout", 0.25), ("Malaria", 0.25)]
    assert driven.answer.score_kind == "share_of_first_places"
    assert driven.answer.entries[1].votes == {"sample 1": 2, "sample 2": 2, "sample 3": 1, "sample 4": 2}
    assert driven.answer.entries[0].proposed_by == ("sample 1", "sample 2")


def test_a_tie_goes_by_the_samples_that_name_it_then_the_earlier_one_and_is_noted() -> None:
    driven = sampled(["Malaria"], ["Gout"], ["Sarcoidosis", "Gout"], ["Malaria"], ["Gout", "Sarcoidosis"])
    assert [name for name, _ in kept(driven)] == ["Gout", "Malaria", "Sarcoidosis"]
    (tie,) = driven.noted("tie")
    assert tie.startswith("first in equally many samples, ordered by")
    assert tie.endswith(": Gout, Malaria")
    even = sampled(["Malaria"], ["Gout"])
    assert [name for name, _ in kept(even)] == ["Malaria", "Gout"]
    assert len(even.noted("tie")) == 1


def test_no_tie_is_spoken_of_among_what_nobody_puts_first() -> None:
    driven = sampled(["Malaria", "Gout", "Sarcoidosis"], ["Malaria"])
    assert kept(driven) == [("Malaria", 1.0), ("Gout", 0.0), ("Sarcoidosis", 0.0)]
    assert driven.notes == []


def test_one_sample_that_names_a_diagnosis_twice_counts_once_at_its_better_place() -> None:
    driven = sampled(["Gout", "MI", "Myocardial infarction"], ["MI"])
    entry = next(entry for entry in driven.answer.entries if entry.diagnosis == "MI")
    assert entry.votes == {"sample 1": 2, "sample 2": 1}


def test_evidence_belongs_to_the_samples_that_quoted_it() -> None:
    driven = sampled(["Gout"], ["Gout"], ["Gout"])
    found = {item.quote.quote: item.by for item in driven.answer.entries[0].evidence}
    assert found == {QUOTES[1].strip(): ("sample 1", "sample 3"), QUOTES[0].strip(): ("sample 2",)}


def test_at_most_k_are_kept_and_one_sample_is_enough() -> None:
    assert len(sampled(["Gout", "Malaria"], ["Amyloidosis"], k=2).answer.entries) == 2
    assert kept(sampled(["Gout"])) == [("Gout", 1.0)]


@pytest.mark.parametrize("odd", ["β-thalassemia", "Wolff-Parkinson-White (WPW)", "Gout, acute", "Sjögren's"])
def test_odd_labels_come_out_as_they_are(odd: str) -> None:
    assert kept(sampled([odd], [odd])) == [(odd, 1.0)]


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": 11}, {"temperature": -0.1}, {"temperature": 2.1}, {"temperature": float("nan")}]
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    for kind in (chain.Options, many.Options):
        with pytest.raises(ValueError, match="must be"):
            kind(**wrong)


@pytest.mark.parametrize("n", [0, 201])
def test_a_number_of_samples_out_of_range_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="n must be"):
        many.Options(n=n)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_real_driver_finishes_both(policy: Policy, seed: int) -> None:
    one = document("cot", CASE, policy, seed)
    assert (one["status"], one["totals"]["batches"], one["totals"]["calls"]) == ("finished", 2, 2)
    some = document("self-consistency", CASE, policy, seed, n=4)
    assert (some["status"], some["totals"]["batches"], some["totals"]["calls"]) == ("finished", 2, 8)
    assert quotes_stand_in(CASE, one)
    assert quotes_stand_in(CASE, some)


def test_the_longest_thoughts_end_within_their_bound_and_not_by_length() -> None:
    assert document("cot", CASE, "longest")["totals"]["length_stops"] == 0


@pytest.mark.parametrize("text", ["fever 39", "x" * 200])
def test_whatever_the_case_an_answer_comes_out(text: str) -> None:
    driven = drive(self_consistency(Case("any", text), many.Options(n=3)), World(seed=4))
    assert 1 <= len(driven.answer.entries) <= 5
