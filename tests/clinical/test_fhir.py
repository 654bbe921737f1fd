"""FHIR R4 bundles as case texts: what is said and how, what is listed instead, what is refused, who stays unnamed."""

import copy
import json
import random
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.clinical.fhir import OLDEST, from_bundle
from ddx_local.clinical.sections import NAMES, check, split
from ddx_local.clinical.taken import Reading, Taken
from ddx_local.errors import InputError
from tests.clinical.fhir import (
    BORN,
    LOINC,
    NAME,
    NUMBER,
    PHONE,
    STREET,
    Json,
    bundle,
    concept,
    condition,
    encounter,
    observation,
    of_patient,
    patient,
    quantity,
    report,
    vital,
    whole,
)

CANARY = "Zanthoxylum"


def take(data: Json, *, with_diagnoses: bool = False) -> Taken:
    return from_bundle(json.loads(json.dumps(data), parse_float=Decimal), "a.json", Reading({}, with_diagnoses))


def lines(*resources: Json, **options: Any) -> list[str]:
    """The case text's lines without headings, the patient's own and blank ones."""
    text = take(bundle(patient(), *resources), **options).case.text
    return [
        line for line in text.splitlines() if line and not line.endswith(":") and not re.match(r"(?:Fem|M)ale", line)
    ]


def remarks(*resources: Json) -> list[str]:
    return [str(remark) for remark in take(bundle(patient(), condition("c", "Gout"), *resources)).remarks]


def refused(data: Json) -> InputError:
    with pytest.raises(InputError) as caught:
        take(data)
    assert caught.value.hint
    assert CANARY not in caught.value.message + caught.value.hint
    assert caught.value.message.startswith("a.json")
    return caught.value


# --- the whole of it ----------------------------------------------------------------------------------------------------

TEXT = """\
Basic information:
Female, 53 years old.

Clinical presentation:
Encounter: emergency; since 2024-03-02 08:15; reason: fever and cough

Physical examination:
Blood pressure: systolic 142 mmHg, diastolic 91 mmHg [2024-03-02 09:30]
Body temperature: 38.9 °C [2024-03-02 09:30]

Medical history:
Condition: Hypertension (active; onset 2015)
Tobacco use: former smoker [2024-03-02 09:30]
Procedure: Appendectomy (1999)
Medication: Lisinopril 10 mg (active)
Medication: Metformin, 500 mg oral (active)
Allergy: Penicillin (reaction: rash (moderate))
Immunization: Influenza (2023-10-01)
Family history, father: myocardial infarction (onset 54 years)

Initial test results:
Blood count [2024-03-02]: Leukocytes: 16.2 10*3/uL
Chest radiograph [2024-03-02]: Opacity of the right lower lobe.
Hemoglobin: 9.1 g/dL (low; reference 12-16 g/dL) [2024-03-02 09:30]

Further diagnostic tests:
Skin biopsy [2024-03-02]: No malignant cells.
Requested: CT of the chest (active; 2024-03-02)
"""


def test_every_kind_that_is_read_becomes_lines_of_the_six_sections() -> None:
    taken = take(whole())
    assert taken.case.text == TEXT
    assert taken.form == "FHIR R4 bundle"
    assert taken.case.id == ""


def test_its_sections_are_its_own_and_are_found_again() -> None:
    taken = take(whole())
    assert taken.sections is not None
    assert check(taken.case.text, taken.sections) == ()
    assert [part.name for part in taken.sections] == list(NAMES)
    assert [(part.name, part.start) for part in split(taken.case.text)] == [
        (part.name, part.start) for part in taken.sections
    ]


@given(st.integers())
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_entries_changes_nothing(seed: int) -> None:
    data = whole()
    random.Random(seed).shuffle(data["entry"])
    assert take(data).case.text == TEXT
    assert take(data).remarks == take(whole()).remarks


def test_what_the_diagnosis_is_comes_only_where_it_is_asked_for() -> None:
    taken = take(whole())
    assert "Pneumonia" not in taken.case.text
    assert "Eczema" not in taken.case.text
    assert [(remark.kind, remark.what) for remark in taken.remarks] == [
        ("left out", "Condition"),
        ("left out", "DiagnosticReport.conclusionCode"),
    ]
    assert all("--with-diagnoses" in remark.why for remark in taken.remarks)
    kept = take(whole(), with_diagnoses=True)
    assert "Condition: Pneumonia" in kept.case.text
    assert "No malignant cells.; concluded: Eczema" in kept.case.text
    assert kept.remarks == ()


