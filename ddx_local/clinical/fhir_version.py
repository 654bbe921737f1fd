"""Whether a FHIR resource is Release 4: signs of other releases, each a field or a form that R4 does not have.

R4B counts as R4: what is read here is the same in both.

Source: the version tables of hl7.org/fhir (R5 "R4 differences", R4 "R3 differences", STU3 "R2 differences").
"""

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

_KINDS: Mapping[str, str] = {
    "MedicationOrder": "DSTU2", "DiagnosticOrder": "DSTU2", "Order": "DSTU2", "OrderResponse": "DSTU2", "ProcedureRequest": "STU3",
    "ReferralRequest": "STU3", "DataElement": "STU3", "ActorDefinition": "R5", "GenomicStudy": "R5", "ImagingSelection": "R5",
    "BiologicallyDerivedProductDispense": "R5", "DeviceUsage": "R5", "FormularyItem": "R5", "InventoryReport": "R5",
    "NutritionIntake": "R5", "NutritionProduct": "R5", "Permission": "R5", "Requirements": "R5",
    "SubscriptionTopic": "R5", "TestPlan": "R5", "Transport": "R5", "EncounterHistory": "R5",
}  # fmt: skip

_FIELDS: Mapping[str, str] = {
    "Encounter.actualPeriod": "R5", "Encounter.admission": "R5", "Encounter.subjectStatus": "R5", "Encounter.reason.value": "R5",
    "Encounter.plannedStartDate": "R5", "Encounter.patient": "DSTU2", "Encounter.reason.coding": "STU3", "Condition.participant": "R5",
    "Condition.patient": "DSTU2", "Condition.dateRecorded": "DSTU2", "Condition.assertedDate": "STU3", "Condition.context": "STU3",
    "Observation.triggeredBy": "R5", "Observation.bodyStructure": "R5", "Observation.instantiatesCanonical": "R5",
    "Observation.comments": "DSTU2", "Observation.comment": "STU3", "Observation.context": "STU3", "Observation.related": "STU3",
    "DiagnosticReport.supportingInfo": "R5", "DiagnosticReport.composition": "R5", "DiagnosticReport.conclusionCode.concept": "R5",
    "DiagnosticReport.context": "STU3", "DiagnosticReport.codedDiagnosis": "STU3", "MedicationStatement.medication": "R5",
    "MedicationStatement.adherence": "R5", "MedicationStatement.patient": "DSTU2", "MedicationStatement.taken": "STU3",
    "MedicationStatement.wasNotTaken": "DSTU2", "MedicationRequest.medication": "R5", "MedicationRequest.context": "STU3",
    "MedicationRequest.statusChanged": "R5", "AllergyIntolerance.participant": "R5", "AllergyIntolerance.substance": "DSTU2",
    "AllergyIntolerance.assertedDate": "STU3", "Procedure.occurrenceDateTime": "R5", "Procedure.occurrencePeriod": "R5",
    "Procedure.reportedBoolean": "R5", "Procedure.notDone": "STU3", "Procedure.notPerformed": "DSTU2", "Procedure.context": "STU3",
    "FamilyMemberHistory.participant": "R5", "FamilyMemberHistory.procedure": "R5", "FamilyMemberHistory.gender": "STU3",
    "FamilyMemberHistory.notDone": "STU3", "Immunization.basedOn": "R5", "Immunization.administeredProduct": "R5",
    "Immunization.notGiven": "STU3", "Immunization.wasNotGiven": "DSTU2", "Immunization.date": "STU3",
    "ServiceRequest.code.concept": "R5", "ServiceRequest.reason": "R5", "ServiceRequest.bodyStructure": "R5", "Bundle.issues": "R5",
    "Patient.animal": "STU3",
}  # fmt: skip

# Field -> (the form that it has in R4, release of the other form).
_FORMS: Mapping[str, tuple[type, str]] = {
    "Encounter.class": (dict, "R5"), "Condition.clinicalStatus": (dict, "STU3"), "Condition.verificationStatus": (dict, "STU3"),
    "Condition.category": (list, "DSTU2"), "AllergyIntolerance.type": (str, "R5"), "AllergyIntolerance.clinicalStatus": (dict, "STU3"),
    "AllergyIntolerance.verificationStatus": (dict, "STU3"), "Observation.category": (list, "DSTU2"),
    "Observation.interpretation": (list, "STU3"),
    "DiagnosticReport.category": (list, "STU3"),
}  # fmt: skip

_NUMBERS: Mapping[str, str] = {"5": "R5", "6": "R6", "3": "STU3", "1": "DSTU2", "0": "DSTU1"}


def other_release(resource: Json) -> tuple[str, str] | None:
    """The release that a resource is, and the sign of it; None where it may be R4.

    `Encounter.class` of a string is DSTU2; a list of it is R5.
    """
    kind = str(resource.get("resourceType", ""))
    if kind in _KINDS:
        return _KINDS[kind], f"resource {kind}"
    version = resource.get("fhirVersion")
    if isinstance(version, str) and version and version[0] != "4":
        return _NUMBERS.get(version[0], "another release"), f"{kind}.fhirVersion"
    for field, release in _FIELDS.items():
        owner, *path = field.split(".")
        if owner == kind and _has(resource, path):
            return release, field
    for field, (form, release) in _FORMS.items():
        owner, _, name = field.partition(".")
        value = resource.get(name) if owner == kind else None
        if value is not None and not isinstance(value, form):
            return ("DSTU2" if field == "Encounter.class" and isinstance(value, str) else release), field
    return None


def _has(value: Any, path: list[str]) -> bool:
    if not path:
        return True
    if isinstance(value, list):
        return any(_has(item, path) for item in value)
    return isinstance(value, dict) and path[0] in value and _has(value[path[0]], path[1:])
