"""The settings in words: a file to start from, a page of the manual, and what holds now. All from `Settings` itself."""

import ast
import inspect
import json
import os
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from ddx_local.settings import Settings, settings_path

_PREFIX = "DDX_LOCAL_"


def meanings() -> dict[str, str]:
    """Name -> the sentence below its field in the source; a field without one is not among them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(Settings))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


def toml() -> str:
    """A settings file with every setting, each with its meaning and, as a comment, its default."""
    told = meanings()
    plain, tables = [], []
    for name, field in Settings.model_fields.items():
        value = default(name)
        about = textwrap.fill(told.get(name, ""), 118, initial_indent="# ", subsequent_indent="# ")
        if isinstance(value, dict):
            tables.append(f"{about}\n# [{name}]\n")
        elif value is None:
            plain.append(f"{about}\n# {name} = {_example(field.annotation)}    # not set\n")
        else:
            plain.append(f"{about}\n# {name} = {written(value)}\n")
    head = "# Settings of ddx-local. Take the `#` away before a line to set it.\n"
    return "\n".join([head, *plain, *tables])


def markdown() -> str:
    """The page docs/settings.md."""
    told = meanings()
    rows = [
        f"| `{name}` | `{written(default(name))}` | `{_PREFIX}{name.upper()}` | {_cell(told.get(name, ''))} |"
        for name in Settings.model_fields
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "Made by `ddx-local config show --defaults --markdown`; a test compares it with the program. `ddx-local config path` says",
            "where the file is, `ddx-local config show --defaults` prints one to start from, `ddx-local config show` says what holds",
            "now and where it comes from. A flag wins over the environment, the environment over the file, the file over the default.",
            "Tables (`method`, `roles`) are JSON in the environment.",
            "",
            "| setting | default | environment | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            "Variables that are no settings: `DDX_LOCAL_CONFIG` (the settings file), `DDX_LOCAL_MODELS` (the model store),",
            "`DDX_LOCAL_DEBUG=1` (tracebacks), `DDX_LOCAL_OFFLINE` (set by the program for its children).",
            "",
        ]
    )


def held(values: Settings) -> Iterator[tuple[str, Any, str]]:
    """Name, value as JSON has it, and where it comes from, of every setting."""
    path = settings_path()
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    variables = {name.upper() for name in os.environ}
    for name, value in values.model_dump(mode="json").items():
        variable = f"{_PREFIX}{name.upper()}"
        yield name, value, variable if variable in variables else str(path) if name in table else "default"


def default(name: str) -> Any:
    field = Settings.model_fields[name]
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


def written(value: Any) -> str:
    """As TOML writes it; what is not set is a dash."""
    return "-" if value is None else json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(annotation: Any) -> str:
    text = str(annotation)
    return '"..."' if "str" in text or "Path" in text or "Literal" in text else "1"
