"""DMoA: rounds and calls of each variant, who sees what, the aggregator's choice, token budgets, and partitions of the case."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local import jobs
from ddx_local.case import Case, Conflict, Differential
from ddx_local.clinical.sections import split
from ddx_local.engines.scripted import Policy, ScriptedEngine, by_policy
from ddx_local.errors import EngineError
from ddx_local.events import Asked
from ddx_local.flow import Ask
from ddx_local.grammar import accepts, expand
from ddx_local.launch import Opened
from ddx_local.methods.dmoa import dmoa
from ddx_local.methods.dmoa_budget import JOINT
from ddx_local.methods.dmoa_parts import deal, text_of
from ddx_local.methods.dmoa_steps import Options
from ddx_local.methods.table import METHODS
from ddx_local.request import Request
from ddx_local.result import schema
from ddx_local.store import Store
from tests.methods.driving import Driven, Reply, World, drive
from tests.methods.scot_world import CASE, QUOTES, mark, proposal

ROOMY: Mapping[str, Any] = {"presenter_tokens": 100_000, "rebutter_tokens": 100_000, "aggregator_tokens": 100_000}
"""Budgets in which everything fits: here a token is a byte."""

FIRST = (
    ("Myocardial infarction", "Pericarditis", "Sarcoidosis"),
    ("Pulmonary embolism", "Malaria", "Lyme disease"),
    ("MI", "Pulmonary embolism", "Panic disorder"),
    ("Aortic dissection", "Myocardial infarction", "Herpes zoster"),
    ("Pericarditis", "Amyloidosis", "Costochondritis"),
)
"""The presenters' first lists, by debater."""


def quoted(ask: Ask[Any]) -> str:
    """The first of the quotes that stands in what is read, with the white space after it, as a grammar gives it."""
    text = str(ask.slots["case"])
    quote = next(quote.strip() for quote in QUOTES if quote.strip() in text)
    after = text.index(quote) + len(quote)
    return quote + text[after : after + 1]


def debaters(
    revised: Callable[[int], Sequence[str]] = lambda seat: FIRST[seat],
    dangers: Callable[[int], Sequence[str]] = lambda seat: (),  # noqa: ARG005
    choose: Callable[[Sequence[str]], Sequence[str]] = lambda candidates: candidates[:3],
    conflicts: Sequence[tuple[str, str]] = (),
    **more: Reply,
) -> dict[str, Reply]:
    """Replies by step; what each role says carries a marker of its own."""

    def seat(ask: Ask[Any]) -> int:
        return int(ask.role.split()[1]) - 1

    def presentation(names: Sequence[str], ask: Ask[Any], step: str) -> Any:
        number = int(str(ask.slots["k"]))
        listed = [proposal(name, mark(f"{step}-why", ask.role), quoted(ask)) for name in names[:number]]
        return {"analysis": mark(step, ask.role), "differential": listed}

    def rebuttal(ask: Ask[Any]) -> Any:
        return {
            "unsupported": [mark("unsupported", ask.role)],
            "missing": [mark("missing", ask.role)],
            "alternatives": [proposal("Celiac disease", mark("alternative", ask.role), QUOTES[3])],
            "safety": [
                {"diagnosis": name, "why": f"Why {ask.role}", "quote": QUOTES[2], "test": "A CT of the chest"}
                for name in dangers(seat(ask))
            ],
        }

    def verdict(ask: Ask[Any]) -> Any:
        return {
            "differential": list(choose(ask.slots["candidates"])),
            "reason": "The pain decides",
            "conflicts": [{"kept": one, "over": other, "because": "of the pain"} for one, other in conflicts],
            "uncertainty": "No ECG was done",
            "confidence": "moderate",
        }

    return {
        "dmoa/present": lambda ask: presentation(FIRST[seat(ask)], ask, "present"),
        "dmoa/rebut": rebuttal,
        "dmoa/revise": lambda ask: presentation(revised(seat(ask)), ask, "revise"),
        "dmoa_record/aggregate": verdict,
        **{name.replace("__", "/"): reply for name, reply in more.items()},
    }


