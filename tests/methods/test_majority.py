"""The majority of lists: who names what first, names of one diagnosis together, equal votes, what is left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ddx_local.flow import Flow
from ddx_local.methods.majority import Choice, agreed, by_majority, choices, decided, shortlist
from ddx_local.methods.proposals import Proposal
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES


def lists(**given: Sequence[str]) -> dict[str, tuple[Proposal, ...]]:
    return {role: tuple(Proposal(name, (QUOTES[0].strip(),), "R") for name in names) for role, names in given.items()}


def found(given: Mapping[str, tuple[Proposal, ...]]) -> list[tuple[str, int, int]]:
    return [(choice.diagnosis, choice.firsts, choice.mentions) for choice in choices(given, ())]


def ranked(given: Mapping[str, tuple[Proposal, ...]], *ballot: str) -> Driven[tuple[Choice, ...]]:
    flow: Flow[Any] = by_majority(choices(given, ()), len(given), ballot)
    return drive(flow, World())


def names(driven: Driven[tuple[Choice, ...]]) -> list[str]:
    return [choice.diagnosis for choice in driven.answer]


def test_first_places_are_counted_by_diagnosis_not_by_name() -> None:
    given = lists(a=["MI", "Gout"], b=["Myocardial infarction"], c=["Gout", "heart attack"])
    assert found(given) == [("MI", 2, 3), ("Gout", 1, 2)]


def test_more_first_places_beat_any_number_of_mentions() -> None:
    given = lists(a=["Malaria", "Gout"], b=["Malaria", "Gout"], c=["Gout"], d=["Sarcoidosis", "Gout"])
    assert names(ranked(given, "Sarcoidosis", "Gout", "Malaria")) == ["Malaria", "Gout", "Sarcoidosis"]


def test_of_equal_first_places_more_mentions_lead_whatever_the_ballot() -> None:
    given = lists(a=["Malaria", "Gout"], b=["Gout"])
    driven = ranked(given, "Malaria", "Gout")
    assert names(driven) == ["Gout", "Malaria"]
    assert driven.notes == []


def test_equal_votes_go_by_the_ballot_and_are_noted() -> None:
    given = lists(a=["Malaria", "Sarcoidosis"], b=["Gout", "Amyloidosis"])
    driven = ranked(given, "Amyloidosis", "Gout", "Sarcoidosis", "Malaria")
    assert names(driven) == ["Gout", "Malaria", "Amyloidosis", "Sarcoidosis"]
    assert driven.noted("tie") == [
        "equal votes, ordered by the moderator's ballot: Gout, Malaria",
        "equal votes, ordered by the moderator's ballot: Amyloidosis, Sarcoidosis",
    ]


def test_without_a_ballot_the_best_place_orders() -> None:
    driven = ranked(lists(a=["Malaria", "Gout", "Sarcoidosis"]))
    assert names(driven) == ["Malaria", "Gout", "Sarcoidosis"]
    assert driven.noted("tie") == ["equal votes, ordered by the best place: Gout, Sarcoidosis"]


def test_a_single_candidate_wins_without_a_tie() -> None:
    driven = ranked(lists(a=["Gout"], b=["gout"]), "Gout")
    assert (names(driven), driven.notes) == (["Gout"], [])


def test_one_voter_who_names_it_twice_counts_once() -> None:
    assert found(lists(a=["MI", "heart attack"])) == [("MI", 1, 1)]


def test_what_is_beyond_the_most_is_left_out_and_noted() -> None:
    flow = shortlist(choices(lists(a=["Malaria", "Gout", "Sarcoidosis"]), ()), 2)
    driven = drive(flow, World())
    assert [choice.diagnosis for choice in driven.answer] == ["Malaria", "Gout"]
    assert driven.noted("left_out") == ["1 of 3 diagnoses left out: Sarcoidosis"]


def test_entered_in_is_the_first_round_that_named_it_under_any_name() -> None:
    history = [("opinion", lists(a=["heart attack"])), ("round 1", lists(a=["MI", "Gout"]))]
    entered = {choice.diagnosis: choice.entered_in for choice in choices(history[1][1], history)}
    assert entered == {"MI": "opinion", "Gout": "round 1"}


def test_decided_keeps_the_places_and_quotes_of_all_who_name_it() -> None:
    given = lists(a=["MI"], b=["Gout", "MI"])
    answer = decided(CASE, choices(given, ()), (1.5, 1.25), "majority", ("a", "b", "c"))
    first = answer.entries[0]
    assert (first.diagnosis, first.votes, first.proposed_by) == ("MI", {"a": 1, "b": 2}, ("a", "b"))
    assert [(item.quote.quote, item.by) for item in first.evidence] == [(QUOTES[0].strip(), ("a", "b"))]
    assert answer.panel == ("a", "b", "c")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": ["MI"], "b": ["heart attack", "Gout"]}, "MI"),
        ({"a": ["MI"], "b": ["Gout", "MI"]}, ""),
        ({"a": ["Acute pancreatitis"], "b": ["Chronic pancreatitis"]}, ""),
        ({"a": ["Gout"]}, "Gout"),
    ],
)
def test_agreed_is_the_first_diagnosis_of_all_lists(given: dict[str, list[str]], expected: str) -> None:
    assert agreed(lists(**given)) == expected
