"""Counting votes, against counts made by hand and against a plain Borda count."""

import math
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.methods.voting import axis_score, borda, majority

ITEMS = ("x", "y", "z")
BALLOTS = {"A": ("x", "y", "z"), "B": ("y", "x", "z"), "C": ("y", "z", "x")}


def plain_borda(ballots: Mapping[str, Sequence[str]]) -> dict[str, int]:
    scores: dict[str, int] = {}
    for ballot in ballots.values():
        for points, item in enumerate(reversed(ballot)):
            scores[item] = scores.get(item, 0) + points
    return scores


@st.composite
def elections(draw: st.DrawFn) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, float]], tuple[str, ...]]:
    """Ballots, weights as axis scores give them, and the order of proposal."""
    items = tuple(f"d{number}" for number in range(draw(st.integers(1, 6))))
    voters = [f"v{number}" for number in range(draw(st.integers(1, 5)))]
    ballots = {voter: tuple(draw(st.permutations(items))) for voter in voters}
    scores = st.tuples(st.integers(1, 10), st.integers(1, 10), st.integers(1, 10)).map(axis_score)
    weights = {voter: {item: draw(scores) for item in items} for voter in voters}
    return ballots, weights, tuple(draw(st.permutations(items)))


Election = tuple[dict[str, tuple[str, ...]], dict[str, dict[str, float]], tuple[str, ...]]


def test_axes_weigh_a_half_and_two_quarters() -> None:
    assert axis_score((8, 4, 2)) == 5.5
    assert axis_score((1, 1, 1)) == 1
    assert axis_score((10, 10, 10)) == 10


def test_a_plain_count_made_by_hand() -> None:
    count = borda(BALLOTS)
    assert count.scores == {"x": 3, "y": 5, "z": 1}
    assert count.ranking == ("y", "x", "z")
    assert count.ties == ()


def test_a_weighted_count_made_by_hand() -> None:
    weights = {
        "A": {"x": 8.0, "y": 4.0, "z": 6.0},
        "B": {"x": 5.0, "y": 5.0, "z": 5.0},
        "C": {"x": 3.0, "y": 10.0, "z": 5.0},
    }
    count = borda(BALLOTS, weights)
    # A's and C's means are 6: x gets 2 * 8/6 + 1, y gets 4/6 + 2 + 2 * 10/6, z gets 5/6.
    assert count.scores == pytest.approx({"x": 2 * 8 / 6 + 1, "y": 4 / 6 + 2 + 20 / 6, "z": 5 / 6}, abs=1e-8)
    assert count.ranking == ("y", "x", "z")


def test_weights_can_turn_a_result_that_the_ballots_alone_would_give() -> None:
    ballots = {"A": ("x", "y", "z"), "B": ("y", "x", "z")}
    assert borda(ballots, order=ITEMS).ranking == ("x", "y", "z")
    weights = {"A": {"x": 3.0, "y": 9.0, "z": 6.0}}
    assert borda(ballots, weights, order=ITEMS).ranking == ("y", "x", "z")


def test_a_voice_multiplies_a_whole_ballot() -> None:
    count = borda(BALLOTS, voices={"A": 2.0, "C": 0.5})
    assert count.scores == {"x": 4 + 1 + 0, "y": 2 + 2 + 1, "z": 0 + 0 + 0.5}


@given(elections())
def test_with_equal_weights_it_is_the_plain_borda_count(election: Election) -> None:
    ballots, weights, order = election
    equal = {voter: dict.fromkeys(own, 7.25) for voter, own in weights.items()}
    plain = plain_borda(ballots)
    for count in (borda(ballots, order=order), borda(ballots, equal, order=order)):
        assert count.scores == pytest.approx(plain, abs=1e-8)
        assert [plain[item] for item in count.ranking] == sorted(plain.values(), reverse=True)


@given(elections(), st.sampled_from([0.01, 0.5, 3.0, 1000.0]))
def test_a_voter_who_scores_everything_more_generously_has_the_same_power(election: Election, factor: float) -> None:
    ballots, weights, order = election
    scaled = dict(weights)
    scaled["v0"] = {item: weight * factor for item, weight in weights["v0"].items()}
    before, after = borda(ballots, weights, order=order), borda(ballots, scaled, order=order)
    assert after.ranking == before.ranking
    assert after.scores == pytest.approx(before.scores, abs=1e-8)
    assert after.ties == before.ties