def run(
    replies: Mapping[str, Reply] | None = None, case: Case = CASE, *, lawful: bool = True, **options: Any
) -> Driven[Differential]:
    world = World(debaters() if replies is None else replies, lawful=lawful)
    return drive(dmoa(case, Options(**{**ROOMY, **options})), world)


def diagnoses(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def trace(driven: Driven[Differential]) -> list[tuple[int, str, str]]:
    return [(item.batch, item.step, item.role) for item in driven.said]


# --- rounds and calls ---------------------------------------------------------------------------------------------------


def test_four_by_two_is_thirteen_calls_in_four_batches() -> None:
    driven = run()
    seats = range(1, 5)
    assert trace(driven) == [
        *((0, "dmoa/present", f"presenter {seat}") for seat in seats),
        *((1, "dmoa/rebut", f"rebutter {seat}") for seat in seats),
        *((2, "dmoa/revise", f"presenter {seat}") for seat in seats),
        (3, "dmoa_record/aggregate", "aggregator"),
    ]
    assert driven.batches == ["dmoa/present", "dmoa/rebut", "dmoa/revise", "dmoa_record/aggregate"]
    assert driven.notes == []


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_n_debaters_are_3_n_plus_1_calls_in_4_batches(number: int) -> None:
    driven = run(debaters=number)
    assert len(driven.said) == 3 * number + 1
    assert len(driven.batches) == 4
    roles = [role for seat in range(1, number + 1) for role in (f"presenter {seat}", f"rebutter {seat}")]
    assert driven.answer.panel == (*roles, "aggregator")


def test_without_the_rebutter_it_is_a_mixture_of_agents_n_plus_1_calls_in_2_batches() -> None:
    driven = run(rebutter=False)
    assert driven.batches == ["dmoa/present", "dmoa_record/aggregate"]
    assert len(driven.said) == 5
    assert driven.answer.panel == (*(f"presenter {seat}" for seat in range(1, 5)), "aggregator")


def test_one_debater_over_five_rounds_is_a_dialogue_of_two_without_an_aggregator() -> None:
    driven = run(debaters=1, debate_rounds=5)
    assert driven.batches == ["dmoa/present", *["dmoa/rebut", "dmoa/revise"] * 5]
    assert len(driven.said) == 11
    answer = driven.answer
    assert diagnoses(driven) == list(FIRST[0])
    assert (answer.panel, answer.conflicts, answer.uncertainty) == (("presenter 1", "rebutter 1"), (), "")


@pytest.mark.parametrize(("number", "rounds", "calls", "batches"), [(2, 2, 11, 6), (5, 1, 16, 4), (3, 10, 64, 22)])
def test_further_rounds_cost_two_batches_each(number: int, rounds: int, calls: int, batches: int) -> None:
    driven = run(debaters=number, debate_rounds=rounds)
    assert (len(driven.said), len(driven.batches)) == (calls, batches)


def test_prompt_only_is_one_call() -> None:
    def alone(ask: Ask[Any]) -> Any:
        turn = {"presents": "Gout", "because": "of it", "objection": "none", "holds": "Gout"}
        return {"debate": [turn] * int(str(ask.slots["debaters"])), "differential": [proposal("Gout", "R")] * 3}

    driven = run({"dmoa/alone": alone}, prompt_only=True)
    assert driven.batches == ["dmoa/alone"]
    assert len(driven.said) == 1
    assert diagnoses(driven) == ["Gout"]
    assert driven.answer.panel == ("physician",)


def test_presenters_and_rebutters_have_the_temperature_and_the_aggregator_its_own() -> None:
    driven = run(temperature=0.9)
    assert {item.filled.temperature for item in driven.said if item.role != "aggregator"} == {0.9}
    assert driven.of("dmoa_record/aggregate")["aggregator"].filled.temperature == 0.3


# --- who sees what ------------------------------------------------------------------------------------------------------


def seen(prompt: str, *steps: str) -> set[str]:
    """The roles whose words of these steps stand in a prompt."""
    roles = [f"{kind} {seat}" for kind in ("presenter", "rebutter") for seat in range(1, 6)]
    return {role for role in roles for step in steps if mark(step, role) in prompt}


SAID = ("present", "present-why", "unsupported", "missing", "alternative", "revise", "revise-why")


def test_a_presenter_starts_alone() -> None:
    for item in run().of("dmoa/present").values():
        assert seen(item.prompt, *SAID) == set()
        assert CASE.text in item.prompt


def test_a_rebutter_sees_its_own_presenter_s_words_and_nobody_else_s() -> None:
    for seat in range(1, 5):
        prompt = run().of("dmoa/rebut")[f"rebutter {seat}"].prompt
        assert seen(prompt, *SAID) == {f"presenter {seat}"}
        assert f'Pericarditis: "{QUOTES[0].strip()}"' in prompt or seat != 1


def test_a_presenter_revises_with_its_first_words_and_its_rebuttal_before_it() -> None:
    for seat in range(1, 5):
        prompt = run().of("dmoa/revise")[f"presenter {seat}"].prompt
        assert seen(prompt, "present", "present-why") == {f"presenter {seat}"}
        for step in ("unsupported", "missing", "alternative"):
            assert seen(prompt, step) == {f"rebutter {seat}"}
        assert seen(prompt, "revise", "revise-why") == set()


def test_a_safety_concern_reaches_the_presenter() -> None:
    driven = run(debaters(dangers=lambda seat: ("Sepsis",) if seat == 0 else ()))
    prompts = {role: item.prompt for role, item in driven.of("dmoa/revise").items()}
    assert [role for role, prompt in prompts.items() if "Safety: Sepsis: Why rebutter 1" in prompt] == ["presenter 1"]


def test_every_debater_s_revised_words_reach_the_aggregator_and_no_earlier_ones() -> None:
    prompt = run().of("dmoa_record/aggregate")["aggregator"].prompt
    everybody = {f"presenter {seat}" for seat in range(1, 5)}
    assert seen(prompt, "revise") == seen(prompt, "revise-why") == everybody
    assert seen(prompt, "present", "present-why", "unsupported", "missing", "alternative") == set()


def test_the_aggregator_does_not_see_the_case_as_in_the_paper() -> None:
    item = run().of("dmoa_record/aggregate")["aggregator"]
    assert "94/60 mmHg" in CASE.text
    assert "94/60 mmHg" not in "".join(message.content for message in item.filled.messages)


def test_without_the_rebutter_the_aggregator_reads_the_first_presentations() -> None:
    prompt = run(rebutter=False).of("dmoa_record/aggregate")["aggregator"].prompt
    assert seen(prompt, "present") == {f"presenter {seat}" for seat in range(1, 5)}


def test_over_several_rounds_the_whole_dialogue_is_there_in_order() -> None:
    driven = run(debaters=1, debate_rounds=3)
    last = [item for item in driven.said if item.step == "dmoa/revise"][-1].prompt
    places = [last.index(f"{word} {number}\n") for number in (1, 2, 3) for word in ("PRESENTATION", "REBUTTAL")]
    assert places == sorted(places)


def test_the_prompts_of_a_round_share_their_beginning_up_to_the_end_of_the_case() -> None:
    prompts = [item.prompt for item in run().said if item.step != "dmoa_record/aggregate"]
    beginnings = {prompt.partition("(end of the case)")[0] for prompt in prompts}
    assert len(beginnings) == 1
    assert beginnings.pop().endswith(f"{CASE.text}\n")


# --- the aggregator's choice --------------------------------------------------------------------------------------------


def test_the_aggregator_chooses_among_the_debaters_diagnoses_each_once_under_its_first_name() -> None:
    driven = run()
    candidates = driven.of("dmoa_record/aggregate")["aggregator"].ask.slots["candidates"]
    assert candidates[:2] == ("Myocardial infarction", "Pulmonary embolism"), "most presenters, then the best place"
    assert len(candidates) == 9
    assert "MI" not in candidates
    with pytest.raises(AssertionError, match="no engine can answer"):
        run(debaters(choose=lambda _: ("Gout", "Malaria", "Sarcoidosis")))


def test_its_ranking_is_the_answer_with_the_debaters_votes_evidence_and_reasons() -> None:
    driven = run(debaters(choose=lambda names: (names[1], names[0], "Malaria")))
    answer = driven.answer
    assert diagnoses(driven) == ["Pulmonary embolism", "Myocardial infarction", "Malaria"]
    assert [entry.score for entry in answer.entries] == [1.0, 1 / 2, 1 / 3]
    assert answer.score_kind == "reciprocal_place"
    first, second, third = answer.entries
    assert first.votes == {"presenter 2": 1, "presenter 3": 2}
    assert second.votes == {"presenter 1": 1, "presenter 3": 1, "presenter 4": 2}
    assert first.proposed_by == ("presenter 2", "presenter 3")
    assert (first.reasoning, third.reasoning) == ("The pain decides", mark("revise-why", "presenter 2"))
    (evidence,) = second.evidence
    assert CASE.text[evidence.quote.start : evidence.quote.end] == evidence.quote.quote == QUOTES[0].strip()
    assert evidence.by == ("presenter 1", "presenter 3", "presenter 4")


def test_the_round_in_which_a_diagnosis_came_in_is_told_whatever_it_was_called() -> None:
    revised = (("MI", "Celiac disease", "Gout"), ("Malaria", "Gout", "Lyme disease"), *FIRST[2:])
    driven = run(debaters(lambda seat: revised[seat], choose=lambda _: ("Celiac disease", "Malaria", "MI")))
    assert {entry.diagnosis: entry.entered_in for entry in driven.answer.entries} == {
        "Celiac disease": "revise",
        "Malaria": "present",
        "MI": "present",
    }


def test_an_early_agreement_is_an_answer() -> None:
    driven = run(debaters(lambda _: ("Gout", "GOUT", "gout")))
    assert driven.of("dmoa_record/aggregate")["aggregator"].ask.slots["candidates"] == ("Gout",)
    assert diagnoses(driven) == ["Gout"]
    assert list(driven.answer.entries[0].votes) == [f"presenter {seat}" for seat in range(1, 5)]


def test_settled_conflicts_and_uncertainty_are_in_the_answer() -> None:
    settled = [("Malaria", "Sarcoidosis"), ("Malaria", "Malaria")]
    answer = run(debaters(conflicts=settled)).answer
    assert answer.conflicts == (Conflict("Malaria", "Sarcoidosis", "of the pain", "aggregator"),)
    assert answer.uncertainty == "No ECG was done (confidence: moderate)"


@pytest.mark.parametrize("name", ["Crohn's disease (ileal), type 2", "Sjögren's syndrome", "β-thalassemia", "A/B + C"])
def test_odd_names_go_through(name: str) -> None:
    driven = run(debaters(lambda _: (name, "Malaria", "Lyme disease"), conflicts=[(name, "Malaria")]))
    assert diagnoses(driven) == [name, "Malaria", "Lyme disease"]
    assert driven.answer.conflicts[0].kept == name


def test_a_rebutter_s_safety_concern_is_never_lost() -> None:
    named = (("Sepsis", "MI"), ("sepsis",), ("Tension pneumothorax",), ())
    answer = run(debaters(dangers=lambda seat: named[seat])).answer
    assert [(item.diagnosis, item.by) for item in answer.cant_miss] == [
        ("Sepsis", ("rebutter 1", "rebutter 2")),
        ("Tension pneumothorax", ("rebutter 3",)),
    ], "what the differential holds is not told again"
    quote = answer.cant_miss[0].quote
    assert quote is not None
    assert CASE.text[quote.start : quote.end] == QUOTES[2].strip()


# --- faults of other programs -------------------------------------------------------------------------------------------


def test_an_answer_that_failed_fails_the_case_and_is_not_left_out() -> None:
    """Mixture-of-Agents' program goes on with the answers that it got."""

    def reply(request: Request) -> str:
        return "" if request.what == "dmoa/rebut" else by_policy("walk")(request)

    document = whole_run(ScriptedEngine(reply), Options(debaters=2, **ROOMY))
    assert (document["status"], document["error"]["kind"]) == ("failed", "EmptyAnswer")
    assert document["differential"] == []


def test_debaters_that_read_the_same_are_not_copies_of_each_other() -> None:
    """N identical deterministic debaters are useless."""
    with pytest.raises(ValueError, match="would all say the same"):
        Options(temperature=0)
    Options(temperature=0, partition=True)
    Options(temperature=0, debaters=1)
    store = Store(None)
    engine = ScriptedEngine(by_policy("walk"))
    run_id = asyncio.run(jobs.start(job(Options(**ROOMY)), Opened(engine, {}), store, None, 1))
    asked = [event for event in store.events(run_id) if isinstance(event, Asked)]
    assert len({event.seed for event in asked}) == len(asked) == 13
    presented = [request for request in engine.requests if request.what == "dmoa/present"]
    assert len({request.messages for request in presented}) == 1
    assert len({by_policy("walk")(request) for request in presented}) == 4


# --- budgets ------------------------------------------------------------------------------------------------------------


LONG = Case(
    "long", f"{CASE.text} " + " ".join(f"Nothing else was found on day {day} of his stay." for day in range(60))
)


def pieces(ask: Ask[Any]) -> Any:
    return {"pieces": [QUOTES[4], QUOTES[0], QUOTES[0]][: int(str(ask.slots["most"]))]}


def summary(ask: Ask[Any]) -> Any:  # noqa: ARG001
    return {"summary": "All was said"}


CONDENSED: Mapping[str, Any] = {"dmoa__extract": pieces, "dmoa_record__condense": summary}


def needs(driven: Driven[Differential], step: str) -> list[int]:
    """Bytes of prompt and longest answer, for all questions of a step."""
    return [
        sum(len(message.content.encode()) for message in item.filled.messages) + item.filled.longest
        for item in driven.said
        if item.step == step
    ]


def test_a_case_that_exceeds_a_presenter_s_budget_is_read_in_verbatim_pieces_which_one_call_chose_for_all() -> None:
    driven = run(debaters(**CONDENSED), case=LONG, presenter_tokens=4000)
    assert driven.batches == [
        "dmoa/extract",
        "dmoa/present",
        "dmoa/rebut",
        "dmoa/revise",
        "dmoa_record/aggregate",
    ]
    assert [item.role for item in driven.said if item.step == "dmoa/extract"] == ["summarizer"]
    for item in driven.of("dmoa/present").values():
        assert item.ask.slots["case"] == f"{QUOTES[0].strip()}{JOINT}{QUOTES[4].strip()}", "in the order of the case"
    assert max(needs(driven, "dmoa/present")) <= 4000
    assert LONG.text in driven.of("dmoa/rebut")["rebutter 1"].prompt, "the rebutter has room for all of it"
    details = driven.noted("condensed")
    assert details[0] == (
        "dmoa/present: presenter 1, presenter 2, presenter 3, presenter 4 got the case in verbatim pieces, "
        "to stay within 4,000 tokens"
    )
    assert all(note.degraded for note in driven.notes)
    for entry in driven.answer.entries:
        assert all(LONG.text[item.quote.start : item.quote.end] == item.quote.quote for item in entry.evidence)


def test_who_has_come_to_read_pieces_is_not_given_new_ones_in_the_next_round() -> None:
    driven = run(debaters(**CONDENSED), case=LONG, presenter_tokens=4000)
    assert [item.step for item in driven.said].count("dmoa/extract") == 1
    assert driven.of("dmoa/revise")["presenter 1"].ask.slots["case"].count(JOINT) == 1


def test_a_dialogue_that_exceeds_the_budget_is_summed_up_and_not_cut() -> None:
    driven = run(debaters(**CONDENSED), debaters=1, debate_rounds=5, presenter_tokens=3500)
    summed = [item for item in driven.said if item.step == "dmoa_record/condense"]
    assert summed
    assert all(item.role == "summarizer" for item in summed)
    assert mark("unsupported", "rebutter 1") in summed[-1].prompt, "the summary call reads all that was said"
    revised = [item for item in driven.said if item.step == "dmoa/revise"]
    assert revised[-1].ask.slots["record"] == "All was said"
    assert max(needs(driven, "dmoa/revise")) <= 3500
    assert len(driven.noted("condensed")) == len(summed)
    assert all("presenter 1 got a summary of what was said before" in detail for detail in driven.noted("condensed"))


def test_accounts_that_exceed_the_aggregator_s_budget_are_summed_up() -> None:
    driven = run(debaters(**CONDENSED), aggregator_tokens=2400)
    assert driven.batches[-2:] == ["dmoa_record/condense", "dmoa_record/aggregate"]
    aggregated = driven.of("dmoa_record/aggregate")["aggregator"]
    assert aggregated.ask.slots["record"] == "All was said"
    assert len(aggregated.ask.slots["candidates"]) == 9, "no diagnosis is lost by it"


def test_what_exceeds_a_budget_even_condensed_is_asked_whole_and_noted() -> None:
    driven = run(debaters(**CONDENSED), presenter_tokens=256)
    (first, second) = driven.noted("over_budget")
    assert first.startswith("dmoa/present: ")
    assert first.endswith(
        "for presenter 1, presenter 2, presenter 3, presenter 4, over the budget of 256; nothing was cut"
    )
    assert second.startswith("dmoa/revise: ")
    assert all(note.degraded for note in driven.notes)


def test_a_case_without_a_legal_quote_is_not_condensed_to_nothing() -> None:
    case = Case("short", "fever 39")
    driven = run({}, case=case, presenter_tokens=256, debaters=2)
    assert {item.ask.slots["case"] for item in driven.said if item.step == "dmoa/present"} == {"fever 39"}
    assert driven.noted("over_budget")


def test_what_fits_costs_no_call() -> None:
    assert "summarizer" not in {item.role for item in run().said}


def test_no_quote_holds_text_of_both_sides_of_a_joint() -> None:
    text = f"He has a fever{JOINT}of 39.1 C since Monday and a stiff neck"
    for most in ("60", "120"):
        lark = expand("start: {{quote case N}}".replace("N", most), {"case": text}).lark
        assert accepts(lark, '"of 39.1 C since "')
        assert accepts(lark, '"He has a fever\\n"')
        assert not accepts(lark, f'"a fever{JOINT}of 39.1 "'.replace("\n", "\\n"))
        assert not accepts(lark, '"a fever of 39.1 "')


# --- partition ----------------------------------------------------------------------------------------------------------


SECTIONED = Case(
    "sections",
    "Basic information: A 61-year-old man.\n"
    "Clinical presentation: He has crushing chest pain since yesterday and vomits twice after lunch.\n"
    "Physical examination: The blood pressure is 94/60 mmHg in both arms. The left calf is swollen.\n"
    "Medical history: He takes no tablets and has smoked for forty years.\n"
    "Initial test results: The white cell count is 14.2 and troponin was not taken.\n",
)


def reads(driven: Driven[Differential]) -> dict[str, str]:
    return {role: str(item.ask.slots["case"]) for role, item in driven.of("dmoa/present").items()}


def covered(text: str, parts: Sequence[str]) -> bool:
    """Whether the parts' pieces, each a verbatim stretch of the text, hold each of its characters."""
    left = list(text)
    for part in parts:
        for piece in part.split(JOINT):
            start = text.index(piece)
            left[start : start + len(piece)] = [""] * len(piece)
    return not any(left)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_under_partition_each_debater_reads_some_sections_and_every_character_reaches_one(number: int) -> None:
    driven = run({}, case=SECTIONED, partition=True, debaters=number)
    found = reads(driven)
    assert len(found) == number
    assert covered(SECTIONED.text, list(found.values()))
    assert sum(len(text.replace(JOINT, "")) for text in found.values()) == len(SECTIONED.text), "and only one"
    for seat in range(1, number + 1):
        rebuts, revises = driven.of("dmoa/rebut"), driven.of("dmoa/revise")
        assert rebuts[f"rebutter {seat}"].ask.slots["case"] == found[f"presenter {seat}"]
        assert revises[f"presenter {seat}"].ask.slots["case"] == found[f"presenter {seat}"]
    (told,) = driven.noted("partition")
    assert told.startswith("debater 1: ")
    for entry in driven.answer.entries:
        for item in entry.evidence:
            assert SECTIONED.text[item.quote.start : item.quote.end] == item.quote.quote
            for role in item.by:
                assert item.quote.quote in found[role]


def test_with_fewer_sections_than_debaters_nobody_reads_nothing() -> None:
    text = "Physical examination: The left calf is swollen and red.\nMedical history: He has had gout for ten years.\n"
    driven = run({}, case=Case("two", text), partition=True, debaters=4)
    assert len(reads(driven)) == 2
    assert driven.noted("partition")[0] == "the case has 2 sections: 2 debaters instead of 4"
    assert len(driven.said) == 7


def test_a_case_of_one_section_is_read_whole_by_all_and_that_is_told() -> None:
    driven = run({}, case=Case("one", "Zeldas blicken munter über den Zaun im Garten hinaus."), partition=True)
    assert len(set(reads(driven).values())) == 1
    assert driven.notes[0].degraded
    assert len(driven.said) == 13


VIGNETTES = sorted((Path(__file__).resolve().parents[2] / "bench" / "cases").glob("*.txt"))


@pytest.mark.parametrize("path", VIGNETTES, ids=lambda path: path.stem)
def test_every_character_of_a_vignette_reaches_a_debater(path: Path) -> None:
    text = path.read_text("utf-8")
    sections = split(text)
    for number in (2, 4):
        hands = deal(sections, number)
        assert all(hands)
        assert covered(text, [text_of(text, sections, names) for names in hands])


HEADINGS = ("Physical examination:", "Medical history:", "Clinical presentation:", "Initial test results:", "Other:")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(HEADINGS), st.text(max_size=40)), max_size=8), st.integers(2, 5))
def test_whatever_the_text_the_hands_hold_each_section_once(parts: list[tuple[str, str]], number: int) -> None:
    text = "".join(f"{heading} {body}\n" for heading, body in parts)
    sections = split(text)
    hands = deal(sections, number)
    assert sorted(name for hand in hands for name in hand) == sorted({section.name for section in sections})
    assert sum(len(text_of(text, sections, names).replace(JOINT, "")) for names in hands) == len(text)


