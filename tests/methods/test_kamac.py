"""KAMAC: who joins when, batches of a turn, who hears what, when it ends, and the majority at the end."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.data import data_dir
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask
from ddx_local.methods.kamac import kamac
from ddx_local.methods.kamac_steps import Options
from tests.methods.discussion_world import experts, mark, names, prompts, trace
from tests.methods.driving import Driven, Reply, World, drive
from tests.methods.real_driver import HARD, finished
from tests.methods.scot_world import CASE

RECRUIT, OPINION, TALK, UPDATE, MODERATOR = (
    f"mdagents/{step}" for step in ("recruit", "opinion", "talk", "update", "moderator")
)
GAP = "kamac/gap"
START = [RECRUIT, OPINION]
TURN = [TALK, GAP, OPINION, UPDATE]

POOL = panel_choices()
FIRST = POOL[3]
"""Who is recruited first; seats count from it in the order in which experts come."""


def missing(*specialists: Callable[[str, int], str]) -> dict[str, Reply]:
    """Gaps: the turn's function of (role, turn) names the missing specialist, '' for none; no further function, no gap."""
    asked: dict[str, int] = {}

    def gap(ask: Ask[Any]) -> Any:
        asked[ask.role] = asked.get(ask.role, 0) + 1
        turn = max(asked.values())
        name = specialists[turn - 1](ask.role, turn) if turn <= len(specialists) else ""
        if not name:
            return {"gap": "no"}
        return {"gap": "yes", "specialist": name, "reason": mark("gap", ask.role)}

    return {GAP: gap}


def wants(name: str) -> Callable[[str, int], str]:
    return lambda role, turn: name  # noqa: ARG005


def run(
    *gaps: Callable[[str, int], str],
    speaks: Callable[[int, int], Sequence[int]] = lambda seat, number: (),  # noqa: ARG005
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    replies: dict[str, Reply] | None = None,
    **options: Any,
) -> Driven[Differential]:
    world = World({**experts(speaks=speaks), **missing(*gaps), **(replies or {})}, fits=fits)
    return drive(kamac(CASE, Options(**options)), world)


always: Callable[[int, int], Sequence[int]] = lambda seat, number: range(2)  # noqa: E731, ARG005


# Batches and stops


def test_one_expert_who_misses_nobody_is_an_answer_in_three_batches() -> None:
    driven = run()
    assert driven.batches == [*START, GAP]
    assert len(driven.said) == 3
    assert driven.noted("agreed") == ["turn 1: nobody has anything to say and no knowledge is missing"]
    assert driven.noted("alone")
    assert names(driven) == ["Myocardial infarction", "Pericarditis"]
    assert driven.answer.panel == (FIRST,)


def test_an_expert_alone_is_not_asked_to_talk() -> None:
    driven = run(wants(POOL[9]))
    assert driven.batches == [*START, GAP, OPINION, UPDATE, TALK, GAP, MODERATOR]


def test_a_whole_turn_is_four_batches_and_the_most_is_fourteen() -> None:
    driven = run(wants(POOL[9]), wants(POOL[10]), wants(POOL[11]), speaks=always)
    assert driven.batches == [*START, *TURN[1:], *TURN, *TURN, MODERATOR]
    assert len(driven.batches) == 14
    assert len(driven.said) == 2 + (1 + 1 + 1) + (2 + 2 + 1 + 2) + (3 + 3 + 1 + 3) + 1
    assert driven.answer.panel == (FIRST, POOL[9], POOL[10], POOL[11])


def test_the_most_calls_are_twenty_seven_when_everybody_misses_somebody_else() -> None:
    others = iter(POOL[20:])

    def somebody(role: str, turn: int) -> str:  # noqa: ARG001
        return next(others)

    driven = run(somebody, somebody, somebody, speaks=always)
    assert len(driven.answer.panel) == 5
    assert len(driven.said) == 27
    assert len(driven.batches) == 14


def test_three_experts_at_the_start_make_four_batches_in_every_turn() -> None:
    driven = run(wants(POOL[9]), wants(POOL[10]), speaks=always, start=3)
    assert driven.batches == [*START, *TURN, *TURN, TALK, UPDATE, MODERATOR], "with five, nobody else can join"


def test_a_turn_without_a_gap_recruits_nobody() -> None:
    driven = run(speaks=lambda seat, number: [1] if (seat, number) == (0, 1) else [], start=2)
    assert driven.batches == [*START, TALK, GAP, UPDATE, TALK, GAP, MODERATOR]
    assert len(prompts(driven, UPDATE)) == 2


