"""Counterfactual reasoning: batches, who sees what and when, edits and their numbers, consensus and judge, every option."""

import asyncio
import json
import math
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rapidfuzz.distance import Indel

from ddx_local import jobs
from ddx_local.assets import Assets
from ddx_local.case import Case, Counterfactual, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import ParseError, UsageError
from ddx_local.flow import Ask, Similarity
from ddx_local.grammar import accepts
from ddx_local.launch import Opened
from ddx_local.methods.counterfactual import counterfactual
from ddx_local.methods.counterfactual_options import PARTS, Options
from ddx_local.methods.counterfactual_steps import DIFFERENTIAL
from ddx_local.methods.table import METHODS
from ddx_local.options import parse
from ddx_local.request import LoglikelihoodRequest
from ddx_local.result import schema
from ddx_local.store import Store
from tests.methods.counterfactual_world import (
    CASE,
    CLINICIAN,
    NAMES,
    QUOTES,
    asked,
    edit,
    mark,
    run,
    team,
)
from tests.methods.driving import Driven, World, drive

FIRST = ["triage + differential", "report + edit", "probability", "stance"]
FURTHER = ["summary", "edit", "probability", "stance"]


def agreeing(after: int) -> Callable[[int, int], int]:
    """All hold the first candidate from this round on; before that they are of two minds."""
    return lambda seat, number: 0 if number >= after else seat % 2


def named(*steps: str) -> list[str]:
    return [f"counterfactual/{step}" for step in steps]


def diagnoses(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def test_the_options_are_the_papers() -> None:
    options = Options()
    assert (options.specialists, options.candidates, options.samples, options.edits, options.rounds) == (5, 3, 1, 2, 3)
    assert (options.top, options.consensus, options.least_sip, options.least_edit_sim) == (3, 0.75, 0.85, 0.80)
    assert (options.w_sem, options.w_edit, options.w_signal, options.w_shift, options.w_sip) == (
        0.7,
        0.3,
        0.8,
        0.75,
        0.2,
    )
    assert (options.gap, options.without) == ("signed", ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"specialists": 1},
        {"specialists": 9},
        {"candidates": 1},
        {"candidates": 9},
        {"samples": 0},
        {"edits": 0},
        {"edits": 6},
        {"rounds": -1},
        {"top": 0},
        {"consensus": 1.1},
        {"least_sip": -0.1},
        {"least_edit_sim": float("nan")},
        {"w_shift": 2.0},
        {"gap": "absolute"},
        {"without": ("judge",)},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Options(**wrong)
    with pytest.raises(UsageError):
        parse(Options, wrong, "counterfactual")


# Rounds and batches


@pytest.mark.parametrize(
    ("further", "specialists", "candidates", "edits"),
    [(0, 5, 3, 2), (1, 5, 3, 2), (3, 5, 3, 2), (3, 2, 2, 1), (1, 3, 4, 3), (0, 8, 3, 1)],
)
def test_four_batches_a_round_then_the_trace_whatever_s_k_and_n_are(
    further: int, specialists: int, candidates: int, edits: int
) -> None:
    driven = run(
        team(seats=specialists, holds=agreeing(further + 1)),
        specialists=specialists,
        candidates=candidates,
        edits=edits,
    )
    assert driven.batches == named(*FIRST, *FURTHER * further, "trace")
    assert len(driven.batches) == 5 + 4 * further
    sizes = {step: len(asked(driven, step)) for step in ("report", "edit", "stance", "clinician", "summary", "trace")}
    held = min(2, candidates)
    assert sizes == {
        "report": specialists,
        "edit": specialists * (candidates + held * further),
        "stance": specialists * (1 + further),
        "clinician": 1 + further,
        "summary": further,
        "trace": 1,
    }
    assert driven.answer.trace is not None
    assert driven.answer.trace.by_consensus


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_without_consensus_all_rounds_are_used_and_the_judge_is_asked_once(rounds: int) -> None:
    driven = run(rounds=rounds)
    assert driven.batches == named(*FIRST, *FURTHER * rounds, "judge", "trace")
    assert len(driven.batches) == 6 + 4 * rounds
    assert driven.answer.trace is not None
    assert not driven.answer.trace.by_consensus
    assert len(driven.noted("judge")) == 1


def test_with_consensus_the_judge_is_not_asked() -> None:
    driven = run(team(holds=agreeing(2)))
    assert asked(driven, "judge") == []
    assert driven.noted("judge") == []


def test_scoring_is_one_round_over_the_case_and_every_edited_case_and_every_candidate() -> None:
    driven = run(team(holds=agreeing(1)))
    (scoring,) = [round_ for round_ in driven.rounds if round_.name == "counterfactual/probability"]
    assert len(scoring.questions) == 1 + 5 * 3 * 2
    texts = [weighed.slots["case"] for weighed in driven.weighed]
    assert texts[0] == CASE.text
    assert len(set(texts)) == len(texts)
    assert all(weighed.labels == NAMES[:3] and set(weighed.slots) == {"case"} for weighed in driven.weighed)


def test_two_edits_that_make_the_same_case_are_scored_once() -> None:
    same = team(holds=agreeing(1), edits=lambda *_: [edit("replace", (QUOTES[0], "mild pain"))] * 2)
    driven = run(same)
    assert len(driven.weighed) == 2
    assert len(driven.answer.counterfactuals) == 5 * 3 * 2


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "text",
    [
        CASE.text,
        "fever 39",
        "x" * 300,
        " " * 30 + "He has a fever of 39.1 C since Monday." + " " * 30,
        "患者男五十八岁 突发胸痛三小时 伴大汗 既往有高血压病史" * 4,
        'He "hurts" \\ a\n lot 🫀 {{case}} today',
    ],
)
def test_whatever_the_models_say_a_sound_answer_comes_out(text: str, seed: int) -> None:
    def probability(case: str, label: str) -> float:
        return (1 + zlib.crc32(f"{case} {label}".encode()) % 97) / 100

    case = Case("odd", text)
    options = Options(specialists=2, candidates=2, edits=2, rounds=1)
    world = World(similarity=lambda a, b: Indel.normalized_similarity(a, b), seed=seed, probability=probability)
    driven = drive(counterfactual(case, options), world)
    assert len(driven.batches) in (5, 9, 10)
    answer = driven.answer
    assert 1 <= len(answer.entries) <= 2
    assert sum(entry.probability or 0 for entry in answer.entries) == pytest.approx(1)
    for found in answer.entries:
        assert all(text[item.quote.start : item.quote.end] == item.quote.quote != "" for item in found.evidence)
    for item in answer.counterfactuals:
        assert item.patches
        assert all(0 <= start <= end <= len(text) for start, end, _ in item.patches)
        assert all(math.isfinite(value) for value in (item.gap, item.gap_paper, item.sip, item.combined, item.shift))


