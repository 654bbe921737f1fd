"""DxChain: batches in every path, who sees what, the stack, expectations, stops, the gate, the debate, codes, ablations."""

from itertools import pairwise
from typing import Any

import pytest

from ddx_local.case import Case
from ddx_local.flow import Ask, Consult, Retrieve
from ddx_local.methods.dxchain import dxchain
from ddx_local.methods.dxchain_steps import EXPERTS, Options
from tests.methods.driving import World, drive
from tests.methods.dxchain_world import CASE, CODES, QUOTES, USUAL, answers, names, run
from tests.methods.real_driver import HARD
from tests.methods.scripted_run import document, quotes_stand_in

PHASE_1 = ["perception + profile", "abstract"]
TURN = ["expand", "select", "expert", "check", "synthesis", "reflection"]
REPLANNED = TURN[:4]
DEBATE = ["debate", "rebuttal", "verdict"]


def batches(driven: Any) -> list[str]:
    return [name.removeprefix("dxchain/") for name in driven.batches]


def sure(name: str) -> str:  # noqa: ARG001
    return "confident"


# Batches and calls


def test_the_least_is_ten_batches_and_no_ambiguity_is_no_debate() -> None:
    driven = run(answers(status=sure, experts=lambda kind: ("clinical_specialist",)))  # noqa: ARG005
    assert batches(driven) == [*PHASE_1, *TURN, "judge", "report"]
    assert len(driven.said) + len(driven.weighed) == 3 + 6 + 1 + (1 + 2)
    assert driven.noted("no_debate")
    assert driven.noted("stop") == ["the review passed in turn 1"]


def test_a_debate_makes_thirteen_batches() -> None:
    driven = run()
    assert batches(driven) == [*PHASE_1, *TURN, "judge", *DEBATE, "report"]
    sizes = [len(round_.questions) for round_ in driven.rounds if round_.is_batch]
    assert sizes == [2, 1, 1, 1, 2, 1, 1, 1, 1, 2, 2, 1, 3]


def test_the_most_is_six_batches_a_turn_and_seven_around_them() -> None:
    driven = run(answers(passes=lambda turn: False), turns=4)  # noqa: ARG005
    assert batches(driven) == [*PHASE_1, *TURN * 4, "judge", *DEBATE, "report"]
    (stop,) = driven.noted("stop")
    assert "turn limit 4" in stop
    assert [note.kind for note in driven.notes if note.degraded] == ["stop"]


def test_at_the_limit_a_contradicted_last_turn_is_still_brought_together() -> None:
    driven = run(conflicts=[0.9, 0.9], turns=2)
    assert batches(driven) == [*PHASE_1, *REPLANNED * 2, "synthesis", "judge", *DEBATE, "report"]
    assert names(driven)


@pytest.mark.parametrize(
    ("phases", "expected"), [("1", [*PHASE_1, "synthesis"]), ("1+2", [*PHASE_1, *TURN]), ("1+2+3", None)]
)
def test_the_ablations_leave_phases_out(phases: str, expected: list[str] | None) -> None:
    driven = run(phases=phases)
    assert expected is None or batches(driven) == expected
    assert names(driven)[:1] == ["Pulmonary embolism"]
    assert bool(driven.answer.investigations) == (phases != "1")
    assert bool(driven.answer.treatment) == (phases == "1+2+3")


def test_a_golden_trace() -> None:
    driven = run()
    assert [(item.batch, item.role, item.step.removeprefix("dxchain/")) for item in driven.said] == [
        (0, "perception", "perception"),
        (0, "profiler", "profile"),
        (1, "summarizer", "abstract"),
        (2, "planner", "expand"),
        (3, "evaluator", "select"),
        (4, "clinical_specialist", "expert"),
        (4, "diagnostic_test_specialist", "expert"),
        (6, "synthesis", "synthesis"),
        (7, "reflection", "reflection"),
        (8, "judge", "judge"),
        (9, "angel", "angel"),
        (9, "devil", "devil"),
        (10, "angel", "angel_rebuttal"),
        (10, "devil", "devil_rebuttal"),
        (11, "judge", "verdict"),
        (12, "judge", "report"),
        (12, "medical_coder", "code"),
        (12, "medical_coder", "code"),
    ]


