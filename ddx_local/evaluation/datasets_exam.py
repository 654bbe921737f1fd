"""MedCaseReasoning, MedQA and CRAFT-MD: vignettes with one diagnosis each."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import need, rows

ASKS_FOR_DIAGNOSIS = re.compile(
    r"\b(?:most likely|likely|correct|probable|underlying|working|leading)\s+(?:\w+\s+)?diagnos[ie]s\b|"
    r"\bdiagnos[ie]s\b[^.?]*\?|\bmost likely (?:cause|condition|disease|disorder)\b",
    re.I,
)
"""What the last sentence of a MedQA question says when its answer is a diagnosis."""


def read_medcasereasoning(path: Path, _: Mapping[str, Any]) -> Read:
    """`case_prompt` with `final_diagnosis`; the reasoning is not read, since it gives the answer away."""
    table = rows(path)
    found = []
    for number, row in enumerate(table, start=1):
        need(path, row, ("case_prompt", "final_diagnosis"))
        case_id = f"mcr-{row.get('pmcid') or f'{number:05d}'}"
        found.append(LabelledCase(Case(case_id, str(row["case_prompt"])), (str(row["final_diagnosis"] or ""),)))
    return Read(found, [], (path,))


def read_medqa(path: Path, options: Mapping[str, Any]) -> Read:
    """Questions whose last sentence asks for a diagnosis (`all = true` takes the others too); options are not shown."""
    found, others = [], 0
    for number, row in enumerate(rows(path), start=1):
        need(path, row, ("question", "answer"))
        question = str(row["question"])
        if not options.get("all") and not ASKS_FOR_DIAGNOSIS.search(last_sentence(question)):
            others += 1
            continue
        groups = {"step": str(row["meta_info"])} if row.get("meta_info") else {}
        found.append(LabelledCase(Case(f"medqa-{number:05d}", question), (str(row["answer"] or ""),), groups=groups))
    return Read(found, [f"{others} questions do not ask for a diagnosis and are left out"] if others else [], (path,))


def read_craft_md(path: Path, _: Mapping[str, Any]) -> Read:
    """One row a vignette; column names of the published files, in any of their spellings."""
    names = {
        "text": ("case_vignette", "case_desc", "case", "vignette"),
        "gold": ("answer", "correct_answer", "diagnosis", "label"),
    }
    found = []
    for number, row in enumerate(rows(path), start=1):
        columns = {key: next((name for name in known if name in row), "") for key, known in names.items()}
        for key, column in columns.items():
            if not column:
                raise InputError(
                    f"{path}: no column for the {key} ({', '.join(names[key])}); it has {', '.join(map(str, row))[:200]}",
                    "Use data set `csv` with a column map.",
                )
        case_id = f"craftmd-{row.get('case_id') or row.get('id') or number}"
        gold = row[columns["gold"]] or ""
        choice = str(gold).strip().lower()
        if re.fullmatch(r"(?:choice_?)?[1-4a-d]", choice):
            letter = choice[-1]
            gold = row.get(f"choice_{'abcd'.index(letter) + 1 if letter in 'abcd' else letter}") or gold
        groups = {key: str(row[key]) for key in ("dataset", "category") if row.get(key)}
        found.append(LabelledCase(Case(case_id, str(row[columns["text"]] or "")), (str(gold),), groups=groups))
    return Read(found, [], (path,))


def last_sentence(text: str) -> str:
    """The last sentence of a text, by its full stops and question marks."""
    parts = [part for part in re.split(r"(?<=[.?!])\s+", text.strip()) if part]
    return parts[-1] if parts else ""
