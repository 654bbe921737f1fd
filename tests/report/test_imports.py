"""A report is made of documents and texts alone: nothing that it imports can act."""

import ast
from pathlib import Path

import pytest

import ddx_local.report
from tests.methods.test_imports import imported

FILES = sorted(Path(ddx_local.report.__file__).parent.glob("*.py"))
STANDARD = {"collections.abc", "dataclasses", "typing", "itertools", "html", "re", "importlib"}
FORBIDDEN_CALLS = {"open", "print", "input", "eval", "exec", "__import__", "compile"}


def test_there_are_files_to_look_at() -> None:
    assert {"heat.py", "html.py", "markup.py"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_report_imports_only_what_is_pure(path: Path) -> None:
    source = path.read_text("utf-8")
    assert [name for name in sorted(imported(source)) if name not in STANDARD and "ddx_local.report" not in name] == []
    names = {
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert names & FORBIDDEN_CALLS == set()
