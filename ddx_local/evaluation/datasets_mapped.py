"""Any JSON lines or csv file with a column map: `id`, `text` (one column or several), `gold`, and groups."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import UsageError, nearest
from ddx_local.evaluation.datasets import LabelledCase, Read
from ddx_local.evaluation.datasets_files import literal, need, rows

KEYS = ("id", "text", "gold", "groups", "separator")


def read(path: Path, options: Mapping[str, Any]) -> Read:
    """Rows by a column map.

    Args:
        path: The file.
        options: `columns`: {id, text, gold, groups, separator}. `text` may be a list of columns, which are joined under
            their names; `gold` is a column with a name, a list, or names between `separator`.

    Raises:
        UsageError: An unknown key of the map.
    """
    columns = dict(options.get("columns", {}))
    for key in columns:
        if key not in KEYS:
            raise UsageError(f"[data.columns] has an unknown key `{key}`: {nearest(key, list(KEYS))}")
    name_of = {key: columns.get(key, key) for key in ("id", "text", "gold")}
    texts = [name_of["text"]] if isinstance(name_of["text"], str) else list(name_of["text"])
    found = []
    for number, row in enumerate(rows(path), start=1):
        need(path, row, [*texts, name_of["gold"]])
        case_id = str(row.get(name_of["id"]) or f"{path.stem}-{number:04d}")
        groups = {group: str(row.get(group, "")) for group in columns.get("groups", ())}
        gold = golds(path, row[name_of["gold"]], columns.get("separator"), f"row {number}, `{name_of['gold']}`")
        found.append(LabelledCase(Case(case_id, joined(row, texts)), gold, groups=groups))
    return Read(found, [], (path,))


def golds(path: Path, value: Any, separator: str | None, where: str) -> tuple[str, ...]:
    """Gold names from a cell: a list, a literal of one, names between separators, or one name."""
    if isinstance(value, str) and value.strip().startswith("["):
        value = literal(path, value, where)
    if isinstance(value, list | tuple):
        return tuple(str(item).strip() for item in value)
    if isinstance(value, Mapping):
        return tuple(map(str, value))
    text = "" if value is None else str(value)
    return tuple(part.strip() for part in (text.split(separator) if separator else [text]))


def joined(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """One text of one column, or several under their names; empty ones are left out."""
    if len(columns) == 1:
        return str(row[columns[0]] or "")
    parts = [(name, str(row.get(name) or "").strip()) for name in columns]
    return "\n\n".join(f"{name}:\n{text}" for name, text in parts if text)
