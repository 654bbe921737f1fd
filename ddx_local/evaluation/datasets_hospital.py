"""Hospital records: MIMIC-IV-Ext CDM (four abdominal pathologies), MIMIC-IV-Ext Cardiac Disease, ER-Reason.

They are credentialed: the files stay with their user, and nothing of them may be committed. Pickles are refused, since
reading one runs what is in it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical.labels import mentions
from ddx_local.errors import InputError
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import Row, need, rows
from ddx_local.evaluation.datasets_mapped import golds

PATHOLOGIES = ("appendicitis", "cholecystitis", "diverticulitis", "pancreatitis")

_CDM: Mapping[str, tuple[str, str]] = {
    "history_of_present_illness": ("hpi", "Patient history"),
    "physical_examination": ("pe", "Physical examination"),
    "laboratory_tests": ("", "Laboratory tests"),
    "microbiology": ("", "Microbiology"),
    "radiology_reports": ("text", "Imaging"),
}
"""File of the published folder -> its text column (none: item and value), and the heading."""

_KEYS = ("Patient History", "Physical Examination", "Laboratory Tests", "Microbiology", "Radiology")


def read_cdm(path: Path, options: Mapping[str, Any]) -> Read:
    """MIMIC-IV-Ext CDM: the published folder of csv files, or JSON by `hadm_id` as the authors' program makes it.

    The gold is the discharge diagnoses where the file is there, the pathology first; `gold = "pathology"` takes it alone.
    """
    if path.suffix in (".pkl", ".pickle"):
        raise InputError(
            f"{path}: pickles are not read: one can run code", "Save it as JSON: `json.dump(pickle.load(f), g)`."
        )
    alone = options.get("gold") == "pathology"
    return _cdm_folder(path, alone) if path.is_dir() else _cdm_json(path, alone)


def _cdm_folder(path: Path, alone: bool) -> Read:
    files = {name: path / f"{name}.csv" for name in (*_CDM, "discharge_diagnosis")}
    for name in ("history_of_present_illness", "discharge_diagnosis"):
        if not files[name].is_file():
            raise InputError(f"{files[name]}: no such file", "Give the folder of the published csv files.")
    texts: dict[str, dict[str, list[str]]] = {}
    for name, (column, heading) in _CDM.items():
        for row in rows(files[name]) if files[name].is_file() else []:
            texts.setdefault(str(row["hadm_id"]), {}).setdefault(heading, []).append(_said(row, column))
    found = []
    for row in rows(files["discharge_diagnosis"]):
        need(path, row, ("hadm_id",))
        note = str(row.get("discharge_diagnosis") or row.get("text") or "")
        hadm = str(row["hadm_id"])
        if hadm in texts:
            text = "\n\n".join(f"{heading}:\n" + "\n".join(lines) for heading, lines in texts[hadm].items())
            found.append(_abdominal(hadm, text, note, alone))
    return Read(found, [], tuple(file for file in files.values() if file.is_file()))


def _cdm_json(path: Path, alone: bool) -> Read:
    found = []
    for row in rows(path):
        hadm = str(row.get("_key") or row.get("hadm_id"))
        parts = [(key, _flat(row[key])) for key in _KEYS if row.get(key)]
        note = _flat(row.get("Discharge Diagnosis") or row.get("pathology") or "")
        found.append(_abdominal(hadm, "\n\n".join(f"{key}:\n{text}" for key, text in parts), note, alone))
    return Read(found, [], (path,))


def _abdominal(hadm: str, text: str, note: str, alone: bool) -> LabelledCase:
    pathology = next((name for name in PATHOLOGIES if mentions(note, name)), "")
    listed = [line.strip(" -*.\t") for line in note.replace(";", "\n").split("\n") if line.strip(" -*.\t")]
    others = [] if alone else [line for line in listed if not (pathology and mentions(line, pathology))]
    gold = tuple(dict.fromkeys([*([pathology] if pathology else []), *others]))
    return LabelledCase(Case(f"cdm-{hadm}", text), gold, groups={"pathology": pathology or "other"})


def read_cardiac(path: Path, options: Mapping[str, Any]) -> Read:
    """MIMIC-IV-Ext Cardiac Disease: csv with one admission a row; the first 500 are DxChain's corpus (`skip = 500`)."""
    texts = ("chief_complaint", "HPI", "physical_exam", "labs", "reports", "ecg", "echo", "past_medical_history")
    gold_names = ("discharge_diagnosis", "diagnosis", "diagnoses", "heart_diagnosis", "Discharge Diagnosis")
    found = []
    for number, row in enumerate(rows(path), start=1):
        if number <= int(options.get("skip", 0)):
            continue
        by_lower = {str(key).lower().replace(" ", "_"): value for key, value in row.items()}
        shown = [(name, by_lower.get(name.lower())) for name in texts]
        gold_column = next((name for name in gold_names if name in row), None)
        if gold_column is None or not any(value for _, value in shown):
            raise InputError(
                f"{path}: no column of texts ({', '.join(texts)}) or of golds ({', '.join(gold_names)})",
                "Use data set `csv` with a column map.",
            )
        text = "\n\n".join(f"{name}:\n{value}" for name, value in shown if value)
        value = row[gold_column]
        separator = next((mark for mark in ("\n", ";", "|") if mark in str(value)), None)
        gold = golds(path, value, separator, f"row {number}, `{gold_column}`")
        case_id = by_lower.get("hadm_id") or by_lower.get("note_id") or f"{number:05d}"
        found.append(LabelledCase(Case(f"cardiac-{case_id}", text), gold))
    return Read(found, [], (path,))


def read_er_reason(path: Path, options: Mapping[str, Any]) -> Read:
    """ER-Reason: what was known at arrival, and the ED's primary diagnosis.

    The ED provider's note may give the diagnosis away, so it is read only with `ed_note = true`.
    """
    columns = [
        "primarychiefcomplaintname",
        "One_Sentence_Extracted",
        "Discharge_Summary_Text",
        "HP_Note_Text",
        "ECG_Text",
    ]
    columns += ["ED_Provider_Notes_Text"] if options.get("ed_note") else []
    found = []
    for row in rows(path):
        need(path, row, ("encounterkey", "primaryeddiagnosisname", "primarychiefcomplaintname"))
        person = f"Patient: {row.get('sex', '')}, {row.get('Age', '')} years."
        parts = [(_heading(name), str(row.get(name) or "").strip()) for name in columns]
        text = "\n\n".join(
            [person, *(f"{name}:\n{value}" for name, value in parts if value and value.lower() != "nan")]
        )
        found.append(LabelledCase(Case(f"er-{row['encounterkey']}", text), (str(row["primaryeddiagnosisname"] or ""),)))
    return Read(found, [], (path,))


def _heading(column: str) -> str:
    return {"primarychiefcomplaintname": "Chief complaint", "One_Sentence_Extracted": "Summary"}.get(
        column, column.removesuffix("_Text").replace("_", " ")
    )


def _said(row: Row, column: str) -> str:
    if column and column in row:
        return str(row[column] or "").strip()
    kept: Sequence[str] = [str(value) for key, value in row.items() if not str(key).endswith("_id") and value]
    return " ".join(kept)


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_flat(item)}" for key, item in value.items())
    return "\n".join(_flat(item) for item in value) if isinstance(value, list) else str(value)