# Who takes part and what is under test


def test_triage_takes_two_or_more_different_specialists_of_the_pool() -> None:
    driven = run(team(seats=2, holds=agreeing(1)))
    assert len(asked(driven, "stance")) == 2
    (question,) = asked(driven, "triage")
    assert question.ask.slots["pool"] == panel_choices()
    grammar = question.filled.grammar
    assert grammar is not None
    for count, legal in ((1, False), (2, True), (5, True), (6, False)):
        assert accepts(grammar, json.dumps(panel_choices()[:count])) == legal
    assert not accepts(grammar, '["cardiologist", "cardiologist"]')
    assert not accepts(grammar, '["cardiologist", "surgeon of all trades"]')


def test_two_specialists_must_both_agree() -> None:
    assert len(run(team(seats=2), rounds=0).batches) == 6


def test_candidates_that_are_the_same_diagnosis_are_one_and_that_there_are_fewer_is_noted() -> None:
    driven = run(team(lists=[("Myocardial infarction", "Heart attack", "Pericarditis")]), rounds=0)
    assert set(diagnoses(driven)) == {"Myocardial infarction", "Pericarditis"}
    assert driven.noted("candidates") == ["the model named 2 different diagnoses, 3 were asked for"]
    assert driven.weighed[0].labels == ("Myocardial infarction", "Pericarditis")
    assert run(rounds=0).noted("candidates") == []


def test_a_model_that_names_one_diagnosis_three_times_gets_an_answer() -> None:
    driven = run(team(lists=[("MI", "Myocardial infarction", "Heart attack")]))
    assert diagnoses(driven) == ["MI"]
    assert driven.answer.entries[0].probability == 1.0
    assert {item.gap for item in driven.answer.counterfactuals} == {0.0}
    assert len(driven.batches) == 5


def test_of_several_samples_the_k_most_named_are_taken_then_the_better_place() -> None:
    lists = [
        ("Sarcoidosis", "Pneumonia", "Myocardial infarction"),
        ("Pericarditis", "Heart attack", "Pneumonia"),
        ("Aortic dissection", "MI", "Pulmonary embolism"),
    ]
    driven = run(team(lists), samples=3, rounds=0)
    first = driven.rounds[0]
    assert len(first.questions) == 4, "all samples and the triage in one round"
    assert driven.weighed[0].labels == ("Myocardial infarction", "Pneumonia", "Sarcoidosis")


def test_a_sample_that_names_a_diagnosis_twice_has_one_vote() -> None:
    lists = [
        ("MI", "Heart attack", "Myocardial infarction"),
        ("Gout", "Pneumonia", "Sarcoidosis"),
        ("Pneumonia", "Gout"),
    ]
    lists[2] = ("Pneumonia", "Gout", "Pericarditis")
    driven = run(team(lists), samples=3, candidates=3, rounds=0)
    assert driven.weighed[0].labels == ("Gout", "Pneumonia", "MI")


HARD = (
    'the "sick sinus" syndrome',
    "α1-antitrypsin deficiency (PiZZ, [adult])",
    "21-hydroxylase deficiency",
    "fever, cough, and chills",
    "Guillain-Barré syndrome",
    "x" * 60,
    "A" * 124,
    "肺炎",
    "back\\slash \\n disease",
)


@pytest.mark.parametrize("name", HARD)
def test_hard_names_can_be_tested_chosen_judged_and_traced(name: str) -> None:
    world = team(lists=[(name, "Gout", "Pericarditis")], edits=lambda *_: [edit("negate", (QUOTES[0], "no pain"))])
    replies = {key: reply for key, reply in world.items() if key != "counterfactual/differential"}
    answer = {"differential": [{"diagnosis": item, "reason": "R"} for item in (name, "Gout", "Pericarditis")]}
    known = {**replies, "counterfactual/differential": lambda _: answer}
    driven = drive(
        counterfactual(CASE, Options(specialists=2, edits=1, rounds=1)),
        World(known, lambda a, b: 0.9, lawful=False),  # noqa: ARG005
    )
    for item in driven.said:
        assert item.filled.grammar is not None
        if item.step != "counterfactual/differential":  # a model cannot name all of these; a list may hold them
            assert accepts(item.filled.grammar, json.dumps(item.answer, ensure_ascii=False))
    assert diagnoses(driven)[0] == name
    assert {item.diagnosis for item in driven.answer.counterfactuals} >= {name}


