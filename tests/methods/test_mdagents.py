"""MDAgents: three ways by complexity, batches of each, who hears what, when a discussion ends, whose reports decide."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods.mdagents import mdagents, titles
from ddx_local.methods.mdagents_steps import Options
from tests.methods.discussion_world import experts, mark, names, prompts, trace
from tests.methods.driving import Driven, Reply, World, drive
from tests.methods.real_driver import HARD, finished
from tests.methods.scot_world import CASE, QUOTES, proposal

START = ["mdagents/complexity", "mdagents/recruit", "mdagents/opinion"]
ROUND = ["mdagents/talk", "mdagents/update"]
TEAM = ["mdagents/lead", "mdagents/assist", "mdagents/conclude"]
END = ["mdagents/moderator"]

always: Callable[[int, int], Sequence[int]] = lambda seat, number: [(seat + 1) % 5]  # noqa: E731, ARG005
"""Everybody writes to the next one in every round."""


def taken_as(complexity: str, reason: str = "It is so") -> dict[str, Reply]:
    return {"mdagents/complexity": lambda ask: {"reason": reason, "complexity": complexity}}  # noqa: ARG005


def run(
    said: str,
    /,
    replies: Mapping[str, Reply] | None = None,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    case: Case = CASE,
    **options: Any,
) -> Driven[Differential]:
    world = World({**taken_as(said), **(experts() if replies is None else replies)}, fits=fits)
    return drive(mdagents(case, Options(**options)), world)


def teams(
    named: Callable[[int], Sequence[str]] = lambda team: [f"Disease {team}", "Gout"],
) -> dict[str, Reply]:
    """Teams that say what a test wants; teams count from 0."""
    leads: dict[str, int] = {}

    def seats(ask: Ask[Any]) -> Any:
        return list(ask.slots["pool"])[: int(str(ask.slots["seats"]))]

    def conclude(ask: Ask[Any]) -> Any:
        team = leads.setdefault(ask.role, len(leads))
        items = [proposal(name, mark("conclude", ask.role), QUOTES[team % 5]) for name in named(team)]
        return {"report": mark("report", ask.role), "differential": items}

    return {
        "mdagents/teams": seats,
        "mdagents/lead": lambda ask: {
            "questions": [{"to": to, "question": mark(f"ask {to}", ask.role)} for to in ask.slots["members"]]
        },
        "mdagents/assist": lambda ask: {"findings": [QUOTES[4]], "answer": mark("assist", ask.role)},
        "mdagents/conclude": conclude,
        "mdagents/decision": lambda ask: {"reason": "So be it", "ballot": list(ask.slots["candidates"])},
    }


# Complexity


@pytest.mark.parametrize(
    ("complexity", "batches", "calls"),
    [
        ("low", ["mdagents/complexity", "mdagents/clinician"], 2),
        ("moderate", [*START, *ROUND[:1], *END], 1 + 1 + 5 + 5 + 1),
        ("high", ["mdagents/complexity", "mdagents/teams", *TEAM, *TEAM, "mdagents/decision"], 1 + 1 + 3 * 4 + 1),
    ],
)
def test_the_complexity_decides_who_works(complexity: str, batches: list[str], calls: int) -> None:
    driven = run(complexity, {**experts(), **teams()})
    assert driven.batches == batches
    assert len(driven.said) == calls
    assert driven.noted("complexity") == [f"the case is taken as {complexity}"]


def test_words_of_the_reason_do_not_choose() -> None:
    """The authors' program takes "basic" wherever the answer mentions it."""
    world = World({**taken_as("high", "not low or basic, nor moderate"), **teams()})
    assert "mdagents/teams" in drive(mdagents(CASE, Options()), world).batches


def test_a_case_never_gets_an_earlier_cases_answer() -> None:
    """The authors' program answers with the previous sample's answer where it finds no complexity."""
    first = run("low", {"mdagents/clinician": lambda ask: {"differential": [proposal("Malaria", "R")]}})  # noqa: ARG005
    second = run("low", {"mdagents/clinician": lambda ask: {"differential": [proposal("Gout", "R")]}})  # noqa: ARG005
    assert (names(first), names(second)) == (["Malaria"], ["Gout"])


