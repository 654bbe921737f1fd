"""FHIR resources as lines of a case text: for each kind, which section it belongs to and how it reads.

It knows one resource at a time and what that refers to. It doesn't know which diagnoses a case may hold, nor the order of
lines.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ddx_local.clinical import fhir_models as models
from ddx_local.clinical import fhir_words as words
from ddx_local.clinical.fhir_bundle import Bundle, Held
from ddx_local.clinical.fhir_words import Remarks, codes, concept, joined, line
from ddx_local.clinical.taken import Remark

R = TypeVar("R", bound=models.Resource)

BASIC, PRESENTATION, EXAMINATION, HISTORY, INITIAL, FURTHER = (
    "basic_information",
    "clinical_presentation",
    "physical_examination",
    "medical_history",
    "initial_test_results",
    "further_diagnostic_tests",
)

_EXAMINED = frozenset(("vital-signs", "exam"))
_FURTHER = frozenset(("GE", "CG", "SP", "PAT", "CP", "LP7839-6", "genetics", "pathology"))
_LIVED = frozenset(("social-history", "activity", "therapy"))
_VITAL = frozenset(
    "8310-5 8867-4 9279-1 85354-9 8480-6 8462-4 2708-6 59408-5 29463-7 8302-2 39156-5 8331-1 8332-9".split()
)
_CLASSES: Mapping[str, str] = {
    "AMB": "ambulatory", "EMER": "emergency", "IMP": "inpatient", "ACUTE": "inpatient, acute", "NONAC": "inpatient",
    "HH": "home health", "OBSENC": "observation", "SS": "short stay", "VR": "virtual", "FLD": "field", "PRENC": "pre-admission",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a case text: its section, a rank among the kinds of the section, a date to sort by, the words."""

    section: str
    rank: int
    date: str
    text: str


def encounter(item: Held, whole: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Encounter)
    kind = _CLASSES.get(resource.class_.code or "", "") if resource.class_ else ""
    kind = kind or (line(resource.class_.display or "") if resource.class_ else "")
    reasons = [concept(reason) for reason in resource.reasonCode if not words.told_by(reason) & whole.withheld]
    if len(reasons) < len(resource.reasonCode):
        remarks.append(Remark("left out", "Encounter.reasonCode", "it is a diagnosis that is left out"))
    for reason in resource.reasonReference:
        found = whole.find(reason, resource)
        # A reason that is a condition is the condition's own line, unless that is a diagnosis.
        if found is None:
            remarks.append(
                Remark("not understood", "Encounter.reasonReference", "what it refers to is not in the bundle")
            )
    told = "; ".join(part for part in (kind, joined(resource.type), words.period(resource.period)) if part)
    why = ", ".join(reason for reason in reasons if reason)
    text = f"Encounter: {told or 'no details'}" + (f"; reason: {why}" if why else "")
    return Line(PRESENTATION, 0, _start(resource.period), _noted(text, resource)) if told or why else None


def condition(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Condition)
    name = concept(resource.code)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say which condition"))
        return None
    refuted = "refuted" in codes([resource.verificationStatus] if resource.verificationStatus else [])
    status = words.status(resource.clinicalStatus)
    onset = words.date(resource.onsetDateTime) or words.period(resource.onsetPeriod) or line(resource.onsetString or "")
    if not onset and resource.onsetAge:
        onset = f"age {words.quantity(resource.onsetAge, remarks, 'Condition.onsetAge')}"
    ended = words.date(resource.abatementDateTime) or line(resource.abatementString or "")
    asides = (
        joined(resource.bodySite),
        concept(resource.severity),
        status,
        f"onset {onset}" if onset else "",
        f"ended {ended}" if ended else "",
    )
    text = f"{'Excluded' if refuted else 'Condition'}: {name}{_aside(asides)}"
    return Line(HISTORY, 0, resource.onsetDateTime or resource.recordedDate or "", _noted(text, resource))


def observation(item: Held, whole: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Observation)
    text = found(resource, remarks)
    for member in resource.hasMember:
        if whole.find(member, resource) is None:
            remarks.append(Remark("not understood", "Observation.hasMember", "what it refers to is not in the bundle"))
    if not text:
        if not resource.hasMember:
            remarks.append(Remark("not understood", item.kind, "it has no value that can be read"))
        return None
    when = _when(resource)
    dated = f"{text} [{words.date(when)}]" if when else text
    kind = codes(resource.category)
    code = words.loinc(resource.code)
    if kind & _EXAMINED or code in _VITAL:
        section = EXAMINATION
    elif kind & _LIVED:
        section = HISTORY
    elif kind & _FURTHER:
        section = FURTHER
    elif kind & {"laboratory", "imaging", "procedure"} or (not kind and resource.valueQuantity):
        section = INITIAL
    else:
        section = PRESENTATION
    return Line(section, 1 if section == HISTORY else 2, when, _noted(dated, resource))


