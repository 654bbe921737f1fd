"""What a method may know: the case, the flow vocabulary, each other, and the pure parts of `clinical`. Nothing that acts."""

import ast
from pathlib import Path

import pytest

import ddx_local.methods

FOLDER = Path(ddx_local.methods.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))

OURS = {"ddx_local.case", "ddx_local.flow"} | {
    f"ddx_local.clinical.{name}" for name in ("labels", "quotes", "sections", "pool")
}
STANDARD = {"collections", "collections.abc", "dataclasses", "typing", "itertools", "math", "functools", "statistics"}
FORBIDDEN_CALLS = {"open", "print", "input", "eval", "exec", "__import__", "compile", "breakpoint", "globals"}


def imported(source: str) -> set[str]:
    """Every module that a source imports, wherever the import stands; of a package the names taken from it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            inside = module in ("ddx_local", "ddx_local.clinical", "ddx_local.methods")
            found.update(f"{module}.{alias.name}" if inside else module for alias in node.names)
    return found


def allowed(module: str) -> bool:
    return module in OURS | STANDARD or module.startswith("ddx_local.methods.")


def test_there_are_methods_to_look_at() -> None:
    assert {"scot.py", "voting.py", "master_list.py", "baselines.py", "table.py"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_method_imports_only_what_is_pure(path: Path) -> None:
    assert sorted(module for module in imported(path.read_text("utf-8")) if not allowed(module)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_method_reads_and_writes_nothing_by_a_builtin(path: Path) -> None:
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert calls & FORBIDDEN_CALLS == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_method_file_has_at_most_a_hundred_and_fifty_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import random",
        "def f():\n    import time",
        "from ddx_local import run",
        "from ddx_local.engines.scripted import walk",
        "from ddx_local.engines import scripted",
        "from ddx_local.clinical import similarity",
        "from ddx_local.clinical.intake import read_cases",
        "from ddx_local.assets import Assets",
        "from ddx_local.grammar import expand",
        "from .. import store",
        "from . import scot",
        "import ddx_local.run as r",
        "import collections, os.path",
    ],
)
def test_the_check_itself_sees_what_is_forbidden(source: str) -> None:
    assert not all(allowed(module) for module in imported(source))