@pytest.mark.parametrize("complexity", ["low", "moderate", "high"])
def test_a_fixed_complexity_is_not_asked_for(complexity: str) -> None:
    driven = run("low", {**experts(), **teams()}, complexity=complexity)
    assert "mdagents/complexity" not in driven.batches
    assert {"low": 1, "moderate": 4, "high": 8}[complexity] == len(driven.batches)


# Low


def test_one_clinicians_list_is_the_answer_of_a_low_case() -> None:
    said = {"differential": [proposal("Malaria", "R", QUOTES[1]), proposal("Gout", "R")]}
    driven = run("low", {"mdagents/clinician": lambda ask: said}, k=2)  # noqa: ARG005
    assert [(entry.diagnosis, entry.score) for entry in driven.answer.entries] == [("Malaria", 1.0), ("Gout", 0.5)]
    assert driven.answer.panel == ("primary care physician",)
    assert driven.said[-1].ask.slots["k"] == "2"


# Moderate


def test_all_experts_are_different_and_from_the_pool() -> None:
    driven = run("moderate", {})
    assert len(set(driven.answer.panel)) == 5
    assert set(driven.answer.panel) <= set(panel_choices())


def test_agreement_before_the_discussion_is_an_answer_in_four_batches() -> None:
    same = experts(lists=lambda seat, when: ["MI", "Gout"] if seat else ["heart attack"])  # noqa: ARG005
    driven = run("moderate", same)
    assert driven.batches == [*START, *END]
    assert driven.noted("agreed") == ["all put heart attack first before round 1: the discussion ends"]
    assert names(driven) == ["heart attack", "Gout"]


def test_if_nobody_speaks_the_lists_are_the_answer() -> None:
    """The authors' program has no answer unless every turn of a round had a "yes": its moderator then votes on None."""
    driven = run("moderate")
    assert driven.batches == [*START, "mdagents/talk", *END]
    assert driven.noted("agreed") == ["nobody wants to speak in round 1: the lists stay"]
    assert names(driven)[0] == "Myocardial infarction"


def test_one_speaker_is_enough_for_all_to_answer_again() -> None:
    driven = run("moderate", experts(speaks=lambda seat, number: [1] if (seat, number) == (0, 1) else []))
    assert driven.batches == [*START, *ROUND, "mdagents/talk", *END]
    assert len(prompts(driven, "mdagents/update")) == 5


def test_a_discussion_without_agreement_is_ten_batches_and_thirty_eight_calls() -> None:
    driven = run("moderate", experts(speaks=always))
    assert driven.batches == [*START, *ROUND * 3, *END]
    assert len(driven.batches) == 10
    assert len(driven.said) == 2 + 5 + 3 * 10 + 1


def test_agreement_within_the_discussion_ends_it() -> None:
    late = experts(
        lists=lambda seat, when: ["Gout"] if when == "update 2" else [f"Disease {seat}", "Gout"], speaks=always
    )
    driven = run("moderate", late)
    assert driven.batches == [*START, *ROUND * 2, *END]
    assert driven.noted("agreed") == ["all put Gout first before round 3: the discussion ends"]


def test_no_rounds_is_a_vote_on_the_first_lists() -> None:
    assert run("moderate", experts(speaks=always), rounds=0).batches == [*START, *END]


def test_no_expert_sees_an_answer_of_the_same_round() -> None:
    driven = run("moderate", experts(speaks=always))
    for step, what in (("opinion", "opinion"), ("talk", "to ")):
        for prompt in prompts(driven, f"mdagents/{step}", 2 if step == "opinion" else 3).values():
            assert f"M-{what}" not in prompt
    for prompt in prompts(driven, "mdagents/update", 4).values():
        assert "M-update" not in prompt


def test_everybody_hears_the_messages_of_the_round_and_knows_which_are_addressed_to_it() -> None:
    """In the authors' program only those who speak later in the same turn hear a message."""
    driven = run("moderate", experts(speaks=lambda seat, number: [0] if (seat, number) == (4, 1) else []))
    panel = driven.answer.panel
    message = mark(f"to {panel[0]}", panel[4])
    told = prompts(driven, "mdagents/update")
    for role, prompt in told.items():
        assert f"- {panel[4]} to {panel[0]}: {message}" in prompt
        addressed = prompt.partition("Addressed to you:")[2]
        assert (f"from {panel[4]}: {message}" in addressed) == (role == panel[0])
        assert ("- nothing" in addressed) == (role != panel[0])