def test_everything_is_asked_at_the_low_temperature() -> None:
    assert {item.filled.temperature for item in run().said} == {0.1}
    assert {item.filled.temperature for item in run(temperature=0.7).said} == {0.7}


# Memory


def test_the_profile_stands_in_every_later_prompt_and_is_never_condensed() -> None:
    for fits in (lambda ask: True, lambda ask: False):  # noqa: ARG005
        driven = run(answers(passes=lambda turn: turn == 2), conflicts=[0.9], fits=fits)
        later = [item for item in driven.said if item.batch > 0]
        assert all(
            "Acute: Acute state\nChronic: Chronic state\nRisk factors: Risk state" in item.prompt for item in later
        )
        assert all("Acute: Acute state" in str(weigh.slots["profile"]) for weigh in driven.weighed)
        assert not any("Acute state" in item.prompt for item in driven.said if item.batch == 0)


def test_the_abstract_sees_the_perceived_facts_and_the_profile_does_not() -> None:
    driven = run()
    (abstract,) = driven.of("dxchain/abstract").values()
    (profile,) = driven.of("dxchain/profile").values()
    assert f'Chief complaint: "{QUOTES[0].strip()}"' in abstract.prompt
    assert "FACTS BY HEADING" not in profile.prompt


# The tree


def test_expectations_are_committed_before_anything_is_seen_and_shown_to_no_expert() -> None:
    for item in run().of("dxchain/expert").values():
        assert "Name 1 broad" in item.prompt
        assert "Expected 1 broad" not in item.prompt


def test_no_expert_sees_another_of_the_same_turn_and_later_ones_see_all() -> None:
    driven = run(answers(passes=lambda turn: turn == 2))
    first = [item for item in driven.said if item.step == "dxchain/expert" and item.batch == 4]
    assert len(first) == 2
    assert not any("Means 1" in item.prompt for item in first)
    after = [item for item in driven.said if item.batch > 4]
    for role in ("clinical_specialist", "diagnostic_test_specialist"):
        assert all(f"Means 1 {role}" in item.prompt for item in after)


def test_a_planner_can_only_name_known_experts() -> None:
    with pytest.raises(AssertionError, match="no engine can answer"):
        run(answers(experts=lambda kind: ("wizard",)))  # noqa: ARG005


def test_two_strategies_are_the_broad_and_the_focused() -> None:
    for item in run(strategies=2).of("dxchain/select").values():
        assert item.ask.slots["open"] == ("1 broad", "1 focused")


def test_the_best_rated_branch_is_taken_and_the_others_are_kept() -> None:
    driven = run(answers(rating=lambda label: 9 if "focused" in label else 3, passes=lambda turn: turn == 2))
    assert [item.kind for item in driven.answer.investigations] == ["focused", "focused"]
    opens = [item.ask.slots["open"] for item in driven.said if item.step == "dxchain/select"]
    assert opens[1] == ("2 broad", "2 focused", "2 alternative", "1 broad", "1 alternative")


def test_going_back_to_an_earlier_branch_is_noted() -> None:
    rating = {"1 broad": 9, "1 alternative": 8}
    driven = run(answers(rating=lambda label: rating.get(label, 1)), conflicts=[0.9])
    assert [item.strategy for item in driven.answer.investigations] == ["Name 1 broad", "Name 1 alternative"]
    assert driven.noted("backtrack") == ["turn 2 goes back to the strategy 1 alternative"]


def test_equal_ratings_take_the_new_before_the_old_and_the_broad_first_and_say_so() -> None:
    driven = run(answers(rating=lambda label: 5), conflicts=[0.9])  # noqa: ARG005
    assert [item.strategy for item in driven.answer.investigations] == ["Name 1 broad", "Name 2 broad"]
    assert len(driven.noted("tie")) == 2
    assert not driven.noted("backtrack")


