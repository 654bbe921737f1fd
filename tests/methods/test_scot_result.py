"""What SCoT makes of a debate: the vote, drops and withdrawals, additions, the safety check, evidence."""

from typing import Any

import pytest

from ddx_local.errors import ParseError
from ddx_local.flow import Ask
from tests.methods.scot_world import CASE, LISTS, QUOTES, diagnoses, entry, mark, named, panel, run, similar

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
