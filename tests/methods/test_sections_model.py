"""The model's part of the Information Editor: it names sections of open sentences, and the spans stay the program's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.clinical.sections import NAMES, UNASSIGNED, Section, check, split
from ddx_local.flow import Ask
from ddx_local.methods.sections_model import Options, assign, is_open
from tests.methods.driving import Driven, World, drive

TEXT = (
    "He fell off a ladder. The dog barked “twice” {today}. On examination he was pale and his pulse was 120/min.\n"
    "He is fond of tea.\nPlan: \nobserve him. Then go on.\n"
)


def run(text: str, names: list[str] | None = None, **options: int) -> Driven[tuple[Section, ...]]:
    """Drive the flow; `names` are given in turn, without them a grammar walk answers."""
    left = iter(names or [])

    def reply(ask: Ask[Any]) -> Any:
        return {"sections": [[number, next(left)] for number in ask.slots["numbers"]]}

    return drive(assign(text, split(text), Options(**options)), World({"sections/assign": reply} if names else {}))


def parts(text: str, found: tuple[Section, ...]) -> list[tuple[str, str, str]]:
    return [(part.name, part.by, " ".join(text[part.start : part.end].split())) for part in found]


def test_each_open_sentence_goes_where_the_model_says_and_nothing_else_moves() -> None:
    driven = run(TEXT, ["clinical_presentation", UNASSIGNED, "medical_history"])
    assert parts(TEXT, driven.answer) == [
        ("clinical_presentation", "model", "He fell off a ladder."),
        (UNASSIGNED, "none", "The dog barked “twice” {today}."),
        ("physical_examination", "cue", "On examination he was pale and his pulse was 120/min."),
        ("medical_history", "model", "He is fond of tea."),
        (UNASSIGNED, "heading", "Plan: observe him. Then go on."),
    ]
    assert driven.batches == ["sections/assign"]
    (said,) = driven.said
    assert "1. He fell off a ladder.\n2. The dog barked “twice” {today}.\n3. He is fond of tea." in said.prompt
    assert "observe him" not in said.prompt.partition("(end of the case)")[2]


def test_neighbours_of_one_section_become_one() -> None:
    driven = run("He fell. He rose. He sat.", ["medical_history"] * 3)
    assert driven.answer == (Section("medical_history", 0, 25, "model"),)


def test_without_an_open_sentence_nothing_is_asked() -> None:
    for text in ("", " \n", "Labs: normal.\nPlan: rest.", "On examination his pulse was 120/min."):
        driven = run(text)
        assert driven.batches == []
        assert driven.answer == split(text)


@pytest.mark.parametrize(("at_once", "questions"), [(20, 1), (4, 2), (3, 2), (1, 5)])
def test_many_sentences_are_asked_about_in_one_round_of_several_questions(at_once: int, questions: int) -> None:
    text = " ".join(f"Thing {number} was there." for number in range(5))
    names = [*NAMES[:4], UNASSIGNED]
    driven = run(text, names, at_once=at_once)
    assert len(driven.batches) == 1
    assert len(driven.said) == questions
    assert [part.name for part in driven.answer] == names


@pytest.mark.parametrize("at_once", [0, 51])
def test_a_wrong_option_is_refused(at_once: int) -> None:
    with pytest.raises(ValueError, match="at_once must be 1 to 50"):
        Options(at_once)


@given(
    st.lists(
        st.sampled_from(["He fell. ", "Labs: x\n", "# Plan\n", "“Ω {a}” ", "\n\n", "His pulse was 90/min. ", "ألم. "]),
        max_size=12,
    )
)
@settings(max_examples=50, deadline=None)
def test_whatever_the_model_says_every_character_stays_in_exactly_one_section(pieces: list[str]) -> None:
    text = "".join(pieces)
    driven = run(text)
    assert check(text, driven.answer) == ()
    before = {(part.start, part.end) for part in split(text) if not is_open(part)}
    assert all(any(part.start <= start and end <= part.end for part in driven.answer) for start, end in before)