def test_the_stack_holds_six_branches_at_most() -> None:
    driven = run(conflicts=[0.9] * 6, turns=6)
    opens = [item.ask.slots["open"] for item in driven.said if item.step == "dxchain/select"]
    assert [len(items) for items in opens] == [3, 5, 7, 9, 9, 9]
    assert driven.noted("left_out")


# Expectations


@pytest.mark.parametrize(("conflict", "replans"), [(0.0, False), (0.49, False), (0.5, True), (1.0, True)])
def test_a_conflict_of_tau_or_more_plans_anew(conflict: float, replans: bool) -> None:
    driven = run(conflicts=[conflict])
    first = driven.answer.investigations[0]
    assert first.conflict == pytest.approx(conflict, abs=1e-9)
    assert first.replanned == replans
    assert len(driven.answer.investigations) == 1 + replans
    assert bool(driven.noted("replan")) == replans


def test_another_tau_is_another_threshold() -> None:
    assert len(run(conflicts=[0.6], tau=0.7).answer.investigations) == 1
    assert len(run(conflicts=[0.3], tau=0.2).answer.investigations) == 2


def test_the_check_sees_what_was_expected_and_what_the_record_says_but_no_interpretation() -> None:
    (check,) = run().weighed
    assert check.labels == ("yes", "no")
    assert check.slots["expected"] == "Expected 1 broad"
    assert f'Asked 1 clinical_specialist: "{QUOTES[0].strip()}"' in str(check.slots["observed"])
    assert "Means" not in str(check.slots["observed"])


def test_a_discrepancy_is_told_to_the_next_plan() -> None:
    driven = run(conflicts=[0.9])
    second = [item for item in driven.said if item.step == "dxchain/expand"][1]
    assert (
        "Turn 1, broad: Name 1 broad. Expected: Expected 1 broad. Found CONTRADICTED the expectation:" in second.prompt
    )


def test_what_is_not_recorded_is_never_a_result_and_conflicts_with_nothing() -> None:
    driven = run(answers(recorded="not recorded"))
    assert driven.weighed == []
    assert driven.noted("expectation")
    assert driven.answer.investigations[0].conflict == 0
    assert all(item.quote is None for item in driven.answer.investigations[0].observations)
    with pytest.raises(AssertionError, match="no engine can answer"):
        run(answers(recorded="troponin 12 ng/L, high"))


def test_a_failed_review_goes_back_to_the_plan_with_its_objection() -> None:
    driven = run(answers(passes=lambda turn: turn == 3))
    assert len(driven.answer.investigations) == 3
    plans = [item for item in driven.said if item.step == "dxchain/expand"]
    assert ["Review: not yet; Weakness 1" in item.prompt for item in plans] == [False, True, True]
    assert all("Weakness 2" not in item.prompt for item in plans[:2])


# Past cases


def test_without_a_file_nothing_is_looked_up_and_no_planner_can_ask_for_it() -> None:
    driven = run()
    consults = [q.about for r in driven.rounds for q in r.questions.values() if isinstance(q, Consult)]
    assert not any(isinstance(about, Retrieve) for about in consults)
    with pytest.raises(AssertionError, match="no engine can answer"):
        run(answers(past_cases="yes"))


def test_past_cases_are_looked_up_once_without_the_case_itself_and_shown_to_the_experts() -> None:
    asked: list[Retrieve] = []

    def retrieved(about: Retrieve) -> Any:
        asked.append(about)
        return [["old-7", "An old text " * 100, ["Aortic dissection", "Hypertension"], 0.9]]

    replies = answers(past_cases="yes", passes=lambda turn: turn == 2)
    driven = run(replies, retrieved=retrieved, cases="past.jsonl", nearest=2)
    assert asked == [Retrieve(CASE.text, 2, "past.jsonl", ("chest",))]
    assert driven.noted("retrieved") == ["past cases, the most similar first, never the case itself or a copy: old-7"]
    experts = [item for item in driven.said if item.step == "dxchain/expert"]
    assert len(experts) == 4
    assert all("Diagnoses: Aortic dissection, Hypertension" in item.prompt for item in experts)
    assert all("[...]" in item.prompt and "An old text " * 60 not in item.prompt for item in experts)
    assert not any("Aortic dissection" in item.prompt for item in driven.said if item.step != "dxchain/expert")


