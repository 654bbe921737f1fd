"""The specialist pool: 43 roles, and of each near-duplicate pair only one to choose."""

from collections import Counter

import pytest

from ddx_local.clinical.pool import Specialist, panel_choices, pool

PAIRS = [("surgeon", "general surgeon"), ("orthopedist", "orthopedic surgeon")]


def test_the_pool_has_forty_three_different_roles() -> None:
    names = [specialist.name for specialist in pool()]
    assert len(names) == len(set(names)) == 43


def test_names_are_plain_lower_case_words() -> None:
    for specialist in pool():
        assert specialist.name.replace(" ", "").isalpha()
        assert specialist.name == " ".join(specialist.name.lower().split())


def test_every_group_has_the_size_of_the_table() -> None:
    assert Counter(specialist.group for specialist in pool()) == {
        "general": 3,
        "internal medicine": 10,
        "surgery": 8,
        "women and children": 6,
        "other": 8,
        "diagnostics": 5,
        "allied": 3,
    }


def test_the_order_is_the_table_s() -> None:
    assert pool()[0] == Specialist("general internal medicine doctor", "general")
    assert pool()[3] == Specialist("cardiologist", "internal medicine")
    assert pool()[-1] == Specialist("transfusion medicine specialist", "allied")


def test_the_two_near_duplicate_pairs_are_marked_and_no_other() -> None:
    marked = {(specialist.name, specialist.near_duplicate_of) for specialist in pool() if specialist.near_duplicate_of}
    assert marked == set(PAIRS)


def test_a_near_duplicate_names_an_original_of_its_own_group() -> None:
    by_name = {specialist.name: specialist for specialist in pool()}
    for specialist in pool():
        if specialist.near_duplicate_of is not None:
            original = by_name[specialist.near_duplicate_of]
            assert original.near_duplicate_of is None
            assert original.group == specialist.group


@pytest.mark.parametrize("pair", PAIRS)
def test_a_panel_can_choose_exactly_one_of_a_pair(pair: tuple[str, str]) -> None:
    assert sum(name in panel_choices() for name in pair) == 1


def test_a_panel_can_choose_every_role_that_has_no_double_in_the_pool_s_order() -> None:
    in_pairs = {name for pair in PAIRS for name in pair}
    choices = panel_choices()
    assert len(choices) == 41
    names = [specialist.name for specialist in pool()]
    assert [name for name in choices if name not in in_pairs] == [name for name in names if name not in in_pairs]


def test_the_pool_is_read_once_and_cannot_be_changed() -> None:
    assert pool() is pool()
    with pytest.raises(AttributeError):
        pool()[0].name = "barber"  # type: ignore[misc]
