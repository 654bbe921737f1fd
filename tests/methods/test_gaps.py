"""The numbers of counterfactual reasoning, by hand, by their laws, and against the worked values of the shared data."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ddx_local.clinical import labels
from ddx_local.flow import Loglikelihood
from ddx_local.methods.gaps import Probabilities, Weights, combined, gap, needed, probabilities, sem_sim, sip

LABELS = ("gout", "septic arthritis", "pseudogout", "cellulitis")


def scored(*logprobs: float, noise: float = 0.0) -> Probabilities:
    return probabilities([Loglikelihood(name, value, 3, noise) for name, value in zip(LABELS, logprobs, strict=False)])


def given_as(noise: float = 0.0, **shares: float) -> Probabilities:
    """Probabilities that are known; the raw ones are a tenth."""
    return Probabilities({name: value / 10 for name, value in shares.items()}, shares, noise)


SCORES = st.lists(st.floats(-300, 0), min_size=1, max_size=4)


# Probabilities


def test_raw_is_the_product_and_normalised_is_its_share_among_the_candidates() -> None:
    found = scored(math.log(0.02), math.log(0.01), math.log(0.01))
    assert found.raw == pytest.approx({"gout": 0.02, "septic arthritis": 0.01, "pseudogout": 0.01})
    assert found.normalised == pytest.approx({"gout": 0.5, "septic arthritis": 0.25, "pseudogout": 0.25})
    assert found.most_likely == "gout"


def test_names_too_long_for_a_float_still_have_shares() -> None:
    found = scored(-1000.0, -1000.0 - math.log(3))
    assert found.raw == {"gout": 0.0, "septic arthritis": 0.0}
    assert found.normalised == pytest.approx({"gout": 0.75, "septic arthritis": 0.25})


def test_a_single_candidate_is_certain() -> None:
    assert scored(-40.0).normalised == {"gout": 1.0}


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_shares_sum_to_one_and_keep_the_order(scores: list[float]) -> None:
    found = scored(*scores)
    assert sum(found.normalised.values()) == pytest.approx(1.0)
    assert all(0 <= value <= 1 for value in (*found.normalised.values(), *found.raw.values()))
    assert found.normalised[found.most_likely] == max(found.normalised.values())
    assert scores[LABELS.index(found.most_likely)] == pytest.approx(max(scores), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(SCORES, st.floats(-50, 50))
def test_shares_do_not_change_when_all_scores_move_by_the_same(scores: list[float], by: float) -> None:
    moved = scored(*[score + by for score in scores])
    assert moved.normalised == pytest.approx(scored(*scores).normalised, abs=1e-9)


# Gaps


def test_the_four_gaps_by_hand() -> None:
    before, after = given_as(gout=0.7, cellulitis=0.3), given_as(gout=0.2, cellulitis=0.8)
    found = gap("gout", before, after)
    assert (found.signed, found.signed_raw) == pytest.approx((0.5, 0.05))
    assert (found.paper, found.paper_raw) == pytest.approx((0.1, 0.01))
    assert found.flipped_to == "cellulitis"
    other = gap("cellulitis", before, after)
    assert (other.signed, other.signed_raw) == pytest.approx((-0.5, -0.05))
    assert (other.paper, other.flipped_to) == (pytest.approx(0.5), "")


def test_a_finding_that_speaks_against_the_diagnosis_has_a_negative_gap() -> None:
    assert gap("gout", given_as(gout=0.2, cellulitis=0.8), given_as(gout=0.6, cellulitis=0.4)).signed < 0


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4))
def test_the_signed_gap_is_antisymmetric_and_the_papers_is_a_distance(data: st.DataObject, count: int) -> None:
    scores = st.lists(st.floats(-30, 0), min_size=count, max_size=count)
    before, after = scored(*data.draw(scores)), scored(*data.draw(scores))
    for label in LABELS[:count]:
        there, back = gap(label, before, after), gap(label, after, before)
        assert there.signed == -back.signed
        assert there.signed_raw == -back.signed_raw
        assert -1 <= there.signed <= 1
        assert 0 <= there.paper <= 1
        assert 0 <= there.paper_raw <= 1
        if there.flipped_to == "":
            assert there.paper == abs(there.signed)
            assert there.paper_raw == abs(there.signed_raw)
        else:
            assert there.flipped_to == after.most_likely != label
    total = sum(gap(label, before, after).signed for label in LABELS[:count])
    assert total == pytest.approx(0, abs=1e-9)


@given(SCORES)
def test_nothing_changed_is_no_gap(scores: list[float]) -> None:
    found = scored(*scores)
    same = gap(found.most_likely, found, found)
    assert (same.signed, same.signed_raw, same.paper, same.paper_raw, same.flipped_to) == (0, 0, 0, 0, "")


def test_the_noise_floor_by_hand() -> None:
    before, after = given_as(0.3, gout=0.5, cellulitis=0.5), given_as(0.2, gout=0.9, cellulitis=0.1)
    assert gap("gout", before, after).noise_floor == pytest.approx(0.25 * 0.3 + 0.09 * 0.2)
    assert gap("gout", given_as(gout=1.0), given_as(gout=1.0)).noise_floor == 0.0


def test_the_noise_is_that_of_the_least_certain_score() -> None:
    assert probabilities([Loglikelihood("a", -1, 1, 0.1), Loglikelihood("b", -1, 1, 0.3)]).noise == 0.3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-5, 0), min_size=2, max_size=4), st.floats(0.001, 0.01))
def test_the_noise_is_what_such_an_error_of_the_labels_score_does_to_its_share(
    scores: list[float], noise: float
) -> None:
    exact, noisy = scored(*scores, noise=noise), scored(scores[0] + noise, *scores[1:])
    moved = abs(noisy.normalised["gout"] - exact.normalised["gout"])
    assert moved == pytest.approx(exact.noise_of("gout"), rel=0.02)


# Similarity and the combined score


@pytest.mark.parametrize(
    ("cosine", "expected"), [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0), (0.7, 0.85), (1.000001, 1.0), (-1.1, 0.0)]
)
def test_sem_sim(cosine: float, expected: float) -> None:
    assert sem_sim(cosine) == pytest.approx(expected)
    assert 0 <= sem_sim(cosine) <= 1


@pytest.mark.parametrize(
    ("meaning", "spelling", "expected"), [(1.0, 1.0, 1.0), (0.9, 0.8, 0.87), (1.0, 0.5, 0.85), (0.0, 1.0, 0.3)]
)
def test_sip(meaning: float, spelling: float, expected: float) -> None:
    assert sip(meaning, spelling) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("signal", "shift", "preserved", "expected"),
    [
        (0.4, 0.0, 1.0, 0.8 * 0.4 + 0.2),
        (0.1, 0.4, 0.9, 0.8 * 0.3 + 0.18),  # the shift, at 0.75 of itself, is larger than the gap
        (0.3, 0.4, 0.9, 0.8 * 0.3 + 0.18),  # equal
        (0.31, 0.4, 0.9, 0.8 * 0.31 + 0.18),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
    ],
)
def test_combined(signal: float, shift: float, preserved: float, expected: float) -> None:
    assert combined(signal, shift, preserved) == pytest.approx(expected)


def test_the_weights_weigh() -> None:
    weights = Weights(sem=0.5, edit=0.25, signal=0.6, shift=0.5, sip=0.4)
    assert sip(0.8, 0.4, weights) == pytest.approx(0.5)
    assert combined(0.2, 0.6, 0.5, weights) == pytest.approx(0.6 * 0.3 + 0.4 * 0.5)
    assert Weights() == Weights(0.7, 0.3, 0.8, 0.75, 0.2)


@settings(max_examples=60, deadline=None)
@given(*[st.floats(0, 1)] * 4)
def test_scores_of_shares_are_shares_and_more_of_anything_is_no_less(a: float, b: float, c: float, more: float) -> None:
    assume(a + more <= 1)
    assert 0 <= sip(a, b) <= 1 + 1e-12
    assert 0 <= combined(a, b, c) <= 1 + 1e-12
    assert combined(a + more, b, c) >= combined(a, b, c)
    assert combined(b, a + more, c) >= combined(b, a, c)
    assert combined(b, c, a + more) >= combined(b, c, a)


# Consensus


@pytest.mark.parametrize(("specialists", "agree"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (6, 5), (7, 6), (8, 6)])
def test_how_many_must_agree(specialists: int, agree: int) -> None:
    assert needed(specialists, 0.75) == agree


@given(st.integers(1, 40), st.integers(0, 100))
def test_the_number_that_must_agree_is_the_smallest_share_that_suffices(specialists: int, percent: int) -> None:
    agree = needed(specialists, percent / 100)
    assert 1 <= agree <= specialists
    assert agree * 100 >= percent * specialists
    assert agree == 1 or (agree - 1) * 100 < percent * specialists


# The worked values of the shared data


@pytest.fixture(scope="module")
def vectors(shared_data: Path) -> Any:
    return json.loads((shared_data / "metrics_vectors.json").read_text("utf-8"))


def test_consensus_of_the_worked_examples(vectors: Any) -> None:
    share = vectors["consensus"]["threshold"]
    assert {int(n): agree for n, agree in vectors["consensus"]["need"].items()} == {
        n: needed(n, share) for n in range(1, 9)
    }
    for example in vectors["consensus"]["examples"]:
        votes = example["votes"]
        most = max(len(group) for group in labels.merge(votes))
        assert most / len(votes) == pytest.approx(example["share"], abs=1e-6)
        assert (most >= needed(len(votes), share)) == example["consensus"]


def test_gaps_of_the_worked_examples(vectors: Any) -> None:
    signed = iter(vectors["cpg"]["delta_p_same_label"])
    for (p, q, label, then), paper in zip(vectors["cpg"]["pairs"], vectors["cpg"]["cpg_abs"], strict=True):
        # So many others that each of them is less likely than the most likely diagnosis.
        rest = {f"other {number}": (1 - q) / 20 for number in range(20)}
        before = {label: p, then: p}
        after = {label: 0.0, **rest, then: q}
        found = gap(label, Probabilities(before, before, 0.0), Probabilities(after, after, 0.0))
        assert found.paper == pytest.approx(paper)
        assert found.paper_raw == pytest.approx(paper)
        assert found.flipped_to == ("" if then == label else then)
        if then == label:
            assert found.signed == pytest.approx(next(signed))
    assert next(signed, None) is None