# Who sees what


def in_prompts(driven: Driven[Any], text: str) -> set[tuple[str, str, int]]:
    """(step, role, which time) of all questions that show a text."""
    found = set()
    for step in ("report", "edit", "stance", "clinician", "summary", "judge", "trace"):
        turns: dict[tuple[str, str], int] = {}
        for item in asked(driven, step):
            place = (item.role, str(item.ask.slots.get("diagnosis", "")))
            turns[place] = turns.get(place, 0) + 1
            if text in item.prompt:
                found.add((step, item.role, turns[place]))
    return found


def test_reports_do_not_see_each_other_and_all_stances_see_all_reports() -> None:
    driven = run(rounds=1)
    for speaker in driven.answer.panel[:-1]:
        said = mark("report", speaker, 1)
        seen = in_prompts(driven, said)
        assert {item for item in seen if item[0] in ("stance", "clinician")} == {
            *(("stance", role, turn) for role in driven.answer.panel[:-1] for turn in (1, 2)),
            ("clinician", CLINICIAN, 1),
            ("clinician", CLINICIAN, 2),
        }
        assert {item for item in seen if item[0] == "report"} == set()
        assert {turn for step, _, turn in seen if step == "edit"} == {2}, "the first edits are made beside the reports"


def test_positions_are_seen_from_the_next_round_on_by_all_and_in_no_earlier_one() -> None:
    driven = run(rounds=2)
    panel = driven.answer.panel
    assert panel[-1] == CLINICIAN
    for speaker in panel:
        for number in (1, 2, 3):
            seen = in_prompts(driven, mark("stance", speaker, number))
            stances = {item for item in seen if item[0] in ("stance", "clinician")}
            following = {(("clinician" if role == CLINICIAN else "stance"), role, number + 1) for role in panel}
            assert stances == (following if number < 3 else set())
            assert {turn for step, _, turn in seen if step == "edit"} == ({number + 1} if number < 3 else set())
            assert {turn for step, _, turn in seen if step == "summary"} == ({number} if number < 3 else set())
            assert {step for step, _, _ in seen} >= {"judge", "trace"}, "who closes the discussion sees all of it"


def test_minutes_are_seen_by_all_of_the_next_round_and_only_the_last_ones() -> None:
    driven = run(rounds=2)
    for item in ("agreed", "disputed", "open"):
        seen = in_prompts(driven, mark(item, "minutes", 1))
        assert {turn for step, _, turn in seen if step in ("stance", "clinician")} == {2}
        assert {turn for step, _, turn in seen if step == "summary"} == {2}
        assert {step for step, _, _ in in_prompts(driven, mark(item, "minutes", 2))} >= {"judge", "trace", "stance"}


def test_a_question_reaches_the_one_asked_in_the_next_round_alone_and_the_answer_comes_back() -> None:
    def questions(role: str, number: int) -> list[tuple[str, str]]:
        if number == 1 and role == "cardiologist":
            return [("neurologist", "Is Q-ONE central"), (CLINICIAN, "Is Q-TWO in order")]
        return [("cardiologist", "Is Q-THREE heard")] if number == 1 and role == CLINICIAN else []

    driven = run(team(questions=questions), rounds=2)
    for asker, to, text in (
        ("cardiologist", "neurologist", "Is Q-ONE central"),
        ("cardiologist", CLINICIAN, "Is Q-TWO in order"),
        (CLINICIAN, "cardiologist", "Is Q-THREE heard"),
    ):
        line = f"Questions put to you:\n- from the {asker}: {text}\n"
        step = "clinician" if to == CLINICIAN else "stance"
        assert in_prompts(driven, line) == {(step, to, 2)}, f"{text} reached another one"
        (first, second, third) = asked(driven, step, to)
        assert [item.ask.slots["askers"] for item in (first, second, third)] == [(), (asker,), ()]
        said = mark(f"answer to {asker}", to, 2)
        assert [item["answer"] for item in second.answer["answers"]] == [said]
        back = f'answers the {asker}, who asked "{text}": {said}'
        whole = asked(driven, "clinician" if asker == CLINICIAN else "stance", asker)
        assert [back in item.prompt for item in whole] == [False, False, True]
    nobody = asked(driven, "stance", "pulmonologist")
    assert all("Questions put to you:\n(none)\n" in item.prompt for item in nobody)


def test_two_questions_to_one_role_both_reach_it() -> None:
    both = [("neurologist", "Is Q-ONE central"), ("neurologist", "Is Q-TWO new")]
    driven = run(team(questions=lambda role, number: both if (role, number) == ("cardiologist", 1) else []), rounds=1)
    assert asked(driven, "stance", "neurologist")[1].ask.slots["received"] == (
        "from the cardiologist: Is Q-ONE central Is Q-TWO new",
    )


def test_nobody_answers_what_nobody_asked_and_every_question_is_answered_once() -> None:
    driven = run(
        team(questions=lambda role, _: [("neurologist", f"Why {role}")] if role != "neurologist" else []), rounds=1
    )
    first, second = asked(driven, "stance", "neurologist")
    assert first.answer["answers"] == []
    assert [item["to"] for item in second.answer["answers"]] == [
        role for role in driven.answer.panel if role != "neurologist"
    ], "five askers are more than three"
    for item, count in ((first, 0), (second, 5)):
        assert item.filled.grammar is not None
        one = {"to": "cardiologist", "answer": "Because"}
        for answers in ([], [one], item.answer["answers"], [*item.answer["answers"][:-1], one]):
            said = json.dumps({**item.answer, "answers": answers})
            assert accepts(item.filled.grammar, said) == (answers == item.answer["answers"]), (count, answers)


