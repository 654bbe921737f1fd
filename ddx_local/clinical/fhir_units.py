"""Units of FHIR quantities: what contradicts itself, and what no vital sign or common result can be.

It knows LOINC codes of vital signs and a few laboratory results with wide limits of what a living patient can have. It is
there to catch a wrong unit, not an unusual value.
"""

from collections.abc import Mapping
from decimal import Decimal

from ddx_local.clinical import ucum
from ddx_local.clinical.fhir_models import Quantity

Limits = Mapping[str, tuple[float, float]]

_TEMPERATURE: Limits = {"Cel": (15, 46), "[degF]": (59, 115), "K": (288, 319)}
_PRESSURE: Limits = {"mm[Hg]": (0, 400), "kPa": (0, 53)}
_RATE: Limits = {"/min": (0, 500)}
_WEIGHT: Limits = {"kg": (0.2, 700), "g": (200, 700_000), "[lb_av]": (0.4, 1550), "[oz_av]": (7, 24_800)}
_LENGTH: Limits = {"cm": (10, 280), "m": (0.1, 2.8), "mm": (100, 2800), "[in_i]": (4, 110), "[ft_i]": (0.3, 9.2)}

_KNOWN: Mapping[str, tuple[str, Limits]] = {
    **dict.fromkeys(("8310-5", "8331-1", "8332-9", "8328-7", "8333-0"), ("a body temperature", _TEMPERATURE)),
    **dict.fromkeys(("8480-6", "8462-4", "8478-0"), ("a blood pressure", _PRESSURE)),
    "8867-4": ("a heart rate", _RATE),
    "9279-1": ("a respiratory rate", _RATE),
    **dict.fromkeys(("2708-6", "59408-5"), ("an oxygen saturation", {"%": (0, 100)})),
    **dict.fromkeys(("29463-7", "3141-9"), ("a body weight", _WEIGHT)),
    "8302-2": ("a body height", _LENGTH),
    "39156-5": ("a body mass index", {"kg/m2": (4, 250)}),
    **dict.fromkeys(
        ("2339-0", "2345-7"),
        ("a glucose concentration", {"mg/dL": (1, 4000), "mmol/L": (0.05, 222), "g/L": (0.01, 40)}),
    ),
    "718-7": ("a hemoglobin concentration", {"g/dL": (0.5, 30), "g/L": (5, 300), "mmol/L": (0.3, 19)}),
    "2160-0": ("a creatinine concentration", {"mg/dL": (0.05, 60), "umol/L": (4, 5300), "mmol/L": (0.004, 5.3)}),
    "2823-3": ("a potassium concentration", {"mmol/L": (0.5, 20)}),
    "2951-2": ("a sodium concentration", {"mmol/L": (60, 250)}),
}


class WrongUnit(ValueError):
    """A quantity whose unit cannot be right; the message names units, never the value."""


def check_quantity(quantity: Quantity, loinc: str | None) -> None:
    """Refuse a unit that cannot be right.

    Args:
        quantity: A value with its unit.
        loinc: What was measured, where that is known.

    Raises:
        WrongUnit: The unit for people and its UCUM code contradict each other, or what was measured cannot have that unit
            or, in that unit, that value.
    """
    code = ucum.parse(quantity.code) if quantity.code and quantity.system == ucum.SYSTEM else None
    display = ucum.parse_display(quantity.unit) if quantity.unit else None
    if code and display and not code.same(display):
        raise WrongUnit(
            f"its unit `{_short(quantity.unit)}` and its UCUM code `{_short(quantity.code)}` are different units"
        )
    unit = code or display
    if unit is None or loinc is None or loinc not in _KNOWN:
        return
    what, limits = _KNOWN[loinc]
    named = _short(quantity.unit or quantity.code)
    for name, (least, most) in limits.items():
        known = ucum.parse(name)
        if known and known.same(unit):
            if quantity.value is not None and not Decimal(str(least)) <= quantity.value <= Decimal(str(most)):
                raise WrongUnit(f"{what} in `{named}` cannot be what its value says: the unit or the value is wrong")
            return
    raise WrongUnit(f"`{named}` is no unit of {what}")


def check_range(quantity: Quantity, low: Quantity | None, high: Quantity | None) -> None:
    """Refuse a reference range of another kind of quantity than the value's.

    Raises:
        WrongUnit: Value and range have units of different dimensions, or one end's unit and its code contradict each other.
    """
    unit = _unit(quantity)
    for end in (low, high):
        if end:
            check_quantity(end, None)
        other = _unit(end) if end else None
        if unit and other and unit.powers != other.powers:
            raise WrongUnit("its value and its reference range have units of different kinds")


def is_odd(quantity: Quantity) -> bool:
    """Whether a quantity says that its unit is UCUM, but the code is none that is known here."""
    return quantity.system == ucum.SYSTEM and bool(quantity.code) and ucum.parse(str(quantity.code)) is None


def is_unchecked(quantity: Quantity, loinc: str | None) -> bool:
    """Whether what was measured has known units, but the one that is given is none that can be told from its words."""
    return loinc in _KNOWN and bool((quantity.unit or quantity.code or "").strip()) and _unit(quantity) is None


def _unit(quantity: Quantity) -> ucum.Unit | None:
    code = ucum.parse(quantity.code) if quantity.code and quantity.system == ucum.SYSTEM else None
    return code or (ucum.parse_display(quantity.unit) if quantity.unit else None)


def _short(unit: str | None) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "_" for letter in unit or "")[:20]
