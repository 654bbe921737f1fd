"""Rare diseases: MAC's 302 cases, RareBench, GA4GH phenopackets."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import Row, literal, need, rows
from ddx_local.evaluation.datasets_mapped import golds


def read_mac(path: Path, options: Mapping[str, Any]) -> Read:
    """MAC's cases; `text = "follow_up"` takes the text with tests, the initial one otherwise.

    The publisher's rows hold the two texts as objects (or their literals) by heading; ours hold `case`.
    """
    follow = options.get("text", "initial") == "follow_up"
    found = []
    for number, row in enumerate(rows(path)):
        if "case" in row and "gold" in row:
            text = row["meta"]["follow_up_case"] if follow else row["case"]
            groups = {"specialty": row["specialty"]} if row.get("specialty") else {}
            found.append(
                LabelledCase(Case(str(row["id"]), text), golds(path, row["gold"], None, "gold"), groups=groups)
            )
            continue
        inner: Mapping[str, Any] = row["Case"] if isinstance(row.get("Case"), Mapping) else row
        gold = next(
            (row[key] for key in ("Final Name", "final_name", "Final_name", "Disease", "diagnosis") if row.get(key)), ""
        )
        key = "Follow-up Presentation" if follow else "Initial Presentation"
        value = next(
            (inner[name] for name in (key, key.lower().replace(" ", "_").replace("-", "_")) if name in inner), None
        )
        if value is None:
            raise InputError(f"{path}, row {number + 1}: has no `{key}`", "Check that it is MAC's own file.")
        value = literal(path, value, f"row {number + 1}, `{key}`") if str(value).lstrip().startswith("{") else value
        text = (
            "\n".join(f"{name}: {part}" for name, part in value.items()) if isinstance(value, Mapping) else str(value)
        )
        found.append(LabelledCase(Case(f"mac302-{number:03d}", text), (str(gold),)))
    return Read(found, [], (path,))


def read_rarebench(path: Path, _: Mapping[str, Any]) -> Read:
    """RareBench's rows of codes, with names from `phenotype_mapping.json` and `disease_mapping.json` beside the file."""
    maps = {kind: path.parent / f"{kind}_mapping.json" for kind in ("phenotype", "disease")}
    if missing := [file for file in maps.values() if not file.is_file()]:
        raise InputError(f"{missing[0]}: no such file", "RareBench's mapping files belong beside its cases.")
    phenotype, disease = (json.loads(file.read_text("utf-8")) for file in maps.values())
    found, unnamed = [], 0
    for number, row in enumerate(rows(path), start=1):
        need(path, row, ("Phenotype", "RareDisease"))
        signs = [phenotype.get(code) for code in _codes(path, row["Phenotype"])]
        names = [name for code in _codes(path, row["RareDisease"]) for name in _names(disease.get(code))]
        unnamed += signs.count(None)
        text = f"Findings: {'; '.join(sign for sign in signs if sign)}."
        groups = {"department": str(row["Department"])} if row.get("Department") else {}
        found.append(LabelledCase(Case(f"{path.stem}-{number:04d}", text), tuple(dict.fromkeys(names)), groups=groups))
    notes = [f"{unnamed} findings have no name in phenotype_mapping.json and are left out"] if unnamed else []
    return Read(found, notes, (path, *maps.values()))


def _codes(path: Path, value: Any) -> list[str]:
    return (
        [str(code) for code in literal(path, value, "codes")]
        if isinstance(value, str)
        else [str(code) for code in value]
    )


def _names(value: Any) -> Iterable[str]:
    """A disease's names: one, several between slashes, or a list."""
    if value is None:
        return ()
    return (
        [str(item) for item in value] if isinstance(value, list) else [part.strip() for part in str(value).split("/")]
    )


def read_phenopackets(path: Path, _: Mapping[str, Any]) -> Read:
    """Present and excluded findings with the solved disease, from phenopackets (version 2) or rows made of them."""
    files = tuple(sorted(path.rglob("*.json"))) if path.is_dir() else (path,)
    if not files:
        raise InputError(f"folder {path}: holds no .json file", "Give a folder of phenopackets, or a jsonl file.")
    packets: list[Row] = []
    for file in files:
        packets += rows(file) if file.suffix == ".jsonl" else [json.loads(file.read_text("utf-8"))]
    return Read([_packet(row) for row in packets], [], files)


def _packet(row: Row) -> LabelledCase:
    if "case" in row and "gold" in row:
        groups = {"cohort": row["meta"]["cohort"]} if row.get("meta", {}).get("cohort") else {}
        return LabelledCase(Case(str(row["id"]), row["case"]), tuple(row["gold"]), groups=groups)
    subject = row.get("subject", {})
    age = (subject.get("timeAtLastEncounter") or {}).get("age", {}).get("iso8601duration", "")
    features = row.get("phenotypicFeatures", [])
    present = [item["type"]["label"] for item in features if not item.get("excluded")]
    absent = [item["type"]["label"] for item in features if item.get("excluded")]
    solved = [
        item["diagnosis"]["disease"]["label"]
        for item in row.get("interpretations", [])
        if item.get("diagnosis", {}).get("disease")
    ] or [item["term"]["label"] for item in row.get("diseases", []) if not item.get("excluded")]
    person = f"Patient: {str(subject.get('sex', 'unknown sex')).lower()}{f', age {age}' if age else ''}."
    parts = [person, f"Present findings: {'; '.join(present)}."]
    parts += [f"Excluded findings: {'; '.join(absent)}."] if absent else []
    return LabelledCase(Case(f"ppkt-{row['id']}", " ".join(parts)), tuple(dict.fromkeys(solved)))
