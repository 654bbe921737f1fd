"""Units of measure (UCUM): whether a code is one, whether two mean the same, and how one is written for people.

A subset: the atoms and prefixes of clinical results. It knows no quantities and no limits of them.

Source: The Unified Code for Units of Measure, ucum.org, chapter "Full and limited conformance" (case-sensitive codes).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

SYSTEM = "http://unitsofmeasure.org"

_PREFIXES: Mapping[str, float] = {
    "": 1.0, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "da": 10.0, "d": 0.1, "c": 1e-2, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12,
    "f": 1e-15,
}  # fmt: skip

# Atom -> (size, dimensions, whether it takes prefixes). Enzyme units and international units count as one: laboratories
# write either for the other; so do equivalents and moles.
_Atom = tuple[float, str, bool]
_ATOMS: Mapping[str, _Atom] = {
    "m": (1, "L", True), "g": (1, "M", True), "s": (1, "T", True), "mol": (1, "N", True), "eq": (1, "N", True),
    "osm": (1, "N", True), "L": (1e-3, "LLL", True), "l": (1e-3, "LLL", True), "min": (60, "T", False), "h": (3600, "T", False),
    "d": (86400, "T", False), "wk": (604800, "T", False), "mo": (2629800, "T", False), "a": (31557600, "T", False),
    "Hz": (1, "/T", True), "Pa": (1, "P", True), "bar": (1e5, "P", True), "m[Hg]": (133322.387, "P", True),
    "m[H2O]": (9806.65, "P", True), "U": (1, "U", True), "[IU]": (1, "U", True), "[iU]": (1, "U", True), "kat": (1, "K", True),
    "Cel": (1, "C", True), "[degF]": (1, "F", False), "K": (1, "Θ", True), "%": (0.01, "", False), "[ppth]": (1e-3, "", False),
    "[ppm]": (1e-6, "", False), "10*": (10, "", False), "10^": (10, "", False), "[pH]": (1, "H", False), "deg": (1, "A", False),
    "[in_i]": (0.0254, "L", False), "[ft_i]": (0.3048, "L", False), "[lb_av]": (453.59237, "M", False),
    "[oz_av]": (28.349523, "M", False), "[drp]": (5e-8, "LLL", False), "J": (1, "E", True), "cal": (4.184, "E", True),
    "V": (1, "V", True), "W": (1, "W", True), "N": (1, "Q", True), "A": (1, "I", True), "Ohm": (1, "O", True), "Bq": (1, "B", True),
    "Ci": (3.7e10, "B", True), "Gy": (1, "G", True), "Sv": (1, "S", True), "B": (1, "D", True), "t": (1e6, "M", False),
}  # fmt: skip
_TERM = re.compile(r"(?P<unit>(?:10[*^]|[A-Za-z%]*(?:\[[^\]\s]{1,12}\])?))(?P<power>[+-]?\d{1,2})?(?:\{[^{}]*\})?")
_DISPLAY: Mapping[str, str] = {
    "mmhg": "mm[Hg]", "mm hg": "mm[Hg]", "cmh2o": "cm[H2O]", "°c": "Cel", "c": "Cel", "celsius": "Cel",
    "degrees c": "Cel", "deg c": "Cel", "degc": "Cel", "deg. c": "Cel", "℃": "Cel", "ºc": "Cel", "degree celsius": "Cel",
    "degrees celsius": "Cel", "degf": "[degF]", "deg. f": "[degF]", "℉": "[degF]", "ºf": "[degF]",
    "degree fahrenheit": "[degF]", "degrees fahrenheit": "[degF]", "°f": "[degF]",
    "f": "[degF]", "fahrenheit": "[degF]", "degrees f": "[degF]",
    "deg f": "[degF]", "bpm": "/min", "beats/min": "/min", "beats/minute": "/min", "beats per minute": "/min",
    "breaths/min": "/min", "breaths/minute": "/min", "breaths per minute": "/min", "per minute": "/min",
    "/minute": "/min", "lb": "[lb_av]", "lbs": "[lb_av]", "pounds": "[lb_av]", "in": "[in_i]", "inch": "[in_i]",
    "inches": "[in_i]", "kg/m²": "kg/m2", "ph": "[pH]", "percent": "%", "cc": "mL", "yrs": "a", "years": "a",
    "year": "a", "days": "d", "hours": "h", "hrs": "h", "weeks": "wk", "months": "mo", "sec": "s", "seconds": "s",
    "k/ul": "10*3/uL", "m/ul": "10*6/uL", "cells/ul": "/uL", "kg": "kg", "iu/l": "[IU]/L", "iu/ml": "[IU]/mL",
    "miu/l": "m[IU]/L", "miu/ml": "m[IU]/mL", "uiu/ml": "u[IU]/mL", "mcg": "ug", "mcg/l": "ug/L", "mcg/dl": "ug/dL",
}  # fmt: skip
_FOR_PEOPLE = (
    ("mm[Hg]", "mmHg"), ("cm[H2O]", "cmH2O"), ("[degF]", "°F"), ("Cel", "°C"), ("[IU]", "IU"), ("[iU]", "IU"), ("[lb_av]", "lb"),
    ("[oz_av]", "oz"), ("[in_i]", "in"), ("[ft_i]", "ft"), ("[pH]", "pH"), ("10*", "10^"),
)  # fmt: skip


# Written in any case by people and machines that know no other: `MG/DL`, `Mmol/l`, which nobody means as megamoles.
_ANY_CASE: Mapping[str, str] = {
    code.casefold(): code
    for code in (
        "g/dL", "g/L", "mg/dL", "mg/L", "ug/dL", "ug/L", "ng/dL", "ng/mL", "ng/L", "pg/mL", "mol/L", "mmol/L", "umol/L", "nmol/L",
        "pmol/L", "meq/L", "mosm/kg", "U/L", "mL/min", "mL", "dL", "L", "kg", "g", "mg", "ug", "cm", "mm", "kPa", "kg/m2", "s", "min",
        "h", "d", "mm/h", "fL", "pg",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as its size in base units and the powers of its dimensions, by letter; no annotations."""

    size: float
    powers: tuple[tuple[str, int], ...]

    def same(self, other: "Unit") -> bool:
        return self.powers == other.powers and abs(self.size - other.size) <= 1e-6 * abs(self.size)


