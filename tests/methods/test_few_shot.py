"""Few-shot: which examples are shown, that none of them is the case, what happens where they do not fit or there are none."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.case_base import CaseBases
from ddx_local.clinical.examples import with_own_examples
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.data import data_dir
from ddx_local.engines.scripted import Policy
from ddx_local.errors import InputError
from ddx_local.flow import OWN_EXAMPLES, Ask, Consult, Flow, Retrieve
from ddx_local.methods.few_shot import Options, few_shot, few_shot_cot
from tests.grammars import POLICIES
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, proposal
from tests.methods.scripted_run import document, quotes_stand_in

DIFFERENTIAL, THINK, ANSWER = "few_shot/differential", "few_shot/think", "few_shot/answer"
POOL = [
    [f"p{number}", f"Past text {number}.", [f"Disease {number}", "Gout"], 1 - number / 10] for number in range(1, 9)
]

Method = Callable[[Case, Options], Flow[Differential]]
both = pytest.mark.parametrize("method", [few_shot, few_shot_cot])


def world(
    past: Sequence[Any] = POOL,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
) -> World:
    answer = {"differential": [proposal("Malaria", "Why"), proposal("Gout", "Why")]}
    replies = {
        DIFFERENTIAL: lambda ask: answer,  # noqa: ARG005
        THINK: lambda ask: {"thoughts": ["My thoughts."]},  # noqa: ARG005
        ANSWER: lambda ask: answer,  # noqa: ARG005
    }
    return World(replies, fits=fits, retrieved=lambda about: list(past)[: about.count])


def asked(driven: Driven[Differential]) -> list[Retrieve]:
    """What pools were asked for."""
    questions = [question for round_ in driven.rounds for question in round_.questions.values()]
    return [q.about for q in questions if isinstance(q, Consult) and isinstance(q.about, Retrieve)]


def test_few_shot_is_one_batch_of_one_call() -> None:
    driven = drive(few_shot(CASE, Options(k=3, temperature=0.6)), world())
    assert [(item.batch, item.step, item.role) for item in driven.said] == [(0, DIFFERENTIAL, "physician")]
    assert driven.said[0].filled.temperature == 0.6
    assert [(item.diagnosis, item.score) for item in driven.answer.entries] == [("Malaria", 1.0), ("Gout", 0.5)]
    assert (driven.answer.panel, driven.notes) == (("physician",), [])


def test_with_thoughts_it_is_two_and_the_answer_sees_the_thoughts_and_the_examples() -> None:
    driven = drive(few_shot_cot(CASE, Options()), world())
    assert [(item.batch, item.step) for item in driven.said] == [(0, THINK), (1, ANSWER)]
    thought, answered = driven.said
    assert "YOUR THOUGHTS\nMy thoughts.\n(end" in answered.prompt
    end = thought.prompt.index("(end of the case)")
    assert answered.prompt[:end] == thought.prompt[:end]
    assert "Past text 5." in thought.prompt


@both
def test_the_examples_most_like_the_case_are_shown_with_their_diagnoses_the_most_similar_next_to_the_case(
    method: Method,
) -> None:
    driven = drive(method(CASE, Options(shots=3)), world())
    for item in driven.said:
        prompt = item.prompt
        assert "EXAMPLE 3\nPast text 1.\nDiagnoses: Disease 1; Gout\n\nTHE CASE\n" in prompt
        assert prompt.index("Past text 3.") < prompt.index("Past text 2.") < prompt.index("Past text 1.")
        assert "Past text 4." not in prompt
    (about,) = asked(driven)
    assert about == Retrieve(CASE.text, 3, OWN_EXAMPLES, (CASE.id,))


def test_a_pool_of_ones_own_is_asked_for_by_its_file() -> None:
    (about,) = asked(drive(few_shot(CASE, Options(pool="cases.jsonl")), world()))
    assert about.base == "cases.jsonl"


# The case under test is never an example


@both
def test_a_pool_that_gives_the_case_itself_all_the_same_is_not_believed(method: Method) -> None:
    again = ["p0", f"  {CASE.text.upper()}\n", ["Malaria"], 1.0]
    driven = drive(method(CASE, Options(shots=3)), world([again, *POOL]))
    assert all("EXAMPLE 3" not in item.prompt and "Past text 2." in item.prompt for item in driven.said)
    assert driven.noted("examples")[0] == "the pool gave the case itself as an example: it was left out"


def retrieved(base: Path, case: Case, count: int = 50) -> list[str]:
    """The ids of the examples that a pool gives for a case, as they are asked for by the method."""
    answer = with_own_examples(CaseBases(spelling_similarity))
    return [item[0] for item in asyncio.run(answer(Retrieve(case.text, count, str(base), (case.id,))))]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.upper(),
        lambda text: text.replace(" ", "\n  "),
        lambda text: text.replace(".", " ;").replace(",", ""),
        lambda text: text.replace("61-year-old", "62-year-old").replace("94/60", "95/60"),
        lambda text: text[:140],
        lambda text: "Seen in the emergency room: " + text + " He lives alone and has two dogs.",
    ],
)
def test_no_copy_of_the_case_in_a_pool_becomes_an_example(tmp_path: Path, change: Callable[[str], str]) -> None:
    pool = tmp_path / "pool.jsonl"
    rows = [
        {"id": "copy", "text": change(CASE.text), "diagnoses": ["Malaria"]},
        {"id": "other", "case": "A girl of nine has had a sore throat and a rash since Sunday.", "gold": ["Measles"]},
    ]
    pool.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    assert retrieved(pool, CASE) == ["other"]


def test_no_case_is_an_example_for_itself_in_a_pool_of_the_projects_own_cases(tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    files = sorted((data_dir("bench") / "cases").glob("*.txt"))
    texts = {file.stem: file.read_text("utf-8") for file in files}
    rows = [json.dumps({"id": f"row {name}", "text": text, "diagnoses": ["X"]}) for name, text in texts.items()]
    pool.write_text("\n".join(rows), "utf-8")
    for name, text in texts.items():
        found = retrieved(pool, Case(name, text))
        assert len(found) == len(texts) - 1
        assert f"row {name}" not in found


# Fewer examples, no room


def test_a_pool_with_fewer_examples_is_noted() -> None:
    driven = drive(few_shot(CASE, Options()), world(POOL[:2]))
    (note,) = driven.notes
    assert note.detail == "2 of 5 examples: the pool holds no more beside the case"
    assert not note.degraded


def test_no_example_at_all_is_degraded_and_still_an_answer() -> None:
    driven = drive(few_shot(CASE, Options()), world([]))
    assert driven.notes[0].degraded
    assert "(no examples)\n\nTHE CASE" in driven.said[0].prompt
    assert driven.answer.entries


def test_examples_that_do_not_fit_are_left_out_from_the_least_similar_and_that_is_noted() -> None:
    driven = drive(few_shot(CASE, Options()), world(fits=lambda ask: "EXAMPLE 3" not in str(ask.slots["examples"])))
    (item,) = driven.said
    assert "Past text 2." in item.prompt
    assert "Past text 3." not in item.prompt
    (note,) = driven.notes
    assert note.degraded
    assert note.detail == "few_shot/differential: 2 of 5 examples were shown, to fit the context"


def test_a_case_that_fits_with_no_example_is_asked_so_that_the_engine_refuses_it_with_the_numbers() -> None:
    driven = drive(few_shot(CASE, Options()), world(fits=lambda ask: False))  # noqa: ARG005
    assert len(driven.said) == 1
    assert driven.notes[0].detail.startswith("few_shot/differential: 0 of 5")


# Options, the real driver


@pytest.mark.parametrize(
    "wrong", [{"shots": 0}, {"shots": 33}, {"k": 0}, {"k": 11}, {"temperature": -1}, {"temperature": 2.1}]
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Options(**wrong)


def test_the_default_is_five_examples() -> None:
    assert (Options().shots, Options().k, Options().pool) == (5, 5, "")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("name", "batches"), [("few-shot", 1), ("few-shot-cot", 2)])
def test_the_real_driver_finishes(name: str, batches: int, policy: Policy, seed: int) -> None:
    found = document(name, CASE, policy, seed)
    assert (found["status"], found["totals"]["batches"], found["totals"]["calls"]) == ("finished", batches, batches)
    assert found["notes"] == found["degraded"] == []
    assert quotes_stand_in(CASE, found)


def test_a_pool_that_cannot_be_read_ends_with_the_files_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.jsonl"):
        document("few-shot", CASE, pool=str(tmp_path / "nothing.jsonl"))
