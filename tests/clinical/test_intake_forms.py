"""Inputs beyond a plain text: the section form, our own split, objects of texts, tables, FHIR; and no answer in any of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.clinical.intake import parse_columns, read_all, read_cases
from ddx_local.clinical.sections import NAMES, UNASSIGNED, check, split
from ddx_local.clinical.taken import Reading, Taken, holds_answer, says_who
from ddx_local.errors import DdxLocalError, InputError, UsageError
from tests.clinical.fhir import bundle, condition, patient, whole

CANARY = "Zanthoxylum"
TEXT = f"A man of 54 with {CANARY} fever."


def write(path: Path, data: Any) -> str:
    path.write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), "utf-8")
    return str(path)


def one(path: Path, data: Any, *columns: str) -> Taken:
    (taken,) = read_all([write(path, data)], Reading(parse_columns(columns)))
    return taken


def refused(path: Path, data: Any, *columns: str) -> DdxLocalError:
    with pytest.raises((InputError, UsageError)) as caught:
        read_all([write(path, data)], Reading(parse_columns(columns)))
    assert caught.value.hint
    assert CANARY not in caught.value.message + caught.value.hint
    return caught.value


def told(taken: Taken) -> dict[str, str]:
    return {remark.what: remark.kind for remark in taken.remarks}


# --- the section form ---------------------------------------------------------------------------------------------------

FORM = {
    "basic_information": "54, male",
    "clinical_presentation": "fever",
    "physical_examination": "",
    "medical_history": ["gout", "asthma"],
    "further_diagnostic_tests": None,
    "unassigned": "left",
}
JOINED = (
    "Basic information:\n54, male\n\nClinical presentation:\nfever\n\nMedical history:\ngout\nasthma\n\nOther:\nleft\n"
)


@pytest.mark.parametrize("data", [FORM, {"id": "x", "sections": FORM}])
def test_the_section_form_becomes_a_text_with_headings_and_its_sections(data: Any, tmp_path: Path) -> None:
    taken = one(tmp_path / "a.json", data)
    assert taken.form == "section form"
    assert taken.case.text == JOINED
    assert taken.sections is not None
    assert [part.name for part in taken.sections] == [
        "basic_information",
        "clinical_presentation",
        "medical_history",
        UNASSIGNED,
    ]
    assert taken.remarks == ()


def test_sections_may_be_named_as_headings_are(tmp_path: Path) -> None:
    taken = one(
        tmp_path / "a.json", {"Chief Complaint": "fever", "PMH": "gout", "الفحص السريري": "شحوب", "vitals": "38.9"}
    )
    assert [part.name for part in taken.sections or ()] == [*NAMES[1:4]]
    assert "شحوب\n38.9" in taken.case.text


def test_what_is_no_section_stays_under_its_own_name_but_an_answer_does_not(tmp_path: Path) -> None:
    taken = one(
        tmp_path / "a.json",
        {"symptoms": "fever", "weather": "rain", "diagnosis": CANARY, "plan": CANARY, "scores": {"a": 1}},
    )
    assert taken.case.text == "Clinical presentation:\nfever\n\nOther:\nweather: rain\n"
    assert told(taken) == {"`diagnosis`": "left out", "`plan`": "left out", "`scores`": "not understood"}


def test_an_empty_form_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.json", dict.fromkeys(NAMES, "")).message.endswith("a.json: is empty")


# --- our own split ------------------------------------------------------------------------------------------------------


def spans(*places: tuple[str, Any, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "start": start, "end": end} for name, start, end in places]


def test_a_text_with_its_sections_keeps_both(tmp_path: Path) -> None:
    taken = one(
        tmp_path / "a.json", {"text": "fever gout", "sections": spans(("medical_history", 6, 10), (UNASSIGNED, 0, 6))}
    )
    assert taken.case.text == "fever gout"
    assert [(part.name, part.start, part.end, part.by) for part in taken.sections or ()] == [
        (UNASSIGNED, 0, 6, "given"),
        ("medical_history", 6, 10, "given"),
    ]


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (spans((UNASSIGNED, 0, 6), (UNASSIGNED, 5, 10)), "characters 5 to 6 are in more than one section"),
        (spans((UNASSIGNED, 0, 6)), "characters 6 to 10 are in no section"),
        (spans((UNASSIGNED, 0, 11)), "is not a span of a text of 10 characters"),
        (spans(("labs", 0, 10)), "no section is named `labs`"),
        (spans((UNASSIGNED, "0", 10)), "section 1: needs `name`, `start` and `end`"),
        ([{"name": "x"}], "section 1: needs `name`, `start` and `end`"),
        ([*spans((UNASSIGNED, 0, 10)), CANARY], "section 2: needs `name`, `start` and `end`"),
    ],
)
def test_sections_that_do_not_divide_their_text_are_refused(places: Any, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "a.json", {"text": "fever gout", "sections": places}).message


# --- no answer in a case ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["diagnosis", "Diagnosis", "final_diagnosis", "finalDiagnosis", "answer", "correct_answer", "label", "labels", "gold", "target",
     "DDx", "icd10", "ICD-10", "ground_truth", "disease", "differential", "التشخيص", "answer_idx", "options", "treatment"],
)  # fmt: skip
def test_a_key_that_is_named_like_an_answer_never_becomes_text(key: str, tmp_path: Path) -> None:
    assert holds_answer(key)
    for data in (
        {"text": TEXT, key: "Xylo"},
        {"note": TEXT, key: "Xylo"},
        {"symptoms": TEXT, key: "Xylo"},
        {"a": TEXT, "b": "c", key: "Xylo"},
    ):
        taken = one(tmp_path / "a.json", data)
        assert "Xylo" not in taken.case.text
        assert TEXT in taken.case.text
        assert told(taken)[f"`{key}`"] == "left out"
    assert (
        f"--column text={key}: it is named like the answer"
        in refused(tmp_path / "b.json", {key: TEXT, "a": "b"}, f"text={key}").message
    )


@pytest.mark.parametrize(
    "key", ["text", "labs", "history", "medical_history", "id", "note", "symptoms", "gender", "physical exam"]
)
def test_other_keys_hold_none(key: str) -> None:
    assert not holds_answer(key)
    assert not says_who(key)


@pytest.mark.parametrize(
    "key",
    ["name", "patient_name", "lastName", "DOB", "date_of_birth", "address", "phone", "MRN", "email", "Patient ID"],
)
def test_a_key_that_says_who_the_patient_is_never_becomes_text(key: str, tmp_path: Path) -> None:
    assert says_who(key)
    taken = one(tmp_path / "a.json", {"complaint_text": TEXT, "more": "x", key: "Xylo"})
    assert "Xylo" not in taken.case.text
    assert "patient is" in next(remark.why for remark in taken.remarks if remark.what == f"`{key}`")
    assert f"--column text={key}" in refused(tmp_path / "b.json", {key: TEXT, "a": "b"}, f"text={key}").message


@given(
    st.dictionaries(
        st.sampled_from(["text", "diagnosis", "answer", "gold", "x", "labs", "id"]),
        st.text(min_size=1, max_size=9),
        min_size=1,
    )
)
@settings(max_examples=100, deadline=None)
def test_no_answer_of_any_object_becomes_text(tmp_path_factory: pytest.TempPathFactory, data: dict[str, str]) -> None:
    data = {key: f"Xylo{value}" if holds_answer(key) else value.replace("Xylo", "") for key, value in data.items()}
    path = tmp_path_factory.mktemp("x") / "a.json"
    try:
        taken = one(path, data)
    except InputError:
        return
    assert "Xylo" not in taken.case.text
    assert taken.sections is None or check(taken.case.text, taken.sections) == ()


@pytest.mark.parametrize("heading", ["Final diagnosis:", "# Diagnosis", "التشخيص:", "Correct answer:"])
def test_a_text_with_a_heading_for_the_answer_stays_and_is_warned_of(heading: str, tmp_path: Path) -> None:
    taken = one(tmp_path / "a.txt", f"Fever.\n{heading} gout\n")
    assert taken.case.text == f"Fever.\n{heading} gout\n"
    (remark,) = taken.remarks
    assert remark.kind == "warning"
    assert "may be the answer" in remark.why


# --- objects of texts ---------------------------------------------------------------------------------------------------


def test_the_likeliest_key_is_taken_and_said(tmp_path: Path) -> None:
    taken = one(tmp_path / "a.json", {"case_text": TEXT, "source": "x"})
    assert taken.case.text == TEXT
    assert told(taken) == {"`case_text`": "guessed", "`source`": "left out"}


def test_an_object_of_texts_becomes_its_lines_in_their_order(tmp_path: Path) -> None:
    taken = one(tmp_path / "a.json", {"fever_days": 3, "cough": "dry", "name": "Xylo", "notes": ["a", "b"]})
    assert taken.case.text == "fever days: 3\ncough: dry\nnotes: a\nb\n"
    assert told(taken) == {"3 keys": "guessed", "`name`": "left out"}


def test_a_result_of_this_program_is_no_case_and_its_own_split_is_one(tmp_path: Path) -> None:
    result = {"schema": "ddx-local/result/1", "case_id": "a", "method": "scot", "differential": []}
    error = refused(tmp_path / "a.json", [{"text": "a"}, result])
    assert error.message.endswith("a.json, case 2: is no case but what this program has written (`ddx-local/result/1`)")
    split_form = {
        "schema": "ddx-local/sections/1",
        "text": "ab",
        "sections": [{"name": UNASSIGNED, "start": 0, "end": 2}],
    }
    assert one(tmp_path / "b.json", split_form).case.text == "ab"
    assert one(tmp_path / "c.json", {"schema": "other/1", "text": "ab"}).case.text == "ab"


def test_a_single_unknown_key_is_too_little_and_can_be_named(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.json", {"remark": TEXT})
    assert "has no text field `text`" in error.message
    assert "--column text=NAME" in error.hint
    assert one(tmp_path / "a.json", {"remark": TEXT}, "text=remark").case.text == TEXT


# --- columns ------------------------------------------------------------------------------------------------------------


def test_columns_map_a_table_to_texts_and_ids(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", f'no,story,dx\nA7,"{TEXT}\nSecond line, ""quoted""",gout\n,B,gout\n')
    cases = read_all([file], Reading(parse_columns(["text=story,id=no"])))
    assert [(item.case.id, item.case.text) for item in cases] == [
        ("A7", f'{TEXT}\nSecond line, "quoted"'),
        ("a-2", "B"),
    ]
    assert told(cases[0]) == {"`dx`": "left out"}