def test_experts_see_past_cases_only_once_a_strategy_asks_for_them() -> None:
    driven = run(retrieved=lambda _: [["old-7", "An old text", ["Gout"], 0.9]], cases="past.jsonl")
    assert driven.noted("retrieved")
    assert not any("An old text" in item.prompt for item in driven.said)


def test_the_base_is_read_before_anything_is_asked() -> None:
    def unreadable(about: Retrieve) -> Any:
        raise FileNotFoundError(about.base)

    with pytest.raises(FileNotFoundError, match=r"past\.jsonl"):
        run({}, retrieved=unreadable, cases="past.jsonl")
    assert run(phases="1", retrieved=unreadable, cases="past.jsonl").answer.entries


def test_an_empty_base_is_no_failure() -> None:
    driven = run(answers(past_cases="yes"), cases="past.jsonl")
    assert driven.noted("retrieved") == ["past cases, the most similar first, never the case itself or a copy: none"]
    assert not any("PAST CASES" in item.prompt for item in driven.said)


# Gate and debate


def test_only_the_ambiguous_are_debated_and_the_incorrect_go() -> None:
    status = {"Pulmonary embolism": "confident", "Diabetes mellitus": "incorrect", "Leg swelling": "ambiguous"}
    driven = run(answers(status=status.__getitem__))
    for step in ("angel", "devil", "angel_rebuttal", "devil_rebuttal", "verdict"):
        (item,) = driven.of(f"dxchain/{step}").values()
        assert item.ask.slots["ambiguous"] == ("Leg swelling",)
    assert names(driven) == ["Pulmonary embolism", "Leg swelling"]
    assert driven.noted("removed") == ["the judge found incorrect: Diabetes mellitus"]


def test_where_all_are_incorrect_all_are_debated() -> None:
    driven = run(answers(status=lambda name: "incorrect"))  # noqa: ARG005
    (item,) = driven.of("dxchain/angel").values()
    assert item.ask.slots["ambiguous"] == tuple(name for name, *_ in USUAL)
    assert driven.noted("gate")
    assert len(names(driven)) == 3


def test_the_sides_argue_without_each_other_then_answer_each_other_and_the_judge_hears_all() -> None:
    driven = run()
    opening = [driven.of(f"dxchain/{side}")[side] for side in ("angel", "devil")]
    rebuttal = [driven.of(f"dxchain/{side}_rebuttal")[side] for side in ("angel", "devil")]
    (verdict,) = driven.of("dxchain/verdict").values()
    assert not any("says Leg swelling" in item.prompt for item in opening)
    assert all("Point Leg swelling" in item.prompt for item in opening)
    for item in rebuttal:
        assert "Angel says Leg swelling" in item.prompt
        assert "Devil says Leg swelling" in item.prompt
        assert "answers Leg swelling" not in item.prompt
    for said in ("Angel says", "Devil says", "Angel answers", "Devil answers"):
        assert f"{said} Leg swelling" in verdict.prompt


def test_all_ambiguous_diagnoses_go_in_one_prompt_a_side() -> None:
    driven = run(answers(status=lambda name: "ambiguous"))  # noqa: ARG005
    assert batches(driven).count("debate") == 1
    assert [len(round_.questions) for round_ in driven.rounds if round_.name == "dxchain/debate"] == [2]


