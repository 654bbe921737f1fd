"""Votes, positions and gaps in words."""

import pytest

from ddx_local.report import words


def test_places_are_told_with_how_many_gave_them_and_of_how_many() -> None:
    assert words.placed({"a": 2, "b": 1, "c": 1, "d": 4, "e": 1}) == "1st by 3 of 5, 2nd by 1, 4th by 1"
    assert words.placed({}) == ""


def test_who_gave_a_place_is_kept_in_order() -> None:
    assert words.places({"a": 2, "b": 1, "c": 2}) == {1: ("b",), 2: ("a", "c")}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_ordinals(place: int, said: str) -> None:
    assert words.ordinal(place) == said


def test_positions_are_counted_with_their_signs_and_a_withdrawal_by_its_name() -> None:
    held = {"a": "withdrawn", "b": "neutral", "c": "support", "d": "challenge", "e": "support"}
    assert words.standing(held) == "+2 -1 =1, 1 withdrawn"
    assert list(words.positions(held)) == ["support", "challenge", "neutral", "withdrawn"]
    assert words.standing({"a": "withdrawn"}) == "1 withdrawn"
    assert words.standing({}) == ""


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (0.414, "+0.41"),
        (-0.066, "-0.07"),
        (0.005, "+0.01"),
        (0.004, "+<0.01"),
        (-0.004, "-<0.01"),
        (0.0, "0.00"),
        (-0.0, "0.00"),
    ],
)
def test_a_gap_never_loses_its_sign(gap: float, said: str) -> None:
    assert words.signed(gap) == said


def test_a_score_kind_without_words_speaks_for_itself() -> None:
    assert words.score_kind("new_kind") == "new kind"
    assert words.score_kind("borda") == "weighted Borda count"
