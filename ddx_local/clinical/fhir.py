"""A FHIR R4 bundle as a case text: which resources become lines, in which order, and what of the patient stays out.

Names, addresses, numbers and the birth date never become text: only age and sex. The encounter's own diagnosis does not
either, unless it is asked for. Whatever else does not become text is remarked, with its kind and why. It knows no file.

Source: HL7 FHIR Release 4 (4.0.1).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical import fhir_words as words
from ddx_local.clinical.fhir_bundle import Bundle, Held, bundle
from ddx_local.clinical.fhir_lines import BASIC, FURTHER, INITIAL, READERS, Line
from ddx_local.clinical.fhir_models import (
    BESIDE,
    Condition,
    DiagnosticReport,
    Encounter,
    Observation,
    Patient,
    Resource,
)
from ddx_local.clinical.fhir_units import WrongUnit
from ddx_local.clinical.fhir_words import codes, joined
from ddx_local.clinical.sections import laid_out
from ddx_local.clinical.taken import Reading, Remark, Taken, counted, shown
from ddx_local.errors import InputError

OLDEST = 90
"""Years from which on an age says who somebody is."""

REMOVED = "[removed]"
_WHO = (
    ("name", ("text", "family", "given")),
    ("telecom", ("value",)),
    ("identifier", ("value",)),
    ("address", ("text", "line", "postalCode")),
)
_DIAGNOSIS = "it is a diagnosis of this encounter, which may be the answer; --with-diagnoses keeps it"


def from_bundle(data: Mapping[str, Any], where: str, reading: Reading) -> Taken:
    """A bundle's case; its id is empty, since a bundle's may say who the patient is.

    The text is the same in whatever order the bundle holds its resources.

    Args:
        data: A bundle, as JSON values (numbers as `Decimal` keep their digits).
        where: The file, for errors.
        reading: Whether diagnoses become text.

    Raises:
        InputError: It is no R4 bundle of one patient, a unit cannot be right, or nothing of it is a case.
    """
    remarks: list[Remark] = []
    whole = bundle(data, where, remarks)
    index = _index_encounter(whole)
    if not reading.with_diagnoses:
        whole = _without_diagnoses(whole, index, remarks)
    lines: list[Line] = []
    grouped = _grouped(whole)
    for item in whole.held:
        _unread(item.resource, item.kind, remarks)
        reads = READERS.get(item.kind)
        if reads is None:
            continue
        try:
            line = reads(item, whole, remarks)
        except WrongUnit as error:
            raise InputError(
                f"{item.where(where)}: {error}", "Correct the unit (UCUM) in the bundle, or take the resource out."
            ) from None
        # An observation of a report stands in the report.
        if line and item.place not in grouped:
            lines.append(_concluded(line, item, reading, remarks))
    if not lines:
        raise InputError(f"{where}: holds nothing about its patient that can be read", _listed(remarks))
    form: dict[str, list[str]] = {BASIC: [_person(whole.patient, index, lines, remarks)]}
    for line in sorted(lines, key=lambda line: (line.rank, line.date, line.text)):
        form.setdefault(line.section, []).append(_scrubbed(line.text, whole.patient, remarks))
    if any(name in text.casefold() for parts in form.values() for text in parts for name in whole.withheld):
        remarks.append(Remark("warning", "case text", "another resource names a diagnosis that is left out"))
    text, sections = laid_out({name: "\n".join(part for part in parts if part) for name, parts in form.items()})
    return Taken(Case("", text), "FHIR R4 bundle", counted(remarks), sections)


def _index_encounter(whole: Bundle) -> Held | None:
    """The encounter that the case is about: the latest."""
    found = [item for item in whole.held if isinstance(item.resource, Encounter)]
    return max(found, key=lambda item: (_began(item.resource), item.names), default=None)


def _began(resource: Resource) -> str:
    period = resource.period if isinstance(resource, Encounter) else None
    return (period.start or "") if period else ""


def _grouped(whole: Bundle) -> frozenset[int]:
    """Places of the observations that a report which can be read tells of."""
    found = [
        whole.find(result, item.resource)
        for item in whole.held
        if isinstance(item.resource, DiagnosticReport)
        for result in item.resource.result
    ]
    return frozenset(item.place for item in found if item and isinstance(item.resource, Observation))


def _without_diagnoses(whole: Bundle, index: Held | None, remarks: list[Remark]) -> Bundle:
    """The bundle without the conditions that may be the answer; their names are withheld from other lines."""
    kept, withheld = [], set[str]()
    for item in whole.held:
        if isinstance(item.resource, Condition) and _is_diagnosis(item.resource, item.place, whole, index):
            remarks.append(Remark("left out", "Condition", _DIAGNOSIS))
            withheld |= words.told_by(item.resource.code)
            continue
        if isinstance(item.resource, Condition) and not item.resource.category:
            why = "it has no category; it is taken for medical history, not for a diagnosis of this encounter"
            remarks.append(Remark("guessed", "Condition", why))
        kept.append(item)
    return replace(whole, held=tuple(kept), withheld=frozenset(withheld))


def _is_diagnosis(condition: Condition, place: int, whole: Bundle, index: Held | None) -> bool:
    """Whether a condition may be the answer: a diagnosis of the encounter that the case is about, or only suspected."""
    verified = codes([condition.verificationStatus] if condition.verificationStatus else [])
    of = whole.find(condition.encounter, condition) if condition.encounter else None
    earlier = of is not None and index is not None and of.place != index.place
    diagnosed = "encounter-diagnosis" in codes(condition.category) and not earlier
    named = [
        whole.find(entry.condition, index.resource)
        for entry in (index.resource.diagnosis if index and isinstance(index.resource, Encounter) else ())
        if index
    ]
    listed = any(found and found.place == place for found in named)
    return diagnosed or listed or bool(verified & {"provisional", "differential"})


def _concluded(line: Line, item: Held, reading: Reading, remarks: list[Remark]) -> Line:
    """A report's coded conclusion is a diagnosis."""
    if not isinstance(item.resource, DiagnosticReport) or not item.resource.conclusionCode:
        return line
    if not reading.with_diagnoses:
        remarks.append(
            Remark("left out", "DiagnosticReport.conclusionCode", "it may be the answer; --with-diagnoses keeps it")
        )
        return line
    return Line(line.section, line.rank, line.date, f"{line.text}; concluded: {joined(item.resource.conclusionCode)}")