@pytest.mark.parametrize(
    ("resources", "there"),
    [
        ([encounter(), condition("x", "Gout", "encounter-diagnosis")], False),
        ([condition("x", "Gout", "encounter-diagnosis")], False),
        ([encounter(), condition("x", "Gout", None, verificationStatus=concept(code="provisional"))], False),
        ([encounter(), condition("x", "Gout", "problem-list-item", verificationStatus=concept(code="differential"))], False),
        ([encounter(diagnosis=[{"condition": {"reference": "Condition/x"}}]), condition("x", "Gout", None)], False),
        ([encounter(diagnosis=[{"condition": {"reference": "Condition/x"}}]), condition("x", "Gout")], False),
        ([encounter(), condition("x", "Gout", None)], True),
        ([encounter(), condition("x", "Gout", "encounter-diagnosis", encounter={"reference": "Encounter/e0"}),
          encounter("e0", "2019-01-01")], True),
        ([encounter(), condition("x", "Gout", verificationStatus=concept(code="refuted"))], True),
    ],
)  # fmt: skip
def test_a_condition_that_may_be_the_answer_is_left_out_and_said(resources: list[Json], there: bool) -> None:
    taken = take(bundle(patient(), observation("o", "Urate", quantity(9, "mg/dL", "mg/dL")), *resources))
    assert ("Gout" in taken.case.text) == there
    assert any(remark.kind == "left out" and remark.what == "Condition" for remark in taken.remarks) != there
    assert "Gout" in take(bundle(patient(), *resources), with_diagnoses=True).case.text


def test_a_diagnosis_that_is_left_out_does_not_come_in_as_the_reason_of_the_visit() -> None:
    pneumonia = concept("Pneumonia of the lung", "233604007")
    items = (
        encounter(reasonCode=[concept(code="233604007"), concept("pneumonia  of the lung"), concept("fever")]),
        condition("x", "", "encounter-diagnosis") | {"code": pneumonia},
    )
    taken = take(bundle(patient(), *items))
    assert "reason: fever" in taken.case.text
    assert "neumonia" not in taken.case.text
    assert "233604007" not in taken.case.text
    assert ("left out", "Encounter.reasonCode") in [(remark.kind, remark.what) for remark in taken.remarks]
    assert (
        "reason: SNOMED CT 233604007, pneumonia of the lung, fever"
        in take(bundle(patient(), *items), with_diagnoses=True).case.text
    )


def test_a_diagnosis_that_another_text_still_names_is_warned_of() -> None:
    film = report("r", "Film", "RAD", conclusion="Findings of pneumonia.")
    taken = take(bundle(patient(), encounter(), condition("x", "Pneumonia", "encounter-diagnosis"), film))
    assert "Findings of pneumonia." in taken.case.text
    assert [remark.what for remark in taken.remarks if remark.kind == "warning"] == ["case text"]


def test_a_short_number_of_the_patient_removes_no_result() -> None:
    who = patient(id="fever", identifier=[{"value": "142"}])
    data = bundle(
        who, observation("o", "fever score", quantity(142, "mg")) | {"subject": {"reference": "Patient/fever"}}
    )
    assert "fever score: 142 mg" in take(data).case.text


def test_a_refuted_condition_is_said_to_be_excluded() -> None:
    assert lines(condition("x", "Gout", verificationStatus=concept(code="refuted"))) == ["Excluded: Gout"]


# --- who it is ----------------------------------------------------------------------------------------------------------


def test_nothing_of_who_the_patient_is_becomes_text_not_even_from_a_note() -> None:
    note = f"{NAME} of {STREET}, phone {PHONE}, {NUMBER}, born {BORN}, was seen with Mrs. Quillfeather."
    taken = take(bundle(patient(), observation("o", "Urate", quantity(9, "mg/dL", "mg/dL"), note=[{"text": note}])))
    for part in (*NAME.split(), STREET, PHONE, NUMBER, BORN, "99999"):
        assert part not in taken.case.text
    assert "was seen with Mrs. [removed]" in taken.case.text
    assert {remark.what for remark in taken.remarks if remark.kind == "left out"} >= {
        "Patient.name",
        "Patient.birthDate",
    }


