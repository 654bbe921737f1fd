"""Data sets: every layout with a small made file, and the quirks of Open-XDDx on the shared half."""

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from ddx_local.errors import InputError, UsageError
from ddx_local.evaluation import datasets_hygiene
from ddx_local.evaluation.datasets import choose, load, sources
from ddx_local.evaluation.datasets_files import repaired
from ddx_local.evaluation.floors import floors


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def table(path: Path, *rows: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_projects_own_vignettes_need_no_path() -> None:
    data = load("vignettes", None)
    assert len(data.cases) == 14
    assert data.ranked
    assert all(case.gold and case.groups["difficulty"] for case in data.cases)


def test_an_unknown_set_is_refused_with_the_nearest_names_and_a_set_without_a_path_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean open-xddx"):
        load("open-xdx", tmp_path)
    with pytest.raises(UsageError, match="needs a path"):
        load("medqa", None)
    with pytest.raises(InputError, match="no such file"):
        load("medqa", tmp_path / "missing.jsonl")


def test_a_changed_file_is_refused_where_the_suite_pins_it_and_noted_where_not(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"id": "1", "text": "Fever.", "gold": "malaria"})
    data = load("jsonl", path)
    assert any("not pinned" in note for note in data.notes)
    assert load("jsonl", path, sha256=data.sha256).notes == ()
    path.write_text(path.read_text("utf-8").replace("Fever.", "Fever!"), "utf-8")
    with pytest.raises(InputError, match="the suite pins"):
        load("jsonl", path, sha256=data.sha256)


def test_empty_golds_are_counted_duplicated_ids_and_nothing_but_empty_golds_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"id": "1", "text": "x", "gold": []}, {"id": "2", "text": "y", "gold": "gout"})
    data = load("jsonl", path)
    assert [case.id for case in data.cases] == ["2"]
    assert any("1 of 2 cases have no gold" in note for note in data.notes)
    with pytest.raises(InputError, match="no case has a gold"):
        load("jsonl", lines(tmp_path / "b.jsonl", {"id": "1", "text": "x", "gold": ""}))
    with pytest.raises(InputError, match=r"stand twice.*`1`"):
        load("jsonl", lines(tmp_path / "c.jsonl", *[{"id": "1", "text": "x", "gold": "gout"}] * 2))