@pytest.mark.parametrize("step", ["stance", "clinician"])
def test_questions_go_to_others_of_the_team_only_and_three_at_most(step: str) -> None:
    item = asked(run(rounds=0), step)[0]
    others = [role for role in (*panel_choices()[3:8], CLINICIAN) if role != item.role]
    assert list(item.ask.slots["others"]) == others
    assert item.filled.grammar is not None
    for to, legal in ((others[:3], True), (others[:4], False), ([item.role], False), (["dentist"], False)):
        questions = [{"to": role, "question": "Why so"} for role in to]
        assert accepts(item.filled.grammar, json.dumps({**item.answer, "questions": questions})) == legal


def test_the_clinician_sees_the_team_and_no_test_and_the_specialists_see_their_own_tests_only() -> None:
    driven = run(rounds=1)
    new = {item.by: {text for _, _, text in item.patches} for item in driven.answer.counterfactuals}
    for item in driven.answer.counterfactuals:
        new[item.by] |= {text for _, _, text in item.patches}
    assert len(new) == 5
    for question in asked(driven, "clinician"):
        assert "gap" not in question.prompt
        assert not [text for texts in new.values() for text in texts if text in question.prompt]
        assert "tests" not in question.ask.slots
        assert "M-tests" not in question.prompt, "nor what the others read from theirs"
    for question in asked(driven, "stance"):
        shown = [role for role, texts in new.items() for text in texts if text in question.prompt]
        assert set(shown) == {question.role}
        assert len(shown) == 3
    closing = asked(driven, "judge")[0].prompt
    assert mark("tests", "cardiologist", 1) in closing
    assert mark("tests", "cardiologist", 2) in closing


def test_the_judge_and_the_trace_see_the_strongest_tests_of_all_and_how_many_more_there_are() -> None:
    driven = run(rounds=0)
    for step in ("judge", "trace"):
        prompt = asked(driven, step)[0].prompt
        assert prompt.count(", round 1)") == 9
        assert "- and 21 weaker ones" in prompt
    assert "weaker" not in asked(run(rounds=0, edits=1, specialists=3), "judge")[0].prompt
    trace = asked(driven, "trace")[0].prompt
    assert mark("judge", "judge", 1) in trace
    assert f"The team's diagnosis: {NAMES[0]}" in trace


def test_the_same_prompts_begin_the_same_whoever_is_asked() -> None:
    driven = run(rounds=1)
    for number in (0, 1):
        prompts = [asked(driven, "stance", role)[number].prompt for role in driven.answer.panel[:-1]]
        prompts.append(asked(driven, "clinician")[number].prompt)
        begins = {prompt[: prompt.index("\n\nYou are the ")] for prompt in prompts}
        assert len(begins) == 1, "roles of a round share the case, the record and the discussion"


# Consensus, the clinician, the judge


@pytest.mark.parametrize(("apart", "batches"), [(1, 5), (2, 6)])
def test_four_of_five_are_enough_and_three_are_not(apart: int, batches: int) -> None:
    assert len(run(team(holds=lambda seat, _: 1 if seat < apart else 0), rounds=0).batches) == batches


def test_the_share_that_must_agree_is_an_option() -> None:
    three = team(holds=lambda seat, _: 1 if seat < 2 else 0)
    assert len(run(three, rounds=0, consensus=0.6).batches) == 5


def test_what_the_specialists_agree_on_is_the_answer_and_the_rest_goes_by_probability() -> None:
    shares = dict(zip(NAMES, (0.5, 0.1, 0.2), strict=False))
    driven = run(
        team(holds=lambda *_: 1),
        probability=lambda text, label: shares[label],  # noqa: ARG005
    )
    assert diagnoses(driven) == [NAMES[1], NAMES[0], NAMES[2]]
    assert [entry.rank for entry in driven.answer.entries] == [1, 2, 3]
    assert [entry.probability for entry in driven.answer.entries] == pytest.approx([0.125, 0.625, 0.25])
    assert driven.answer.score_kind == "probability"
    assert driven.answer.entries[0].stances == dict.fromkeys(driven.answer.panel[:-1], "support")


def test_the_clinician_may_leave_the_list_and_everybody_hears_it_but_does_not_count() -> None:
    replies = team(holds=agreeing(2), clinician=lambda _: "Takotsubo (stress)")
    driven = run(replies)
    assert len(driven.batches) == 9
    assert driven.answer.trace is not None
    assert driven.answer.trace.outside == "Takotsubo (stress)"
    assert len(driven.noted("outside")) == 2
    assert "Takotsubo (stress)" not in diagnoses(driven)
    seen = {role for step, role, turn in in_prompts(driven, "Takotsubo (stress)") if (step, turn) == ("stance", 2)}
    assert seen == set(driven.answer.panel[:-1])


def test_the_clinicians_voice_makes_no_consensus_and_breaks_none() -> None:
    three = team(holds=lambda seat, _: 1 if seat < 2 else 0)
    assert len(run(three, rounds=0).batches) == 6, "three specialists and the clinician are no four of five"
    against = team(holds=lambda seat, _: 1 if seat < 1 else 0, clinician=lambda _: NAMES[1])
    assert len(run(against, rounds=0).batches) == 5