def found(resource: models.Observation, remarks: Remarks) -> str:
    """An observation without its date: name, value, components, where and how; empty where it has no value."""
    value = words.value_of(resource, remarks, "Observation")
    parts = []
    for component in resource.component:
        told = words.value_of(component, remarks, "Observation.component")
        if told:
            parts.append(f"{concept(component.code) or 'unnamed'} {told}")
        else:
            remarks.append(Remark("not understood", "Observation.component", "it has no value that can be read"))
    if not value and not parts:
        return ""
    name = concept(resource.code) or "Unnamed observation"
    aside = _aside((concept(resource.bodySite), concept(resource.method), _unsure(resource)))
    return f"{name}{aside}: {', '.join(part for part in (value, *parts) if part)}"


def report(item: Held, whole: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.DiagnosticReport)
    results = []
    for result in resource.result:
        held = whole.find(result, resource)
        if held is not None and isinstance(held.resource, models.Observation):
            # What cannot be read of it is remarked where it is read by itself.
            told = found(held.resource, [])
            when = _when(held.resource)
            same_day = words.date(when).startswith(words.date(_report_date(resource)) or "none")
            dated = f" [{words.date(when)}]" if when and not same_day else ""
            results += [_noted(f"{told}{dated}", held.resource)] if told else []
        elif held is None:
            remarks.append(
                Remark(
                    "not understood", "DiagnosticReport.result", "what it refers to is not in the bundle, or not read"
                )
            )
    if not results and not (resource.conclusion or "").strip():
        remarks.append(Remark("not understood", item.kind, "it has neither results nor a conclusion that can be read"))
        return None
    section = FURTHER if codes(resource.category) & _FURTHER else INITIAL
    when = _report_date(resource)
    head = concept(resource.code) or "Report"
    told = "; ".join(
        [*results, *([line(resource.conclusion)] if resource.conclusion and resource.conclusion.strip() else [])]
    )
    dated = f" [{words.date(when)}]" if when else ""
    return Line(section, 1, when, _noted(f"{head}{_aside([_unsure(resource)])}{dated}: {told}", resource))


def medicine(item: Held, whole: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Medicine)
    name = concept(resource.medicationCodeableConcept)
    if not name and resource.medicationReference:
        held = whole.find(resource.medicationReference, resource)
        if held is None and not resource.medicationReference.display:
            remarks.append(Remark("not understood", item.kind, "the medication that it refers to is not in the bundle"))
            return None
        medication = held.resource if held else None
        name = concept(medication.code) if isinstance(medication, models.Medication) else ""
        name = name or words.reference(resource.medicationReference)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say which medication"))
        return None
    doses = [_dosage(dosage, remarks, item.kind) for dosage in (*resource.dosage, *resource.dosageInstruction)]
    when = resource.effectiveDateTime or _start(resource.effectivePeriod) or resource.authoredOn or ""
    span = words.period(resource.effectivePeriod) or words.date(when)
    not_so = resource.status == "not-taken" or resource.doNotPerform
    told = ", ".join([name, *(dose for dose in doses if dose)])
    status = "not taken" if not_so else (resource.status or "").replace("-", " ")
    return Line(HISTORY, 3, when, _noted(f"Medication: {told}{_aside((status, span))}", resource))


def _dosage(dosage: models.Dosage, remarks: Remarks, owner: str) -> str:
    if dosage.text and dosage.text.strip():
        return line(dosage.text)
    doses = [words.quantity(dose.doseQuantity, remarks, owner) for dose in dosage.doseAndRate if dose.doseQuantity]
    doses += [words.range_(dose.doseRange, remarks, owner) for dose in dosage.doseAndRate if dose.doseRange]
    parts = (*doses, concept(dosage.route), _timing(dosage), "as needed" if dosage.asNeededBoolean else "")
    return " ".join(part for part in parts if part)


def _timing(dosage: models.Dosage) -> str:
    if dosage.timing is None:
        return ""
    repeat = dosage.timing.repeat
    if concept(dosage.timing.code) or repeat is None or repeat.frequency is None or repeat.period is None:
        return concept(dosage.timing.code)
    each = words.number(repeat.period)
    return f"{repeat.frequency} x every {'' if each == '1' else each + ' '}{repeat.periodUnit or ''}".strip()


def allergy(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.AllergyIntolerance)
    name = concept(resource.code)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say against what"))
        return None
    refuted = "refuted" in codes([resource.verificationStatus] if resource.verificationStatus else [])
    reactions = [
        joined(reaction.manifestation) + (f" ({reaction.severity})" if reaction.severity else "")
        for reaction in resource.reaction
    ]
    told = ", ".join(reaction for reaction in reactions if reaction)
    asides = (
        f"reaction: {told}" if told else "",
        f"criticality {resource.criticality}" if resource.criticality else "",
        words.status(resource.clinicalStatus),
    )
    head = "No allergy" if refuted else (resource.type or "allergy").capitalize()
    return Line(HISTORY, 4, "", _noted(f"{head}: {name}{_aside(asides)}", resource))


