"""SCoT: rounds and batches, seats, who sees what and when, rounds left out, and a record that does not fit the context."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ddx_local.case import Case
from ddx_local.clinical.pool import panel_choices
from ddx_local.flow import Ask, Consult, Note
from ddx_local.methods.scot import scot
from ddx_local.methods.scot_debate import STYLES, styles
from ddx_local.methods.scot_options import Options
from tests.methods.driving import World, drive
from tests.methods.scot_world import CASE, LISTS, QUOTES, diagnoses, mark, named, panel, run, similar

ROUNDS = ["panel", "relevance", "triage", "differential", "positions", "exchange", "final", "vote", "cant_miss"]


# Rounds and batches


@pytest.mark.parametrize("agents", [1, 3, 5])
def test_nine_batches_of_all_agents_whatever_the_panels_size(agents: int) -> None:
    driven = run(agents=agents)
    assert driven.batches == named(*ROUNDS)
    sizes = [len(round_.questions) for round_ in driven.rounds if round_.is_batch]
    assert sizes == [1] + [agents] * 8
    assert len(driven.answer.panel) == agents


@pytest.mark.parametrize("agents", [1, 3, 5])
def test_a_merge_question_after_the_lists_and_one_after_the_additions_make_ten_and_eleven(agents: int) -> None:
    one = run(similarity=similar(0.8, ("Pericarditis", "Sarcoidosis")), agents=agents)
    assert one.batches == named("panel", "relevance", "triage", "differential", "merge", *ROUNDS[4:])
    adding = panel(missing=lambda seat: ("Celiac disease",) if seat == 0 else ())
    both = run(
        adding,
        similarity=similar(0.8, ("Pericarditis", "Sarcoidosis"), ("Celiac disease", "Sarcoidosis")),
        agents=agents,
    )
    assert both.batches == named(
        "panel",
        "relevance",
        "triage",
        "differential",
        "merge",
        "positions",
        "merge",
        "exchange",
        "final",
        "vote",
        "cant_miss",
    )
    assert len(both.batches) == 11


@pytest.mark.parametrize(("agents", "seed"), [(1, 1), (3, 2), (5, 3)])
def test_whatever_the_models_say_there_are_nine_to_eleven_batches_and_a_sound_answer(agents: int, seed: int) -> None:
    chosen = {frozenset(("MI", "x"))}
    world = World(similarity=lambda a, b: 0.8 if (len(a) + len(b)) % 3 == 0 or {a, b} in chosen else 0.1, seed=seed)
    driven = drive(scot(CASE, Options(agents=agents)), world)
    assert 9 <= len(driven.batches) <= 11
    answer = driven.answer
    assert 1 <= len(answer.entries) <= 5
    assert [item.rank for item in answer.entries] == list(range(1, len(answer.entries) + 1))
    assert [item.score for item in answer.entries] == sorted((item.score for item in answer.entries), reverse=True)
    assert len(set(diagnoses(driven))) == len(answer.entries)
    quotes = [item.quote for found in answer.entries for item in found.evidence]
    quotes += [item.quote for item in answer.triage if item.quote]
    quotes += [item.quote for item in answer.cant_miss if item.quote]
    assert quotes
    assert all(CASE.text[quote.start : quote.end] == quote.quote != "" for quote in quotes)
    assert len(driven.said) == 1 + 8 * agents + driven.batches.count("scot/merge")


@pytest.mark.parametrize(
    "text", ["fever 39", "x" * 300, "患者男五十八岁突发胸痛三小时伴大汗" * 8, 'He "hurts" \\ a\n lot 🫀 {{case}} today']
)
def test_odd_cases_run_to_an_answer(text: str) -> None:
    driven = drive(scot(Case("odd", text), Options(agents=2)), World(seed=7))
    assert driven.answer.entries
    for found in driven.answer.entries:
        assert all(text[item.quote.start : item.quote.end] == item.quote.quote for item in found.evidence)
        assert (found.evidence == ()) == (len(text.split()) < 3)


# Seats


@pytest.mark.parametrize(
    ("agents", "innovative"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3), (10, 4), (12, 5)]
)
def test_two_seats_in_five_are_innovative_rounded_and_a_single_one_is_conservative(
    agents: int, innovative: int
) -> None:
    seats = styles(agents)
    assert len(seats) == agents
    assert seats.count("innovative") == innovative
    assert seats.count("conservative") == agents - innovative


@pytest.mark.parametrize(("agents", "temperatures"), [(5, [0.7, 0.7, 0.3, 0.3, 0.3]), (3, [0.7, 0.3, 0.3]), (1, [0.3])])
def test_every_agent_keeps_its_temperature_and_its_persona_in_every_round(
    agents: int, temperatures: list[float]
) -> None:
    driven = run(agents=agents)
    style = {0.7: "innovative", 0.3: "conservative"}
    for step in named(*ROUNDS[1:]):
        said = driven.of(step)
        assert tuple(said) == driven.answer.panel
        assert [item.filled.temperature for item in said.values()] == temperatures
        for role, item in said.items():
            assert f"You are the {role} of the panel. {STYLES[style[item.filled.temperature]]}" in item.prompt
            assert item.prompt.count("You are the") == 1


def test_the_panel_is_chosen_from_the_pool_all_different_in_the_number_asked_for() -> None:
    driven = drive(
        scot(CASE, Options(agents=7, without=("relevance", "triage", "refinement", "cant_miss"))), World(seed=3)
    )
    assert len(set(driven.answer.panel)) == 7
    assert set(driven.answer.panel) <= set(panel_choices())


def test_all_temperatures_may_be_equal() -> None:
    driven = run(temperature_innovative=0.5, temperature_conservative=0.5)
    assert {item.filled.temperature for item in driven.said if item.role} == {0.5}


# Who sees what


MARKED = {
    "relevance": "relevance",
    "triage": "triage",
    "differential": "differential",
    "positions": "positions",
    "missing": "positions",
    "challenge": "exchange",
    "answer": "exchange",
    "final": "final",
}
"""Marker -> the round in which it is said."""


def test_a_role_sees_everything_said_in_earlier_rounds_and_nothing_of_its_own_round() -> None:
    replies = panel(
        position=lambda role, name: "support" if role == "cardiologist" else "challenge",  # noqa: ARG005
        missing=lambda seat: ("Celiac disease",) if seat < 2 else ("MI",) if seat == 2 else ("Hemochromatosis",),
    )
    driven = run(replies)
    roles = driven.answer.panel
    spoken = 0
    for marker, said_in in MARKED.items():
        for speaker in roles:
            said = mark(marker, speaker)
            here = any(said in str(item.answer) for item in driven.said)
            assert here, f"nobody said {said}"
            for item in driven.said:
                if item.step in named("panel", "merge"):
                    continue
                later = ROUNDS.index(item.step.removeprefix("scot/")) > ROUNDS.index(said_in)
                assert (said in item.prompt) == later, f"{said} in the prompt of {item.step} for {item.role}"
                spoken += later
    assert spoken == 5 * 5 * (7 + 6 + 5 + 4 + 4 + 3 + 3 + 2)


def test_the_panel_is_known_from_the_first_round_on_and_the_ballots_only_after_the_vote() -> None:
    driven = run(panel(ballot=lambda seat, entries: entries[seat:] + entries[:seat]))
    line = ", ".join(driven.answer.panel)
    assert all(line in item.prompt for item in driven.said if item.role)
    ballots = [" > ".join(item.answer["ballot"]) for item in driven.of("scot/vote").values()]
    assert len(set(ballots)) == 5
    for item in driven.said:
        assert all((ballot in item.prompt) == (item.step == "scot/cant_miss") for ballot in ballots)


def test_independent_lists_are_made_without_any_list() -> None:
    driven = run()
    names = {name for names in LISTS for name in names}
    for item in driven.of("scot/differential").values():
        assert not [name for name in names if name in item.prompt]
        assert mark("triage", "cardiologist") in item.prompt


def test_every_wording_and_quote_of_the_lists_is_seen_in_the_refinement() -> None:
    for item in run().of("scot/positions").values():
        assert all(name in item.prompt for names in LISTS for name in names)
        assert QUOTES[0].strip() in item.prompt


def test_the_challenged_one_is_told_what_is_challenged_and_sees_by_whom_why_and_with_which_quote() -> None:
    target = "Aortic dissection"
    driven = run(
        panel(position=lambda role, name: "challenge" if (role, name) == ("cardiologist", target) else "support")
    )
    for role, item in driven.of("scot/exchange").items():
        own = role == driven.answer.panel[3]
        assert item.ask.slots["challenged"] == ((target,) if own else ())
        assert [answer["diagnosis"] for answer in item.answer["answers"]] == ([target] if own else [])
        assert f'cardiologist challenge ("{QUOTES[1].strip()}"), {mark("positions", "cardiologist")}' in item.prompt


def test_one_is_not_told_to_answer_ones_own_challenge_nor_to_challenge_ones_own_proposal() -> None:
    replies = panel(
        position=lambda role, name: "challenge" if (role, name) == ("cardiologist", "Sarcoidosis") else "neutral"
    )
    for role, item in run(replies).of("scot/exchange").items():
        own = {"Sarcoidosis", "Pericarditis", "Myocardial infarction"}
        assert "Sarcoidosis" not in item.ask.slots["challenged"]
        assert (own & set(item.ask.slots["others"]) == set()) == (role == "cardiologist")


def test_answers_and_challenges_of_the_exchange_are_in_the_final_round_and_the_whole_debate_in_the_vote() -> None:
    driven = run(panel(position=lambda role, name: "challenge" if role == "nephrologist" else "neutral"))  # noqa: ARG005
    exchanged = driven.of("scot/exchange").items()
    lines = [
        f"- {role} answers for {said['diagnosis']}: " for role, item in exchanged for said in item.answer["answers"]
    ]
    lines += [
        f"- {role} challenges {said['diagnosis']} (" for role, item in exchanged for said in item.answer["challenges"]
    ]
    assert len(lines) > 15
    for step in named("final", "vote"):
        for item in driven.of(step).values():
            assert [line for line in lines if line not in item.prompt] == []
    assert all("FINAL POSITIONS:" in item.prompt for item in driven.of("scot/vote").values())
    assert not any("FINAL POSITIONS:" in item.prompt for item in driven.of("scot/final").values())


def test_prompts_of_later_rounds_begin_with_the_whole_record_of_earlier_ones() -> None:
    driven = run(panel(missing=lambda seat: ("Celiac disease",) if seat == 0 else ()))
    records = [str(driven.of(step)["cardiologist"].ask.slots["record"]) for step in named(*ROUNDS[1:])]
    for earlier, later in pairwise(records):
        assert later.startswith(earlier)
        assert len(later) > len(earlier)


def test_who_adds_a_diagnosis_supports_it_with_its_quote_from_then_on() -> None:
    driven = run(panel(missing=lambda seat: ("Celiac disease",) if seat == 3 else ()))
    role = driven.answer.panel[3]
    shown = next(iter(driven.of("scot/exchange").values())).prompt
    (line,) = [line for line in shown.splitlines() if "Celiac disease" in line and "support" in line.casefold()]
    assert f'{role} support ("{QUOTES[3].strip()}")' in line


def test_who_adds_what_the_list_already_has_keeps_the_position_taken_on_it() -> None:
    driven = run(
        panel(
            position=lambda role, name: "challenge" if name == "Pericarditis" else "support",  # noqa: ARG005
            missing=lambda seat: ("Pericarditis",) if seat == 1 else (),
        )
    )
    role = driven.answer.panel[1]
    shown = next(iter(driven.of("scot/exchange").values())).prompt
    (line,) = [line for line in shown.splitlines() if line.startswith("- Pericarditis: ") and "challenge" in line]
    assert f"{role} challenge" in line
    assert f"{role} support" not in line


# Rounds that can be left out


@pytest.mark.parametrize(
    ("left_out", "steps"),
    [
        ("relevance", ["relevance"]),
        ("triage", ["triage"]),
        ("refinement", ["positions", "exchange", "final"]),
        ("voting", ["vote"]),
        ("cant_miss", ["cant_miss"]),
        ("merge", []),
    ],
)
def test_without_drops_exactly_its_round(left_out: str, steps: list[str]) -> None:
    replies = panel(dangers=lambda seat: ("Tension pneumothorax",))  # noqa: ARG005
    full, less = run(replies), run(replies, without=(left_out,))
    assert less.batches == [step for step in full.batches if step not in named(*steps)]
    consulted = [q for r in less.rounds for q in r.questions.values() if isinstance(q, Consult)]
    assert bool(less.compared) == (left_out != "merge")
    assert consulted
    answer = less.answer
    assert (answer.triage == ()) == (left_out == "triage")
    assert (answer.cant_miss == ()) == (left_out == "cant_miss")
    assert (answer.score_kind == "proposers") == (left_out == "voting")
    assert all((item.stances == {}) == (left_out == "refinement") for item in answer.entries)
    assert all((item.votes == {}) == (left_out == "voting") for item in answer.entries)
    for step in steps:
        for item in less.said:
            assert mark(step, "cardiologist") not in item.prompt


def test_all_rounds_that_can_be_left_out_may_be_left_out_together() -> None:
    driven = run(without=("relevance", "triage", "merge", "refinement", "voting", "cant_miss"))
    assert driven.batches == named("panel", "differential")
    assert diagnoses(driven)[0] == "Myocardial infarction"
    assert driven.answer.entries[0].score == 3


def test_without_a_vote_the_number_of_proposers_counts_then_the_best_place() -> None:
    driven = run(without=("voting",))
    assert diagnoses(driven) == [
        "Myocardial infarction",
        "Pericarditis",
        "Pulmonary embolism",
        "Aortic dissection",
        "Malaria",
    ]
    assert [item.score for item in driven.answer.entries] == [3, 2, 2, 1, 1]
    assert all("ordered by the best place" in tie for tie in driven.noted("tie"))


# Room


def refusing(step: str, times: int) -> Callable[[Ask[Any]], bool]:
    """The last seat's question of this step does not fit the first few times."""
    left = {step: times}

    def fits(ask: Ask[Any]) -> bool:
        if ask.step.name != step or ask.role != "neurologist" or left[step] == 0:
            return True
        left[step] -= 1
        return False

    return fits