def test_a_verdict_keeps_discards_or_renames() -> None:
    kept = run()
    assert "Leg swelling" in names(kept)
    gone = run(answers(verdict=lambda name: ("discard", None)))  # noqa: ARG005
    assert names(gone) == ["Pulmonary embolism", "Diabetes mellitus"]
    assert gone.noted("discarded") == ["discarded after the debate: Leg swelling"]
    renamed = run(answers(verdict=lambda name: ("modify", "Deep vein thrombosis")))  # noqa: ARG005
    assert names(renamed) == ["Pulmonary embolism", "Deep vein thrombosis", "Diabetes mellitus"]
    entry = renamed.answer.entries[1]
    assert (entry.proposed_by, entry.entered_in) == (("judge",), "dxchain/verdict")
    sides = {(item.by, item.supports): item.quote.quote for item in entry.evidence}
    assert sides[("angel",), True] == QUOTES[2].strip()
    assert sides[("devil",), False] == QUOTES[3].strip()


def test_a_new_name_that_is_there_already_is_joined() -> None:
    driven = run(answers(verdict=lambda name: ("modify", "pulmonary embolisms")))  # noqa: ARG005
    assert names(driven) == ["Pulmonary embolism", "Diabetes mellitus"]
    assert driven.noted("merged")


def test_a_debate_that_leaves_nothing_leaves_the_surest_and_says_so() -> None:
    replies = answers(status=lambda name: "ambiguous", verdict=lambda name: ("discard", None))  # noqa: ARG005
    driven = run(replies)
    assert names(driven) == ["Diabetes mellitus"]
    assert [note.kind for note in driven.notes if note.degraded] == ["kept"]


def test_a_single_diagnosis_goes_all_the_way() -> None:
    driven = run(answers(named=lambda turn: USUAL[:1]))  # noqa: ARG005
    assert names(driven) == ["Pulmonary embolism"]


def test_two_names_of_one_diagnosis_are_one_before_the_judge_sees_them() -> None:
    twice = (("MI", "primary", 30), ("Myocardial infarction", "primary", 70), ("Gout", "secondary", 10))
    driven = run(answers(named=lambda turn: twice, status=sure))  # noqa: ARG005
    (judge,) = driven.of("dxchain/judge").values()
    assert judge.ask.slots["diagnoses"] == ("MI", "Gout")


@pytest.mark.parametrize("odd", ["Sjögren's syndrome", "β-thalassemia, minor", "Behçet (ocular)", "A/B+ T~2.5"])
def test_odd_names_go_all_the_way(odd: str) -> None:
    driven = run(answers(named=lambda turn: ((odd, "primary", 50),), status=lambda name: "ambiguous"))  # noqa: ARG005
    assert names(driven) == [odd]


# The report and its codes


def test_primary_diagnoses_come_first_by_confidence_then_secondary_ones() -> None:
    entries = run().answer.entries
    assert [(entry.diagnosis, entry.kind) for entry in entries] == [
        ("Pulmonary embolism", "primary"),
        ("Leg swelling", "primary"),
        ("Diabetes mellitus", "secondary"),
    ]
    assert [entry.rank for entry in entries] == [1, 2, 3]
    assert all(a.score > b.score for a, b in pairwise(entries))
    assert entries[0].entered_in == "turn 1"
    assert entries[0].reasoning == "Final Pulmonary embolism (80% sure)"


def test_treatment_and_investigations_are_reported() -> None:
    answer = run().answer
    assert answer.treatment == ("Anticoagulation", "Insulin")
    (turn,) = answer.investigations
    assert (turn.turn, turn.kind, turn.strategy, turn.expected) == (1, "broad", "Name 1 broad", "Expected 1 broad")
    quote = turn.observations[0].quote
    assert quote is not None
    assert CASE.text[quote.start : quote.end] == quote.quote == QUOTES[0].strip()