# --- options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"debaters": 0}, "debaters must be 1 to 5"),
        ({"debaters": 6}, "debaters must be 1 to 5"),
        ({"debate_rounds": 0}, "debate_rounds must be"),
        ({"debate_rounds": 11}, "debate_rounds must be"),
        ({"k": 0}, "k must be 1 to 5"),
        ({"temperature": 2.1}, "temperature must be"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"presenter_tokens": 100}, "presenter_tokens must be"),
        ({"rebutter": False, "debaters": 1}, "nobody debates"),
        ({"rebutter": False, "debate_rounds": 2}, "nobody debates"),
        ({"partition": True, "debaters": 1}, "partition needs"),
        ({"partition": True, "prompt_only": True}, "partition needs"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Options(**wrong)


def test_the_defaults_are_the_papers() -> None:
    options = Options()
    assert (options.debaters, options.debate_rounds, options.rebutter, options.k) == (4, 1, True, 3)
    budgets = (options.presenter_tokens, options.rebutter_tokens, options.aggregator_tokens)
    assert budgets == (4000, 8000, 16000)


# --- the real driver ----------------------------------------------------------------------------------------------------


def job(options: Options, seed: int = 0, case: Case = CASE) -> jobs.Job:
    return jobs.Job(METHODS["dmoa"], options, "scripted", "scripted", seed, {}, (case,))


def whole_run(
    engine: ScriptedEngine, options: Options, seed: int = 0, case: Case = CASE, **bound: ScriptedEngine
) -> Any:
    store = Store(None)
    run_id = asyncio.run(jobs.start(job(options, seed, case), Opened(engine, {}, bound=bound), store, None, 1))
    (document,) = jobs.documents(store, run_id)
    jsonschema.validate(document, schema())
    return document


VARIANTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"rebutter": False},
    {"debaters": 1, "debate_rounds": 5},
    {"prompt_only": True},
    {"partition": True, "debaters": 3},
    {"presenter_tokens": 2500, "rebutter_tokens": 3000, "aggregator_tokens": 2500},
)