def test_a_gap_alone_continues_the_discussion() -> None:
    driven = run(wants(POOL[9]), start=2)
    assert driven.batches == [*START, *TURN, TALK, GAP, MODERATOR]


def test_no_turns_is_the_first_experts_list() -> None:
    assert run(wants(POOL[9]), turns=0).batches == START


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_turns_is_the_most(turns: int) -> None:
    driven = run(speaks=always, start=2, experts=2, turns=turns)
    assert driven.batches == [*START, *[TALK, UPDATE] * turns, MODERATOR]


# Who joins


def test_a_missing_specialist_is_one_of_the_pool_who_is_not_there_yet() -> None:
    driven = run(wants(POOL[9]), wants(POOL[10]))
    offered = [item.ask.slots["absent"] for item in driven.said if item.step == GAP]
    assert offered[0] == tuple(name for name in POOL if name != FIRST)
    assert offered[1] == tuple(name for name in POOL if name not in (FIRST, POOL[9]))


def test_two_who_miss_the_same_specialist_recruit_one() -> None:
    driven = run(wants(POOL[9]), start=3)
    assert driven.answer.panel[3:] == (POOL[9],)
    assert driven.noted("recruited") == [f"turn 1: {POOL[9]}"]


def test_the_most_wanted_come_first_and_whom_there_is_no_room_for_is_noted() -> None:
    wishes = dict(zip(POOL[3:6], (POOL[20], POOL[21], POOL[21]), strict=True))
    driven = run(lambda role, turn: wishes[role], start=3, experts=4)  # noqa: ARG005
    assert driven.answer.panel[3:] == (POOL[21],)
    assert driven.noted("left_out") == [f"turn 1: no room for {POOL[20]}"]


def test_in_a_full_group_nobody_is_asked_who_is_missing() -> None:
    assert GAP not in run(start=2, experts=2).batches


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_specialist_is_there_twice(seed: int) -> None:
    driven = drive(kamac(CASE, Options(k=2)), World(seed=seed))
    panel = driven.answer.panel
    assert len(set(panel)) == len(panel) <= 5
    assert set(panel) <= set(POOL)


# Who sees what


def test_a_new_expert_sees_the_opinions_before_it_and_why_it_was_asked() -> None:
    driven = run(wants(POOL[9]))
    (joined,) = [item for item in driven.said if item.step == OPINION and item.role == POOL[9]]
    assert mark("opinion", FIRST) in joined.prompt
    assert f"- {POOL[9]}, asked for by the {FIRST}: {mark('gap', FIRST)}" in joined.prompt


def test_those_who_were_there_answer_again_with_the_new_opinion_before_them() -> None:
    driven = run(wants(POOL[9]))
    again = prompts(driven, UPDATE)
    assert list(again) == [FIRST]
    assert mark("opinion", POOL[9]) in again[FIRST]


def test_nobody_sees_what_is_said_in_the_same_round() -> None:
    driven = run(wants(POOL[9]), speaks=always, start=3, turns=1)
    for prompt in prompts(driven, TALK).values():
        assert "M-to" not in prompt
    for prompt in prompts(driven, GAP).values():
        assert "M-gap" not in prompt
        assert "M-to" in prompt
    for prompt in prompts(driven, UPDATE).values():
        assert "M-update" not in prompt


def test_two_who_join_at_once_do_not_see_each_other() -> None:
    wishes = dict(zip(POOL[3:5], (POOL[20], POOL[21]), strict=True))
    driven = run(lambda role, turn: wishes[role], start=2, turns=1)  # noqa: ARG005
    told = {item.role: item.prompt for item in driven.said if item.step == OPINION}
    assert mark("opinion", POOL[20]) not in told[POOL[21]]
    assert mark("opinion", POOL[21]) not in told[POOL[20]]


def test_a_message_reaches_whom_it_is_addressed_to_in_the_same_turn() -> None:
    driven = run(speaks=lambda seat, number: [0] if (seat, number) == (1, 1) else [], start=2)
    told = prompts(driven, UPDATE)
    assert mark(f"to {FIRST}", POOL[4]) in told[FIRST].partition("Addressed to you:")[2]


def test_prompts_of_both_folders_share_their_beginning() -> None:
    driven = run(wants(POOL[9]))
    assert len({item.filled.messages[0] for item in driven.said}) == 1
    assert len({item.prompt.partition("(end of the case)")[0] for item in driven.said}) == 1


def test_a_record_that_does_not_fit_the_gap_question_is_condensed_and_noted() -> None:
    driven = run(fits=lambda ask: ask.step.name != GAP or "M-opinion" not in str(ask.slots["record"]))
    (note,) = [note for note in driven.notes if note.degraded]
    assert note.detail.startswith("kamac/gap: earlier rounds were shown without quotes")


