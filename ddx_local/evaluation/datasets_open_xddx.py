"""Open-XDDx: the publisher's workbook (the gold is a Python literal in a cell), or the same as JSON lines.

Known quirks: 16 rows hold mojibake, the gold has no order, and at least 263 of 570 stems are MedQA questions. The last
sentence of a case often asks for the diagnosis; it is kept, as the method papers kept it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import literal, need, repaired, rows


def read(path: Path, options: Mapping[str, Any]) -> Read:  # noqa: ARG001  # one signature for all layouts
    """Cases `openxddx-001` and so on, by the publisher's index."""
    table = rows(path)
    if table and "interpretation" in table[0]:
        need(path, table[0], ("Index", "patient_info", "disease_num", "rationale_num", "interpretation", "specialty"))
        found = [_published(path, row) for row in table]
    else:
        for row in table[:1]:
            need(path, row, ("id", "case", "gold", "evidence"))
        found = [_line(row) for row in table]
    fixed = sum(bool(case.meta["mojibake"]) for case in found)
    return Read(found, [f"{fixed} cases held mojibake, repaired"] if fixed else [], (path,))


def _published(path: Path, row: Mapping[str, Any]) -> LabelledCase:
    index = int(row["Index"])
    gold = literal(path, row["interpretation"], f"row of index {index}, `interpretation`")
    if not isinstance(gold, dict):
        raise InputError(f"{path}, row of index {index}: `interpretation` is no object of diagnoses")
    declared = {"disease_num": _number(row["disease_num"]), "rationale_num": _number(row["rationale_num"])}
    return _made(f"openxddx-{index:03d}", str(row["patient_info"]), gold, row["specialty"], declared, {})


def _line(row: Mapping[str, Any]) -> LabelledCase:
    meta = row.get("meta") or {}
    declared = {name: meta.get(name) for name in ("disease_num", "rationale_num")}
    flags = [meta[name] for name in ("medqa_test", "craftmd_medqa") if name in meta]
    groups = {"medqa": "yes" if any(flags) else "no"} if flags else {}
    gold = {name: row["evidence"].get(name, []) for name in row["gold"]}
    return _made(str(row["id"]), row["case"], gold, row.get("specialty"), declared, groups)


def _made(
    case_id: str,
    text: str,
    gold: Mapping[str, Any],
    specialty: Any,
    declared: Mapping[str, Any],
    groups: Mapping[str, str],
) -> LabelledCase:
    whole = {repaired(name): tuple(repaired(str(quote)) for quote in quotes) for name, quotes in gold.items()}
    fixed = repaired(text)
    spoilt = (
        fixed != text
        or list(whole) != list(gold)
        or any(tuple(map(str, before)) != after for before, after in zip(gold.values(), whole.values(), strict=True))
    )
    return LabelledCase(
        Case(case_id, fixed),
        tuple(whole),
        whole,
        {**groups, **({"specialty": str(specialty)} if specialty else {})},
        meta={**declared, "mojibake": spoilt},
    )


def _number(value: Any) -> int | None:
    return int(value) if str(value).strip().isdigit() else None
