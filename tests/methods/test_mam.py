"""MAM: rounds and batches of the meeting, who sees what, corrections, votes, and whose order is the answer."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods.mam import mam
from ddx_local.methods.mam_steps import VOTE, Options
from tests.methods.discussion_world import mark, names, prompts, trace
from tests.methods.driving import Driven, Reply, World, drive
from tests.methods.real_driver import HARD, finished
from tests.methods.scot_world import CASE, QUOTES, proposal

LISTS = (("Malaria", "Gout"), ("Gout", "Sarcoidosis"), ("MI", "malaria"))

ROUND = ["mam/opinion", "mam/review", "mam/summary", "mam/vote"]
CORRECTED = ["mam/opinion", "mam/review", "mam/revise", "mam/summary", "mam/vote"]


def meeting(
    seats: int = 3,
    lists: Callable[[int, int], Sequence[str]] = lambda seat, number: LISTS[seat % 3],  # noqa: ARG005
    wrong: Callable[[int, int], bool] = lambda seat, number: False,  # noqa: ARG005
    against: Callable[[int, int], bool] = lambda seat, number: False,  # noqa: ARG005
    proposed: Callable[[tuple[str, ...]], Sequence[str]] = lambda candidates: candidates[:2],
    ballot: Callable[[tuple[str, ...]], Sequence[str]] = lambda candidates: candidates,
) -> dict[str, Reply]:
    """Replies by step; seats count from 0 in the order of the roles, rounds from 1."""
    panel: list[str] = []
    told: dict[tuple[str, str], int] = {}

    def number(ask: Ask[Any], role: str) -> int:
        told[ask.step.name, role] = told.get((ask.step.name, role), 0) + 1
        return told[ask.step.name, role]

    def roles(ask: Ask[Any]) -> Any:
        panel[:] = list(ask.slots["pool"])[3 : 3 + seats]
        return list(panel)

    def opinion(ask: Ask[Any]) -> Any:
        turn, seat = number(ask, ask.role), panel.index(ask.role)
        what = f"{ask.step.name.removeprefix('mam/')} {turn}"
        items = [proposal(name, "R", QUOTES[seat]) for name in lists(seat, turn)]
        return {"assessment": mark(what, ask.role), "differential": items, "conclusion": "So it is"}

    def review(ask: Ask[Any]) -> Any:
        role = str(ask.slots["role"])
        bad = wrong(panel.index(role), number(ask, role))
        return {"error": "yes" if bad else "no", "correction": mark("correct", role) if bad else None}

    def vote(ask: Ask[Any]) -> Any:
        bad = against(panel.index(ask.role), number(ask, ask.role))
        return {"agree": "no" if bad else "yes", "objection": mark("object", ask.role) if bad else None}

    def summary(ask: Ask[Any]) -> Any:
        turn = number(ask, "moderator")
        return {
            "summary": mark(f"summary {turn}", ask.role),
            "differential": list(proposed(tuple(ask.slots["candidates"]))),
        }

    return {
        "mam/roles": roles,
        "mam/opinion": opinion,
        "mam/review": review,
        "mam/revise": opinion,
        "mam/summary": summary,
        "mam/vote": vote,
        "mam/final": lambda ask: {"reason": "So be it", "ballot": list(ballot(tuple(ask.slots["candidates"])))},
    }


def run(
    replies: dict[str, Reply] | None = None,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    case: Case = CASE,
    **options: Any,
) -> Driven[Differential]:
    return drive(mam(case, Options(**options)), World(meeting() if replies is None else replies, fits=fits))


def specialists(driven: Driven[Differential]) -> tuple[str, ...]:
    return driven.answer.panel[1:-1]


# Batches and stops


def test_agreement_in_the_first_round_is_an_answer_in_five_batches() -> None:
    driven = run()
    assert driven.batches == ["mam/roles", *ROUND]
    assert len(driven.said) == 1 + 3 + 3 + 1 + 3
    assert driven.noted("agreed") == ["all 3 agree with the summary of round 1"]


def test_a_round_with_an_error_is_five_batches() -> None:
    driven = run(meeting(wrong=lambda seat, number: seat == 1))  # noqa: ARG005
    assert driven.batches == ["mam/roles", *CORRECTED]


def test_one_objection_is_another_round_and_agreement_in_it_ends_the_meeting() -> None:
    driven = run(meeting(against=lambda seat, number: (seat, number) == (2, 1)))
    assert driven.batches == ["mam/roles", *ROUND, *ROUND]
    assert driven.noted("agreed") == ["all 3 agree with the summary of round 2"]


def test_at_most_three_rounds_then_the_majoritys_summary_stays() -> None:
    driven = run(meeting(against=lambda seat, number: seat == 2))  # noqa: ARG005
    assert driven.batches == ["mam/roles", *ROUND * 3]
    assert driven.noted("majority") == ["1 of 3 disagree after 3 rounds: the majority's summary stays"]
    assert names(driven) == ["Malaria", "Gout"]


def test_without_a_majority_the_general_practitioner_decides_in_the_most_batches() -> None:
    stubborn = meeting(wrong=lambda seat, number: True, against=lambda seat, number: seat > 0)  # noqa: ARG005
    driven = run(stubborn)
    assert driven.batches == ["mam/roles", *CORRECTED * 3, "mam/final"]
    assert len(driven.batches) == 17
    assert len(driven.said) == 1 + 3 * (4 * 3 + 1) + 1
    assert driven.noted("undecided") == ["2 of 3 disagree after 3 rounds: the general practitioner decides"]


def test_half_is_no_majority() -> None:
    driven = run(meeting(seats=2, against=lambda seat, number: seat == 0))  # noqa: ARG005
    assert driven.batches[-1] == "mam/final"


@pytest.mark.parametrize("rounds", [1, 2])
def test_rounds_is_the_most(rounds: int) -> None:
    driven = run(meeting(against=lambda seat, number: seat == 2), rounds=rounds)  # noqa: ARG005
    assert driven.batches == ["mam/roles", *ROUND * rounds]


def test_a_single_specialist_agrees_with_the_summary_or_the_practitioner_decides() -> None:
    assert run(meeting(seats=1)).batches == ["mam/roles", *ROUND]
    assert run(meeting(seats=1, against=lambda seat, number: True)).batches[-1] == "mam/final"  # noqa: ARG005


# Roles


def test_the_general_practitioner_names_up_to_three_different_roles_of_the_pool() -> None:
    for seed in range(6):
        driven = drive(mam(CASE, Options(rounds=1)), World(seed=seed))
        called = specialists(driven)
        assert 1 <= len(called) <= 3
        assert len(set(called)) == len(called)
        assert set(called) <= set(panel_choices())
        assert (driven.said[0].role, driven.said[0].step) == ("general practitioner", "mam/roles")


# Who sees what


def test_nobody_sees_an_opinion_of_the_same_round_but_all_see_those_before() -> None:
    driven = run(meeting(against=lambda seat, number: (seat, number) == (2, 1)))
    first, second = prompts(driven, "mam/opinion", 1), prompts(driven, "mam/opinion", 5)
    for prompt in first.values():
        assert "M-" not in prompt
    for prompt in second.values():
        assert "M-opinion 2" not in prompt
        assert mark("summary 1", "moderator") in prompt
        for role in specialists(driven):
            assert mark("opinion 1", role) in prompt


def test_the_moderator_sees_each_opinion_by_itself() -> None:
    driven = run()
    asked = [item for item in driven.said if item.step == "mam/review"]
    assert {item.role for item in asked} == {"moderator"}
    for item, role in zip(asked, specialists(driven), strict=True):
        assert [who for who in specialists(driven) if mark("opinion 1", who) in item.prompt] == [role]


def test_only_who_made_an_error_answers_again_and_sees_its_correction() -> None:
    driven = run(meeting(wrong=lambda seat, number: seat == 1))  # noqa: ARG005
    (again,) = [item for item in driven.said if item.step == "mam/revise"]
    role = specialists(driven)[1]
    assert again.role == role
    assert mark("correct", role) in again.prompt
    assert mark("opinion 1", role) in again.prompt


def test_a_corrected_opinion_takes_the_place_of_the_first_one() -> None:
    driven = run(meeting(wrong=lambda seat, number: seat == 1))  # noqa: ARG005
    (summed,) = prompts(driven, "mam/summary").values()
    role = specialists(driven)[1]
    assert mark("revise 1", role) in summed
    assert mark("opinion 1", role) not in summed
    assert mark("opinion 1", specialists(driven)[0]) in summed


def test_an_opinion_is_corrected_once_a_round_and_not_looked_at_again() -> None:
    driven = run(meeting(wrong=lambda seat, number: True), rounds=1)  # noqa: ARG005
    assert [item.step for item in driven.said].count("mam/review") == 3
    assert [item.step for item in driven.said].count("mam/revise") == 3


def test_voters_see_the_summary_and_no_vote_of_the_round() -> None:
    driven = run(meeting(against=lambda seat, number: number == 1))  # noqa: ARG005
    for prompt in prompts(driven, "mam/vote", 4).values():
        assert mark("summary 1", "moderator") in prompt
        assert "M-object" not in prompt
        assert "- Malaria\n- Gout\nDo you agree" in prompt


def test_objections_reach_the_next_round() -> None:
    driven = run(meeting(against=lambda seat, number: (seat, number) == (2, 1)))
    objection = f"- {specialists(driven)[2]}: {mark('object', specialists(driven)[2])}"
    for step in ("opinion", "summary", "vote"):
        for prompt in prompts(driven, f"mam/{step}").values():
            assert objection in prompt


def test_prompts_of_a_round_share_everything_up_to_the_role() -> None:
    driven = run(meeting(against=lambda seat, number: (seat, number) == (2, 1)))
    for step in ("opinion", "vote"):
        assert len({prompt.partition("You are the ")[0] for prompt in prompts(driven, f"mam/{step}").values()}) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_minutes_that_do_not_fit_are_condensed_and_noted(times: int) -> None:
    left = [times]

    def fits(ask: Ask[Any]) -> bool:
        if ask.step.name == "mam/summary" and left[0]:
            left[0] -= 1
            return False
        return True

    driven = run(fits=fits)
    (note,) = [note for note in driven.notes if note.degraded]
    assert note.detail.startswith("mam/summary: earlier rounds were shown")
    (summed,) = prompts(driven, "mam/summary").values()
    assert "M-opinion" not in summed
    assert ("Gout: named by 2, first by 1" in summed) == (times == 2)


# The answer


def test_the_summary_can_name_only_what_a_role_of_the_round_named() -> None:
    changing = meeting(
        lists=lambda seat, number: ["Amyloidosis"] if number == 2 else LISTS[seat],
        against=lambda seat, number: (seat, number) == (0, 1),
        proposed=lambda candidates: candidates[:1],
    )
    driven = run(changing)
    asked = [item.ask.slots["candidates"] for item in driven.said if item.step == "mam/summary"]
    assert asked == [("Malaria", "Gout", "MI", "Sarcoidosis"), ("Amyloidosis",)]
    assert names(driven) == ["Amyloidosis"]
    assert driven.answer.entries[0].entered_in == "round 2"


def test_the_answer_is_in_the_order_of_the_summary_with_the_places_of_the_roles() -> None:
    driven = run(meeting(proposed=lambda candidates: candidates[::-1][:3]))
    assert names(driven) == ["Sarcoidosis", "MI", "Gout"]
    assert [entry.score for entry in driven.answer.entries] == [1, 1 / 2, 1 / 3]
    a, b, _ = specialists(driven)
    assert driven.answer.entries[2].votes == {a: 2, b: 1}
    assert driven.answer.entries[2].entered_in == "round 1"
    assert {item.quote.quote for item in driven.answer.entries[2].evidence} == {QUOTES[0].strip(), QUOTES[1].strip()}


def test_the_practitioners_order_holds_all_that_was_named_up_to_k() -> None:
    driven = run(meeting(against=lambda seat, number: True, ballot=lambda names: names[::-1]), k=3)  # noqa: ARG005
    assert names(driven) == ["Sarcoidosis", "MI", "Gout"]


@pytest.mark.parametrize(
    "name", ["Takotsubo (stress) cardiomyopathy", "Fever, cough / chills", "IgG4-related ~ disease"]
)
def test_odd_names_come_through_as_they_are(name: str) -> None:
    driven = run(meeting(lists=lambda seat, number: [name], proposed=lambda candidates: candidates))  # noqa: ARG005
    assert names(driven) == [name]


# Faults of the authors' program


@pytest.mark.parametrize("objection", ["Yes to the first, no to the rest", "Unclear", "eyes were not examined"])
def test_a_no_stays_a_no_whatever_it_says(objection: str) -> None:
    """The authors' program looks for "yes" anywhere first, and takes what it cannot read for a yes."""
    assert VOTE.parse({"agree": "no", "objection": objection}) == objection
    replies = meeting()
    replies["mam/vote"] = lambda ask: {"agree": "no", "objection": objection}  # noqa: ARG005
    driven = run(replies, rounds=1)
    assert driven.noted("undecided")