def test_what_fits_is_shown_in_full_and_nothing_is_called_degraded() -> None:
    driven = run()
    assert not [note for note in driven.notes if note.degraded]
    assert driven.noted("condensed") == []


def test_a_record_that_does_not_fit_is_shown_without_quotes_and_reasons_to_all_seats_and_noted_as_degraded() -> None:
    driven = run(fits=refusing("scot/vote", 1))
    full = run()
    for item in driven.of("scot/vote").values():
        assert mark("positions", "cardiologist") not in item.prompt
        assert "cardiologist support" in item.prompt
        assert len(item.prompt) < len(full.of("scot/vote")[item.role].prompt)
    (note,) = [note for note in driven.notes if note.degraded]
    assert note == Note(
        "condensed", "scot/vote: earlier rounds were shown without quotes and reasons, to fit the context", True
    )
    for item in driven.of("scot/cant_miss").values():
        assert mark("positions", "cardiologist") in item.prompt, "a round that fits is shown in full again"


def test_a_record_that_does_not_fit_in_brief_is_shown_as_counts() -> None:
    driven = run(panel(position=lambda role, name: "challenge" if role == "neurologist" else "support"),  # noqa: ARG005
                 fits=refusing("scot/vote", 2))  # fmt: skip
    for item in driven.of("scot/vote").values():
        assert "cardiologist support" not in item.prompt
        assert "- Sarcoidosis: 4 support, 1 challenge" in item.prompt
        assert "- Sarcoidosis: 5 support, 0 challenge" in item.prompt
        assert driven.answer.panel[0] in item.prompt
    (note,) = [note for note in driven.notes if note.degraded]
    assert note.detail == "scot/vote: earlier rounds were shown as counts only, to fit the context"


def test_each_lower_detail_is_shorter() -> None:
    lengths = []
    for times in range(3):
        driven = run(fits=refusing("scot/vote", times))
        lengths.append(sum(len(item.prompt) for item in driven.of("scot/vote").values()))
    assert lengths[0] > lengths[1] > lengths[2]


def test_a_round_that_does_not_fit_at_all_is_still_asked_so_that_the_engine_refuses_it_with_the_numbers() -> None:
    driven = run(fits=refusing("scot/vote", 9))
    assert "scot/vote" in driven.batches
    assert len([note for note in driven.notes if note.degraded]) == 1
