"""DDXPlus: synthetic patients with a probable differential. Codes become the questions of `release_evidences.json`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import literal, need, rows
from ddx_local.evaluation.metrics import LIKELY

SEVERE = 2
"""DDXPlus' severity classes 1 and 2 of 5 are the severe ones."""

_ROW = re.compile(r"(.+)_@_(.+)")


def read(path: Path, options: Mapping[str, Any]) -> Read:
    """Patients as text; golds are the diagnoses above 0.01, the pathology first. `limit_rows` reads no more rows."""
    beside = {kind: path.parent / f"release_{kind}.json" for kind in ("evidences", "conditions")}
    if missing := [file for file in beside.values() if not file.is_file()]:
        raise InputError(f"{missing[0]}: no such file", "DDXPlus' two release files belong beside its patients.")
    evidences, conditions = (json.loads(file.read_text("utf-8")) for file in beside.values())
    english = {name: item.get("cond-name-eng") or name for name, item in conditions.items()}
    severe = frozenset(english[name] for name, item in conditions.items() if int(item.get("severity", 5)) <= SEVERE)
    table = rows(path)[: options.get("limit_rows")]
    found = []
    for number, row in enumerate(table, start=1):
        need(path, row, ("AGE", "SEX", "PATHOLOGY", "EVIDENCES", "DIFFERENTIAL_DIAGNOSIS"))
        listed = literal(path, row["DIFFERENTIAL_DIAGNOSIS"], f"row {number}, `DIFFERENTIAL_DIAGNOSIS`")
        weights = {english.get(name, name): float(p) for name, p in listed}
        primary = english.get(row["PATHOLOGY"], row["PATHOLOGY"])
        likely = sorted((name for name, p in weights.items() if p > LIKELY), key=lambda name: -weights[name])
        gold = tuple(dict.fromkeys([primary, *likely]))
        codes = literal(path, row["EVIDENCES"], f"row {number}, `EVIDENCES`")
        sex = {"M": "male", "F": "female"}.get(str(row["SEX"]), "unknown sex")
        said = "\n".join(f"- {line}" for line in _lines(codes, evidences))
        case = Case(f"ddxplus-{path.stem}-{number:06d}", f"Patient: {sex}, {row['AGE']} years.\n{said}")
        found.append(LabelledCase(case, gold, weights=weights, severe=severe))
    return Read(found, [], (path, *beside.values()))


def _lines(codes: list[str], evidences: Mapping[str, Any]) -> list[str]:
    """One line for each question, its values together."""
    said: dict[str, list[str]] = {}
    for code in codes:
        match = _ROW.fullmatch(code)
        name, value = (match[1], match[2]) if match else (code, "yes")
        item = evidences.get(name, {})
        question = item.get("question_en") or name
        meaning = (item.get("value_meaning") or {}).get(value, {})
        said.setdefault(question, []).append(str(meaning.get("en", value) if isinstance(meaning, Mapping) else value))
    return [f"{question} {', '.join(values)}" for question, values in said.items()]
