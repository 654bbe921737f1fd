"""Bounds of options: which field is out of which bounds, in which order they are checked."""

from dataclasses import dataclass

import pytest

from ddx_local.methods.bounds import check_bounds


@dataclass(frozen=True)
class Given:
    k: int = 5
    most: int = 12
    threshold: float = 0.5


def test_both_bounds_are_allowed() -> None:
    check_bounds(Given(k=1, threshold=0.0), {"k": (1, 10), "threshold": (0, 1)})
    check_bounds(Given(k=10, threshold=1.0), {"k": (1, 10), "threshold": (0, 1)})


@pytest.mark.parametrize("k", [0, 11, -1])
def test_a_field_out_of_bounds_is_refused_by_name_and_bounds(k: int) -> None:
    with pytest.raises(ValueError, match=r"^k must be 1 to 10$"):
        check_bounds(Given(k=k), {"k": (1, 10)})


def test_no_number_is_out_of_bounds() -> None:
    with pytest.raises(ValueError, match=r"^threshold must be 0 to 1$"):
        check_bounds(Given(threshold=float("nan")), {"threshold": (0, 1)})


def test_the_least_value_may_be_another_fields() -> None:
    check_bounds(Given(k=5, most=5), {"most": ("k", 20)})
    with pytest.raises(ValueError, match=r"^most must be k to 20$"):
        check_bounds(Given(k=5, most=4), {"most": ("k", 20)})
    with pytest.raises(ValueError, match=r"^most must be k to 20$"):
        check_bounds(Given(k=5, most=21), {"most": ("k", 20)})


def test_the_first_field_out_of_bounds_is_the_one_named() -> None:
    with pytest.raises(ValueError, match=r"^most must"):
        check_bounds(Given(k=99, most=99), {"most": (1, 20), "k": (1, 10)})
