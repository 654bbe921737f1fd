"""The table of methods: every family's rows stand in it, under their own names."""

from ddx_local.methods.table import METHODS
from ddx_local.methods.table_alone import ALONE
from ddx_local.methods.table_debates import DEBATES
from ddx_local.methods.table_panels import PANELS


def test_no_method_of_a_family_hides_one_of_another() -> None:
    assert list(METHODS) == [*ALONE, *PANELS, *DEBATES]


def test_a_method_stands_under_its_own_name() -> None:
    assert [method.name for method in METHODS.values()] == list(METHODS)


def test_the_options_of_every_method_have_values_that_they_accept() -> None:
    for method in METHODS.values():
        method.options()