def test_a_candidate_under_another_name_is_not_outside_the_list() -> None:
    driven = run(team(holds=agreeing(1), clinician=lambda _: "Heart attack"))
    assert driven.answer.trace is not None
    assert driven.answer.trace.outside == ""
    assert driven.noted("outside") == []
    assert CLINICIAN in driven.answer.entries[0].stances


def test_the_judge_chooses_from_the_candidates_alone_and_its_choice_is_first() -> None:
    driven = run(team(judge=2), rounds=0)
    assert diagnoses(driven)[0] == NAMES[2]
    (question,) = asked(driven, "judge")
    assert question.filled.temperature == 0.0
    assert question.filled.grammar is not None
    for name in NAMES:
        said = json.dumps({**question.answer, "diagnosis": name})
        assert accepts(question.filled.grammar, said) == (name in NAMES[:3])
    evidence = {item.quote.quote: item.by for item in driven.answer.entries[0].evidence}
    assert evidence[QUOTES[2].strip()] == ("judge",)


def test_specialists_choose_from_the_candidates_alone_and_the_clinician_need_not() -> None:
    driven = run(rounds=0)
    for step, free in (("stance", False), ("clinician", True)):
        item = asked(driven, step)[0]
        assert item.filled.grammar is not None
        assert accepts(item.filled.grammar, json.dumps({**item.answer, "diagnosis": NAMES[1]}))
        assert accepts(item.filled.grammar, json.dumps({**item.answer, "diagnosis": "Gout"})) == free


# Edits and their numbers


def test_later_rounds_test_only_what_a_specialist_holds_with_new_edits() -> None:
    driven = run(team(holds=lambda seat, number: (1 if seat < 2 else 2) if number == 1 else 2), rounds=3)
    edits = asked(driven, "edit", "cardiologist")
    assert [item.ask.slots["diagnosis"] for item in edits] == [*NAMES[:3], NAMES[1], NAMES[2]]
    for item in edits:
        assert item.ask.slots["others"] == tuple(name for name in NAMES[:3] if name != item.ask.slots["diagnosis"])
        assert item.filled.temperature == 0.7
    assert {item.round for item in driven.answer.counterfactuals} == {"1", "2"}
    outside = team(clinician=lambda _: NAMES[2])
    tested = asked(run(outside, rounds=1), "edit", "cardiologist")
    assert [item.ask.slots["diagnosis"] for item in tested][3:] == list(NAMES[:2]), "the clinician's does not count"


def one_edit(*edits: list[Any]) -> Callable[[str, str, int, int], list[list[Any]]]:
    """These edits of the cardiologist for the first candidate; all others change nothing."""
    idle = edit("replace", (QUOTES[1], QUOTES[1].strip()))

    def found(role: str, name: str, number: int, count: int) -> list[list[Any]]:  # noqa: ARG001
        own = list(edits) if (role, name) == ("cardiologist", NAMES[0]) else []
        return [*own, *[idle] * count][:count]

    return found


def shares(rules: Mapping[str, tuple[float, ...]], usual: tuple[float, ...]) -> Callable[[str, str], float]:
    """Raw probabilities of the candidates by a word that the text holds."""

    def probability(text: str, label: str) -> float:
        row = next((row for word, row in rules.items() if word in text), usual)
        return row[NAMES.index(label)]

    return probability


def test_an_edit_has_all_its_numbers_in_the_document() -> None:
    change = edit("negate", (QUOTES[0], "no pain"), (QUOTES[2], "no fever"))
    driven = run(
        team(holds=agreeing(1), edits=one_edit(change)),
        similarity=lambda a, b: 0.9 if len(a) > 128 else 0.2,  # noqa: ARG005
        probability=shares({"no pain": (0.02, 0.06, 0.02)}, (0.06, 0.02, 0.02)),
        noise=0.1,
        edits=1,
    )
    (found,) = driven.answer.counterfactuals
    text = CASE.text
    starts = text.index("crushing"), text.index("fever of")
    assert found.patches == (
        (starts[0], starts[0] + len("crushing chest pain"), "no pain"),
        (starts[1], starts[1] + len("fever of 39.1 C"), "no fever"),
    )
    edited = text.replace("crushing chest pain", "no pain").replace("fever of 39.1 C", "no fever")
    assert edited in [weighed.slots["case"] for weighed in driven.weighed]
    spelling = Indel.normalized_similarity(text, edited)
    preserved = 0.7 * 0.95 + 0.3 * spelling
    shift = 1 - (0.2 + 1) / 2
    assert (found.by, found.round, found.diagnosis, found.operation) == ("cardiologist", "1", NAMES[0], "negate")
    assert (found.p_before, found.p_after) == pytest.approx((0.6, 0.2))
    assert (found.gap, found.gap_raw) == pytest.approx((0.4, 0.04))
    assert (found.gap_paper, found.gap_paper_raw) == pytest.approx((0.0, 0.0))
    assert found.noise_floor == pytest.approx(0.1 * (0.24 + 0.16))
    assert (found.edit_sim, found.sip, found.shift) == pytest.approx((spelling, preserved, shift), abs=1e-6)
    assert found.combined == pytest.approx(0.8 * max(0.4, 0.75 * shift) + 0.2 * preserved, abs=1e-6)
    assert found.kept
    line = (
        '- negate "crushing chest pain": "no pain"; negate "fever of 39.1 C": "no fever". P(Myocardial infarction) 0.60 -> 0.20, '
        "gap +0.40, and Pulmonary embolism becomes the most likely\n"
    )
    assert line in asked(driven, "stance", "cardiologist")[0].prompt