def test_the_name_of_a_relative_does_not_become_text() -> None:
    assert "Quillfeather" not in take(whole()).case.text


@pytest.mark.parametrize(
    ("born", "day", "told"),
    [
        ("1970-05-17", "2024-05-16", "Female, 53 years old."),
        ("1970-05-17", "2024-05-17", "Female, 54 years old."),
        ("1970-05", "2024-05-17", "Female, 54 years old."),
        ("1970", "2024-05-17", "Female, about 54 years old."),
        ("1970-05-17", "2024", "Female, about 54 years old."),
        ("2022-05-18", "2024-05-17", "Female, 23 months old."),
        ("2024-05-16", "2024-05-17", "Female, 1 day old."),
        ("2024-05-17", "2024-05-17", "Female, 0 days old."),
        ("2024-02-30", "2024-03-17", "Female, 0 months old."),
        ("1930-05-17", "2024-05-17", f"Female, {OLDEST} years or older."),
        ("1930", "2024-05-17", f"Female, {OLDEST} years or older."),
        ("2024-05-18", "2024-05-17", "Female."),
    ],
)
def test_the_age_is_that_at_the_encounter_and_never_a_date(born: str, day: str, told: str) -> None:
    text = take(bundle(patient(birthDate=born), encounter(start=day), condition("c", "Gout"))).case.text
    assert text.startswith(f"Basic information:\n{told}\n")


def test_without_an_encounter_the_last_result_says_when_it_is() -> None:
    old = observation("a", "Urate", quantity(9, "mg/dL", "mg/dL"), effectiveDateTime="2000-01-01")
    new = observation("b", "Urate", quantity(8, "mg/dL", "mg/dL"), effectiveDateTime="2020-01-01")
    assert take(bundle(patient(), old, new)).case.text.startswith("Basic information:\nFemale, 49 years old.")


def test_an_unknown_age_or_sex_is_said() -> None:
    taken = take(bundle(patient(birthDate=None, gender="unknown"), condition("c", "Gout")))
    assert taken.case.text.startswith("Medical history:")
    assert [remark.why for remark in taken.remarks if remark.what == "Patient"] == [
        "its age is not known: it has no birth date, or nothing else has a date",
        "its sex is not known",
    ]


def test_a_dead_patient_is_said_to_be_dead() -> None:
    taken = take(bundle(patient(deceasedBoolean=True), encounter(), condition("c", "Gout")))
    assert "Female, 53 years old, deceased." in taken.case.text


# --- values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"valueQuantity": quantity(7.40, "pH", "[pH]")}, "7.4 pH"),
        ({"valueQuantity": quantity(120, None, "mm[Hg]")}, "120 mmHg"),
        ({"valueQuantity": quantity(37.5, None, "Cel")}, "37.5 °C"),
        ({"valueQuantity": quantity(97, "%", "%")}, "97%"),
        ({"valueQuantity": quantity(1.1, "1", "1")}, "1.1"),
        ({"valueQuantity": quantity(5, "mg/dL") | {"comparator": "<"}}, "<5 mg/dL"),
        ({"valueQuantity": quantity(5)}, "5 (unit not given)"),
        ({"valueQuantity": quantity(1e-7, "mol/L", "mol/L")}, "0.0000001 mol/L"),
        ({"valueCodeableConcept": concept("Positive")}, "Positive"),
        ({"valueCodeableConcept": concept(code="123")}, "SNOMED CT 123"),
        ({"valueString": "two\n lines"}, "two lines"),
        ({"valueBoolean": False}, "no"),
        ({"valueInteger": 0}, "0"),
        ({"valueRange": {"low": quantity(1, "mL"), "high": quantity(2, "mL")}}, "1 mL to 2 mL"),
        ({"valueRange": {"high": quantity(2, "mL")}}, "at most 2 mL"),
        ({"valueRatio": {"numerator": quantity(1), "denominator": quantity(128)}}, "1:128"),
        ({"valueRatio": {"numerator": quantity(1, "mg"), "denominator": quantity(2, "mL")}}, "1 mg / 2 mL"),
        ({"valueDateTime": "2024-03-01"}, "2024-03-01"),
        ({"valuePeriod": {"start": "2024-03-01"}}, "since 2024-03-01"),
        ({"dataAbsentReason": concept("hemolyzed")}, "not available (hemolyzed)"),
        ({"valueQuantity": quantity(5, "mg/dL"), "interpretation": [concept(code="HH")]}, "5 mg/dL (critically high)"),
        ({"valueQuantity": quantity(5, "mg/dL"), "referenceRange": [{"high": quantity(4, "mg/dL")}]},
         "5 mg/dL (reference <= 4 mg/dL)"),
        ({"valueQuantity": quantity(5, "mg/dL"), "referenceRange": [{"text": "below 4"}]}, "5 mg/dL (reference below 4)"),
        ({"valueQuantity": quantity(5, "mg/dL"), "referenceRange": [{"low": quantity(3, "g/L"), "high": quantity(9, "mg/L")}]},
         "5 mg/dL (reference 3 g/L to 9 mg/L)"),
        ({"valueQuantity": quantity(5, "mg/dL"), "referenceRange": [{"low": quantity(3, "mg/L"), "high": quantity(9, "mg/L")}]},
         "5 mg/dL (reference 3-9 mg/L)"),
    ],
)  # fmt: skip
def test_a_value_is_told_with_its_unit_and_what_was_made_of_it(fields: Json, told: str) -> None:
    assert lines(observation("o", "Thing", effectiveDateTime=None, **fields)) == [f"Thing: {told}"]


