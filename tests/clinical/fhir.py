"""FHIR R4 resources of nobody: small builders, so that a test shows only what it is about. Every value is made up."""

from typing import Any

Json = dict[str, Any]

UCUM = "http://unitsofmeasure.org"
LOINC = "http://loinc.org"
CATEGORY = "http://terminology.hl7.org/CodeSystem/observation-category"
NAME, STREET, PHONE, NUMBER, BORN = "Zebulon Quillfeather", "7 Nowhere Lane", "555-0199", "MRN-4711", "1970-05-17"


def bundle(*resources: Json, kind: str = "collection", **fields: Any) -> Json:
    return {"resourceType": "Bundle", "type": kind, "entry": [{"resource": item} for item in resources], **fields}


def patient(**fields: Any) -> Json:
    given, family = NAME.split()
    return {
        "resourceType": "Patient",
        "id": "p1",
        "gender": "female",
        "birthDate": BORN,
        "name": [{"given": [given], "family": family, "text": NAME}],
        "address": [{"line": [STREET], "city": "Nowhere", "postalCode": "99999"}],
        "telecom": [{"system": "phone", "value": PHONE}],
        "identifier": [{"value": NUMBER}],
        **fields,
    }


def of_patient(kind: str, number: str, **fields: Any) -> Json:
    return {"resourceType": kind, "id": number, "subject": {"reference": "Patient/p1"}, **fields}


def concept(text: str = "", code: str = "", system: str = "http://snomed.info/sct") -> Json:
    found: Json = {"text": text} if text else {}
    return found | ({"coding": [{"system": system, "code": code}]} if code else {})


def quantity(value: Any, unit: str | None = None, code: str | None = None) -> Json:
    found: Json = {"value": value}
    if unit is not None:
        found["unit"] = unit
    if code is not None:
        found |= {"system": UCUM, "code": code}
    return found


def encounter(number: str = "e1", start: str = "2024-03-02T08:15:00Z", **fields: Any) -> Json:
    base = {"status": "finished", "class": {"code": "EMER"}, "period": {"start": start}}
    return of_patient("Encounter", number, **base | fields)


def condition(number: str, name: str, category: str | None = "problem-list-item", **fields: Any) -> Json:
    kinds = {"category": [concept(code=category)]} if category else {}
    return of_patient("Condition", number, code=concept(name), **kinds | fields)


def observation(number: str, name: str, value: Json | None = None, category: str = "laboratory", **fields: Any) -> Json:
    base: Json = {
        "status": "final",
        "category": [concept(code=category, system=CATEGORY)],
        "code": concept(name),
        "effectiveDateTime": "2024-03-02T09:30:00Z",
    }
    return of_patient("Observation", number, **base | ({"valueQuantity": value} if value else {}) | fields)


def vital(number: str, name: str, loinc: str, value: Json, **fields: Any) -> Json:
    return observation(number, name, value, "vital-signs", **{"code": concept(name, loinc, LOINC)} | fields)


def report(number: str, name: str, category: str = "LAB", **fields: Any) -> Json:
    base = {"status": "final", "category": [concept(code=category)], "code": concept(name)}
    return of_patient("DiagnosticReport", number, **base | {"effectiveDateTime": "2024-03-02"} | fields)


def whole() -> Json:
    """One bundle with every kind that is read."""
    blood_pressure = vital("bp", "Blood pressure", "85354-9", quantity(0)) | {
        "component": [
            {"code": concept("systolic", "8480-6", LOINC), "valueQuantity": quantity(142, "mmHg", "mm[Hg]")},
            {"code": concept("diastolic", "8462-4", LOINC), "valueQuantity": quantity(91, "mmHg", "mm[Hg]")},
        ]
    }
    del blood_pressure["valueQuantity"]
    return bundle(
        patient(),
        encounter(reasonCode=[concept("fever and cough")]),
        condition("c1", "Hypertension", onsetDateTime="2015", clinicalStatus=concept("Active")),
        condition("c2", "Pneumonia", "encounter-diagnosis", encounter={"reference": "Encounter/e1"}),
        vital("t", "Body temperature", "8310-5", quantity(38.9, "°C", "Cel")),
        blood_pressure,
        observation(
            "hb",
            "Hemoglobin",
            quantity(9.1, "g/dL", "g/dL"),
            interpretation=[concept(code="L")],
            referenceRange=[{"low": quantity(12, "g/dL", "g/dL"), "high": quantity(16, "g/dL", "g/dL")}],
        ),
        observation("wbc", "Leukocytes", quantity(16.2, "10*3/uL", "10*3/uL")),
        observation("s", "Tobacco use", category="social-history", valueCodeableConcept=concept("former smoker")),
        report("r1", "Blood count", result=[{"reference": "Observation/wbc"}]),
        report("r2", "Chest radiograph", "RAD", conclusion="Opacity of the right lower lobe."),
        report("r3", "Skin biopsy", "SP", conclusion="No malignant cells.", conclusionCode=[concept("Eczema")]),
        of_patient(
            "MedicationStatement",
            "m1",
            status="active",
            medicationCodeableConcept=concept("Metformin"),
            dosage=[{"doseAndRate": [{"doseQuantity": quantity(500, "mg", "mg")}], "route": concept("oral")}],
        ),
        of_patient(
            "MedicationRequest",
            "m2",
            status="active",
            intent="order",
            medicationReference={"reference": "Medication/d1"},
        ),
        {"resourceType": "Medication", "id": "d1", "code": concept("Lisinopril 10 mg")},
        {
            "resourceType": "AllergyIntolerance",
            "id": "a1",
            "patient": {"reference": "Patient/p1"},
            "code": concept("Penicillin"),
            "reaction": [{"manifestation": [concept("rash")], "severity": "moderate"}],
        },
        of_patient("Procedure", "o1", status="completed", code=concept("Appendectomy"), performedDateTime="1999"),
        {
            "resourceType": "FamilyMemberHistory",
            "id": "f1",
            "status": "completed",
            "patient": {"reference": "Patient/p1"},
            "name": "Old Quillfeather",
            "relationship": concept("Father"),
            "condition": [{"code": concept("myocardial infarction"), "onsetAge": quantity(54, "years", "a")}],
        },
        {
            "resourceType": "Immunization",
            "id": "i1",
            "status": "completed",
            "patient": {"reference": "Patient/p1"},
            "vaccineCode": concept("Influenza"),
            "occurrenceDateTime": "2023-10-01",
        },
        of_patient(
            "ServiceRequest",
            "q1",
            status="active",
            intent="order",
            code=concept("CT of the chest"),
            authoredOn="2024-03-02",
        ),
    )