def test_a_diagnosis_that_stays_the_most_likely_has_not_shifted() -> None:
    driven = run(
        team(holds=agreeing(1), edits=one_edit(edit("negate", (QUOTES[0], "no pain")))),
        similarity=lambda a, b: 0.9 if len(a) > 128 else 0.2,  # noqa: ARG005
        probability=shares({"no pain": (0.04, 0.03, 0.03)}, (0.06, 0.02, 0.02)),
    )
    (found,) = driven.answer.counterfactuals
    assert found.shift == 0
    assert found.gap == found.gap_paper == pytest.approx(0.2)
    assert found.combined == pytest.approx(0.8 * 0.2 + 0.2 * found.sip)


def test_a_gap_under_its_noise_floor_is_called_that() -> None:
    change = edit("negate", (QUOTES[0], "no pain"))
    for noise, under in ((0.0, False), (0.3, True)):
        driven = run(
            team(holds=agreeing(1), edits=one_edit(change)),
            probability=shares({"no pain": (0.055, 0.02, 0.02)}, (0.06, 0.02, 0.02)),
            noise=noise,
            edits=1,
        )
        assert ("below the noise floor" in asked(driven, "stance", "cardiologist")[0].prompt) == under


def test_both_gaps_rank_the_tests_each_in_its_way() -> None:
    flips, grows = edit("negate", (QUOTES[0], "no pain one")), edit("negate", (QUOTES[0], "no pain two"))
    rules = {"pain one": (0.1, 0.6, 0.3), "pain two": (0.75, 0.15, 0.1)}
    signals = {"no pain one": {"signed": 0.4, "paper": 0.1}, "no pain two": {"signed": 0.25, "paper": 0.25}}
    order = {}
    for mode in ("signed", "paper"):
        driven = run(
            team(holds=agreeing(1), edits=one_edit(flips, grows)),
            similarity=lambda a, b: 1.0,  # noqa: ARG005
            probability=shares(rules, (0.5, 0.3, 0.2)),
            gap=mode,
        )
        values = {item.patches[0][2]: item for item in driven.answer.counterfactuals}
        assert values["no pain one"].gap == pytest.approx(0.4)
        assert values["no pain one"].gap_paper == pytest.approx(0.1)
        assert values["no pain two"].gap == pytest.approx(-0.25)
        assert values["no pain two"].gap_paper == pytest.approx(0.25)
        for text, signal in signals.items():
            item = values[text]
            assert item.combined == pytest.approx(0.8 * signal[mode] + 0.2 * item.sip), (
                "the size of the gap, not its sign"
            )
        prompt = asked(driven, "stance", "cardiologist")[0].prompt
        order[mode] = prompt.index('"no pain one"') < prompt.index('"no pain two"')
    assert order == {"signed": True, "paper": False}


def test_a_specialist_is_shown_its_strongest_tests_and_no_more_than_asked_for() -> None:
    news = [f"pain {place}" for place in "abcde"]
    drop = {news[2]: (0.1, 0.45, 0.45), news[0]: (0.2, 0.4, 0.4), news[4]: (0.25, 0.375, 0.375)}
    changes = [edit("replace", (QUOTES[0], new)) for new in news]
    for top in (1, 2, 3):
        driven = run(
            team(holds=agreeing(1), edits=one_edit(*changes)),
            similarity=lambda a, b: 1.0,  # noqa: ARG005
            probability=shares(drop, (0.4, 0.3, 0.3)),
            edits=5,
            top=top,
        )
        prompt = asked(driven, "stance", "cardiologist")[0].prompt
        shown = sorted((new for new in news if f'"{new}"' in prompt), key=lambda new: prompt.index(f'"{new}"'))
        assert shown == [news[2], news[0], news[4]][:top]


@pytest.mark.parametrize(("option", "value"), [("least_sip", 0.99), ("least_edit_sim", 0.999)])
def test_if_no_edit_preserves_enough_the_specialist_has_none_and_that_is_noted(option: str, value: float) -> None:
    driven = run(team(holds=agreeing(1)), **{option: value})
    assert len(driven.answer.counterfactuals) == 30
    assert not [item for item in driven.answer.counterfactuals if item.kept]
    assert driven.noted("no_counterfactual") == [
        f"round 1: no edit of the {role} changed the case and preserved enough of it"
        for role in driven.answer.panel[:-1]
    ]
    for question in asked(driven, "stance"):
        assert "means nothing.\n- none\n" in question.prompt
        assert "M-report" in question.prompt
    assert "The tests of the evidence:\n- none\n" in asked(driven, "trace")[0].prompt


def test_the_two_thresholds_are_inclusive_and_both_must_be_met() -> None:
    driven = run(team(holds=agreeing(1)))
    for item in driven.answer.counterfactuals:
        assert item.kept == (item.sip >= 0.85 and item.edit_sim >= 0.80)
    least = min(item.sip for item in driven.answer.counterfactuals)
    assert all(item.kept for item in run(team(holds=agreeing(1)), least_sip=least).answer.counterfactuals)
    wild = edit("replace", *[(quote, "Q" * 40) for quote in QUOTES[:4]])
    replies = team(holds=agreeing(1), edits=lambda *_: [wild])
    few = run(replies, similarity=lambda a, b: 1.0, edits=1)  # noqa: ARG005
    assert {item.kept for item in few.answer.counterfactuals} == {False}
    assert all(item.sip >= 0.85 and item.edit_sim < 0.80 for item in few.answer.counterfactuals)