def test_the_opinions_are_shown_to_all_before_they_speak() -> None:
    driven = run("moderate")
    for prompt in prompts(driven, "mdagents/talk").values():
        for role in driven.answer.panel:
            assert mark("opinion", role) in prompt


def test_lists_that_were_replaced_are_shown_in_brief() -> None:
    driven = run("moderate", experts(speaks=always))
    last = prompts(driven, "mdagents/moderator")["moderator"]
    assert "M-opinion" not in last
    assert "M-update 2" not in last
    assert last.count("M-update 3") == 10
    assert "LISTS (opinion):" in last


def test_prompts_of_a_round_share_everything_up_to_the_role() -> None:
    driven = run("moderate", experts(speaks=always))
    for step in ("opinion", "talk", "update"):
        shared = {prompt.partition("You are the ")[0] for prompt in prompts(driven, f"mdagents/{step}", None).values()}
        assert len(shared) == 1


def test_the_majority_is_counted_by_the_program_and_the_moderator_orders_equal_votes() -> None:
    turned = experts(ballot=lambda candidates: candidates[::-1])
    driven = run("moderate", turned)
    assert names(driven)[0] == "Myocardial infarction", "two of five put it first"
    straight = run("moderate")
    assert names(straight)[1:] != names(driven)[1:]
    assert sorted(names(straight)[1:3]) == sorted(names(driven)[1:3])
    assert driven.noted("tie")


def test_votes_are_the_places_that_the_experts_gave() -> None:
    driven = run("moderate")
    panel = driven.answer.panel
    assert driven.answer.entries[0].votes == {panel[0]: 1, panel[2]: 1}
    assert driven.answer.entries[0].score == pytest.approx(2 + 2 / 6, abs=1e-6)


def test_a_diagnosis_that_came_up_in_the_discussion_says_so() -> None:
    changing = experts(lists=lambda seat, when: ["Gout"] if when == "update 1" and seat == 0 else [f"Disease {seat}"],
                       speaks=lambda seat, number: [1] if (seat, number) == (0, 1) else [])  # fmt: skip
    entered = {entry.diagnosis: entry.entered_in for entry in run("moderate", changing).answer.entries}
    assert entered["Gout"] == "round 1"
    assert entered["Disease 1"] == "opinion"


@pytest.mark.parametrize(("times", "said"), [(1, "without quotes and reasons"), (2, "as counts only")])
def test_a_record_that_does_not_fit_is_condensed_and_noted(times: int, said: str) -> None:
    left = [times]

    def fits(ask: Ask[Any]) -> bool:
        if ask.step.name == "mdagents/moderator" and left[0]:
            left[0] -= 1
            return False
        return True

    driven = run("moderate", fits=fits)
    (note,) = [note for note in driven.notes if note.degraded]
    assert note.detail == f"mdagents/moderator: earlier rounds were shown {said}, to fit the context"
    assert "M-opinion" not in prompts(driven, "mdagents/moderator")["moderator"]


@pytest.mark.parametrize(
    "name", ["Takotsubo (stress) cardiomyopathy", "Fever, cough / chills", "IgG4-related ~ disease"]
)
def test_odd_names_come_through_as_they_are(name: str) -> None:
    driven = run("moderate", experts(lists=lambda seat, when: [name, "Gout"]))  # noqa: ARG005
    assert names(driven) == [name, "Gout"]


# High


def test_teams_of_three_are_nine_different_specialists_with_the_first_as_lead() -> None:
    driven = run("high", teams())
    assert len(set(driven.answer.panel)) == 9
    leads = [item.role for item in driven.said if item.step == "mdagents/lead"]
    assert leads == [driven.answer.panel[0], driven.answer.panel[3], driven.answer.panel[6]]
    members = [item.role for item in driven.said if item.step == "mdagents/assist"]
    assert members == [role for at, role in enumerate(driven.answer.panel) if at % 3]


def test_a_member_hears_only_its_own_leads_question_and_the_lead_its_members_reports() -> None:
    driven = run("high", teams())
    panel = driven.answer.panel
    asked, heard = prompts(driven, "mdagents/assist"), prompts(driven, "mdagents/conclude")
    assert mark(f"ask {panel[1]}", panel[0]) in asked[panel[1]]
    assert mark(f"ask {panel[2]}", panel[0]) not in asked[panel[1]]
    for lead in (0, 3, 6):
        for at, member in enumerate(panel):
            assert (mark("assist", member) in heard[panel[lead]]) == (lead < at < lead + 3)


