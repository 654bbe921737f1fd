"""A result at a terminal: legible at 80 and 120 columns, with and without colour, and no text steers the terminal."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from ddx_local.case import Case
from ddx_local.cli.heat import heat_map
from ddx_local.cli.show import marked, print_result
from tests.report import documents
from tests.report.documents import CASE_ID, CORONARY, STENOSIS, TEXT, made_by_hand
from tests.report.scripted_runs import documents_of


def shown(document: Any, text: str = TEXT, width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, highlight=False, force_terminal=colour, color_system="truecolor" if colour else None
    )
    print_result(document, text, console)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_ranking_comes_first_one_line_for_each_diagnosis(width: int) -> None:
    lines = shown(made_by_hand(), width=width).splitlines()
    at = lines.index("Differential (score: probability among the candidates)")
    assert lines[at + 1 : at + 4] == [
        f"  1  0.71  {STENOSIS}  critical",
        f"  2  0.22  {CORONARY}",
        f"  3  0.07  {documents.CARDIOMYOPATHY}  late",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = "x" * 200
    document = made_by_hand()
    document["differential"][0]["diagnosis"] = long
    document["counterfactuals"][0]["diagnosis"] = long
    for item in (made_by_hand(), document):
        assert max(len(line) for line in shown(item, width=width).splitlines()) <= width


def test_an_entry_s_block_says_places_positions_and_who_and_its_evidence() -> None:
    lines = shown(made_by_hand(), width=120).splitlines()
    at = lines.index(f"1. {STENOSIS}")
    block = lines[at : lines.index(f"2. {CORONARY}")]
    assert "    places     1st by 3 of 5, 2nd by 1, 3rd by 1" in block
    at = block.index("    positions  +3 -1 =1")
    assert block[at + 1 : at + 4] == [
        "               + cardiologist, general internal medicine doctor, cardiothoracic surgeon",
        "               - clinical laboratory scientist",
        "               = hematologist",
    ]
    assert f"    for        “{documents.PULSE}”  (cardiologist, cardiothoracic surgeon)" in block
    assert f"    against    “{documents.TROPONIN}”  (clinical laboratory scientist)" in block


def test_a_wrapped_line_stays_within_its_column() -> None:
    block = shown(made_by_hand(), width=80).split(f"\n1. {STENOSIS}\n")[1].split("\n\n")[0].splitlines()
    starts = {len(line) - len(line.lstrip()) for line in block}
    assert starts == {4, 15}


def test_without_colour_the_heat_map_says_gap_and_sign_in_brackets() -> None:
    said = flat(shown(made_by_hand()))
    assert f"[{documents.PULSE} +0.34], the apex beat" in said
    assert f"[{documents.MURMUR} -0.24], is heard" in said
    assert f"[{documents.ANEMIA} -0.01 noise], NT-proBNP" in said
    assert "apart [if inserted: “rising to 120 ng/L” -0.16] (upper limit" in said
    assert f"1. {STENOSIS} 5 of 6 edits above noise" in said


def test_the_heat_map_is_the_case_with_its_marks_and_the_same_words() -> None:
    plain = heat_map(made_by_hand(), STENOSIS, TEXT).plain
    assert re.sub(r"\[| [+-]0\.\d\d( noise)?\]", "", plain) == TEXT


def test_the_table_is_split_where_its_columns_do_not_fit() -> None:
    narrow, wide = (shown(made_by_hand(), width=width).split("Finding by diagnosis")[1] for width in (50, 80))
    assert [len(re.findall(r"^Finding", table, re.MULTILINE)) for table in (narrow, wide)] == [3, 1]
    assert "not tested" in wide
    for table in (narrow, wide):
        for cell in ("+0.34 negate", "-0.24 remove", "0.22 -> 0.46", "below noise 0.02"):
            assert cell in table


def test_the_reasoning_triage_and_what_must_not_be_missed_are_shown() -> None:
    said = flat(shown(made_by_hand()))
    assert "Reasoning (by agreement) conclusion Pulse, murmur and second heart sound carry aortic stenosis" in said
    assert "off list Heyde syndrome" in said
    assert "urgent Near-syncope on effort with signs of outflow obstruction; No effort" in said
    assert "Gastrointestinal bleeding: Dark stools with iron deficiency" in said
    assert "degraded: stance: the reports were left out" in said.split("Differential")[0]


def test_what_speaks_for_one_and_against_another_has_a_colour_of_its_own() -> None:
    text = marked(made_by_hand(), TEXT)
    styles = {TEXT[span.start : span.end]: str(span.style) for span in text.spans}
    assert text.plain == TEXT
    assert styles[documents.MURMUR] == "magenta underline"
    assert styles[documents.PULSE] == "green underline"
    assert styles[documents.TROPONIN] == "red underline"


def test_no_text_of_a_document_is_read_as_markup_or_steers_the_terminal() -> None:
    evil = "[bold]x[/bold] :heart: \x1b[31m\x9b5m\x07[/]"
    document = made_by_hand()
    for entry in document["differential"]:
        entry |= {"diagnosis": evil, "reasoning": evil, "stances": {evil: "support"}}
        for item in entry["evidence"]:
            item["by"] = [evil]
    for item in document["counterfactuals"]:
        item["diagnosis"] = evil
        item["patches"][0]["replacement"] = evil
    for kind in ("degraded", "notes"):
        document[kind][0]["detail"] = evil
    document["triage"][0] |= {"finding": evil, "step": evil, "by": evil}
    document["cant_miss"][0] |= {"diagnosis": evil, "why": evil, "test": evil, "by": [evil]}
    document["trace"] |= {"conclusion": evil, "would_change": evil, "outside": evil}
    document["case_id"] = document["model"]["name"] = evil
    said = shown(document, TEXT.replace("A 74", evil[:4]), width=300)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    assert flat(said).count("[bold]x[/bold] :heart:") > 20


def test_a_failed_case_says_why_and_what_to_do() -> None:
    error = {"kind": "LengthStop", "message": "the answer was cut", "hint": "Give more room."}
    nothing = {"differential": [], "counterfactuals": [], "trace": None, "cant_miss": [], "triage": []}
    said = shown(made_by_hand() | nothing | {"status": "failed", "error": error})
    assert "failed (LengthStop): the answer was cut. Give more room." in said
    assert "What carries" not in said


@pytest.mark.parametrize("method", ["scot", "zero-shot", "counterfactual"])
def test_results_of_real_runs_are_shown_in_colour(method: str) -> None:
    (document,) = documents_of(method, (Case(CASE_ID, TEXT),))
    said = shown(document, width=100, colour=True)
    assert "\x1b[" in said
    assert bool(document["counterfactuals"]) == (method == "counterfactual")
    assert ("What carries each diagnosis" in said) == (method == "counterfactual")
    assert ("Finding by diagnosis" in said) == any(item["kept"] for item in document["counterfactuals"])
