"""MAC: rounds and batches, who sees what, when the supervisor may end it, what comes out without agreement."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods.mac import mac
from ddx_local.methods.mac_steps import Options
from tests.grammars import POLICIES
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, QUOTES, proposal
from tests.methods.scripted_run import document, quotes_stand_in

OPENING, DOCTOR, SUPERVISOR = "mac/opening", "mac/doctor", "mac/supervisor"
APART = (("Malaria",), ("Gout", "Malaria"), ("Sarcoidosis",), ("Malaria", "Amyloidosis"))

Lists = Callable[[int, int], tuple[str, ...]]
"""(round from 1, doctor from 1) -> list."""


def mark(role: str, round_: int) -> str:
    return f"M <{role}> in round {round_}."


def world(
    lists: Lists = lambda round_, doctor: APART[doctor - 1],  # noqa: ARG005
    likely: Callable[[tuple[str, ...]], str] = lambda candidates: candidates[0],
    others: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda candidates: (),  # noqa: ARG005
    hesitates: int = 0,
    challenged: str = "doctor 2",
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
) -> World:
    """A supervisor who ends it as soon as it may, after having hesitated some times."""
    spoken: dict[str, int] = {}

    def doctor(ask: Ask[Any]) -> Any:
        at = spoken[ask.role] = spoken.get(ask.role, 0) + 1
        quote = QUOTES[int(ask.role[-1]) % 2]
        items = [proposal(name, f"Why {mark(ask.role, at)}", quote) for name in lists(at, int(ask.role[-1]))]
        tests = [f"CT by {ask.role} in {at}"][: int(str(ask.slots["tests"]))]
        return {"comment": mark(ask.role, at), "differential": items, "tests": tests}

    def supervisor(ask: Ask[Any]) -> Any:
        at = spoken[ask.role] = spoken.get(ask.role, 0) + 1
        candidates, agreed = tuple(ask.slots["candidates"]), tuple(ask.slots["agreed"])
        said: dict[str, Any] = {"summary": mark(ask.role, at)}
        if agreed and at > hesitates:
            said |= {"verdict": "agreed", "most_likely": agreed[0]}
        else:
            challenges = [{"to": challenged, "challenge": f"Challenge {at}"}]
            said |= {"verdict": "continue", "disagreements": [f"Point {at}"], "challenges": challenges}
            said |= {"most_likely": likely(candidates)}
        tests = ["MRI"][: int(str(ask.slots["tests"]))]
        return {**said, "others": list(others(candidates)), "tests": tests}

    return World({OPENING: doctor, DOCTOR: doctor, SUPERVISOR: supervisor}, fits=fits)


def run(options: Mapping[str, Any] | None = None, **given: Any) -> Driven[Differential]:
    return drive(mac(CASE, Options(**(options or {}))), world(**given))


def ranked(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def agree(round_: int, doctor: int) -> tuple[str, ...]:
    """All agree from the second round on."""
    return APART[doctor - 1] if round_ == 1 else ("Gout", "Malaria")


DOCTORS = [f"doctor {number}" for number in range(1, 5)]


# Rounds, batches, calls


def test_three_rounds_without_agreement_are_six_batches_and_fifteen_calls() -> None:
    driven = run()
    assert driven.batches == [OPENING, SUPERVISOR, DOCTOR, SUPERVISOR, DOCTOR, SUPERVISOR]
    assert [(item.batch, item.role, item.step) for item in driven.said] == [
        *((0, role, OPENING) for role in DOCTORS),
        (1, "supervisor", SUPERVISOR),
        *((2, role, DOCTOR) for role in DOCTORS),
        (3, "supervisor", SUPERVISOR),
        *((4, role, DOCTOR) for role in DOCTORS),
        (5, "supervisor", SUPERVISOR),
    ]
    assert len(driven.said) == 15


@pytest.mark.parametrize(("doctors", "rounds"), [(2, 1), (3, 2), (4, 5)])
def test_a_round_is_two_batches_of_d_and_one(doctors: int, rounds: int) -> None:
    driven = run({"doctors": doctors, "rounds": rounds})
    assert [len(round_.questions) for round_ in driven.rounds if round_.is_batch] == [doctors, 1] * rounds


def test_agreement_in_the_first_round_is_an_answer() -> None:
    driven = run(lists=lambda round_, doctor: ("Gout", "Malaria"), others=lambda candidates: candidates[1:])  # noqa: ARG005
    assert driven.batches == [OPENING, SUPERVISOR]
    assert len(driven.said) == 5
    assert ranked(driven) == ["Gout", "Malaria"]
    assert driven.answer.trace is not None
    assert driven.answer.trace.by_consensus
    assert driven.notes == []


def test_agreement_in_a_later_round_ends_it_there() -> None:
    driven = run(lists=agree)
    assert len(driven.batches) == 4
    assert ranked(driven) == ["Gout"]


# When it may end


def test_names_of_one_diagnosis_agree_whatever_it_is_called() -> None:
    names = ("MI", "Myocardial infarction", "Heart attack", "Acute myocardial infarction (MI)")
    driven = run(lists=lambda round_, doctor: (names[doctor - 1],), options={"doctors": 3})  # noqa: ARG005
    assert len(driven.batches) == 2
    assert ranked(driven) == ["MI"]


def test_the_supervisor_cannot_say_that_all_agree_where_they_do_not() -> None:
    driven = run(lists=lambda round_, doctor: ("Gout",) if doctor < 4 else ("Malaria", "Gout"))  # noqa: ARG005
    asked = [item for item in driven.said if item.step == SUPERVISOR]
    assert [item.ask.slots["agreed"] for item in asked] == [()] * 3
    assert all('"agreed' not in str(item.filled.grammar) for item in asked)
    assert len(driven.batches) == 6


def test_the_supervisor_cannot_agree_on_another_diagnosis_than_the_doctors() -> None:
    def lists(round_: int, doctor: int) -> tuple[str, ...]:  # noqa: ARG001
        return ("Gout", "Malaria")

    replies = dict(world(lists).replies)
    said = {"summary": "S", "verdict": "agreed", "most_likely": "Malaria", "others": [], "tests": []}
    replies[SUPERVISOR] = lambda ask: said  # noqa: ARG005
    with pytest.raises(AssertionError, match="no engine can answer"):
        drive(mac(CASE, Options()), World(replies))


def test_the_supervisor_may_challenge_doctors_who_agree() -> None:
    driven = run(lists=lambda round_, doctor: ("Gout",), hesitates=1)  # noqa: ARG005
    assert len(driven.batches) == 4
    assert "Challenge 1" in driven.of(DOCTOR)["doctor 2"].prompt


def test_without_agreement_the_supervisors_last_answer_stands_and_that_is_noted() -> None:
    driven = run(likely=lambda candidates: candidates[1], others=lambda candidates: candidates[2:])
    assert ranked(driven) == ["Gout", "Sarcoidosis", "Amyloidosis"]
    assert driven.noted("no_agreement") == ["no agreement after 3 rounds: the supervisor's last answer stands"]
    assert driven.answer.trace is not None
    assert not driven.answer.trace.by_consensus


# Who sees what


def test_everyone_sees_all_earlier_rounds_and_the_supervisor_the_doctors_of_its_own() -> None:
    driven = run()
    for item in driven.said:
        for round_ in (1, 2, 3):
            for role in DOCTORS:
                spoken = 2 * (round_ - 1)
                assert (mark(role, round_) in item.prompt) == (item.batch > spoken), f"{role} {round_} {item.batch}"
            assert (mark("supervisor", round_) in item.prompt) == (item.batch > 2 * round_ - 1)


def test_the_challenged_sees_the_challenge_as_its_own_and_the_others_see_it_in_the_record() -> None:
    driven = run(challenged="doctor 3")
    second = {item.role: item for item in driven.said if item.batch == 2}
    assert {role: item.ask.slots["received"] for role, item in second.items()} == {
        "doctor 1": (),
        "doctor 2": (),
        "doctor 3": ("Challenge 1",),
        "doctor 4": (),
    }
    assert all(
        "- To doctor 3: Challenge 1" in item.prompt and "- Open: Point 1" in item.prompt for item in second.values()
    )
    third = {item.role: item for item in driven.said if item.batch == 4}
    assert third["doctor 3"].ask.slots["received"] == ("Challenge 2",)


def test_names_quotes_reasons_and_tests_reach_the_supervisor() -> None:
    (item, *_) = [item for item in driven_said() if item.step == SUPERVISOR]
    assert f'- Gout. "{QUOTES[0].strip()}" Why M <doctor 2>' in item.prompt
    assert "- Tests: CT by doctor 2 in 1" in item.prompt


def driven_said() -> list[Any]:
    return run().said


def test_the_supervisor_is_told_who_the_doctors_are_and_what_they_name_now() -> None:
    driven = run(lists=agree, hesitates=9)
    asked = [item for item in driven.said if item.step == SUPERVISOR]
    assert asked[0].ask.slots["candidates"] == ("Malaria", "Gout", "Sarcoidosis", "Amyloidosis")
    assert asked[1].ask.slots["candidates"] == ("Gout", "Malaria")
    assert all(item.ask.slots["doctors"] == tuple(DOCTORS) for item in asked)
    assert all("None" not in item.prompt for item in asked)


def test_the_discussion_only_grows_so_that_prompts_share_their_beginning() -> None:
    records = [str(item.ask.slots.get("record", "")) for item in run().said if item.role in ("supervisor", "doctor 1")]
    for earlier, later in pairwise(records):
        assert later.startswith(earlier)
    for batch in (2, 4):
        prompts = [item.prompt for item in run().said if item.batch == batch]
        ends = {prompt[: prompt.index("You are doctor")] for prompt in prompts}
        assert len(ends) == 1


# The answer


def test_the_answer_has_the_doctors_last_places_and_quotes_and_who_named_it_when() -> None:
    driven = run(lists=agree, others=lambda candidates: candidates[1:])
    gout, malaria = driven.answer.entries
    assert gout.votes == {**dict.fromkeys(DOCTORS, 1), "supervisor": 1}
    assert malaria.votes == {**dict.fromkeys(DOCTORS, 2), "supervisor": 2}
    assert (gout.entered_in, gout.proposed_by) == ("round 1", ("doctor 2", "doctor 1", "doctor 3", "doctor 4"))
    found = {item.quote.quote: item.by for item in gout.evidence}
    assert found == {QUOTES[1].strip(): ("doctor 1", "doctor 3"), QUOTES[0].strip(): ("doctor 2", "doctor 4")}
    assert driven.answer.panel == (*DOCTORS, "supervisor")
    assert (gout.score, malaria.score, driven.answer.score_kind) == (1.0, 0.5, "reciprocal_place")
    assert driven.answer.trace is not None
    assert driven.answer.trace.conclusion == mark("supervisor", 2)
    assert driven.answer.trace.would_change == "Tests that would help: MRI"


def test_what_comes_up_later_is_marked_with_its_round() -> None:
    def lists(round_: int, doctor: int) -> tuple[str, ...]:
        return ("Lyme disease",) if round_ == 1 else ("Lyme disease", "Gout") if doctor == 1 else ("Gout",)

    driven = run({"rounds": 2}, lists=lists, likely=lambda candidates: candidates[-1], hesitates=9)
    assert [(entry.diagnosis, entry.entered_in) for entry in driven.answer.entries] == [("Gout", "round 2")]


def test_the_follow_up_stage_asks_for_no_tests() -> None:
    driven = run({"stage": "follow_up"})
    assert all(item.answer["tests"] == [] for item in driven.said)
    assert driven.answer.trace is not None
    assert driven.answer.trace.would_change == ""


def test_a_single_candidate_is_an_answer() -> None:
    assert ranked(run({"k": 1}, lists=lambda round_, doctor: ("Gout",))) == ["Gout"]  # noqa: ARG005


@pytest.mark.parametrize("odd", ["β-thalassemia", "Wolff-Parkinson-White (WPW)", "Gout, acute", "Sjögren's"])
def test_odd_labels_come_out_as_they_are(odd: str) -> None:
    assert ranked(run(lists=lambda round_, doctor: (odd,))) == [odd]  # noqa: ARG005


def test_eight_doctors_with_eight_diagnoses_each_can_be_told_apart() -> None:
    driven = run(
        {"doctors": 8, "k": 8, "rounds": 1},
        lists=lambda round_, doctor: tuple(f"Disease of {chr(65 + doctor)}{chr(65 + at)}x" for at in range(8)),  # noqa: ARG005
        others=lambda candidates: candidates[1:8],
    )
    assert len(driven.of(SUPERVISOR)["supervisor"].ask.slots["candidates"]) == 64
    assert len(driven.answer.entries) == 8


# Room, options, the real driver


def test_a_discussion_that_does_not_fit_is_condensed_in_two_degrees_and_noted() -> None:
    prompts = []
    for times in range(3):
        left = [times]

        def fits(ask: Ask[Any], left: list[int] = left) -> bool:
            if ask.step.name != DOCTOR or ask.role != "doctor 4" or not left[0]:
                return True
            left[0] -= 1
            return False

        driven = run({"rounds": 2}, fits=fits)
        prompts.append(driven.of(DOCTOR)["doctor 1"].prompt)
        assert len([note for note in driven.notes if note.degraded]) == (times > 0)
    full, brief, bare = prompts
    assert len(full) > len(brief) > len(bare)
    assert mark("doctor 1", 1) in full
    assert mark("doctor 1", 1) not in brief
    assert "doctor 2: Gout; Malaria" in brief
    assert "Malaria first for 2; Gout first for 1; Sarcoidosis first for 1" in bare
    assert all("Most likely now: Malaria" in prompt for prompt in prompts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"doctors": 1},
        {"doctors": 9},
        {"rounds": 0},
        {"rounds": 11},
        {"k": 0},
        {"k": 9},
        {"stage": "final"},
        {"temperature": 2.1},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Options(**wrong)


def test_the_defaults_are_the_papers() -> None:
    assert (Options().doctors, Options().rounds, Options().temperature) == (4, 3, 1.0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    found = document("mac", CASE, policy, seed)
    assert found["status"] == "finished"
    assert found["totals"]["batches"] in (2, 4, 6)
    assert found["totals"]["calls"] == found["totals"]["batches"] / 2 * 5
    assert quotes_stand_in(CASE, found)


@pytest.mark.parametrize("text", ["fever 39", "x" * 200])
def test_whatever_the_case_an_answer_comes_out(text: str) -> None:
    driven = drive(mac(Case("any", text), Options(doctors=2)), World(seed=4))
    assert 1 <= len(driven.answer.entries) <= 5