@pytest.mark.parametrize(
    ("coded", "told"),
    [
        ({"code": "active"}, "active"),
        ({"code": "active", "system": "http://terminology.hl7.org/CodeSystem/condition-clinical"}, "active"),
        ({"code": "in-remission", "display": "Remission"}, "remission"),
    ],
)
def test_a_status_is_told_as_a_word_though_its_code_has_no_display(coded: Json, told: str) -> None:
    assert lines(condition("c", "Gout", clinicalStatus={"coding": [coded]})) == [f"Condition: Gout ({told})"]


def test_a_code_of_hl7_s_own_is_a_word_and_one_of_an_unknown_system_is_not() -> None:
    own = {"system": "http://terminology.hl7.org/CodeSystem/made-up", "code": "very-severe"}
    other = {"system": "http://nowhere.example", "code": "very-severe"}
    assert lines(condition("c", "Gout", severity={"coding": [own]})) == ["Condition: Gout (very severe)"]
    assert lines(condition("c", "Gout", severity={"coding": [other]})) == ["Condition: Gout (code very-severe)"]


def test_the_digits_of_a_number_stay() -> None:
    data = json.dumps(bundle(patient(), observation("o", "Thing", quantity(0, "mg")))).replace(
        '"value": 0', '"value": 7.400'
    )
    text = from_bundle(json.loads(data, parse_float=Decimal), "a.json", Reading()).case.text
    assert "Thing: 7.400 mg" in text


def test_where_how_and_how_sure_an_observation_was_is_told() -> None:
    item = observation(
        "o", "Swelling", category="exam", valueBoolean=True, bodySite=concept("left knee"), method=concept("by eye"),
        status="preliminary", note=[{"text": "since Monday"}], effectiveDateTime="2024-03-02",
    )  # fmt: skip
    assert lines(item) == ["Swelling (left knee; by eye; preliminary): yes [2024-03-02]. Note: since Monday"]


@pytest.mark.parametrize(
    ("item", "section"),
    [
        (observation("o", "Gait", category="exam", valueString="slow"), "Physical examination"),
        (vital("o", "Weight", "29463-7", quantity(70, "kg", "kg")) | {"category": []}, "Physical examination"),
        (observation("o", "Alcohol", category="social-history", valueString="none"), "Medical history"),
        (observation("o", "Cough", category="survey", valueBoolean=True), "Clinical presentation"),
        (observation("o", "Urate", quantity(9, "mg/dL")), "Initial test results"),
        (observation("o", "Urate", quantity(9, "mg/dL"), category="other"), "Clinical presentation"),
        (observation("o", "Gene", category="GE", valueString="none"), "Further diagnostic tests"),
        (report("r", "Film", "RAD", conclusion="clear"), "Initial test results"),
        (report("r", "Slide", "PAT", conclusion="clear"), "Further diagnostic tests"),
    ],
)
def test_the_category_says_which_section_a_finding_belongs_to(item: Json, section: str) -> None:
    text = take(bundle(patient(birthDate=None, gender=None), item)).case.text
    assert text.startswith(f"{section}:\n")


