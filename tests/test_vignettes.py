"""The project's own vignettes: each case has its answer, quotes stand in the case, and no case gives its answer away."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
NAMES = sorted(path.stem for path in (BENCH / "cases").glob("*.txt"))
KEYS = {"differential", "primary", "evidence", "cant_miss", "difficulty", "specialty", "synthetic"}


def case_of(name: str) -> str:
    return (BENCH / "cases" / f"{name}.txt").read_bytes().decode("utf-8")


def answer_of(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((BENCH / "answers" / f"{name}.json").read_text(encoding="utf-8"))
    return answer


def is_run_of_whole_words(text: str, quote: str) -> bool:
    return re.search(rf"(?<!\S){re.escape(quote)}(?!\S)", text) is not None


def test_there_are_at_least_twelve_cases_and_nothing_else_beside_them() -> None:
    assert len(NAMES) >= 12
    assert {path.suffix for path in (BENCH / "cases").iterdir()} == {".txt"}
    assert {path.suffix for path in (BENCH / "answers").iterdir()} == {".json"}


def test_every_case_has_an_answer_and_every_answer_a_case() -> None:
    assert sorted(path.stem for path in (BENCH / "answers").glob("*.json")) == NAMES


def test_every_difficulty_is_there_several_times() -> None:
    found = [answer_of(name)["difficulty"] for name in NAMES]
    assert set(found) == {"easy", "moderate", "hard"}
    assert min(found.count(difficulty) for difficulty in set(found)) >= 3


def test_primary_diagnoses_and_leading_specialties_differ_from_case_to_case() -> None:
    answers = [answer_of(name) for name in NAMES]
    assert len({answer["primary"] for answer in answers}) == len(NAMES)
    assert len({answer["specialty"][0] for answer in answers}) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_plain_text_of_the_agreed_length(name: str) -> None:
    text = case_of(name)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)
    assert 120 <= len(text.split()) <= 260
    assert text == text.strip() + "\n"
    assert not re.search(r"[\t\r\ufeff\x00]|  | \n", text)
    assert "?" not in text, "a case asks nothing"


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_has_exactly_its_keys_and_their_types(name: str) -> None:
    answer = answer_of(name)
    assert set(answer) == KEYS
    assert answer["synthetic"] is True
    assert answer["specialty"]
    assert all(isinstance(role, str) and role == role.lower() for role in answer["specialty"])
    assert answer["cant_miss"]
    for entry in answer["cant_miss"]:
        assert set(entry) == {"diagnosis", "why", "test"}
        assert all(isinstance(value, str) and value.strip() for value in entry.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_differential_has_four_to_six_different_diagnoses_and_begins_with_the_primary(name: str) -> None:
    answer = answer_of(name)
    differential = answer["differential"]
    assert 4 <= len(differential) == len({diagnosis.lower() for diagnosis in differential}) <= 6
    assert answer["primary"] == differential[0]
    assert list(answer["evidence"]) == differential


@pytest.mark.parametrize("name", NAMES)
def test_every_quote_stands_in_the_case_as_whole_words(name: str) -> None:
    text = case_of(name)
    for diagnosis, quotes in answer_of(name)["evidence"].items():
        assert 2 <= len(quotes) == len(set(quotes)) <= 4, diagnosis
        for quote in quotes:
            assert 12 <= len(quote) <= 80, quote
            assert quote == quote.strip(), quote
            assert is_run_of_whole_words(text, quote), quote


@pytest.mark.parametrize("name", NAMES)
def test_no_case_or_file_name_gives_a_diagnosis_away(name: str) -> None:
    answer = answer_of(name)
    shown = f"{name.replace('-', ' ')} {' '.join(case_of(name).split())}".lower()
    for diagnosis in answer["differential"] + [entry["diagnosis"] for entry in answer["cant_miss"]]:
        assert diagnosis.lower() not in shown
        assert diagnosis.lower().removeprefix("acute ") not in shown