def test_edits_that_change_nothing_are_dropped_and_counted() -> None:
    driven = run(team(holds=agreeing(1), edits=one_edit(edit("negate", (QUOTES[0], "no pain")))))
    assert len(driven.answer.counterfactuals) == 1
    assert driven.noted("edits") == ["round 1: 29 edits left out that change nothing"]
    assert len(driven.noted("no_counterfactual")) == 4
    back = edit(
        "replace", ("drinks a glass of wine ", "drinks a glass of wine on"), ("on Sundays, and ", "Sundays, and")
    )
    assert run(team(holds=agreeing(1), edits=one_edit(back))).answer.counterfactuals == ()


def test_a_specialist_inserts_once_a_round() -> None:
    added = [edit("insert", (QUOTES[0], "with sweat")), edit("insert", (QUOTES[1], "and redness"))]
    driven = run(team(edits=lambda role, name, number, count: added[:count]), rounds=1)  # noqa: ARG005
    found = [(item.by, item.round) for item in driven.answer.counterfactuals]
    assert sorted(found) == sorted((role, number) for role in driven.answer.panel[:-1] for number in ("1", "2"))
    assert all(start == end for item in driven.answer.counterfactuals for start, end, _ in item.patches)
    assert driven.noted("edits") == [
        "round 1: 25 insertions left out beyond each specialist's first",
        "round 2: 15 insertions left out beyond each specialist's first",
    ]


def test_an_edit_may_take_the_whole_case_and_is_then_not_kept() -> None:
    case = Case("short", "crushing chest pain since May")
    all_of_it = edit("remove", ("crushing chest pain since May", ""))
    world = {
        **team(edits=lambda *_: [all_of_it]),
        **dict.fromkeys(named("report", "stance", "clinician", "judge", "trace")),
    }
    replies = {step: reply for step, reply in world.items() if reply}
    driven = drive(
        counterfactual(case, Options(specialists=2, candidates=2, edits=1, rounds=0)),
        World(replies, seed=3),
    )
    assert {weighed.slots["case"] for weighed in driven.weighed} == {case.text, ""}
    assert {item.kept for item in driven.answer.counterfactuals} == {False}


def test_changing_the_weights_changes_the_score() -> None:
    change = edit("negate", (QUOTES[0], "no pain"))
    values = []
    for weights in ({}, {"w_signal": 0.5, "w_sip": 0.5}, {"w_sem": 0.3, "w_edit": 0.7}):
        driven = run(team(holds=agreeing(1), edits=one_edit(change)), edits=1, **weights)
        values.append((driven.answer.counterfactuals[0].combined, driven.answer.counterfactuals[0].sip))
    assert values[0][1] == values[1][1] != values[2][1]
    assert len({combined for combined, _ in values}) == 3


# Ablations


@pytest.mark.parametrize("part", PARTS)
def test_without_drops_exactly_its_part(part: str) -> None:
    full, less = run(), run(without=(part,))
    gone = {
        "editing": named("edit"),
        "rounds": named("summary"),
        "reports": named("report"),
        "roles": named("triage"),
        "clinician": named("clinician"),
    }[part]
    assert {item.step for item in full.said} - {item.step for item in less.said} == set(gone)
    if part == "rounds":
        assert less.batches == named(*FIRST, "judge", "trace")
    elif part == "editing":
        assert len(less.batches) == 6 + 2 * 3, "probabilities are taken once, and there are no edits"
        assert less.answer.counterfactuals == ()
        assert less.compared == []
        assert less.noted("no_counterfactual") == []
    else:
        assert len(less.batches) == 6 + 4 * 3
    assert (CLINICIAN in less.answer.panel) == (part != "clinician")
    assert all(entry.probability for entry in less.answer.entries)
    assert len(asked(less, "stance")) == len(asked(full, "stance")) / (4 if part == "rounds" else 1)
    if part == "roles":
        assert less.answer.panel == (*[f"physician {number}" for number in range(1, 6)], CLINICIAN)
    if part == "reports":
        assert not [item for item in less.said if "REPORTS:" in item.prompt]


def test_all_parts_may_be_left_out_together() -> None:
    driven = run(team(holds=agreeing(1)), without=PARTS)
    assert driven.batches == named("triage + differential", "probability", "stance", "trace")
    assert diagnoses(driven)[0] == NAMES[0]


# Evidence


def test_evidence_is_located_and_tells_who_gave_it_and_for_which_side() -> None:
    driven = run(team(holds=lambda seat, _: 0 if seat < 4 else 1))
    panel = driven.answer.panel
    first = driven.answer.entries[0]
    found = {(item.quote.quote, item.supports): item.by for item in first.evidence}
    assert found == {
        (QUOTES[0].strip(), True): (*panel[:4], CLINICIAN),
        (QUOTES[3].strip(), True): ("trace",),
        (QUOTES[4].strip(), False): ("trace",),
    }
    for entry in driven.answer.entries:
        for item in entry.evidence:
            assert CASE.text[item.quote.start : item.quote.end] == item.quote.quote
            assert item.quote.start == CASE.text.index(item.quote.quote)
    assert first.stances == dict.fromkeys((*panel[:4], CLINICIAN), "support")
    assert driven.answer.trace is not None
    assert (driven.answer.trace.conclusion, driven.answer.trace.would_change) == ("The end", "A scan")