def test_what_was_not_done_or_not_taken_is_said_so() -> None:
    found = lines(
        of_patient("Procedure", "o1", status="not-done", code=concept("Biopsy")),
        of_patient("MedicationStatement", "m1", status="not-taken", medicationCodeableConcept=concept("Aspirin")),
        of_patient("ServiceRequest", "q1", status="active", doNotPerform=True, code=concept("Scan")),
        {"resourceType": "Immunization", "status": "not-done", "patient": {"reference": "Patient/p1"}, "vaccineCode": concept("BCG")},
        {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p1"}, "code": concept("Latex"),
         "verificationStatus": concept(code="refuted")},
    )  # fmt: skip
    assert found == [
        "Procedure not done: Biopsy",
        "Medication: Aspirin (not taken)",
        "No allergy: Latex",
        "Immunization not done: BCG",
        "Not to be done: Scan (active)",
    ]


@pytest.mark.parametrize(
    ("dosage", "told"),
    [
        ({"text": "one in the morning", "route": concept("oral")}, "one in the morning"),
        ({"doseAndRate": [{"doseQuantity": quantity(5, "mg")}], "asNeededBoolean": True}, "5 mg as needed"),
        ({"timing": {"repeat": {"frequency": 2, "period": 1, "periodUnit": "d"}}}, "2 x every d"),
        (
            {"timing": {"code": concept("BID")}, "doseAndRate": [{"doseRange": {"low": quantity(1, "mg")}}]},
            "at least 1 mg BID",
        ),
    ],
)
def test_a_dose_is_told_as_it_was_given(dosage: Json, told: str) -> None:
    item = of_patient(
        "MedicationRequest",
        "m",
        intent="order",
        medicationCodeableConcept=concept("Aspirin"),
        dosageInstruction=[dosage],
    )
    assert lines(item) == [f"Medication: Aspirin, {told}"]


def test_a_contained_medication_and_one_by_url_are_found() -> None:
    inside = of_patient(
        "MedicationStatement", "m1", contained=[{"resourceType": "Medication", "id": "k", "code": concept("Aspirin")}],
        medicationReference={"reference": "#k"},
    )  # fmt: skip
    data = bundle(
        patient(), inside, of_patient("MedicationStatement", "m2", medicationReference={"reference": "urn:uuid:7"})
    )
    data["entry"].append(
        {"fullUrl": "urn:uuid:7", "resource": {"resourceType": "Medication", "code": concept("Digoxin")}}
    )
    assert "Medication: Aspirin\nMedication: Digoxin" in take(data).case.text


@pytest.mark.parametrize(
    "name", ["Patient/p1", "https://example.org/fhir/Patient/p1", "Patient/p1/_history/3", "urn:uuid:1"]
)
def test_the_patient_is_known_by_every_form_of_reference(name: str) -> None:
    data = bundle(patient(), condition("c", "Gout", subject={"reference": name}))
    data["entry"][0]["fullUrl"] = "urn:uuid:1" if name.startswith("urn") else "https://example.org/fhir/Patient/p1"
    assert "Gout" in take(data).case.text


