"""SCoT: rounds and batches, who sees what and when, seats, every option, and what the vote and the safety check may change."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ddx_local.case import Case, Differential
from ddx_local.clinical.pool import panel_choices
from ddx_local.errors import ParseError
from ddx_local.flow import Ask, Consult, Note
from ddx_local.methods.scot import STYLES, scot, styles
from ddx_local.methods.scot_steps import Options
from tests.methods.driving import Driven, World, drive
from tests.methods.scot_world import CASE, LISTS, QUOTES, mark, panel, run

ROUNDS = ["panel", "relevance", "triage", "differential", "positions", "exchange", "final", "vote", "cant_miss"]


def named(*steps: str) -> list[str]:
    return [f"scot/{step}" for step in steps]


def diagnoses(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def entry(driven: Driven[Differential], name: str) -> Any:
    return next(item for item in driven.answer.entries if item.diagnosis == name)


def similar(score: float, *pairs: tuple[str, str]) -> Callable[[str, str], float]:
    known = {frozenset(pair) for pair in pairs}
    return lambda a, b: score if frozenset((a, b)) in known else 0.0


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


# The vote


def backwards(seat: int, entries: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    return tuple(sorted(entries, reverse=True))


def test_the_ballots_rank_the_list_and_every_place_is_reported() -> None:
    driven = run(panel(ballot=backwards))
    assert diagnoses(driven) == sorted({name for names in LISTS for name in names} - {"MI"}, reverse=True)[:5]
    assert driven.answer.score_kind == "borda"
    for rank, found in enumerate(driven.answer.entries, start=1):
        assert found.votes == dict.fromkeys(driven.answer.panel, rank)
        assert found.score == 5 * (11 - rank)


def test_scores_weigh_a_ballot() -> None:
    plain = run(panel(ballot=lambda seat, entries: entries if seat % 2 else entries[::-1]))
    raised = run(
        panel(
            ballot=lambda seat, entries: entries if seat % 2 else entries[::-1],
            score=lambda seat, name: 10 if name == "Malaria" else 1,  # noqa: ARG005
        )
    )
    assert diagnoses(raised)[0] == "Malaria" != diagnoses(plain)[0]


def test_a_generous_scorer_has_no_more_power() -> None:
    def ballot(seat: int, entries: tuple[str, ...]) -> tuple[str, ...]:
        return entries[::-1] if seat == 0 else entries

    modest = run(panel(ballot=ballot, score=lambda seat, name: 1))  # noqa: ARG005
    loud = run(panel(ballot=ballot, score=lambda seat, name: 10 if seat == 0 else 1))  # noqa: ARG005
    assert modest.answer.entries == loud.answer.entries


def test_relevance_weighting_changes_the_result_and_only_when_asked_for() -> None:
    replies = panel(
        ballot=lambda seat, entries: entries[::-1] if seat == 0 else entries,
        relevance=lambda seat: 5 if seat == 0 else 1,
    )
    plain = run(replies)
    weighted = run(replies, relevance_weighting=True)
    assert diagnoses(plain)[0] == "Myocardial infarction"
    last = plain.of("scot/vote")["cardiologist"].ask.slots["entries"][-1]
    assert diagnoses(weighted)[0] == last
    assert weighted.answer.entries[0].score == pytest.approx(10 * 5 / 1.8)
    even = panel(ballot=lambda seat, entries: entries[::-1] if seat == 0 else entries, relevance=lambda seat: 2)  # noqa: ARG005
    assert run(even, relevance_weighting=True).answer.entries == run(even).answer.entries


def test_ties_go_to_more_first_places_then_more_supports_then_the_earlier_proposal_and_are_noted() -> None:
    lists = (("Malaria", "Sarcoidosis", "Amyloidosis"), ("Malaria", "Sarcoidosis", "Amyloidosis"))
    mirror = panel(lists, ballot=lambda seat, entries: entries if seat else entries[::-1])
    driven = run(mirror, agents=2)
    assert diagnoses(driven) == ["Malaria", "Amyloidosis", "Sarcoidosis"]
    assert driven.noted("tie") == [
        "equal score, ordered by first places, supports, then the earlier proposal: Malaria, Amyloidosis, Sarcoidosis"
    ]
    supported = panel(
        lists,
        ballot=lambda seat, entries: entries if seat else entries[::-1],
        final=lambda role, name: "support" if name == "Amyloidosis" else "neutral",  # noqa: ARG005
    )
    assert diagnoses(run(supported, agents=2)) == ["Amyloidosis", "Malaria", "Sarcoidosis"]


def test_an_addition_loses_a_tie_against_an_earlier_proposal_even_if_more_agents_made_it() -> None:
    lists = (("Malaria", "Sarcoidosis", "Amyloidosis"), ("Pericarditis", "Herpes zoster", "Lyme disease"))

    def ballot(seat: int, entries: tuple[str, ...]) -> tuple[str, ...]:
        rest = tuple(name for name in entries if name not in ("Malaria", "Celiac disease"))
        return ("Malaria", "Celiac disease", *rest) if seat else ("Celiac disease", "Malaria", *rest)

    driven = run(panel(lists, missing=lambda seat: ("Celiac disease",), ballot=ballot), agents=2)  # noqa: ARG005
    assert entry(driven, "Celiac disease").proposed_by == driven.answer.panel
    assert entry(driven, "Celiac disease").score == entry(driven, "Malaria").score
    assert diagnoses(driven)[:2] == ["Malaria", "Celiac disease"]


def test_at_most_k_diagnoses_come_out() -> None:
    assert len(run(k=3).answer.entries) == 3
    assert len(run(panel(tuple(names[:1] for names in LISTS)), k=1).answer.entries) == 1


# Positions that drop or withdraw


def test_what_nobody_supports_at_the_end_and_someone_challenges_is_dropped_before_the_vote() -> None:
    def final(role: str, name: str) -> str:
        if name == "Malaria":
            return "challenge" if role == "cardiologist" else "neutral"
        return "neutral" if name == "Sarcoidosis" else "support"

    driven = run(panel(final=final))
    for item in driven.of("scot/vote").values():
        assert "Malaria" not in item.ask.slots["entries"]
        assert "Sarcoidosis" in item.ask.slots["entries"], "unsupported, but nobody challenges it"
    assert driven.noted("dropped") == ["challenged and supported by nobody at the end: Malaria"]
    assert "Malaria" not in diagnoses(driven)


def test_one_support_keeps_an_entry_against_four_challenges() -> None:
    driven = run(panel(final=lambda role, name: "support" if role == "cardiologist" else "challenge"))  # noqa: ARG005
    assert len(driven.of("scot/vote")["cardiologist"].ask.slots["entries"]) == 11
    assert driven.noted("dropped") == driven.noted("kept") == []


def test_positions_before_the_final_ones_drop_nothing() -> None:
    driven = run(panel(position=lambda role, name: "challenge"))  # noqa: ARG005
    assert len(driven.of("scot/vote")["cardiologist"].ask.slots["entries"]) == 11


def test_if_everything_would_be_dropped_everything_stays_and_that_is_noted() -> None:
    driven = run(panel(final=lambda role, name: "challenge"))  # noqa: ARG005
    assert len(driven.of("scot/vote")["cardiologist"].ask.slots["entries"]) == 11
    assert len(driven.noted("kept")) == 1
    assert driven.noted("dropped") == []
    assert len(driven.answer.entries) == 5


def test_a_withdrawn_proposal_is_dropped_unless_somebody_else_supports_it() -> None:
    def final(role: str, name: str) -> str:
        return "support" if name != "Malaria" or role == "pulmonologist" else "neutral"

    def withdrawn(role: str, own: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in own if name in ("Malaria", "Lyme disease")) if role == "pulmonologist" else ()

    driven = run(panel(final=final, withdrawn=withdrawn))
    names = driven.of("scot/vote")["cardiologist"].ask.slots["entries"]
    assert "Malaria" not in names, "its only supporter withdrew it"
    assert "Lyme disease" in names, "others support it"
    assert all("pulmonologist withdrawn" in item.prompt for item in driven.of("scot/vote").values())
    kept = run(panel(final=final, withdrawn=withdrawn), most=12, k=10)
    assert entry(kept, "Lyme disease").stances["pulmonologist"] == "withdrawn"


def test_only_ones_own_proposals_can_be_withdrawn() -> None:
    driven = run()
    for role, item in driven.of("scot/final").items():
        own = set(item.ask.slots["own"])
        proposed = {
            (name if name != "MI" else "Myocardial infarction") for name in LISTS[driven.answer.panel.index(role)]
        }
        assert own == proposed


# Additions


def test_additions_enter_in_the_refinement_take_part_in_the_rest_and_keep_their_evidence() -> None:
    replies = panel(
        missing=lambda seat: ("Celiac disease",) if seat < 2 else (),
        ballot=lambda seat, entries: ("Celiac disease", *(name for name in entries if name != "Celiac disease")),  # noqa: ARG005
    )
    driven = run(replies)
    assert all("Celiac disease" not in item.ask.slots["entries"] for item in driven.of("scot/positions").values())
    for step in named("exchange", "final", "vote"):
        assert all("Celiac disease" in item.ask.slots["entries"] for item in driven.of(step).values())
    found = entry(driven, "Celiac disease")
    assert found.rank == 1
    assert found.entered_in == "refinement"
    assert found.proposed_by == ("cardiologist", "pulmonologist")
    assert QUOTES[3].strip() in [item.quote.quote for item in found.evidence if set(item.by) >= {"cardiologist"}]
    others = [item for item in driven.answer.entries if item.diagnosis != "Celiac disease"]
    assert {item.entered_in for item in others} == {"differential"}


def test_an_addition_that_the_list_has_under_another_name_joins_it_and_is_still_seen() -> None:
    driven = run(panel(missing=lambda seat: ("Heart attack",) if seat == 1 else ()))
    found = entry(driven, "Myocardial infarction")
    assert found.entered_in == "differential"
    assert "pulmonologist" in found.proposed_by
    assert all(mark("missing", "pulmonologist") in item.prompt for item in driven.of("scot/exchange").values())


def test_the_list_holds_at_most_twelve_entries_and_what_is_left_out_is_noted() -> None:
    lists = (*LISTS[:4], ("Pericarditis", "Amyloidosis", "Costochondritis", "Celiac disease", "Hemochromatosis"))
    driven = run(panel(lists))
    names = driven.of("scot/positions")["cardiologist"].ask.slots["entries"]
    assert len(names) == 12
    assert driven.noted("left_out") == ["1 of 13 diagnoses left out of the master list: Hemochromatosis"]
    added = run(panel(missing=lambda seat: ("Celiac disease", "Hemochromatosis") if seat == 4 else ()))
    assert len(added.of("scot/vote")["cardiologist"].ask.slots["entries"]) == 12
    assert len(added.noted("left_out")) == 1


def test_conflicting_names_are_never_merged_by_similarity() -> None:
    lists = (("Acute pancreatitis", "Gout", "Malaria"), ("Chronic pancreatitis", "Pseudogout", "Malaria"))
    pairs = (("Acute pancreatitis", "Chronic pancreatitis"), ("Gout", "Pseudogout"))
    driven = run(panel(lists, same=lambda line: True), similarity=similar(0.99, *pairs), agents=2)  # noqa: ARG005
    assert len(driven.of("scot/positions")["cardiologist"].ask.slots["entries"]) == 5
    assert driven.noted("merged") == []
    assert not {frozenset(pair) for pair in pairs} & {frozenset(pair) for pair in driven.compared}


# Can't miss


def test_dangers_stand_beside_the_differential_and_never_reorder_it() -> None:
    calm = run()
    alarmed = run(
        panel(
            dangers=lambda seat: (
                ("Tension pneumothorax", "Esophageal rupture") if seat < 2 else ("Tension pneumothorax",)
            )
        )
    )
    assert diagnoses(alarmed) == diagnoses(calm)
    assert [item.score for item in alarmed.answer.entries] == [item.score for item in calm.answer.entries]
    found = {item.diagnosis: item for item in alarmed.answer.cant_miss}
    assert set(found) == {"Tension pneumothorax", "Esophageal rupture"}
    assert found["Tension pneumothorax"].by == alarmed.answer.panel
    assert found["Esophageal rupture"].by == alarmed.answer.panel[:2]
    quote = found["Tension pneumothorax"].quote
    assert quote is not None
    assert CASE.text[quote.start : quote.end] == QUOTES[2].strip()
    assert found["Tension pneumothorax"].test == "A CT of the chest"


def test_a_danger_that_the_differential_already_has_under_any_name_is_left_out() -> None:
    driven = run(panel(dangers=lambda seat: ("MI", "Acute myocardial infarction", "Ectopic pregnancy")[: 1 + seat]))
    assert "MI" not in [item.diagnosis for item in driven.answer.cant_miss]
    assert "Myocardial infarction" in diagnoses(driven)


def test_a_danger_that_fell_behind_place_k_is_still_reported() -> None:
    driven = run(panel(dangers=lambda seat: ("Costochondritis",)))  # noqa: ARG005
    assert "Costochondritis" not in diagnoses(driven)
    assert [item.diagnosis for item in driven.answer.cant_miss] == ["Costochondritis"]


def test_critical_entries_are_flagged_and_only_those_of_the_final_list_can_be() -> None:
    driven = run(panel(critical=lambda final: final[1:3]))
    assert [item.critical for item in driven.answer.entries] == [False, True, True, False, False]
    for item in driven.of("scot/cant_miss").values():
        assert list(item.ask.slots["final"]) == diagnoses(driven)


# Evidence


def test_evidence_is_located_at_its_first_place_and_tells_who_gave_it_and_for_which_side() -> None:
    def final(role: str, name: str) -> str:
        return "challenge" if name == "Pericarditis" and role == "pulmonologist" else "support"

    found = entry(run(panel(final=final)), "Pericarditis")
    pieces = {(item.quote.quote, item.supports): item for item in found.evidence}
    assert set(pieces) == {(QUOTES[0].strip(), True), (QUOTES[1].strip(), True), (QUOTES[1].strip(), False)}
    assert pieces[(QUOTES[1].strip(), False)].by == ("pulmonologist",)
    assert "pulmonologist" not in pieces[(QUOTES[1].strip(), True)].by
    given = pieces[(QUOTES[0].strip(), True)]
    assert given.by == found.proposed_by
    assert given.quote.start == CASE.text.index(QUOTES[0].strip())
    assert CASE.text.count(QUOTES[0].strip()) == 2


def test_triage_findings_are_reported_with_their_place_and_speaker() -> None:
    driven = run()
    assert [(item.by, item.urgency) for item in driven.answer.triage] == [
        (role, "emergent") for role in driven.answer.panel
    ]
    quote = driven.answer.triage[0].quote
    assert quote is not None
    assert CASE.text[quote.start : quote.end] == quote.quote == QUOTES[2].strip()


def invented(ask: Ask[Any]) -> Any:  # noqa: ARG001
    names = LISTS[0]
    return {"differential": [{"diagnosis": name, "evidence": ["a cough since May "], "reason": "R"} for name in names]}


def test_a_quote_that_is_not_in_the_case_is_refused_by_the_grammar_and_by_the_method() -> None:
    with pytest.raises(AssertionError, match="no engine can answer"):
        run({**panel(), "scot/differential": invented})
    with pytest.raises(ParseError) as error:
        run({**panel(), "scot/differential": invented}, lawful=False)
    assert "cough" not in str(error.value), "no clinical text in an error"


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


# Options


@pytest.mark.parametrize(
    "wrong",
    [
        {"agents": 0},
        {"agents": 13},
        {"k": 0},
        {"k": 11},
        {"k": 6, "most": 5},
        {"most": 21},
        {"temperature_innovative": -0.1},
        {"temperature_conservative": 2.1},
        {"temperature_innovative": float("nan")},
        {"same_at": 1.1},
        {"ask_at": 0.0},
        {"ask_at": 0.95, "same_at": 0.9},
        {"without": ("differential",)},
        {"without": ("vote",)},
        {"relevance_weighting": True, "without": ("relevance",)},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Options(**wrong)


def test_the_options_are_the_papers() -> None:
    options = Options()
    assert (options.agents, options.k, options.most) == (5, 5, 12)
    assert (options.temperature_innovative, options.temperature_conservative) == (0.7, 0.3)
    assert (options.same_at, options.ask_at) == (0.90, 0.75)
    assert (options.relevance_weighting, options.without) == (False, ())