@given(elections(), st.randoms(use_true_random=False))
def test_the_order_of_the_voters_does_not_matter(election: Election, chance: random.Random) -> None:
    ballots, weights, order = election
    voters = list(ballots)
    chance.shuffle(voters)
    shuffled = borda({voter: ballots[voter] for voter in voters}, weights, order=order)
    assert shuffled == borda(ballots, weights, order=order)


@given(elections())
def test_the_ranking_is_a_permutation_by_falling_score_and_ties_are_exactly_the_equal_scores(
    election: Election,
) -> None:
    ballots, weights, order = election
    count = borda(ballots, weights, order=order)
    assert sorted(count.ranking) == sorted(order)
    scores = [count.scores[item] for item in count.ranking]
    assert scores == sorted(scores, reverse=True)
    assert all(math.isfinite(score) and score >= 0 for score in scores)
    tied = {item for group in count.ties for item in group}
    assert tied == {item for item in order if scores.count(count.scores[item]) > 1}
    assert all(len({count.scores[item] for item in group}) == 1 for group in count.ties)


@given(elections())
def test_an_item_that_every_voter_puts_first_with_the_top_weight_wins(election: Election) -> None:
    ballots, weights, order = election
    best = order[-1]
    ballots = {voter: (best, *(item for item in ballot if item != best)) for voter, ballot in ballots.items()}
    weights = {voter: {**own, best: 10.0} for voter, own in weights.items()}
    assert borda(ballots, weights, order=order).ranking[0] == best


MIRRORED = {"A": ("x", "y", "z"), "B": ("z", "y", "x")}
"""All have two points; x and z have a first place each, y has none."""


@pytest.mark.parametrize(
    ("supports", "order", "ranking"),
    [
        ({}, ("x", "y", "z"), ("x", "z", "y")),
        ({}, ("z", "y", "x"), ("z", "x", "y")),
        ({}, ("y", "z", "x"), ("z", "x", "y")),
        ({"z": 2, "x": 1, "y": 9}, ("x", "y", "z"), ("z", "x", "y")),
        ({"z": 1, "x": 1, "y": 9}, ("z", "y", "x"), ("z", "x", "y")),
        ({"x": 1}, ("z", "y", "x"), ("x", "z", "y")),
    ],
)
def test_ties_go_by_first_places_then_supports_then_the_earlier_proposal(
    supports: dict[str, int], order: tuple[str, ...], ranking: tuple[str, ...]
) -> None:
    count = borda(MIRRORED, supports=supports, order=order)
    assert count.ranking == ranking
    assert count.ties == (ranking,)


def test_scores_that_differ_by_rounding_alone_are_a_tie() -> None:
    thirds = {voter: {"x": 0.1, "y": 0.2, "z": 0.3} for voter in "AB"}
    tenths = {"A": {"x": 0.1 * 3, "y": 0.2 * 3, "z": 0.1 + 0.2 + 0.6}, "B": thirds["B"]}
    ballots = {"A": ("x", "y", "z"), "B": ("x", "y", "z")}
    assert borda(ballots, thirds).scores == borda(ballots, tenths).scores
    mirrored = {"A": ("x", "y"), "B": ("y", "x")}
    weights = {"A": {"x": 0.1 + 0.2, "y": 0.7}, "B": {"y": 0.3, "x": 0.7}}
    assert borda(mirrored, weights).ties == (("x", "y"),)


def test_one_item_is_ranked_and_no_ballots_leave_the_order() -> None:
    alone = borda({"A": ("x",)}, {"A": {"x": 3.0}})
    assert (alone.ranking, alone.scores, alone.ties) == (("x",), {"x": 0.0}, ())
    assert borda({}, order=("b", "a")).ranking == ("b", "a")


def test_majority_counts_and_orders_ties_by_the_order_then_by_first_appearance() -> None:
    count = majority(["b", "a", "c", "a", "b", "d"])
    assert count.ranking == ("b", "a", "c", "d")
    assert count.scores == {"b": 2, "a": 2, "c": 1, "d": 1}
    assert count.ties == (("b", "a"), ("c", "d"))
    assert majority(["b", "a", "c", "a", "b"], order=("c", "a", "e")).ranking == ("a", "b", "c", "e")
    assert majority(["b"], order=("c",)).scores == {"c": 0, "b": 1}
    assert majority([]).ranking == ()