def test_columns_map_a_table_to_sections(tmp_path: Path) -> None:
    columns = ("basic_information=who", "clinical_presentation=what", "id=no")
    taken = one(tmp_path / "a.csv", "no;who;what\n1;54, male;fever\n", *columns)
    assert taken.case.text == "Basic information:\n54, male\n\nClinical presentation:\nfever\n"
    assert taken.case.id == "1"


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ","), ("csv", ";"), ("tsv", "\t"), ("csv", "|")])
def test_the_delimiter_is_seen_in_the_header(suffix: str, mark: str, tmp_path: Path) -> None:
    assert one(tmp_path / f"a.{suffix}", f"id{mark}text\r\nx{mark}fever\r\n\r\n").case.text == "fever"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("id,text\n", "has a header but no row"),
        ("id,text\nx\n", "line 2: has 1 fields, but the header has 2"),
        ("id,text,\nx,y,z\n", "its first line is no header"),
        ("text,text\nx,y\n", "its first line is no header"),
        (f'id,text\nx,"{CANARY}\n', "is not valid CSV"),
        ("id,text\nx,\n", "line 2: is empty"),
    ],
)
def test_a_table_that_is_none_is_refused(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "a.csv", text).message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["text"], "--column text: is not of the form PART=COLUMN"),
        (["text="], "--column text=: is not of the form"),
        (["story=text"], "--column: no part `story` of a case"),
        (["text=a", "text=b"], "--column: `text` is given twice"),
        (["text=a,medical_history=b"], "--column: a case has either a text or sections"),
        (["id=a"], "--column: names no column for the text"),
    ],
)
def test_a_wrong_column_option_is_refused(columns: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_columns(columns)
    assert caught.value.message.startswith(message)


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.csv", "id,story\n1,x\n", "text=tale")
    assert "a.csv, line 2 has no such column" in error.message
    assert error.hint == "It has id, story."
    assert "id=case: " in refused(tmp_path / "a.csv", "id,story\n1,x\n", "text=story,id=case").message
    assert refused(tmp_path / "a.txt", "x", "text=a").message.endswith("a.txt is a text and has no columns")
    assert refused(tmp_path / "b.json", whole(), "text=a").message.startswith("--column:")


def test_what_has_no_suffix_is_known_by_its_beginning_or_by_its_columns(tmp_path: Path) -> None:
    lines = '{"text": "fever", "id": "x"}\n{"text": "cough"}\n'
    assert [case.text for case in read_cases([write(tmp_path / "lines", lines)])] == ["fever", "cough"]
    assert one(tmp_path / "table", "no,story\n1,fever\n", "text=story").case.text == "fever"
    assert one(tmp_path / "whole", '{\n"text": "fever"\n}\n').case.text == "fever"


# --- FHIR ---------------------------------------------------------------------------------------------------------------


def test_a_bundle_is_a_case_under_its_file_s_name(tmp_path: Path) -> None:
    taken = one(tmp_path / "a.json", whole())
    assert taken.case.id == "a"
    assert taken.form == "FHIR R4 bundle"
    assert "Pneumonia" not in taken.case.text
    (kept,) = read_all([str(tmp_path / "a.json")], Reading(with_diagnoses=True))
    assert "Pneumonia" in kept.case.text


def test_an_ndjson_export_is_one_patient_s_bundle(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(entry["resource"]) for entry in whole()["entry"])
    assert one(tmp_path / "a.ndjson", lines).case.text == one(tmp_path / "b.json", whole()).case.text
    assert one(tmp_path / "c.json", [entry["resource"] for entry in whole()["entry"]]).case.id == "c"


def test_several_bundles_are_several_cases(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(bundle(patient(), condition("c", name))) for name in ("Gout", "Asthma"))
    cases = read_cases([write(tmp_path / "a.jsonl", lines)])
    assert [case.id for case in cases] == ["a-1", "a-2"]
    assert "Asthma" in cases[1].text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<?xml version="1.0"?>\n<Bundle xmlns="http://hl7.org/fhir"/>', "an XML file"),
        ('<ClinicalDocument xmlns="urn:hl7-org:v3">', "an XML file"),
        ("%PDF-1.7 x", "a PDF file"),
        ("{\\rtf1 x}", "an RTF file"),
        ("<!DOCTYPE html><p>x", "an HTML file"),
    ],
)
def test_another_kind_of_file_is_named(text: str, kind: str, tmp_path: Path) -> None:
    assert f"a.txt: is {kind}, not a text" in refused(tmp_path / "a.txt", text).message


def test_a_bundle_may_be_larger_than_a_text(tmp_path: Path) -> None:
    data = bundle(patient(), condition("c", "Gout"), *[{"resourceType": "Questionnaire", "title": "x" * 1000}] * 1500)
    assert "Gout" in one(tmp_path / "a.json", data).case.text
    assert "longer than 1,000,000 characters" in refused(tmp_path / "b.json", {"text": "x" * 1_000_001}).message


# --- the 160 cases ------------------------------------------------------------------------------------------------------


def test_the_shared_cases_are_read_without_their_answers() -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "mac-rare-dev.jsonl"
    if not path.is_file():
        pytest.skip(f"shared data not found at {path}")
    found = read_all([str(path)])
    assert len(found) == 160
    assert all(told(item)["`gold`"] == "left out" for item in found)
    assert all(
        "".join(item.case.text[p.start : p.end] for p in split(item.case.text)) == item.case.text for item in found
    )