def _unread(resource: Resource, kind: str, remarks: list[Remark]) -> None:
    for field in resource.model_extra or {}:
        if field not in BESIDE and not field.startswith("_"):
            remarks.append(Remark("not understood", f"{kind}.{shown(field)}", "this field is not read"))


def _person(patient: Patient, index: Held | None, lines: Iterable[Line], remarks: list[Remark]) -> str:
    """Sex and age, at the beginning of the encounter or else when the last result came."""
    sex = {"male": "Male", "female": "Female", "other": "Sex: other"}.get(patient.gender or "", "")
    began = _began(index.resource) if index else ""
    day = began or max((line.date for line in lines if line.section in (INITIAL, FURTHER)), default="")
    day = day or max((line.date for line in lines), default="")
    age = ""
    if not patient.birthDate or not day:
        remarks.append(
            Remark("warning", "Patient", "its age is not known: it has no birth date, or nothing else has a date")
        )
    else:
        age = _age(patient.birthDate, day, remarks)
    dead = patient.deceasedBoolean or patient.deceasedDateTime
    if not sex:
        remarks.append(Remark("warning", "Patient", "its sex is not known"))
    told = ", ".join(part for part in (sex, age, "deceased" if dead else "") if part)
    return f"{told}." if told else ""


def _age(born: str, day: str, remarks: list[Remark]) -> str:
    """Years; months below two years, days below two months, where the dates are whole."""
    now = day.partition("T")[0]
    years = int(now[:4]) - int(born[:4])
    if now[: len(born)] < born[: len(now)]:
        remarks.append(Remark("warning", "Patient.birthDate", "it lies after the encounter: no age is told"))
        return ""
    if len(born) < 7 or len(now) < 7:
        return f"about {years} years old" if years < OLDEST else f"{OLDEST} years or older"
    months = 12 * years + int(now[5:7]) - int(born[5:7])
    if len(born) == len(now) == 10:
        months -= int(now[8:]) < int(born[8:])
        if months < 2:
            try:
                days = (date.fromisoformat(now) - date.fromisoformat(born)).days
            except ValueError:  # a day that its month does not have
                return f"{months} months old"
            return f"{days} day{'s' * (days != 1)} old"
    if months < 24:
        return f"{months} months old"
    return f"{months // 12} years old" if months // 12 < OLDEST else f"{OLDEST} years or older"


def _scrubbed(text: str, patient: Patient, remarks: list[Remark]) -> str:
    """The line without what the Patient resource says of who somebody is, wherever a note repeats it."""
    for field, value in _identity(patient):
        clean = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", REMOVED, text)
        if clean != text:
            remarks.append(
                Remark("left out", f"Patient.{field}", "a text of another resource repeats it; it is removed there")
            )
        text = clean
    return text


def _identity(patient: Patient) -> Iterable[tuple[str, str]]:
    """(field, text) of what says who the patient is, the longest text first. A short number may be a result as well."""
    found: list[tuple[str, str]] = [("id", patient.id or "")]
    if patient.birthDate and len(patient.birthDate) == 10:
        found.append(("birthDate", patient.birthDate))
    for field, parts in _WHO:
        items = (patient.model_extra or {}).get(field)
        for item in items if isinstance(items, list) else ():
            values = [item.get(part) for part in parts] if isinstance(item, dict) else []
            texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
            found += [(field, text.strip()) for text in texts if isinstance(text, str)]
    least = {"name": 3}
    fits = [(field, text) for field, text in found if len(text) >= least.get(field, 5)]
    # An id without a number may be a word: `patient`, `example`.
    fits = [(field, text) for field, text in fits if field != "id" or re.search(r"\d", text)]
    return sorted(fits, key=lambda pair: (-len(pair[1]), pair))


def _listed(remarks: Iterable[Remark]) -> str:
    told = [f"{remark.what}: {remark.why}" for remark in counted(remarks)][:3]
    return "; ".join(told) or "Add Condition, Observation, DiagnosticReport or other clinical resources."
