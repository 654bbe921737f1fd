"""What the live view says of an answer: by step where that reads better, else any JSON as a person would say it."""

import json

import pytest

from ddx_local.cli.say import MOST, summary, told


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"diagnosis": "Gout", "confidence": 4, "agree": True, "quotes": ["a toe", "red"]},
            "Gout, confidence 4, agree yes, a toe, red",
        ),
        ([{"to": "judge", "text": "why?"}, {"to": "all", "text": None}], "judge, why?; all"),
        ([["remove", "lab", ["x"]]], "remove; lab; x"),
        ([], ""),
        (None, ""),
        (False, "no"),
    ],
)
def test_any_json_is_said_as_a_person_would(value: object, said: str) -> None:
    assert told(value) == said


def test_a_step_without_a_form_of_its_own_is_told_without_json_signs() -> None:
    line = summary("counterfactual/stance", json.dumps({"diagnosis": "Gout", "reasoning": "the toe", "questions": []}))
    assert line == "Gout, the toe"


def test_an_answer_in_another_form_than_its_step_usually_has_is_told_all_the_same() -> None:
    assert summary("x/vote", json.dumps({"choice": "Gout"})) == "Gout"


def test_a_line_is_short_and_holds_no_control_character() -> None:
    line = summary("x/y", json.dumps({"text": "a\x1b[2J" + "b" * 500}))
    assert len(line) == MOST
    assert "\x1b" not in line