def test_a_quote_of_blanks_alone_is_no_evidence_and_no_failure() -> None:
    case = Case("blank", CASE.text + " " * 20 + "the end")
    replies = team(holds=agreeing(1))
    real = replies["counterfactual/stance"]
    blank = {**replies, "counterfactual/stance": lambda ask: {**real(ask), "discriminating": [" " * 20]}}
    driven = drive(counterfactual(case, Options()), World(blank, lawful=False))
    assert all(item.quote.quote.strip() for entry in driven.answer.entries for item in entry.evidence)


def test_a_quote_that_is_not_in_the_case_fails_the_case_without_being_told() -> None:
    def invented() -> dict[str, Any]:
        replies = team(holds=agreeing(1))
        real = replies["counterfactual/stance"]
        return {**replies, "counterfactual/stance": lambda ask: {**real(ask), "discriminating": ["a cough since May "]}}

    with pytest.raises(AssertionError, match="no engine can answer"):
        run(invented())
    with pytest.raises(ParseError) as error:
        drive(counterfactual(CASE, Options()), World(invented(), lawful=False))
    assert "cough" not in str(error.value)


# Room


def refusing(step: str, times: int) -> Callable[[Ask[Any]], bool]:
    left = {step: times}

    def fits(ask: Ask[Any]) -> bool:
        if ask.step.name != f"counterfactual/{step}" or left[step] == 0:
            return True
        left[step] -= 1
        return False

    return fits


def test_what_does_not_fit_is_shown_in_less_detail_and_that_is_noted_as_degraded() -> None:
    questions = lambda role, number: [("neurologist", "Is Q-ONE central")] if role == "cardiologist" else []  # noqa: ARG005, E731
    prompts = []
    for times in range(3):
        driven = run(team(questions=questions), rounds=1, fits=refusing("judge", times))
        prompts.append(asked(driven, "judge")[0].prompt)
        degraded = [note.detail for note in driven.notes if note.degraded]
        assert len(degraded) == (times > 0)
        assert all(detail.startswith("counterfactual/judge: ") for detail in degraded)
    full, brief, bare = prompts
    assert len(full) > len(brief) > len(bare)
    assert mark("stance", "cardiologist", 1) in full
    assert mark("stance", "cardiologist", 1) not in brief
    assert "Is Q-ONE central" in brief
    assert "Is Q-ONE central" not in bare
    assert all(f"cardiologist: {NAMES[0]} (moderate)" in prompt for prompt in prompts)


# The result document, and replay


def scored(request: LoglikelihoodRequest, label: str) -> float:
    return -1.0 - zlib.crc32(f"{request.messages[-1].content} {label}".encode()) % 4000 / 1000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("counterfactual") / "runs.sqlite")
    method = METHODS["counterfactual"]
    chosen = method.options(specialists=3, edits=2, rounds=1)
    job = jobs.Job(method, chosen, "scripted", "scripted", 5, {}, (CASE,))
    opened = Opened(ScriptedEngine(by_policy("walk"), score=scored), {Similarity: spelling_similarity})
    return store, asyncio.run(jobs.start(job, opened, store, None, 1))


def test_the_document_obeys_its_schema_and_has_every_counterfactual(recorded: tuple[Store, str]) -> None:
    (document,) = jobs.documents(*recorded)
    jsonschema.validate(document, schema(), format_checker=jsonschema.FormatChecker())
    assert document["status"] == "finished"
    assert document["counterfactuals"]
    assert {*Counterfactual.__slots__} == set(document["counterfactuals"][0])
    for item in document["counterfactuals"]:
        assert all(value is not None for value in item.values())
        for patch in item["patches"]:
            assert 0 <= patch["start"] <= patch["end"] <= len(CASE.text)
    assert len({item["gap"] for item in document["counterfactuals"]}) > 3
    assert document["trace"]["conclusion"]
    assert [item["name"] for item in document["rounds"]][:4] == named(*FIRST)


def test_a_replay_from_the_answers_alone_gives_the_same(recorded: tuple[Store, str]) -> None:
    store, run_id = recorded
    before = jobs.documents(store, run_id)
    assert json.dumps(asyncio.run(jobs.replay(run_id, store))) == json.dumps(before)


# The shared data


@pytest.fixture(scope="module")
def xddx(shared_data: Path) -> list[dict[str, Any]]:
    lines = (shared_data / "open-xddx-dev.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_gold_label_of_open_xddx_can_be_named(xddx: list[dict[str, Any]]) -> None:
    assert len(xddx) == 289
    assets = Assets()
    refused = []
    for row in xddx:
        lark = assets.fill(Ask(DIFFERENTIAL, {"case": row["case"], "k": str(len(row["gold"]))})).grammar
        assert lark is not None
        answer = {"differential": [{"diagnosis": name, "reason": "R"} for name in row["gold"]]}
        if not accepts(lark, json.dumps(answer, ensure_ascii=False)):
            refused.append(row["id"])
    assert refused == []


def test_three_spans_of_a_long_case_of_open_xddx_leave_its_spelling_over_nine_tenths(
    xddx: list[dict[str, Any]],
) -> None:
    long = [row["case"] for row in xddx if len(row["case"]) >= 700]
    assert len(long) > 100
    worst = 1.0
    for text in long:
        edited = list(text)
        for start in (len(text) // 5, len(text) // 2, len(text) * 4 // 5):
            edited[start : start + 20] = "§" * 20
        (value,) = asyncio.run(spelling_similarity(Similarity(((text, "".join(edited)),), "spelling")))
        worst = min(worst, value)
    assert worst > 0.9