def procedure(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Procedure)
    name = concept(resource.code)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say which procedure"))
        return None
    when = resource.performedDateTime or _start(resource.performedPeriod)
    told = (
        words.date(resource.performedDateTime)
        or words.period(resource.performedPeriod)
        or line(resource.performedString or "")
    )
    if not told and resource.performedAge:
        told = f"age {words.quantity(resource.performedAge, remarks, 'Procedure.performedAge')}"
    complication = joined(resource.complication)
    asides = (
        joined(resource.bodySite),
        told,
        concept(resource.outcome),
        f"complication: {complication}" if complication else "",
        "" if resource.status in (None, "completed", "not-done") else str(resource.status),
    )
    head = "Procedure not done" if resource.status == "not-done" else "Procedure"
    return Line(HISTORY, 2, when, _noted(f"{head}: {name}{_aside(asides)}", resource))


def family(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.FamilyMemberHistory)
    who = concept(resource.relationship)
    if not who:
        remarks.append(Remark("not understood", item.kind, "it does not say which relative"))
        return None
    told = []
    for had in resource.condition:
        age = (
            words.quantity(had.onsetAge, remarks, "FamilyMemberHistory")
            if had.onsetAge
            else line(had.onsetString or "")
        )
        asides = (f"onset {age}" if age else "", "contributed to death" if had.contributedToDeath else "")
        told.append(f"{concept(had.code) or 'unnamed condition'}{_aside(asides)}")
    if resource.deceasedAge:
        told.append(f"died at {words.quantity(resource.deceasedAge, remarks, 'FamilyMemberHistory')}")
    elif resource.deceasedBoolean:
        told.append("died")
    text = f"Family history, {who.lower()}: {', '.join(told) or 'no condition recorded'}"
    return Line(HISTORY, 6, "", _noted(text, resource))


def immunization(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.Immunization)
    name = concept(resource.vaccineCode)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say which vaccine"))
        return None
    told = words.date(resource.occurrenceDateTime) or line(resource.occurrenceString or "")
    head = "Immunization not done" if resource.status == "not-done" else "Immunization"
    return Line(HISTORY, 5, resource.occurrenceDateTime or "", _noted(f"{head}: {name}{_aside([told])}", resource))


def request(item: Held, _: Bundle, remarks: Remarks) -> Line | None:
    resource = _as(item, models.ServiceRequest)
    name = concept(resource.code)
    if not name:
        remarks.append(Remark("not understood", item.kind, "it does not say what is requested"))
        return None
    when = resource.authoredOn or resource.occurrenceDateTime or ""
    asides = ((resource.status or "").replace("-", " "), words.date(when))
    head = "Not to be done" if resource.doNotPerform else "Requested"
    if resource.reasonCode:
        remarks.append(Remark("left out", "ServiceRequest.reasonCode", "it may name the diagnosis that was thought of"))
    return Line(FURTHER, 3, when, _noted(f"{head}: {name}{_aside(asides)}", resource))


Reads = Callable[[Held, Bundle, Remarks], Line | None]

READERS: Mapping[str, Reads] = {
    "Encounter": encounter,
    "Condition": condition,
    "Observation": observation,
    "DiagnosticReport": report,
    "MedicationStatement": medicine,
    "MedicationRequest": medicine,
    "Procedure": procedure,
    "AllergyIntolerance": allergy,
    "Immunization": immunization,
    "FamilyMemberHistory": family,
    "ServiceRequest": request,
}
"""Kind of resource -> what puts it into a line. A Medication has none of its own: it is what others refer to."""


def _as(item: Held, kind: type[R]) -> R:
    assert isinstance(item.resource, kind)
    return item.resource


def _aside(parts: Iterable[str]) -> str:
    told = "; ".join(part for part in parts if part)
    return f" ({told})" if told else ""


def _noted(text: str, resource: models.Resource) -> str:
    notes = [line(note.text) for note in resource.note if note.text and note.text.strip()]
    return f"{text}. Note: {' '.join(notes)}" if notes else text


def _unsure(resource: models.Resource) -> str:
    return resource.status if resource.status in ("preliminary", "registered", "partial") else ""


def _start(value: models.Period | None) -> str:
    return (value.start or value.end or "") if value else ""


def _report_date(resource: models.DiagnosticReport) -> str:
    return resource.effectiveDateTime or _start(resource.effectivePeriod) or resource.issued or ""


def _when(resource: models.Observation) -> str:
    return (
        resource.effectiveDateTime
        or _start(resource.effectivePeriod)
        or resource.effectiveInstant
        or resource.issued
        or ""
    )