def test_a_column_map_takes_any_names_several_texts_and_separated_golds(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.csv", {"nr": "7", "history": "Fever.", "exam": "Rash.", "dx": "measles; rubella", "ward": "a"}
    )
    columns = {"id": "nr", "text": ["history", "exam"], "gold": "dx", "separator": ";", "groups": ["ward"]}
    (case,) = load("csv", path, options={"columns": columns}).cases
    assert (case.id, case.gold, dict(case.groups)) == ("7", ("measles", "rubella"), {"ward": "a"})
    assert case.case.text == "history:\nFever.\n\nexam:\nRash."
    with pytest.raises(UsageError, match="unknown key `golds`: did you mean gold"):
        load("csv", path, options={"columns": {"golds": "dx"}})
    with pytest.raises(InputError, match="no column `case`; it has dx, exam"):
        load("csv", path, options={"columns": {"text": "case", "gold": "dx"}})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", "{", "line 1: is not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: is not JSON"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.jsonl", "[1]", "is no JSON object"),
        ("a.txt", "x", "unknown kind of file"),
        ("a.json", "3", "no list of JSON objects"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        load("jsonl", tmp_path / name)


def test_open_xddx_reads_the_publishers_workbook_and_repairs_mojibake(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Index", "patient_info", "disease_num", "rationale_num", "interpretation", "specialty"])
    degree = "38°C".encode().decode("mac_roman")
    sheet.append([7, f"Fever of {degree}.", 1, 2, "{'malaria': ['Fever of 38°C']}", "Skin disease"])
    book.save(tmp_path / "x.xlsx")
    data = load("open-xddx", tmp_path / "x.xlsx")
    (case,) = data.cases
    assert (case.id, case.case.text, case.gold) == ("openxddx-007", "Fever of 38°C.", ("malaria",))
    assert not data.ranked
    found = datasets_hygiene.check(data)
    assert (found.mojibake, found.count_mismatches, found.spans_not_verbatim) == (
        ("openxddx-007",),
        ("openxddx-007",),
        0,
    )


def test_mojibake_is_repaired_twice_over_and_true_letters_stay() -> None:
    once = "38°C – Sjögren".encode().decode("mac_roman")
    assert repaired(once) == "38°C – Sjögren"
    assert repaired(once.encode().decode("mac_roman")) == "38°C – Sjögren"
    assert repaired("Sjögren, β, 38 °C, 糖尿病") == "Sjögren, β, 38 °C, 糖尿病"
    assert repaired("mdli_x0002_tus") == "mdlitus"


def test_the_shared_half_of_open_xddx_has_its_known_quirks(shared_data: Path) -> None:
    workbook = load("open-xddx", shared_data / "open-xddx-dev.xlsx")
    data = load("open-xddx", shared_data / "open-xddx-dev.jsonl")
    assert [(case.case, case.gold) for case in workbook.cases] == [(case.case, case.gold) for case in data.cases]
    found = datasets_hygiene.check(data)
    assert (found.cases, found.golds, found.golds_fewest, found.golds_most) == (289, 1319, 2, 7)
    assert (found.spans, found.spans_not_verbatim) == (4185, 282)
    assert found.count_mismatches == ("openxddx-136",)
    assert [pair[:2] for pair in found.near_duplicates] == [("openxddx-081", "openxddx-354")]
    assert len(found.leaks) == 16
    assert len(found.mojibake) == 5
    assert found.medqa is not None
    assert len(found.medqa) == 132
    shown = "\n".join(datasets_hygiene.lines(data, found))
    assert "282" in shown
    assert "132 of 289 (a lower bound)" in shown


def test_the_repaired_texts_are_those_of_the_shared_file(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "open-xddx-dev.jsonl").read_text("utf-8").splitlines()]
    texts = {case.id: case.case.text for case in load("open-xddx", shared_data / "open-xddx-dev.jsonl").cases}
    fixed = {row["id"]: row["meta"]["case_fixed"] for row in rows if "case_fixed" in row["meta"]}
    assert fixed
    assert {case_id: texts[case_id] for case_id in fixed} == fixed


def test_floors_on_the_shared_half_are_near_the_published_ones_of_the_whole(shared_data: Path) -> None:
    found = floors(load("open-xddx", shared_data / "open-xddx-dev.jsonl").cases)
    assert found["commonest"] == pytest.approx(0.030, abs=0.015)
    assert found["commonest_of_specialty"] == pytest.approx(0.102, abs=0.03)
    assert found["nearest_case"] == pytest.approx(0.142, abs=0.05)
    assert found["ten_nearest_vote"] == pytest.approx(0.163, abs=0.05)


def test_overlap_with_a_medqa_file_is_found_by_the_whole_stem(tmp_path: Path) -> None:
    stem = "A 61-year-old man has decreased urinary output and malaise two weeks after a cardiac catheterization."
    medqa = lines(tmp_path / "medqa.jsonl", {"question": f"{stem} What is the most likely diagnosis?", "answer": "AKI"})
    other = "A 5-year-old girl has a barking cough."
    data = load(
        "jsonl",
        lines(tmp_path / "c.jsonl", {"id": "1", "text": stem, "gold": "x"}, {"id": "2", "text": other, "gold": "y"}),
    )
    marked = datasets_hygiene.flagged(data, medqa)
    assert [case.groups["medqa"] for case in marked.cases] == ["yes", "no"]
    assert [case.id for case in choose(marked, None, where={"medqa": "no"}).cases] == ["2"]
    with pytest.raises(UsageError, match="no group `medq`"):
        choose(marked, None, where={"medq": "no"})
    with pytest.raises(UsageError, match="no case `3`"):
        choose(marked, None, ("3",))


def test_the_shared_rare_disease_files_load_in_both_texts(shared_data: Path) -> None:
    first = load("mac-rare", shared_data / "mac-rare-dev.jsonl")
    second = load("mac-rare", shared_data / "mac-rare-dev.jsonl", options={"text": "follow_up"})
    assert len(first.cases) == len(second.cases) == 160
    assert sum(a.case.text != b.case.text for a, b in zip(first.cases, second.cases, strict=True)) > 100
    assert len(load("phenopackets", shared_data / "phenopacket-dev.jsonl").cases) == 257


def test_phenopackets_rarebench_and_mac_in_their_publishers_forms(tmp_path: Path) -> None:
    packet = {
        "id": "P1",
        "subject": {"sex": "FEMALE", "timeAtLastEncounter": {"age": {"iso8601duration": "P24Y"}}},
        "phenotypicFeatures": [{"type": {"label": "Diastema"}}, {"type": {"label": "Seizure"}, "excluded": True}],
        "interpretations": [{"diagnosis": {"disease": {"label": "Marfan syndrome"}}}],
    }
    (tmp_path / "packets").mkdir()
    (tmp_path / "packets/P1.json").write_text(json.dumps(packet), "utf-8")
    (case,) = load("phenopackets", tmp_path / "packets").cases
    assert case.case.text == "Patient: female, age P24Y. Present findings: Diastema. Excluded findings: Seizure."
    assert case.gold == ("Marfan syndrome",)

    rare = lines(tmp_path / "MME.jsonl", {"Phenotype": ["HP:1", "HP:9"], "RareDisease": ["OMIM:1"], "Department": "x"})
    with pytest.raises(InputError, match=r"phenotype_mapping\.json: no such file"):
        load("rarebench", rare)
    (tmp_path / "phenotype_mapping.json").write_text('{"HP:1": "Seizure"}', "utf-8")
    (tmp_path / "disease_mapping.json").write_text('{"OMIM:1": "Rett syndrome/RTT"}', "utf-8")
    data = load("rarebench", rare)
    assert (data.cases[0].case.text, data.cases[0].gold) == ("Findings: Seizure.", ("Rett syndrome", "RTT"))
    assert any("1 findings have no name" in note for note in data.notes)

    mac = tmp_path / "mac.json"
    mac.write_text(
        json.dumps([{"Final Name": "Trisomy 18", "Initial Presentation": "{'Basic Information': 'Girl.'}"}]), "utf-8"
    )
    (case,) = load("mac-rare", mac).cases
    assert (case.case.text, case.gold) == ("Basic Information: Girl.", ("Trisomy 18",))


def test_exam_sets_keep_diagnosis_questions_and_never_show_options_or_reasoning(tmp_path: Path) -> None:
    asks = {
        "question": "He has a red toe. What is the most likely diagnosis?",
        "answer": "Gout",
        "options": {"A": "Gout"},
    }
    other = {"question": "He has gout. Which drug is best?", "answer": "Colchicine", "options": {"A": "Colchicine"}}
    data = load("medqa", lines(tmp_path / "m.jsonl", asks, other))
    assert [case.gold for case in data.cases] == [("Gout",)]
    assert any("1 questions do not ask" in note for note in data.notes)
    assert "Gout" not in data.cases[0].case.text
    assert len(load("medqa", tmp_path / "m.jsonl", options={"all": True}).cases) == 2

    mcr = {
        "pmcid": "PMC1",
        "case_prompt": "Fever.",
        "diagnostic_reasoning": "It is malaria.",
        "final_diagnosis": "Malaria",
    }
    (case,) = load("medcasereasoning", lines(tmp_path / "c.jsonl", mcr)).cases
    assert (case.id, case.case.text, case.gold) == ("mcr-PMC1", "Fever.", ("Malaria",))

    craft = table(
        tmp_path / "d.csv",
        {
            "case_id": "1",
            "case_vignette": "Scaly plaques.",
            "choice_1": "Eczema",
            "choice_2": "Psoriasis",
            "answer": "choice_2",
        },
    )
    (case,) = load("craft-md", craft).cases
    assert (case.id, case.gold) == ("craftmd-1", ("Psoriasis",))


def test_ddxplus_codes_become_questions_and_unlikely_diagnoses_no_golds(tmp_path: Path) -> None:
    evidences = {
        "E_1": {"question_en": "Do you have a fever?"},
        "E_2": {"question_en": "Where?", "value_meaning": {"V_3": {"en": "head"}}},
    }
    (tmp_path / "release_evidences.json").write_text(json.dumps(evidences), "utf-8")
    (tmp_path / "release_conditions.json").write_text(
        json.dumps({"Grippe": {"cond-name-eng": "Influenza", "severity": 2}}), "utf-8"
    )
    row = {
        "AGE": "30", "SEX": "F", "PATHOLOGY": "Grippe", "INITIAL_EVIDENCE": "E_1", "EVIDENCES": "['E_1', 'E_2_@_V_3']",
        "DIFFERENTIAL_DIAGNOSIS": "[['Bronchitis', 0.6], ['Grippe', 0.39], ['Asthma', 0.01]]",
    }  # fmt: skip
    (case,) = load("ddxplus", table(tmp_path / "release_test_patients.csv", row)).cases
    assert case.case.text == "Patient: female, 30 years.\n- Do you have a fever? yes\n- Where? head"
    assert case.gold == ("Influenza", "Bronchitis")
    assert case.severe == {"Influenza"}


def test_hospital_layouts_are_read_and_pickles_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cdm"
    folder.mkdir()
    table(folder / "history_of_present_illness.csv", {"hadm_id": "1", "hpi": "Pain in the right lower quadrant."})
    table(folder / "laboratory_tests.csv", {"hadm_id": "1", "itemid": "5", "valuestr": "WBC 15"})
    table(
        folder / "discharge_diagnosis.csv", {"hadm_id": "1", "discharge_diagnosis": "Acute appendicitis\nHypertension"}
    )
    (case,) = load("mimic-cdm", folder).cases
    assert case.gold == ("appendicitis", "Hypertension")
    assert "WBC 15" in case.case.text
    assert load("mimic-cdm", folder, options={"gold": "pathology"}).cases[0].gold == ("appendicitis",)
    (tmp_path / "a.pkl").write_bytes(b"x")
    with pytest.raises(InputError, match="pickles are not read"):
        load("mimic-cdm", tmp_path / "a.pkl")

    heart = table(
        tmp_path / "heart.csv", {"hadm_id": "5", "HPI": "Chest pain.", "discharge_diagnosis": "NSTEMI; Hypertension"}
    )
    (case,) = load("mimic-cardiac", heart).cases
    assert (case.id, case.gold) == ("cardiac-5", ("NSTEMI", "Hypertension"))

    er = table(
        tmp_path / "er.csv",
        {"encounterkey": "9", "primarychiefcomplaintname": "Chest pain", "primaryeddiagnosisname": "NSTEMI", "sex": "M", "Age": "60",
         "One_Sentence_Extracted": "60 M with chest pain.", "ED_Provider_Notes_Text": "Diagnosis: NSTEMI."},
    )  # fmt: skip
    (case,) = load("er-reason", er).cases
    assert "NSTEMI" not in case.case.text
    assert "NSTEMI" in load("er-reason", er, options={"ed_note": True}).cases[0].case.text


def test_every_source_says_what_it_is_and_under_which_licence() -> None:
    assert len(sources()) == 14
    assert all(source.what and source.licence for source in sources().values())