# --- what is listed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "remark"),
    [
        ({"resourceType": "Questionnaire"}, "not understood: Questionnaire: this kind of resource is not read"),
        ({"resourceType": "Practitioner"}, "left out: Practitioner: it says who, where or for how much"),
        (condition("x", "Gout", modifierExtension=[{"url": "u"}]), "not understood: Condition: a modifier that is not known"),
        (condition("x", "Gout", implicitRules="u"), "not understood: Condition: a modifier that is not known"),
        (observation("x", "Urate", quantity(9, "mg"), status="entered-in-error"), "left out: Observation: its status is"),
        (condition("x", "Gout", verificationStatus=concept(code="entered-in-error")), "left out: Condition: its status is"),
        (observation("x", "Urate"), "not understood: Observation: it has no value that can be read"),
        (observation("x", "Urate", valueSampledData={}), "not understood: Observation.valueSampledData: this field is not read"),
        (observation("x", "Urate", quantity("much", "mg")),
         "not understood: Observation: `valueQuantity.value` does not have the form"),
        (observation("x", "Urate", quantity(1, "mg"), effectiveDateTime="2.3.2024"),
         "not understood: Observation: `effectiveDateTime` does not have the form"),
        (observation("x", "Urate", component=[{"code": concept("a")}]), "not understood: Observation.component: it has no value"),
        (observation("x", "Panel", hasMember=[{"reference": "Observation/9"}]),
         "not understood: Observation.hasMember: what it refers to is not in the bundle"),
        (condition("x", ""), "not understood: Condition: it does not say which condition"),
        (of_patient("MedicationStatement", "m"), "not understood: MedicationStatement: it does not say which medication"),
        (of_patient("MedicationStatement", "m", medicationReference={"reference": "Medication/9"}),
         "not understood: MedicationStatement: the medication that it refers to is not in the bundle"),
        (report("r", "Film"), "not understood: DiagnosticReport: it has neither results nor a conclusion"),
        (report("r", "Film", result=[{"reference": "Observation/9"}], conclusion="clear"),
         "not understood: DiagnosticReport.result: what it refers to is not in the bundle, or not read"),
        (report("r", "Film", presentedForm=[{}], conclusion="clear"),
         "not understood: DiagnosticReport.presentedForm: this field is not read"),
        (encounter(reasonReference=[{"reference": "Condition/9"}]),
         "not understood: Encounter.reasonReference: what it refers to is not in the bundle"),
        (of_patient("ServiceRequest", "q", code=concept("Scan"), reasonCode=[concept("Gout")]),
         "left out: ServiceRequest.reasonCode: it may name the diagnosis that was thought of"),
        (observation("x", "Urate", quantity(9)), "warning: a quantity of Observation: it has no unit; the case text says so"),
        (observation("x", "Urate", quantity(9, None, "mgs/dl")), "warning: a unit of Observation: its UCUM code is not known here"),
        ({"resourceType": "FamilyMemberHistory", "patient": {"reference": "Patient/p1"}},
         "not understood: FamilyMemberHistory: it does not say which relative"),
        ({"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p1"}},
         "not understood: AllergyIntolerance: it does not say against what"),
        (of_patient("Procedure", "o"), "not understood: Procedure: it does not say which procedure"),
        (of_patient("ServiceRequest", "q"), "not understood: ServiceRequest: it does not say what is requested"),
        ({"resourceType": "Immunization", "patient": {"reference": "Patient/p1"}},
         "not understood: Immunization: it does not say which vaccine"),
        ({"no": "resource"}, "not understood: Bundle.entry: it holds no resource"),
        (condition("x", "Gout", None), "guessed: Condition: it has no category"),
        (vital("t", "x", "8310-5", quantity(38, "warm degrees")), "warning: a unit of Observation: it is not known here, and not"),
        (condition("x", "Gout", subject={"display": "somebody"}), "guessed: Condition: its subject is no reference"),
    ],
)  # fmt: skip
def test_what_does_not_become_text_is_listed_with_its_kind_and_why(item: Json, remark: str) -> None:
    assert any(line.startswith(remark) for line in remarks(item)), remarks(item)


def test_what_is_listed_is_counted() -> None:
    assert "not understood: Questionnaire (3 times): this kind of resource is not read" in remarks(
        *[{"resourceType": "Questionnaire"}] * 3
    )


def test_one_page_of_several_is_said_to_be_one() -> None:
    data = bundle(patient(), condition("c", "Gout"), kind="searchset", link=[{"relation": "next", "url": "u"}])
    assert any("one page of several" in remark.why for remark in take(data).remarks)


def test_an_observation_of_a_device_is_not_the_patient_s() -> None:
    device = {"resourceType": "Device", "id": "d"}
    item = observation("o", "Battery", quantity(3, "V"), subject={"reference": "Device/d"})
    assert "left out: Observation: it is not about the patient" in remarks(device, item)