@cache
def parse(code: str) -> Unit | None:
    """A UCUM code as a unit; None where it is none, or none of this subset. An arbitrary unit in brackets is its own."""
    if not code or len(code) > 60 or re.search(r"\s", code):
        return None
    size, powers, sign = 1.0, dict[str, int](), 1
    for place, piece in enumerate(re.split(r"([./](?![^{]*\}))", code)):
        if place % 2:
            sign = -1 if piece == "/" else 1
            continue
        if piece == "" and place == 0:
            continue
        found = _factor(piece)
        if found is None:
            return None
        unit, power = found
        try:
            size *= unit.size ** (power * sign)
        except OverflowError:  # `d70`: nothing is measured in that
            return None
        for letter, count in unit.powers:
            powers[letter] = powers.get(letter, 0) + count * power * sign
    return Unit(size, tuple(sorted((letter, count) for letter, count in powers.items() if count)))


def _factor(piece: str) -> tuple[Unit, int] | None:
    if piece == "1" or re.fullmatch(r"(?:1)?\{[^{}]*\}", piece):
        return Unit(1.0, ()), 1
    if re.fullmatch(r"[1-9]\d{0,6}", piece):
        return Unit(float(piece), ()), 1
    match = _TERM.fullmatch(piece)
    if not match or not match["unit"]:
        return None
    name, power = match["unit"], int(match["power"] or 1)
    for prefix, scale in _PREFIXES.items():
        atom = _ATOMS.get(name[len(prefix) :]) if name.startswith(prefix) else None
        if atom and (atom[2] or not prefix):
            powers = (
                (("T", -1),)
                if atom[1] == "/T"
                else tuple((letter, atom[1].count(letter)) for letter in sorted({*atom[1]}))
            )
            return Unit(scale * atom[0], powers), power
    if re.fullmatch(r"\[[^\]]+\]", name):
        return Unit(1.0, ((name, 1),)), power
    return None


def parse_display(unit: str) -> Unit | None:
    """A unit as people write it; None where that cannot be told."""
    bare = " ".join(unit.replace("µ", "u").replace("μ", "u").split())
    code = _DISPLAY.get(bare.casefold()) or _ANY_CASE.get(bare.casefold())
    if code is None:
        code = bare.replace("IU", "[IU]").replace("[[IU]]", "[IU]").replace("Eq", "eq")
        code = re.sub(r"^(?:[x×]\s?)?10\s?[\^*]?\s?([36912]{1,2})\s?/", r"10*\1/", code)
        code = code.replace("⁹", "9").replace("²", "2").replace("³", "3")
    return parse(code)


def for_people(code: str) -> str:
    """A UCUM code as it reads in a case text; a pure number has none."""
    shown = "" if code == "1" else code
    for code_part, word in _FOR_PEOPLE:
        shown = shown.replace(code_part, word)
    return re.sub(r"\{([^{}]*)\}", r"\1", shown)
