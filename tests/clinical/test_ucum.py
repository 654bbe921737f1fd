"""Units of measure: which codes are units, which mean the same, and how people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.clinical.ucum import for_people, parse, parse_display

CODES = (
    "mg/dL", "mmol/L", "g/L", "10*3/uL", "10*9/L", "/min", "{beats}/min",
    "mm[Hg]", "cm[H2O]", "Cel", "[degF]", "%", "1", "{INR}", "[pH]",
    "U/L", "[IU]/L", "m[IU]/L", "kg/m2", "mL/min/{1.73_m2}", "ug/mL{FEU}",
    "ng/mL", "pg", "fL", "meq/L", "mosm/kg", "s", "h", "a", "[in_i]",
    "[lb_av]", "umol/L", "mg/g{creat}", "10^9/L", "cm", "kPa", "[arb'U]", "[CFU]/mL", "m2", "m/s2", "dB",
)  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_clinical_units_are_units(code: str) -> None:
    assert parse(code) is not None


@pytest.mark.parametrize(
    "code",
    [
        "",
        "mgs/dl",
        "mg per dL",
        "mg /dL",
        "mg//dL",
        "MG/DL",
        "furlong",
        "/",
        "mg/",
        "{",
        "x" * 100,
        "°C",
        "kmin",
        "d70",
    ],
)
def test_what_is_no_ucum_code_is_none(code: str) -> None:
    assert parse(code) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mg/dL", "mg/dl"),
        ("g/L", "mg/mL"),
        ("10*3/uL", "10*9/L"),
        ("/min", "{beats}/min"),
        ("meq/L", "mmol/L"),
        ("U/L", "[IU]/L"),
        ("m/s2", "m.s-2"),
        ("kg/m2", "kg/m+2"),
        ("h", "60.min"),
    ],
)
def test_two_codes_of_one_unit_are_the_same(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert first is not None
    assert second is not None
    assert first.same(second)
    assert second.same(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [("mg/dL", "mmol/L"), ("mg/dL", "mg/L"), ("Cel", "[degF]"), ("Cel", "K"), ("/min", "min"), ("%", "1"), ("g", "cm")],
)
def test_different_units_are_different(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert first is not None
    assert second is not None
    assert not first.same(second)


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ("mmHg", "mm[Hg]"),
        ("mm Hg", "mm[Hg]"),
        ("°C", "Cel"),
        ("°F", "[degF]"),
        ("bpm", "/min"),
        ("µmol/L", "umol/L"),
        ("μg/L", "ug/L"),
        ("mcg/L", "ug/L"),
        ("IU/L", "[IU]/L"),
        ("mIU/L", "m[IU]/L"),
        ("x10^9/L", "10*9/L"),
        ("10^3/uL", "10*3/uL"),
        ("K/uL", "10*3/uL"),
        ("kg/m²", "kg/m2"),
        ("mEq/L", "meq/L"),
        ("mg/dL", "mg/dL"),
        ("lbs", "[lb_av]"),
        ("years", "a"),
        ("degF", "[degF]"),
        ("degC", "Cel"),
        ("℃", "Cel"),
        ("degrees Fahrenheit", "[degF]"),
        ("MG/DL", "mg/dL"),
        ("Mmol/l", "mmol/L"),
        ("MEQ/L", "meq/L"),
        ("ML", "mL"),
        ("KG", "kg"),
    ],
)
def test_units_as_people_write_them_are_known(shown: str, code: str) -> None:
    found, known = parse_display(shown), parse(code)
    assert found is not None
    assert known is not None
    assert found.same(known)


@pytest.mark.parametrize("shown", ["tablets", "some", "", "mg per day or so"])
def test_what_cannot_be_told_is_not_guessed(shown: str) -> None:
    assert parse_display(shown) is None


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("mm[Hg]", "mmHg"),
        ("Cel", "°C"),
        ("1", ""),
        ("{beats}/min", "beats/min"),
        ("mg/dL", "mg/dL"),
        ("10*3/uL", "10^3/uL"),
    ],
)
def test_a_code_is_told_as_people_write_it(code: str, shown: str) -> None:
    assert for_people(code) == shown


@given(st.text(alphabet="mgLdlkuU/.*^[]{}0123456789-+ CeHs", max_size=15))
@settings(max_examples=300, deadline=None)
def test_anything_is_a_unit_or_none(code: str) -> None:
    found = parse(code)
    assert found is None or found.same(found) or found.size in (0.0, float("inf"))
    assert parse_display(code) is None or True
