"""The subset of FHIR R4 that intake reads, as frozen models. It knows fields and types, not what they mean.

A field that is not here is kept as an extra, so that what is not read can be listed. Numbers keep their digits (`Decimal`).

Source: HL7 FHIR Release 4 (4.0.1), hl7.org/fhir/R4.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Date = Annotated[
    str,
    StringConstraints(
        pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?)?)?$"
    ),
]


class Element(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class Coding(Element):
    system: str | None = None
    code: str | None = None
    display: str | None = None


class Concept(Element):
    coding: tuple[Coding, ...] = ()
    text: str | None = None


class Quantity(Element):
    value: Decimal | None = None
    comparator: str | None = None
    unit: str | None = None
    system: str | None = None
    code: str | None = None


class Range(Element):
    low: Quantity | None = None
    high: Quantity | None = None


class Ratio(Element):
    numerator: Quantity | None = None
    denominator: Quantity | None = None


class Period(Element):
    start: Date | None = None
    end: Date | None = None


class Reference(Element):
    reference: str | None = None
    display: str | None = None


class Annotation(Element):
    text: str | None = None


class ReferenceRange(Element):
    low: Quantity | None = None
    high: Quantity | None = None
    text: str | None = None


class Resource(Element):
    resourceType: str  # noqa: N815  # FHIR's names
    id: str | None = None
    contained: tuple[dict[str, Any], ...] = ()
    status: str | None = None
    subject: Reference | None = None
    patient: Reference | None = None
    encounter: Reference | None = None
    note: tuple[Annotation, ...] = ()


class Patient(Resource):
    gender: str | None = None
    birthDate: Date | None = None  # noqa: N815
    deceasedBoolean: bool | None = None  # noqa: N815
    deceasedDateTime: Date | None = None  # noqa: N815


class EncounterDiagnosis(Element):
    condition: Reference | None = None


class Encounter(Resource):
    class_: Coding | None = Field(None, alias="class")
    type: tuple[Concept, ...] = ()
    period: Period | None = None
    reasonCode: tuple[Concept, ...] = ()  # noqa: N815
    reasonReference: tuple[Reference, ...] = ()  # noqa: N815
    diagnosis: tuple[EncounterDiagnosis, ...] = ()


class Condition(Resource):
    clinicalStatus: Concept | None = None  # noqa: N815
    verificationStatus: Concept | None = None  # noqa: N815
    category: tuple[Concept, ...] = ()
    severity: Concept | None = None
    code: Concept | None = None
    bodySite: tuple[Concept, ...] = ()  # noqa: N815
    onsetDateTime: Date | None = None  # noqa: N815
    onsetAge: Quantity | None = None  # noqa: N815
    onsetString: str | None = None  # noqa: N815
    onsetPeriod: Period | None = None  # noqa: N815
    abatementDateTime: Date | None = None  # noqa: N815
    abatementString: str | None = None  # noqa: N815
    recordedDate: Date | None = None  # noqa: N815


class Valued(Element):
    """What `Observation` and its components have in common."""

    code: Concept | None = None
    valueQuantity: Quantity | None = None  # noqa: N815
    valueCodeableConcept: Concept | None = None  # noqa: N815
    valueString: str | None = None  # noqa: N815
    valueBoolean: bool | None = None  # noqa: N815
    valueInteger: int | None = None  # noqa: N815
    valueRange: Range | None = None  # noqa: N815
    valueRatio: Ratio | None = None  # noqa: N815
    valueTime: str | None = None  # noqa: N815
    valueDateTime: Date | None = None  # noqa: N815
    valuePeriod: Period | None = None  # noqa: N815
    dataAbsentReason: Concept | None = None  # noqa: N815
    interpretation: tuple[Concept, ...] = ()
    referenceRange: tuple[ReferenceRange, ...] = ()  # noqa: N815


class Observation(Valued, Resource):
    category: tuple[Concept, ...] = ()
    effectiveDateTime: Date | None = None  # noqa: N815
    effectivePeriod: Period | None = None  # noqa: N815
    effectiveInstant: Date | None = None  # noqa: N815
    issued: Date | None = None
    bodySite: Concept | None = None  # noqa: N815
    method: Concept | None = None
    component: tuple[Valued, ...] = ()
    hasMember: tuple[Reference, ...] = ()  # noqa: N815


class DiagnosticReport(Resource):
    category: tuple[Concept, ...] = ()
    code: Concept | None = None
    effectiveDateTime: Date | None = None  # noqa: N815
    effectivePeriod: Period | None = None  # noqa: N815
    issued: Date | None = None
    result: tuple[Reference, ...] = ()
    conclusion: str | None = None
    conclusionCode: tuple[Concept, ...] = ()  # noqa: N815


class DoseAndRate(Element):
    doseQuantity: Quantity | None = None  # noqa: N815
    doseRange: Range | None = None  # noqa: N815


class Repeat(Element):
    frequency: int | None = None
    period: Decimal | None = None
    periodUnit: str | None = None  # noqa: N815


class Timing(Element):
    repeat: Repeat | None = None
    code: Concept | None = None


class Dosage(Element):
    timing: Timing | None = None
    text: str | None = None
    route: Concept | None = None
    asNeededBoolean: bool | None = None  # noqa: N815
    doseAndRate: tuple[DoseAndRate, ...] = ()  # noqa: N815


class Medicine(Resource):
    """MedicationStatement and MedicationRequest."""

    medicationCodeableConcept: Concept | None = None  # noqa: N815
    medicationReference: Reference | None = None  # noqa: N815
    effectiveDateTime: Date | None = None  # noqa: N815
    effectivePeriod: Period | None = None  # noqa: N815
    authoredOn: Date | None = None  # noqa: N815
    doNotPerform: bool | None = None  # noqa: N815
    dosage: tuple[Dosage, ...] = ()
    dosageInstruction: tuple[Dosage, ...] = ()  # noqa: N815


class Medication(Resource):
    code: Concept | None = None


class Reaction(Element):
    manifestation: tuple[Concept, ...] = ()
    severity: str | None = None


class AllergyIntolerance(Resource):
    clinicalStatus: Concept | None = None  # noqa: N815
    verificationStatus: Concept | None = None  # noqa: N815
    type: str | None = None
    criticality: str | None = None
    code: Concept | None = None
    reaction: tuple[Reaction, ...] = ()


class Procedure(Resource):
    code: Concept | None = None
    bodySite: tuple[Concept, ...] = ()  # noqa: N815
    performedDateTime: Date | None = None  # noqa: N815
    performedPeriod: Period | None = None  # noqa: N815
    performedString: str | None = None  # noqa: N815
    performedAge: Quantity | None = None  # noqa: N815
    outcome: Concept | None = None
    complication: tuple[Concept, ...] = ()


class FamilyCondition(Element):
    code: Concept | None = None
    onsetAge: Quantity | None = None  # noqa: N815
    onsetString: str | None = None  # noqa: N815
    contributedToDeath: bool | None = None  # noqa: N815


class FamilyMemberHistory(Resource):
    relationship: Concept | None = None
    sex: Concept | None = None
    deceasedBoolean: bool | None = None  # noqa: N815
    deceasedAge: Quantity | None = None  # noqa: N815
    condition: tuple[FamilyCondition, ...] = ()


class Immunization(Resource):
    vaccineCode: Concept | None = None  # noqa: N815
    occurrenceDateTime: Date | None = None  # noqa: N815
    occurrenceString: str | None = None  # noqa: N815


class ServiceRequest(Resource):
    code: Concept | None = None
    authoredOn: Date | None = None  # noqa: N815
    occurrenceDateTime: Date | None = None  # noqa: N815
    doNotPerform: bool | None = None  # noqa: N815
    reasonCode: tuple[Concept, ...] = ()  # noqa: N815


KINDS: Mapping[str, type[Resource]] = {
    "Patient": Patient,
    "Encounter": Encounter,
    "Condition": Condition,
    "Observation": Observation,
    "DiagnosticReport": DiagnosticReport,
    "MedicationStatement": Medicine,
    "MedicationRequest": Medicine,
    "Medication": Medication,
    "AllergyIntolerance": AllergyIntolerance,
    "Procedure": Procedure,
    "FamilyMemberHistory": FamilyMemberHistory,
    "Immunization": Immunization,
    "ServiceRequest": ServiceRequest,
}
"""Kind of resource -> its model."""

ADMINISTRATIVE = frozenset(
    "Practitioner PractitionerRole Organization Location RelatedPerson Coverage Claim ExplanationOfBenefit Account Appointment "
    "Schedule Slot Provenance AuditEvent Device Endpoint HealthcareService Group List Basic Consent".split()
)
"""Kinds that say who, where and for how much, not what the patient has."""

BESIDE = frozenset(
    "meta language text extension identifier performer recorder asserter informationSource requester basedOn partOf "
    "serviceProvider participant location hospitalization lotNumber expirationDate manufacturer site specimen device name telecom "
    "address contact communication generalPractitioner managingOrganization link active photo statusHistory classHistory intent "
    "priority recordedDate dateAsserted dispenseRequest substitution supportingInformation reportOrigin primarySource "
    "instantiatesCanonical instantiatesUri groupIdentifier eventHistory resultsInterpreter maritalStatus multipleBirthBoolean "
    "multipleBirthInteger episodeOfCare appointment account length recorded date category occurrencePeriod".split()
)
"""Fields that say who, where and how it was recorded; that they are not read is not worth a word."""
