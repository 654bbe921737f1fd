"""Gaps over a case text and the table finding x candidate, on numbers that can be worked out by hand."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.report.cut import cut
from ddx_local.report.heat import candidates, effects, stretches, table
from ddx_local.result import schema
from tests.report import documents
from tests.report.documents import CARDIOMYOPATHY, CORONARY, STENOSIS, TEXT, made_by_hand

LETTERS = "abcdefghij"


def change(start: int, end: int, gap: float, new: str = "", **more: Any) -> dict[str, Any]:
    """An edit of LETTERS for the candidate A."""
    made = documents.edit("A", "remove", {}, 0.5, 0.5 - gap, noise_floor=0.05)
    return made | {"patches": [{"start": start, "end": end, "replacement": new}]} | more


def of(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"differential": [documents.entry(1, "A", 0.5)], "counterfactuals": list(changes)}


def weights(document: dict[str, Any], diagnosis: str = "A", length: int = len(LETTERS)) -> list[float]:
    """The weight of each character."""
    return [
        stretch.weight for stretch in stretches(document, diagnosis, length) for _ in range(stretch.start, stretch.end)
    ]


def test_the_document_made_by_hand_is_a_result_document() -> None:
    jsonschema.validate(made_by_hand(), schema())


def test_a_character_has_the_strongest_signed_gap_of_the_patches_that_touch_it() -> None:
    document = of(change(0, 4, 0.2), change(2, 6, -0.3), change(3, 5, 0.1))
    assert weights(document) == [0.2, 0.2, -0.3, -0.3, -0.3, -0.3, 0, 0, 0, 0]


def test_a_gap_below_its_noise_floor_weighs_nothing_and_is_still_told_from_no_edit() -> None:
    document = of(change(0, 2, 0.04), change(4, 6, 0.05))
    assert weights(document) == [0, 0, 0, 0, 0.05, 0.05, 0, 0, 0, 0]
    noise, untouched = stretches(document, "A", len(LETTERS))[:2]
    assert noise.effect is not None
    assert (noise.effect.counts, noise.effect.strength, noise.effect.gap) == (False, "none", 0.04)
    assert untouched.effect is None


def test_a_gap_that_counts_goes_before_a_larger_one_that_does_not() -> None:
    document = of(change(0, 4, 0.4, noise_floor=0.5), change(0, 4, -0.1))
    assert weights(document)[:5] == [-0.1] * 4 + [0]


def test_no_gap_at_all_is_noise_even_without_a_noise_floor() -> None:
    assert not effects(of(change(0, 2, 0.0, noise_floor=0.0)))[0].counts


@pytest.mark.parametrize("without", [{"kept": False}, {"gap": None}, {"patches": []}])
def test_an_edit_that_does_not_count_leaves_no_trace(without: dict[str, Any]) -> None:
    document = of(change(0, 4, 0.4) | without)
    assert effects(document) == ()
    assert table(document, LETTERS) == ()
    assert weights(document) == [0] * 10


def test_gaps_of_other_candidates_are_not_mixed_in() -> None:
    document = of(change(0, 4, 0.2), change(0, 4, 0.3, diagnosis="B"))
    assert weights(document)[0] == 0.2
    assert weights(document, "B")[0] == 0.3
    assert weights(document, "C") == [0] * 10
    assert candidates(document) == ("A", "B")


def test_an_insertion_covers_no_character_and_stands_at_its_place() -> None:
    document = of(change(2, 6, 0.3), change(4, 4, -0.2, " x"))
    assert weights(document) == [0, 0, 0.3, 0.3, 0.3, 0.3, 0, 0, 0, 0]
    places = [(item.start, item.end, item.weight) for item in stretches(document, "A", 10)]
    assert places == [(0, 2, 0), (2, 4, 0.3), (4, 4, -0.2), (4, 6, 0.3), (6, 10, 0)]


def test_insertions_at_both_ends_of_the_text_stand_there() -> None:
    document = of(change(0, 0, 0.1, "x"), change(10, 10, 0.2, "y"))
    places = [(item.start, item.end, item.weight) for item in stretches(document, "A", 10)]
    assert places == [(0, 0, 0.1), (0, 10, 0), (10, 10, 0.2)]


@pytest.mark.parametrize(
    ("gap", "strength"),
    [(0.21, "primary"), (0.2, "supporting"), (-0.1, "supporting"), (0.09, "weak"), (-0.3, "primary"), (0.01, "none")],
)
def test_strength_is_read_as_the_method_reads_it(gap: float, strength: str) -> None:
    assert effects(of(change(0, 1, gap)))[0].strength == strength


edits = st.tuples(st.integers(-2, 12), st.integers(-2, 12), st.floats(-1, 1), st.booleans()).map(
    lambda item: change(min(item[0], item[1]), max(item[0], item[1]), item[2], kept=item[3])
)


@given(st.lists(edits, max_size=8))
def test_stretches_are_the_whole_text_in_order_and_weigh_what_the_rule_says(found: list[dict[str, Any]]) -> None:
    document = of(*found)
    pieces = [item for item in stretches(document, "A", 10) if item.start < item.end]
    assert [place for item in pieces for place in range(item.start, item.end)] == list(range(10))
    for place, weight in enumerate(weights(document)):
        over = [
            item["gap"]
            for item in found
            if item["kept"] and abs(item["gap"]) >= item["noise_floor"] and item["gap"]
            for patch in item["patches"]
            if patch["start"] <= place < patch["end"]
        ]
        assert abs(weight) == max(map(abs, over), default=0)
        assert weight in [*over, 0]


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda span: (min(span), max(span))), max_size=6)


@given(spans)
def test_a_cut_text_knows_for_each_piece_which_spans_cover_it_and_which_end_there(found: list[tuple[int, int]]) -> None:
    pieces = cut(10, found)
    assert "".join(LETTERS[item.start : item.end] for item in pieces) == LETTERS
    for piece in pieces:
        for place in range(piece.start, piece.end):
            assert piece.over == tuple(number for number, (start, end) in enumerate(found) if start <= place < end)
    ended = sorted(number for piece in pieces for number in piece.ending)
    assert ended == [number for number, (start, end) in enumerate(found) if start < min(end, 10)]


def test_an_empty_text_has_no_pieces() -> None:
    assert cut(0, [(0, 0), (0, 3)]) == ()
    assert stretches(of(), "A", 0) == ()


# --- the table ----------------------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_finding_and_a_cell_for_each_candidate_it_was_tested_for() -> None:
    rows = {row.texts: row for row in table(made_by_hand(), TEXT)}
    murmur = rows[(documents.MURMUR,)]
    assert set(murmur.effects) == {STENOSIS, CORONARY}
    (own,), (other,) = murmur.effects[STENOSIS], murmur.effects[CORONARY]
    assert (own.gap, own.before, own.after, own.noise_floor, own.operation) == (0.28, 0.71, 0.43, 0.02, "remove")
    assert (other.gap, other.before, other.after) == (-0.24, 0.22, 0.46)


def test_rows_come_with_the_strongest_effect_first_and_noise_last() -> None:
    rows = table(made_by_hand(), TEXT)
    assert rows[0].texts == (documents.PULSE,)
    strongest = [max(abs(item.weight) for found in row.effects.values() for item in found) for row in rows]
    assert strongest == [0.34, 0.28, 0.26, 0.16, 0.13, 0.13, 0.05, 0.04, 0.03, 0, 0]
    # Equals stand in the order of the case.
    assert [row.texts for row in rows[4:6]] == [(documents.REST,), (documents.SECOND_SOUND,)]


def test_a_finding_is_the_case_text_of_all_pieces_of_an_edit_and_an_insertion_is_what_was_inserted() -> None:
    rows = table(made_by_hand(), TEXT)
    (group,) = [row for row in rows if CARDIOMYOPATHY in row.effects and len(row.texts) == 2]
    assert group.texts == (documents.FAINT, documents.WAVES)
    (inserted,) = [row for row in rows if row.inserted]
    assert inserted.texts == ("rising to 120 ng/L",)


def test_the_same_finding_is_one_row_whatever_punctuation_a_quote_drags_along() -> None:
    text = "Fever, cough; fever"
    document = of(change(0, 5, 0.2), change(0, 6, -0.3), change(7, 12, 0.1))
    first, second = table(document, text)
    assert (first.texts, [item.gap for item in first.effects["A"]]) == (("Fever",), [-0.3, 0.2])
    assert second.texts == ("cough",)


def test_a_quote_that_is_changed_in_several_places_is_one_finding() -> None:
    both = change(0, 5, 0.2)
    both["patches"].append({"start": 7, "end": 12, "replacement": ""})
    (row,) = table(of(both), "fever, fever")
    assert row.texts == ("fever",)