def test_the_coder_chooses_among_the_closest_codes_and_can_say_none() -> None:
    driven = run()
    codes = [item for item in driven.said if item.step == "dxchain/code"]
    assert [item.ask.slots["diagnosis"] for item in codes] == ["Pulmonary embolism", "Diabetes mellitus"]
    assert codes[0].ask.slots["codes"] == (
        "I26 Pulmonary embolism",
        "I26.9 Pulmonary embolism without cor",
        "none of these",
    )
    found = {entry.diagnosis: entry.icd10 and entry.icd10.code for entry in driven.answer.entries}
    assert found == {"Pulmonary embolism": "I26", "Diabetes mellitus": "E11", "Leg swelling": None}
    assert driven.noted("icd10") == ["Leg swelling: cannot be coded, no code's name fits"]


@pytest.mark.parametrize(("place", "why"), [(-1, "the coder took none"), (1, "I26.9 does not fit the name")])
def test_a_code_that_does_not_fit_its_name_is_corrected_and_noted(place: int, why: str) -> None:
    def code(ask: Ask[Any]) -> str:
        chosen = place if ask.slots["diagnosis"] == "Pulmonary embolism" else 0
        return str(ask.slots["codes"][chosen])

    driven = run(answers(code=code))
    assert driven.answer.entries[0].icd10 is not None
    assert driven.answer.entries[0].icd10.code == "I26"
    assert f"Pulmonary embolism: {why}, I26 in its place" in driven.noted("icd10")


def test_every_code_of_the_answer_is_one_that_fits() -> None:
    for place in (0, 1, -1):

        def code(ask: Ask[Any], at: int = place) -> str:
            return str(ask.slots["codes"][min(at, len(ask.slots["codes"]) - 1)])

        driven = run(answers(code=code))
        for entry in driven.answer.entries:
            fitting = [code for code, _, fits in CODES[entry.diagnosis] if fits]
            assert entry.icd10 is None or entry.icd10.code in fitting


# Room


def test_a_record_that_does_not_fit_is_condensed_and_noted() -> None:
    long = run(conflicts=[0.9] * 3)
    tight = run(conflicts=[0.9] * 3, fits=lambda ask: "Means 1" not in str(ask.slots["record"]) or "role" in ask.slots)
    assert sum(len(item.prompt) for item in tight.said) < sum(len(item.prompt) for item in long.said)
    assert [note.kind for note in tight.notes if note.degraded][:1] == ["condensed"]
    assert not [note for note in long.notes if note.degraded]


# Options


@pytest.mark.parametrize(
    "wrong",
    [{"phases": "2"}, {"turns": 0}, {"tau": 1.1}, {"strategies": 4}, {"k": 0}, {"nearest": 0}, {"temperature": 3}],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Options(**wrong)


def test_the_defaults_are_the_papers() -> None:
    assert (Options().turns, Options().temperature, Options().tau, Options().cases) == (20, 0.1, 0.5, "")
    assert len(EXPERTS) == 5


# Whatever the models say


@pytest.mark.parametrize(
    "text", ["fever 39", "x" * 300, "患者男五十八岁突发胸痛三小时伴大汗" * 8, 'He "hurts" {{case}} today 🫀']
)
def test_odd_cases_run_to_an_answer(text: str) -> None:
    driven = drive(dxchain(Case("odd", text), Options(turns=2)), World(seed=3))
    assert driven.answer.entries
    for entry in driven.answer.entries:
        assert all(text[item.quote.start : item.quote.end] == item.quote.quote for item in entry.evidence)


@pytest.mark.parametrize("phases", ["1", "1+2", "1+2+3"])
@pytest.mark.parametrize(("policy", "seed"), [("shortest", 0), ("walk", 1), ("walk", 2), ("longest", 0)])
def test_on_the_real_driver_every_turn_parses(phases: str, policy: Any, seed: int) -> None:
    from ddx_local.launch import consultants_of_files

    case = HARD[seed % len(HARD)] if policy == "walk" else CASE
    found = document("dxchain", case, policy, seed, consultants_of_files({}), turns=2, phases=phases)
    assert found["status"] == "finished", found["error"]
    assert found["differential"]
    assert quotes_stand_in(case, found)
