"""What only some methods report, shown: codes, primary and secondary, treatment, the turns of an investigation."""

import copy
import io
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from ddx_local.cli.show import print_result
from ddx_local.launch import consultants_of_files
from ddx_local.report.html import report
from ddx_local.result import schema
from tests.methods.dxchain_world import CASE
from tests.methods.scripted_run import document


@pytest.fixture(scope="module")
def chained() -> dict[str, Any]:
    """A result of DxChain, with texts that are easy to find and hard to print."""
    found = copy.deepcopy(dict(document("dxchain", CASE, "walk", 1, consultants_of_files({}), turns=2)))
    found["differential"][0] |= {"icd10": {"code": "M10.9", "name": "Gout & <unspecified>"}, "kind": "primary"}
    found["treatment"] = ["Rest <b>now</b>", "Ice\x1b[31m"]
    found["investigations"][0] |= {"strategy": "Rule <out> fractures", "replanned": True, "conflict": 0.875}
    jsonschema.validate(found, schema())
    return found


def terminal(found: dict[str, Any]) -> str:
    out = io.StringIO()
    print_result(found, CASE.text, Console(file=out, width=100))
    return out.getvalue()


def test_the_terminal_shows_code_kind_treatment_and_turns(chained: dict[str, Any]) -> None:
    shown = terminal(chained)
    for text in ("M10.9  Gout & <unspecified>", "  primary", "Treatment", "Rest <b>now</b>", "Investigation", "turn 1"):
        assert text in shown
    assert "Rule <out> fractures: planned anew (conflict 0.88)" in shown
    assert "\x1b[31m" not in shown


def test_the_report_shows_them_escaped(chained: dict[str, Any]) -> None:
    page = report([chained], {CASE.id: CASE.text})
    for text in ("M10.9", "Gout &amp; &lt;unspecified&gt;", ">primary<", "Rest &lt;b&gt;now&lt;/b&gt;", "planned anew"):
        assert text in page
    assert "Rule &lt;out&gt; fractures" in page
    assert "\x1b" not in page


def test_without_them_nothing_of_it_is_shown(chained: dict[str, Any]) -> None:
    bare = {key: value for key, value in chained.items() if key not in ("treatment", "investigations")}
    entries = [{**entry, "icd10": None} for entry in chained["differential"]]
    bare["differential"] = [{key: value for key, value in entry.items() if key != "kind"} for entry in entries]
    jsonschema.validate(bare, schema())
    for shown in (terminal(bare), report([bare], {CASE.id: CASE.text})):
        assert not any(text in shown for text in ("ICD-10", "Treatment", "Investigation", "  primary", ">primary<"))