# The answer


def test_the_majority_is_counted_over_all_who_joined_with_their_last_lists() -> None:
    def lists(seat: int, when: str) -> Sequence[str]:
        return ["Gout", "Malaria"] if when.startswith("update") or seat else ["Malaria"]

    driven = run(wants(POOL[9]), replies={**experts(lists=lists), **missing(wants(POOL[9]))})
    assert names(driven) == ["Gout", "Malaria"]
    gout = driven.answer.entries[0]
    assert gout.votes == {FIRST: 1, POOL[9]: 1}
    assert gout.entered_in == "joined in turn 1"
    assert driven.answer.entries[1].entered_in == "opinion"
    assert driven.answer.score_kind == "majority"


def test_the_moderators_ballot_orders_equal_votes() -> None:
    turned = experts(lists=lambda seat, when: [f"Disease {seat}"], ballot=lambda names: names[::-1])  # noqa: ARG005
    driven = run(replies={**turned, **missing()}, start=3)
    assert names(driven) == ["Disease 2", "Disease 1", "Disease 0"]
    assert driven.noted("tie")


@pytest.mark.parametrize(
    "name", ["Takotsubo (stress) cardiomyopathy", "Fever, cough / chills", "IgG4-related ~ disease"]
)
def test_odd_names_come_through_as_they_are(name: str) -> None:
    driven = run(start=2, replies={**experts(lists=lambda seat, when: [name]), **missing()})  # noqa: ARG005
    assert names(driven) == [name]


# Faults of the authors' program


def test_no_prompt_takes_the_standpoint_of_one_specialty() -> None:
    """The authors' prompt tells every role to think as a cardiologist."""
    for folder in ("mdagents", "kamac"):
        for path in sorted(Path(data_dir("prompts") / folder).glob("*.md")):
            text = path.read_text("utf-8").casefold()
            assert not [name for name in (*POOL, "cardiolog", "oncolog") if name in text], path.name


def test_the_first_expert_is_not_always_the_same() -> None:
    """In one task of the authors' program it always is a radiation oncologist."""
    first = {drive(kamac(CASE, Options(turns=0, k=1)), World(seed=seed)).answer.panel[0] for seed in range(8)}
    assert len(first) > 1


def test_a_recruitment_in_the_last_turn_adds_no_turn() -> None:
    driven = run(wants(POOL[9]), wants(POOL[10]), wants(POOL[11]), wants(POOL[12]))
    assert driven.batches.count(GAP) == 3
    assert driven.batches[-3:] == [OPINION, UPDATE, MODERATOR]


def test_a_turn_without_a_recruitment_wipes_nothing() -> None:
    """In the authors' program a recruiter's "skip" overwrites every expert's last message."""
    driven = run(speaks=lambda seat, number: [0] if (seat, number) == (1, 1) else [], start=2)
    last = prompts(driven, MODERATOR)["moderator"]
    assert mark(f"to {FIRST}", POOL[4]) in last
    assert "M-update 1" in last


def test_two_runs_share_nothing() -> None:
    """The authors' program replays answers that are stored by role alone."""
    one = run(wants(POOL[9]))
    two = run(wants(POOL[9]))
    assert [item.prompt for item in one.said] == [item.prompt for item in two.said]


# The whole


def test_a_golden_trace() -> None:
    driven = run(wants(POOL[9]), speaks=lambda seat, number: [0] if (seat, number) == (1, 1) else [], turns=2)
    a, b = FIRST, POOL[9]
    assert trace(driven) == [
        (RECRUIT, "", RECRUIT),
        (OPINION, a, OPINION),
        (GAP, a, GAP),
        (OPINION, b, OPINION),
        (UPDATE, a, UPDATE),
        (TALK, a, TALK),
        (TALK, b, TALK),
        (GAP, a, GAP),
        (GAP, b, GAP),
        (UPDATE, a, UPDATE),
        (UPDATE, b, UPDATE),
        (MODERATOR, "moderator", MODERATOR),
    ]


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_model_says_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    document = finished("kamac", policy, seed, CASE, k=2, turns=2)
    assert 3 <= document["totals"]["batches"] <= 10


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.id)
def test_hard_texts_finish(case: Case) -> None:
    assert 3 <= finished("kamac", "walk", 0, case, k=2, turns=2)["totals"]["batches"] <= 10


@pytest.mark.parametrize(
    "wrong",
    [{"start": 0}, {"start": 11}, {"experts": 0}, {"experts": 13}, {"turns": -1}, {"k": 0}, {"most": 4},
     {"most": 21}, {"temperature": 2.1}],
)  # fmt: skip
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Options(**wrong)