# --- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (patient(), "a.json: is a FHIR Patient, not a Bundle"),
        (bundle(condition("c", CANARY)), "a.json: holds no Patient"),
        (bundle(), "a.json: holds no Patient"),
        (bundle(patient(), patient(id="p2"), condition("c", CANARY)), "a.json: holds 2 patients; a case is one"),
        (bundle(patient(id=None), patient(id=None)), "a.json: holds 2 patients"),
        (bundle(patient()), "a.json: holds nothing about its patient that can be read"),
        (bundle(patient(), {"resourceType": "Questionnaire"}), "a.json: holds nothing about its patient"),
        (bundle(patient(), condition("c", "Gout", subject={"reference": "Patient/p2"})),
         "a.json, entry 2 (Condition): its subject is not in the bundle"),
        (bundle(patient(), {"resourceType": "Immunization", "patient": {"reference": "Patient/p2"}}),
         "a.json, entry 2 (Immunization): its patient is not in the bundle"),
        (bundle(patient(birthDate="17.5.1970")), "a.json, entry 1 (Patient): `birthDate` does not have the form"),
        ({"resourceType": "Bundle", "entry": {}}, "a.json: its `entry` is no list"),
        (bundle(patient(), condition("c", "Gout", subject={"identifier": {"value": "MRN-2"}})),
         "a.json, entry 2 (Condition): its subject is an identifier that the Patient does not have"),
        (bundle(patient(identifier=[{"system": "a", "value": "1"}]),
                condition("c", "Gout", subject={"identifier": {"system": "b", "value": "1"}})),
         "a.json, entry 2 (Condition): its subject is an identifier that the Patient does not have"),
    ],
)  # fmt: skip
def test_a_bundle_that_is_not_one_patient_s_is_refused(data: Json, message: str) -> None:
    assert refused(data).message.startswith(message)


def test_a_subject_by_the_patient_s_own_number_is_the_patient() -> None:
    item = condition("c", "Gout", subject={"identifier": {"system": "ward", "value": NUMBER}})
    assert "Gout" in take(bundle(patient(), item)).case.text
    assert not any("subject" in remark for remark in remarks(item))


def test_the_same_patient_twice_is_one() -> None:
    assert "Gout" in take(bundle(patient(), patient(), condition("c", "Gout"))).case.text


@pytest.mark.parametrize(
    ("item", "release", "sign"),
    [
        (encounter(actualPeriod={"start": "2024"}), "R5", "Encounter.actualPeriod"),
        (encounter(**{"class": [concept("emergency")]}), "R5", "Encounter.class"),
        (encounter(**{"class": "emergency"}), "DSTU2", "Encounter.class"),
        (
            of_patient("MedicationStatement", "m", medication={"concept": concept("x")}),
            "R5",
            "MedicationStatement.medication",
        ),
        (of_patient("ServiceRequest", "q", code={"concept": concept("x")}), "R5", "ServiceRequest.code.concept"),
        ({"resourceType": "AllergyIntolerance", "type": concept("allergy")}, "R5", "AllergyIntolerance.type"),
        (of_patient("Procedure", "o", occurrenceDateTime="2024"), "R5", "Procedure.occurrenceDateTime"),
        (condition("c", "x", clinicalStatus="active"), "STU3", "Condition.clinicalStatus"),
        (condition("c", "x", assertedDate="2024"), "STU3", "Condition.assertedDate"),
        (observation("o", "x", context={"reference": "Encounter/1"}), "STU3", "Observation.context"),
        (observation("o", "x") | {"category": concept("lab")}, "DSTU2", "Observation.category"),
        ({"resourceType": "Condition", "patient": {"reference": "Patient/p1"}}, "DSTU2", "Condition.patient"),
        ({"resourceType": "MedicationOrder"}, "DSTU2", "resource MedicationOrder"),
        ({"resourceType": "ProcedureRequest"}, "STU3", "resource ProcedureRequest"),
        ({"resourceType": "CapabilityStatement", "fhirVersion": "5.0.0"}, "R5", "CapabilityStatement.fhirVersion"),
    ],
)
def test_another_release_is_named_with_its_sign(item: Json, release: str, sign: str) -> None:
    error = refused(bundle(patient(), item))
    assert error.message == f"a.json, entry 2: is FHIR {release}, not R4 (its sign: {sign})"
    assert "4.0.1" in error.hint


