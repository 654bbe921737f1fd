"""Ranked lists of proposals: whose is what, what means the same, whose quote is whose."""

import pytest

from ddx_local.errors import ParseError
from ddx_local.methods.lists import by_quote, cant_miss, entry, evidence, grouped, listed, named, roles
from ddx_local.methods.proposals import Danger, Proposal
from tests.methods.scot_world import CASE, QUOTES

ONE, TWO = (quote.strip() for quote in QUOTES[:2])


def proposal(name: str, *quotes: str, reason: str = "Why") -> Proposal:
    return Proposal(name, quotes, reason)


LISTS = {
    "a": (proposal("MI", ONE, reason="first"), proposal("Gout", TWO)),
    "b": (proposal("Malaria"), proposal("Myocardial infarction", ONE, TWO), proposal("Heart attack")),
}


def test_named_goes_role_by_role_with_places_from_one() -> None:
    assert [(role, place, item.diagnosis) for role, place, item in named(LISTS)] == [
        ("a", 1, "MI"),
        ("a", 2, "Gout"),
        ("b", 1, "Malaria"),
        ("b", 2, "Myocardial infarction"),
        ("b", 3, "Heart attack"),
    ]


def test_grouped_joins_names_of_one_diagnosis_in_order_of_first_appearance() -> None:
    groups = grouped(named(LISTS))
    assert [[(role, place) for role, place, _ in group] for group in groups] == [
        [("a", 1), ("b", 2), ("b", 3)],
        [("a", 2)],
        [("b", 1)],
    ]
    assert [roles(group) for group in groups] == [("a", "b"), ("a",), ("b",)]
    assert grouped([]) == []


def test_an_entry_has_its_first_name_and_reason_each_roles_first_place_and_every_quote_once() -> None:
    found = entry(CASE, 3, 0.25, grouped(named(LISTS))[0], "round 2")
    assert (found.rank, found.score, found.diagnosis, found.reasoning) == (3, 0.25, "MI", "first")
    assert (found.votes, found.proposed_by, found.entered_in) == ({"a": 1, "b": 2}, ("a", "b"), "round 2")
    assert [(item.quote.quote, item.by, item.supports) for item in found.evidence] == [
        (ONE, ("a", "b"), True),
        (TWO, ("b",), True),
    ]


def test_evidence_stands_at_the_first_place_of_the_quote() -> None:
    found = evidence(CASE, ONE, ("a",), supports=False)
    assert (found.quote.start, found.quote.end) == (CASE.text.index(ONE), CASE.text.index(ONE) + len(ONE))
    assert not found.supports


def test_a_quote_that_is_not_in_the_case_is_refused_without_telling_it() -> None:
    with pytest.raises(ParseError) as error:
        evidence(CASE, "a cough since May", ("a",))
    assert "cough" not in error.value.message


def test_one_roles_list_is_scored_by_the_place() -> None:
    found = listed(CASE, LISTS["a"], "physician")
    assert [(item.rank, item.diagnosis, item.score) for item in found.entries] == [(1, "MI", 1.0), (2, "Gout", 0.5)]
    assert (found.score_kind, found.panel) == ("reciprocal_place", ("physician",))


def test_a_quote_is_given_once_for_and_once_against_with_all_who_gave_it() -> None:
    found = by_quote(CASE, [("a", TWO, True), ("b", ONE, False), ("c", TWO, True), ("a", TWO, False), ("c", TWO, True)])
    assert [(item.quote.quote, item.supports, item.by) for item in found] == [
        (TWO, True, ("a", "c")),
        (ONE, False, ("b",)),
        (TWO, False, ("a",)),
    ]


def test_dangers_of_one_name_are_one_under_the_first_name_and_its_reasons() -> None:
    said = [
        ("a", Danger("MI", "first", ONE, "troponin")),
        ("b", Danger("Sepsis", "second", None, "culture")),
        ("b", Danger("Heart attack", "third", TWO, "ECG")),
        ("a", Danger("Myocardial infarction", "fourth", None, "ECG")),
    ]
    found = cant_miss(CASE, said, [])
    assert [(item.diagnosis, item.why, item.test, item.by) for item in found] == [
        ("MI", "first", "troponin", ("a", "b")),
        ("Sepsis", "second", "culture", ("b",)),
    ]
    assert [item.quote.quote if item.quote else None for item in found] == [ONE, None]


def test_a_danger_that_the_ranking_holds_under_another_name_is_left_out() -> None:
    said = [("a", Danger("Heart attack", "why", None, "ECG")), ("a", Danger("Sepsis", "why", None, "culture"))]
    assert [item.diagnosis for item in cant_miss(CASE, said, ["Gout", "MI"])] == ["Sepsis"]