def test_the_review_team_sees_the_other_teams_reports_and_they_see_none() -> None:
    driven = run("high", teams())
    panel = driven.answer.panel
    for step in ("lead", "conclude"):
        seen = prompts(driven, f"mdagents/{step}")
        for lead in (0, 3, 6):
            for other in (0, 3, 6):
                assert (mark("report", panel[other]) in seen[panel[lead]]) == (lead == 6 and other != 6)


def test_the_reports_of_all_teams_reach_the_decision() -> None:
    """In the authors' program the decision reads the initial team's report alone."""
    driven = run("high", teams())
    decision = driven.of("mdagents/decision")["decision maker"]
    for lead in (0, 3, 6):
        assert mark("report", driven.answer.panel[lead]) in decision.prompt
        assert mark("conclude", driven.answer.panel[lead]) in decision.prompt
    assert decision.ask.slots["candidates"] == ("Disease 0", "Disease 1", "Disease 2", "Gout")


def test_the_decision_is_the_order_of_the_answer() -> None:
    turned: Reply = lambda ask: {"reason": "So", "ballot": list(ask.slots["candidates"])[::-1]}  # noqa: E731
    driven = run("high", {**teams(), "mdagents/decision": turned}, k=3)
    assert names(driven) == ["Gout", "Disease 2", "Disease 1"]
    assert [entry.score for entry in driven.answer.entries] == [1, 1 / 2, 1 / 3]
    panel = driven.answer.panel
    assert driven.answer.entries[0].votes == {panel[0]: 2, panel[3]: 2, panel[6]: 2}
    assert [entry.entered_in for entry in driven.answer.entries] == [
        "report of the initial assessment team",
        "report of the review team",
        "report of the specialist team",
    ]


@pytest.mark.parametrize(("count", "batches"), [(1, 1 + 1 + 3 + 1), (2, 9), (5, 9)])
def test_more_teams_are_not_more_batches(count: int, batches: int) -> None:
    driven = run("high", teams(), teams=count)
    assert len(driven.batches) == batches
    assert len(driven.answer.panel) == 3 * count


def test_a_team_of_one_concludes_alone() -> None:
    driven = run("high", teams(), members=1)
    assert driven.batches[2:] == ["mdagents/conclude", "mdagents/conclude", "mdagents/decision"]
    assert all("- nothing" in prompt for prompt in prompts(driven, "mdagents/conclude").values())


def test_teams_have_different_titles() -> None:
    assert titles(3) == ["initial assessment team", "specialist team", "review team"]
    for count in range(1, 6):
        assert len(set(titles(count))) == count


# The whole


def test_a_golden_trace_of_a_moderate_case() -> None:
    driven = run("moderate", experts(speaks=lambda seat, number: [1] if (seat, number) == (0, 1) else []), experts=2)
    a, b = driven.answer.panel
    assert trace(driven) == [
        ("mdagents/complexity", "", "mdagents/complexity"),
        ("mdagents/recruit", "", "mdagents/recruit"),
        *[("mdagents/opinion", role, "mdagents/opinion") for role in (a, b)],
        *[("mdagents/talk", role, "mdagents/talk") for role in (a, b)],
        *[("mdagents/update", role, "mdagents/update") for role in (a, b)],
        *[("mdagents/talk", role, "mdagents/talk") for role in (a, b)],
        ("mdagents/moderator", "moderator", "mdagents/moderator"),
    ]


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("complexity", ["low", "moderate", "high"])
def test_whatever_the_model_says_the_real_driver_finishes(policy: Policy, complexity: str) -> None:
    for seed in (1, 2):
        document = finished("mdagents", policy, seed, CASE, complexity=complexity, k=2, experts=3, members=2)
        assert 1 <= document["totals"]["batches"] <= 9


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.id)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hard_texts_finish_within_two_to_ten_batches(case: Case, seed: int) -> None:
    assert 2 <= finished("mdagents", "walk", seed, case, k=2, experts=3)["totals"]["batches"] <= 10


@pytest.mark.parametrize(
    "wrong",
    [{"complexity": "basic"}, {"experts": 1}, {"experts": 11}, {"rounds": -1}, {"teams": 0}, {"members": 6}, {"k": 0},
     {"most": 4}, {"most": 21}, {"temperature": 2.5}],
)  # fmt: skip
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Options(**wrong)