def test_r4_and_r4b_are_not_taken_for_another_release() -> None:
    for version in ("4.0.1", "4.3.0"):
        assert (
            "Gout"
            in take(
                bundle(
                    patient(), condition("c", "Gout"), {"resourceType": "CapabilityStatement", "fhirVersion": version}
                )
            ).case.text
        )


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (observation("o", "x", quantity(5, "mg/dL", "mmol/L")), "its unit `mg/dL` and its UCUM code `mmol/L` are different units"),
        (observation("o", "x", quantity(38, "degF", "Cel")), "its unit `degF` and its UCUM code `Cel` are different units"),
        (observation("o", "x", quantity(5, "MG/DL", "mmol/L")), "its unit `MG/DL` and its UCUM code `mmol/L` are different units"),
        (observation("o", "x", quantity(5, "mg/dL", "mg/dL"), referenceRange=[{"low": quantity(1, "mg/dL", "g/L")}]),
         "its unit `mg/dL` and its UCUM code `g/L` are different units"),
        (vital("t", "x", "8310-5", {}, valueRange={"low": quantity(37, "mmHg", "mm[Hg]")}), "`mmHg` is no unit of a body temperature"),
        (observation("o", "x", quantity(5, "g/L", "g/dL")), "its unit `g/L` and its UCUM code `g/dL` are different units"),
        (vital("t", "x", "8310-5", quantity(38, "mmHg", "mm[Hg]")), "`mmHg` is no unit of a body temperature"),
        (vital("t", "x", "8310-5", quantity(98.6, "°C", "Cel")), "a body temperature in `°C` cannot be what its value says"),
        (vital("t", "x", "8310-5", quantity(37, "F")), "a body temperature in `F` cannot be what its value says"),
        (vital("w", "x", "29463-7", quantity(70, "cm", "cm")), "`cm` is no unit of a body weight"),
        (vital("w", "x", "8867-4", quantity(70, "mg", "mg")), "`mg` is no unit of a heart rate"),
        (observation("o", "x", quantity(5, "mg/dL", "mg/dL"), referenceRange=[{"low": quantity(1, "mmol/L", "mmol/L")}]),
         "its value and its reference range have units of different kinds"),
        (observation("o", "x", component=[{"code": concept("x", "8480-6", LOINC), "valueQuantity": quantity(1, "kg", "kg")}]),
         "`kg` is no unit of a blood pressure"),
    ],
)  # fmt: skip
def test_a_unit_that_cannot_be_right_is_refused_without_the_value(item: Json, message: str) -> None:
    error = refused(bundle(patient(), item))
    assert error.message.startswith(f"a.json, entry 2 (Observation): {message}")
    assert not re.search(r"98\.6|\b38\b|\b70\b", error.message)
    assert "UCUM" in error.hint


@pytest.mark.parametrize(
    ("loinc", "value"),
    [
        ("8310-5", quantity(98.6, "°F", "[degF]")),
        ("8310-5", quantity(41.9, "C")),
        ("8867-4", quantity(230, "beats/min", "{beats}/min")),
        ("9279-1", quantity(40, "breaths/minute", "/min")),
        ("8480-6", quantity(16.5, "kPa", "kPa")),
        ("2708-6", quantity(71, "%", "%")),
        ("29463-7", quantity(154, "lbs", "[lb_av]")),
        ("2345-7", quantity(33.2, "mmol/L", "mmol/L")),
        ("2951-2", quantity(118, "mEq/L", "meq/L")),
        ("1920-8", quantity(4000, "IU/L", "U/L")),
    ],
)
def test_an_unusual_value_in_a_unit_that_fits_is_no_fault(loinc: str, value: Json) -> None:
    assert lines(vital("v", "Thing", loinc, value, effectiveDateTime=None))


# --- anything at all ----------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["coding", "text", "value", "reference", "x"])
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=6)
    | st.sampled_from(["Patient/p1", "2024", "final"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=5,
)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_bundle_that_is_broken_anywhere_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    broken = copy.deepcopy(whole())
    entry = data.draw(st.sampled_from(broken["entry"]))
    owner, key = data.draw(st.sampled_from([*places(entry), (broken, "entry"), (broken, "link"), (entry, "fullUrl")]))
    owner[key] = data.draw(JUNK)
    try:
        taken = take(broken)
    except InputError:
        return
    assert taken.sections is not None
    assert check(taken.case.text, taken.sections) == ()
    assert "Quillfeather" not in taken.case.text


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside a JSON value."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in pairs] + [place for _, inner in pairs for place in places(inner)]