@pytest.mark.parametrize("policy", ["walk", "shortest", "longest"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: ", ".join(variant) or "default")
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_is_said_every_answer_parses_and_the_case_is_finished(
    policy: Policy, variant: Mapping[str, Any], seed: int
) -> None:
    document = whole_run(ScriptedEngine(by_policy(policy)), Options(**variant), seed, SECTIONED)
    assert document["status"] == "finished", document["error"]
    assert document["totals"]["parse_failures"] == document["totals"]["length_stops"] == 0
    assert 1 <= len(document["differential"]) <= 3


@pytest.mark.parametrize(
    "text", ["fever 39", "x" * 300, "患者男五十八岁突发胸痛三小时伴大汗" * 8, 'He "hurts" \\ a\n lot 🫀 {{case}}']
)
def test_odd_cases_run_to_an_answer(text: str) -> None:
    for variant in ({}, {"presenter_tokens": 1500}, {"partition": True}):
        document = whole_run(ScriptedEngine(by_policy("walk")), Options(debaters=2, **variant), 3, Case("odd", text))
        assert document["status"] == "finished", document["error"]


def test_a_context_smaller_than_a_budget_is_the_limit() -> None:
    engine = ScriptedEngine(by_policy("walk"), context=5000)
    document = whole_run(engine, Options(debaters=2, **ROOMY), 1, CASE)
    assert document["status"] == "finished", document["error"]
    assert "condensed" in {item["kind"] for item in document["degraded"]}


def test_another_model_as_the_aggregator_answers_for_it_alone() -> None:
    """The paper's mixed-scale setting."""
    main, other = ScriptedEngine(by_policy("walk")), ScriptedEngine(by_policy("walk"), model="larger")
    document = whole_run(main, Options(**ROOMY), 1, CASE, aggregator=other)
    assert [request.what for request in other.requests] == ["dmoa_record/aggregate"]
    assert len(main.requests) == 12
    assert document["model"]["roles"]["aggregator"]["name"] == "larger"


def test_the_aggregator_s_room_is_that_of_its_own_model() -> None:
    other = ScriptedEngine(by_policy("walk"), model="small", context=5400)
    document = whole_run(ScriptedEngine(by_policy("walk")), Options(**ROOMY), 1, CASE, aggregator=other)
    assert document["status"] == "finished", document["error"]
    assert [item["kind"] for item in document["degraded"]] == ["condensed"]


def test_an_engine_that_dies_ends_the_run() -> None:
    def dead(_: Request) -> str:
        raise EngineError("it died")

    with pytest.raises(EngineError):
        whole_run(ScriptedEngine(dead), Options())
