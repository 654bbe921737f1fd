"""FHIR data types in words: concepts, quantities with units, ranges, dates, values with interpretation.

It knows no resource. What a type says and cannot be put into words is told to `Remarks`; a unit that cannot be right raises
`WrongUnit`.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from ddx_local.clinical import ucum
from ddx_local.clinical.fhir_models import Concept, Period, Quantity, Range, Reference, ReferenceRange, Valued
from ddx_local.clinical.fhir_units import check_quantity, check_range, is_odd, is_unchecked
from ddx_local.clinical.taken import Remark

Remarks = list[Remark]

LOINC = "http://loinc.org"
_HL7 = "http://terminology.hl7.org/CodeSystem/"
_SYSTEMS: Mapping[str, str] = {
    LOINC: "LOINC",
    "http://snomed.info/sct": "SNOMED CT",
    "http://hl7.org/fhir/sid/icd-10": "ICD-10",
    "http://hl7.org/fhir/sid/icd-10-cm": "ICD-10-CM",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://hl7.org/fhir/sid/cvx": "CVX",
}
_NAMES: Mapping[str, str] = {
    "8310-5": "Body temperature", "8867-4": "Heart rate", "9279-1": "Respiratory rate", "85354-9": "Blood pressure",
    "8480-6": "Systolic blood pressure", "8462-4": "Diastolic blood pressure", "2708-6": "Oxygen saturation",
    "59408-5": "Oxygen saturation", "29463-7": "Body weight", "8302-2": "Body height", "39156-5": "Body mass index",
}  # fmt: skip
_INTERPRETATIONS: Mapping[str, str] = {
    "H": "high", "HH": "critically high", "HU": "very high", "L": "low", "LL": "critically low", "LU": "very low", "N": "normal",
    "A": "abnormal", "AA": "critically abnormal", "POS": "positive", "NEG": "negative", "IND": "indeterminate", "DET": "detected",
    "ND": "not detected", "R": "resistant", "S": "susceptible", "I": "intermediate", "RR": "reactive", "NR": "non-reactive",
    "WR": "weakly reactive", "U": "significantly up", "D": "significantly down", "B": "better", "W": "worse", "E": "equivocal",
}  # fmt: skip


def line(text: str) -> str:
    """One line, whatever white space a text holds."""
    return " ".join(text.split())


def concept(value: Concept | None) -> str:
    """A concept's own words, else its code's, else the code; empty where it says nothing."""
    if value is None:
        return ""
    if value.text and value.text.strip():
        return line(value.text)
    for coding in value.coding:
        if coding.display and coding.display.strip():
            return line(coding.display)
    for coding in value.coding:
        if coding.code:
            known = _NAMES.get(coding.code) if coding.system == LOINC else None
            if (coding.system or "").startswith(_HL7) and coding.code.islower():
                return _plain(coding.code)  # HL7's own codes are words: `active`, `family-history`
            system = _SYSTEMS.get(coding.system or "", "code")
            return known or f"{system} {line(coding.code)}"
    return ""


def status(value: Concept | None) -> str:
    """A status, whose codes FHIR itself gives as words, so that they need no system."""
    if value is None or (value.text or "").strip() or any((coding.display or "").strip() for coding in value.coding):
        return concept(value).lower()
    return next((_plain(coding.code) for coding in value.coding if coding.code), "")


def _plain(code: str) -> str:
    return line(code.replace("-", " "))


def codes(values: Iterable[Concept]) -> frozenset[str]:
    """All codes of some concepts."""
    return frozenset(coding.code for value in values for coding in value.coding if coding.code)


def told_by(value: Concept | None) -> frozenset[str]:
    """All words and codes by which a concept can be known, in small letters."""
    if value is None:
        return frozenset()
    texts = [value.text, *(coding.display for coding in value.coding)]
    pairs = [f"{coding.system}|{coding.code}" for coding in value.coding if coding.code]
    return frozenset(line(text).casefold() for text in (*texts, *pairs) if text and text.strip())


def loinc(value: Concept | None) -> str | None:
    """The first LOINC code of a concept."""
    if value is None:
        return None
    return next((coding.code for coding in value.coding if coding.system == LOINC and coding.code), None)


def joined(values: Iterable[Concept], mark: str = ", ") -> str:
    return mark.join(words for value in values if (words := concept(value)))


def date(value: str | None) -> str:
    """Day and minute, without seconds and zone, which no case needs."""
    if not value:
        return ""
    day, _, time = value.partition("T")
    return f"{day} {time[:5]}".strip()


def period(value: Period | None) -> str:
    start, end = (date(value.start), date(value.end)) if value else ("", "")
    if start and end:
        return start if start == end else f"{start} to {end}"
    return f"since {start}" if start else f"until {end}" if end else ""


def reference(value: Reference) -> str:
    return line(value.display or "")


def number(value: Decimal) -> str:
    """A number with the digits that it was given with, never as a power of ten."""
    return f"{value:f}" if value.is_finite() and abs(value.adjusted()) < 30 else str(value)


def unit(quantity: Quantity) -> str:
    """The unit for people, else the code's form for people."""
    if quantity.unit and quantity.unit.strip():
        return "" if quantity.unit.strip() == "1" else line(quantity.unit)
    return ucum.for_people(quantity.code) if quantity.code else ""


