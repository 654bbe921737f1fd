"""How answers about diagnoses are read, and a proposal as text."""

import pytest

from ddx_local.methods.proposals import (
    Danger,
    Proposal,
    in_words,
    read_dangers,
    read_differential,
    read_quote,
    read_quotes,
    read_texts,
)


def test_each_diagnosis_of_a_list_is_read_once_in_order_with_quotes_that_say_something() -> None:
    items = [
        {"diagnosis": " Gout ", "evidence": [" a toe", "a toe ", " "], "reason": " red "},
        {"diagnosis": "Sepsis", "evidence": [], "reason": ""},
        {"diagnosis": "GOUT", "evidence": ["fever"], "reason": "again"},
    ]
    assert read_differential({"differential": items}) == (
        Proposal("Gout", ("a toe",), "red"),
        Proposal("Sepsis", (), ""),
    )


@pytest.mark.parametrize(("given", "read"), [(" a toe ", "a toe"), ("", None), ("  ", None), (None, None)])
def test_a_quote_without_a_word_is_none(given: str | None, read: str | None) -> None:
    assert read_quote(given) == read


def test_quotes_and_texts_are_read_once_each() -> None:
    assert read_quotes([" b", "a", "b ", " "]) == ("b", "a")
    assert read_texts([" b", "a", "b "]) == ("b", "a")


def test_dangers_are_read_as_they_are_given() -> None:
    item = {"diagnosis": " Sepsis ", "why": " fever ", "quote": " hot ", "test": " culture "}
    danger = Danger("Sepsis", "fever", "hot", "culture")
    assert read_dangers([item, {**item, "quote": None}]) == (danger, Danger("Sepsis", "fever", None, "culture"))


def test_a_proposal_in_words_leaves_out_what_it_does_not_have() -> None:
    assert in_words(Proposal("Gout", ("a toe", "red"), "It fits")) == 'Gout. "a toe" "red" It fits'
    assert in_words(Proposal("Gout", (), "It fits")) == "Gout. It fits"
    assert in_words(Proposal("Gout", ("a toe",), "")) == 'Gout. "a toe"'
    assert in_words(Proposal("Gout", (), "")) == "Gout."