def test_no_question_holds_anything_from_outside_the_case() -> None:
    """The authors' program searches the web for the patient's question and reads a history of earlier ones."""
    run()
    driven = run()
    for item in driven.said:
        assert item.ask.slots["case"] == CASE.text
    again = run()
    assert [item.prompt for item in again.said] == [item.prompt for item in driven.said]


# The whole


def test_a_golden_trace() -> None:
    driven = run(meeting(seats=2, wrong=lambda seat, number: seat == 1, against=lambda seat, number: True), rounds=1)  # noqa: ARG005
    a, b = specialists(driven)
    assert trace(driven) == [
        ("mam/roles", "general practitioner", "mam/roles"),
        ("mam/opinion", a, "mam/opinion"),
        ("mam/opinion", b, "mam/opinion"),
        ("mam/review", "moderator", "mam/review"),
        ("mam/review", "moderator", "mam/review"),
        ("mam/revise", b, "mam/revise"),
        ("mam/summary", "moderator", "mam/summary"),
        ("mam/vote", a, "mam/vote"),
        ("mam/vote", b, "mam/vote"),
        ("mam/final", "general practitioner", "mam/final"),
    ]


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_model_says_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    document = finished("mam", policy, seed, CASE, rounds=2)
    assert 5 <= document["totals"]["batches"] <= 12


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.id)
def test_hard_texts_finish(case: Case) -> None:
    assert 5 <= finished("mam", "walk", 0, case, rounds=2)["totals"]["batches"] <= 12


@pytest.mark.parametrize(
    "wrong",
    [{"roles": 0}, {"roles": 6}, {"rounds": 0}, {"rounds": 11}, {"answers": 0}, {"answers": 6}, {"k": 0}, {"k": 11},
     {"temperature": -0.1}],
)  # fmt: skip
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Options(**wrong)