def quantity(value: Quantity, remarks: Remarks, owner: str, code: str | None = None) -> str:
    """A quantity with its unit, which is checked; a missing unit is said, and remarked."""
    if value.value is None:
        return ""
    check_quantity(value, code)
    if is_odd(value):
        remarks.append(
            Remark("warning", f"a unit of {owner}", "its UCUM code is not known here; it is kept as it was given")
        )
    elif is_unchecked(value, code):
        remarks.append(
            Remark("warning", f"a unit of {owner}", "it is not known here, and not checked; it is kept as it was given")
        )
    told = unit(value)
    if not told and value.code != "1" and (value.unit or "").strip() != "1":
        remarks.append(Remark("warning", f"a quantity of {owner}", "it has no unit; the case text says so"))
        told = "(unit not given)"
    space = "" if told == "%" else " "
    return f"{value.comparator or ''}{number(value.value)}{space}{told}".strip()


def range_(value: Range, remarks: Remarks, owner: str, code: str | None = None) -> str:
    low = quantity(value.low, remarks, owner, code) if value.low else ""
    high = quantity(value.high, remarks, owner, code) if value.high else ""
    return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}" if high else ""


def value_of(valued: Valued, remarks: Remarks, owner: str) -> str:
    """What an observation or component found, in words; empty where it found nothing that can be said."""
    found = ""
    code = loinc(valued.code)
    if valued.valueQuantity is not None:
        found = quantity(valued.valueQuantity, remarks, owner, code)
    elif valued.valueCodeableConcept is not None:
        found = concept(valued.valueCodeableConcept)
    elif valued.valueString is not None:
        found = line(valued.valueString)
    elif valued.valueBoolean is not None:
        found = "yes" if valued.valueBoolean else "no"
    elif valued.valueInteger is not None:
        found = str(valued.valueInteger)
    elif valued.valueRange is not None:
        found = range_(valued.valueRange, remarks, owner, code)
    elif valued.valueRatio is not None:
        found = _ratio(valued, remarks, owner)
    else:
        found = date(valued.valueDateTime) or period(valued.valuePeriod) or line(valued.valueTime or "")
    if not found and valued.dataAbsentReason is not None:
        found = f"not available ({concept(valued.dataAbsentReason) or 'no reason given'})"
    asides = [_interpretation(item) for item in valued.interpretation]
    asides += [_reference_range(item, valued.valueQuantity) for item in valued.referenceRange]
    told = "; ".join(aside for aside in asides if aside)
    return f"{found} ({told})".strip() if told else found


def _ratio(valued: Valued, remarks: Remarks, owner: str) -> str:
    ratio = valued.valueRatio
    if ratio is None or ratio.numerator is None or ratio.denominator is None:
        return ""
    # A titer is a ratio of two bare numbers.
    parts = (ratio.numerator, ratio.denominator)
    if not any(part.unit or part.code for part in parts) and all(part.value is not None for part in parts):
        return ":".join(number(part.value) for part in parts if part.value is not None)
    return " / ".join(quantity(part, remarks, owner) for part in parts)


def _interpretation(value: Concept) -> str:
    for coding in value.coding:
        if coding.code is not None and coding.code in _INTERPRETATIONS:
            return _INTERPRETATIONS[coding.code]
    return concept(value)


def _reference_range(value: ReferenceRange, found: Quantity | None) -> str:
    if found is not None:
        check_range(found, value.low, value.high)
    if value.low is None and value.high is None:
        return f"reference {line(value.text)}" if value.text else ""
    low, high = _end(value.low), _end(value.high)
    units = [unit(end) for end in (value.low, value.high) if end is not None and unit(end)]
    if low and high and len(set(units)) > 1:
        return f"reference {low} {units[0]} to {high} {units[1]}"
    told = f"{low}-{high}" if low and high else f">= {low}" if low else f"<= {high}" if high else ""
    unit_ = units[0] if units else ""
    return f"reference {told}{'' if unit_ == '%' else ' '}{unit_}".strip() if told else ""


def _end(value: Quantity | None) -> str:
    return number(value.value) if value is not None and value.value is not None else ""
