"""Dual-Inf: batches of an iteration, what is examined, when it ends, what counts for a diagnosis, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

import pytest

from ddx_local.case import Case, Differential
from ddx_local.engines.scripted import Policy
from ddx_local.flow import Ask, Flow, Loglikelihood, Replies, Round, Weigh
from ddx_local.methods.dual_inf import dual_inf
from ddx_local.methods.dual_inf_steps import Options
from tests.methods.driving import Driven, World, drive
from tests.methods.real_driver import HARD, finished
from tests.methods.scot_world import CASE, QUOTES, proposal

FORWARD, REFLECT, BACKWARD, PLACE = (f"dual_inf/{step}" for step in ("forward", "reflect", "backward", "place"))
EXAMINATION = "dual_inf/examination"
FOUR = [FORWARD, BACKWARD, EXAMINATION, PLACE]
AGAIN = [REFLECT, *FOUR[1:]]

Named = str | tuple[str, tuple[str, ...]]
"""A diagnosis of a list: its name, and quotes where they are not the usual one."""

Yes = Callable[[Weigh], float]
"""Probability of "yes" to a question of an examination."""


def with_answers(flow: Flow[Differential], yes: Yes) -> Flow[Differential]:
    """The flow, with the given probabilities for its examinations."""
    try:
        round_: Round = next(flow)
        while True:
            replies: Replies = yield round_
            given = dict(replies)
            for key, question in round_.questions.items():
                if isinstance(question, Weigh):
                    p = yes(question)
                    given[key] = (Loglikelihood("yes", _log(p), 1), Loglikelihood("no", _log(1 - p), 1))
            round_ = flow.send(given)
    except StopIteration as stop:
        found: Differential = stop.value
        return found


def _log(p: float) -> float:
    import math

    return math.log(p) if p > 0 else -60.0


def textbook(name: str) -> list[str]:
    return [f"{name} sign {number}" for number in (1, 2, 3)]


def run(
    *lists: Sequence[Named],
    yes: Yes = lambda question: 0.0,  # noqa: ARG005
    places: Mapping[str, str] | None = None,
    book: Callable[[str], list[str]] = textbook,
    case: Case = CASE,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    **options: Any,
) -> Driven[Differential]:
    """Dual-Inf where iteration i gives the i-th list (then the last one again); a name stands for itself with one quote."""
    told: list[int] = []

    def forward(ask: Ask[Any]) -> Any:  # noqa: ARG001
        given = lists[min(len(told), len(lists) - 1)]
        told.append(1)
        items = [item if isinstance(item, tuple) else (item, QUOTES[:1]) for item in given]
        return {"differential": [proposal(name, "because of it", *quotes) for name, quotes in items]}

    def place(ask: Ask[Any]) -> Any:
        where = places or {}
        return {"places": [{"finding": one, "quote": where.get(one, QUOTES[4])} for one in ask.slots["found"]]}

    replies = {
        FORWARD: forward,
        REFLECT: forward,
        BACKWARD: lambda ask: {"findings": book(str(ask.slots["diagnosis"]))},
        PLACE: place,
    }
    return drive(with_answers(dual_inf(case, Options(**options)), yes), World(replies, fits=fits))


def of(question: Weigh) -> str:
    """What an examination asks about."""
    return str(question.slots.get("fact") or question.slots["finding"])


def names(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def sure(question: Weigh) -> float:  # noqa: ARG001
    return 1.0


THREE = (("Malaria", QUOTES[:3]), ("Gout", QUOTES[:3]))
"""Two diagnoses with three quotes each: not doubtful when they are confirmed."""


# Batches and calls


def test_an_iteration_is_four_batches_forward_backward_examination_and_place() -> None:
    driven = run(THREE, yes=sure)
    assert driven.batches == FOUR
    sizes = [len(round_.questions) for round_ in driven.rounds if round_.is_batch]
    assert sizes == [1, 2, 2 * 3 + 2 * 3, 2]


def test_an_examination_of_many_facts_is_one_batch_without_sampling() -> None:
    driven = run([(f"Disease {letter}", QUOTES[:4]) for letter in "ABCDE"], yes=sure)
    (examination,) = [round_ for round_ in driven.rounds if round_.name == EXAMINATION]
    assert len(examination.questions) == 5 * 4 + 5 * 3
    assert all(isinstance(question, Weigh) for question in examination.questions.values())
    assert {question.labels for question in driven.weighed} == {("yes", "no")}


def test_at_most_five_iterations_of_four_batches() -> None:
    lists = [[f"Disease {letter}{number}" for number in range(5)] for letter in "ABCDEFG"]
    driven = run(*lists, yes=lambda question: float(of(question).endswith("sign 1")))
    assert driven.batches == FOUR + AGAIN * 4
    assert len(driven.batches) == 4 * 5
    assert driven.noted("doubtful") == [f"few confirmed findings at the end: {', '.join(lists[4])}"]


def test_an_iteration_of_the_fullest_lists_is_seventy_one_calls() -> None:
    full = [(f"Disease {letter}", (*QUOTES[:3], QUOTES[4])) for letter in "ABCDE"]
    driven = run(full, yes=sure, book=lambda name: [f"{name} sign {number}" for number in range(8)])
    assert sum(len(round_.questions) for round_ in driven.rounds if round_.is_batch) == 71


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_iterations_is_the_most(iterations: int) -> None:
    lists = [[f"Disease {letter}"] for letter in "ABCDEFG"]
    driven = run(*lists, yes=lambda question: float("sign 1" in of(question)), iterations=iterations)
    assert driven.batches == (FOUR + AGAIN * 4)[: 4 * iterations]


def test_nothing_that_the_case_mentions_leaves_out_the_place_batch() -> None:
    assert run(THREE, yes=lambda question: float("fact" in question.slots)).batches == FOUR[:3]


def test_a_diagnosis_that_is_named_again_is_neither_recalled_nor_examined_again() -> None:
    driven = run(["Malaria"], ["Malaria", "Gout"], ["Gout", "Malaria"])
    assert driven.batches == [FORWARD, BACKWARD, EXAMINATION, REFLECT, BACKWARD, EXAMINATION, REFLECT]
    assert [item.ask.slots["diagnosis"] for item in driven.said if item.step == BACKWARD] == ["Malaria", "Gout"]
    assert len(driven.weighed) == 2 * (1 + 3)


def test_a_new_fact_of_a_known_diagnosis_is_examined_alone() -> None:
    driven = run(["Malaria"], [("Malaria", QUOTES[:2])], ["Malaria"])
    assert driven.batches == [FORWARD, BACKWARD, EXAMINATION, REFLECT, EXAMINATION, REFLECT]
    assert [of(question) for question in driven.weighed[4:]] == [QUOTES[1].strip()]


def test_a_finding_that_two_textbooks_share_is_asked_about_once() -> None:
    driven = run(["Malaria", "Gout"], book=lambda name: ["a fever", f"{name} rash", f"{name} pain"], iterations=1)
    assert sorted(of(question) for question in driven.weighed if "finding" in question.slots) == sorted(
        ["a fever", "Malaria rash", "Malaria pain", "Gout rash", "Gout pain"]
    )


# When it ends


def test_without_a_doubtful_diagnosis_the_first_list_is_the_last() -> None:
    driven = run(THREE, ["Sarcoidosis"], yes=sure)
    assert REFLECT not in driven.batches
    assert driven.noted("doubtful") == []


@pytest.mark.parametrize(("count", "again"), [(2, True), (3, False)])
def test_two_confirmed_findings_are_doubtful_and_three_are_not(count: int, *, again: bool) -> None:
    driven = run([("Malaria", QUOTES[:count])], yes=lambda question: float("fact" in question.slots))
    assert (REFLECT in driven.batches) == again


def test_low_says_how_many_are_doubtful() -> None:
    only_facts: Yes = lambda question: float("fact" in question.slots)  # noqa: E731
    assert REFLECT not in run([("Malaria", QUOTES[:1])], yes=only_facts, low=0).batches
    assert REFLECT in run([("Malaria", QUOTES[:4])], yes=only_facts, low=4).batches


def test_a_list_that_brings_nothing_new_is_the_last_one() -> None:
    driven = run(["Malaria", "Gout"])
    assert driven.batches == [FORWARD, BACKWARD, EXAMINATION, REFLECT]
    assert driven.noted("settled") == ["iteration 2 brings nothing new: it is the last one"]


def test_the_same_diagnosis_under_another_name_is_nothing_new() -> None:
    driven = run(["Myocardial infarction"], ["heart attack"])
    assert driven.batches[-1] == REFLECT
    assert driven.noted("settled")
    assert names(driven) == ["Myocardial infarction"]


# Who sees what


def test_backward_inference_does_not_see_the_case() -> None:
    driven = run(THREE)
    for item in driven.said:
        shown = "crushing chest pain since" in item.prompt
        assert shown == (item.step != BACKWARD)


def test_backward_inference_does_not_see_the_other_diagnoses() -> None:
    driven = run(["Malaria", "Gout"])
    one, two = (item.prompt for item in driven.said if item.step == BACKWARD)
    assert ("Malaria" in one, "Gout" in one) == (True, False)
    assert ("Malaria" in two, "Gout" in two) == (False, True)


def test_a_fact_is_examined_against_the_textbook_of_its_diagnosis() -> None:
    driven = run(["Malaria", "Gout"], iterations=1)
    found = {q.slots["diagnosis"]: q.slots["textbook"] for q in driven.weighed if "fact" in q.slots}
    assert found == {name: tuple(textbook(name)) for name in ("Malaria", "Gout")}


def test_reflection_sees_what_was_confirmed_what_was_not_and_what_is_doubtful() -> None:
    first = [("Malaria", QUOTES[:3]), ("Gout", QUOTES[1:3])]
    driven = run(
        first,
        yes=lambda question: float(of(question) != QUOTES[2].strip() and question.slots.get("diagnosis") != "Gout"),
    )
    (asked,) = [item for item in driven.said if item.step == REFLECT]
    assert asked.ask.slots["doubtful"] == ("Gout",)
    assert '- Malaria: confirmed: "crushing chest pain"; "vomits twice after lunch."; Malaria sign 1' in asked.prompt
    assert 'not its findings: "blood pressure is 94/60 mmHg"' in asked.prompt
    assert (
        asked.prompt.index("(end of the case)") < asked.prompt.index("EXAMINATION") < asked.prompt.index("Think again")
    )


def test_an_examination_too_long_for_the_context_is_shown_without_its_quotes_and_that_is_noted() -> None:
    driven = run(["Malaria"], fits=lambda ask: "confirmed: " not in str(ask.slots.get("record")))
    (asked,) = [item for item in driven.said if item.step == REFLECT]
    assert "- Malaria: 0 findings confirmed" in asked.prompt
    (note,) = [note for note in driven.notes if note.degraded]
    assert note.kind == "condensed"


# The answer


def test_what_is_not_a_finding_of_the_disease_is_left_out_of_its_evidence() -> None:
    driven = run(
        [("Malaria", QUOTES[:4])], yes=lambda question: float(of(question) in (QUOTES[0].strip(), QUOTES[3].strip()))
    )
    (entry,) = driven.answer.entries
    assert [item.quote.quote for item in entry.evidence] == [QUOTES[0].strip(), QUOTES[3].strip()]
    assert all(item.by == ("forward inference",) and item.supports for item in entry.evidence)


def test_a_textbook_finding_that_the_case_mentions_is_added_with_its_quote() -> None:
    places = {"Malaria sign 2": QUOTES[3]}
    driven = run(["Malaria"], yes=lambda question: float(of(question) == "Malaria sign 2"), places=places)
    (entry,) = driven.answer.entries
    assert [(item.quote.quote, item.by) for item in entry.evidence] == [(QUOTES[3].strip(), ("backward inference",))]
    assert entry.score == 1.0


def test_one_piece_of_the_case_counts_once_for_a_diagnosis() -> None:
    places = {"Malaria sign 1": QUOTES[0], "Malaria sign 2": "pain since yesterday ", "Malaria sign 3": QUOTES[4]}
    driven = run([("Malaria", (QUOTES[0], "chest pain since yesterday "))], yes=sure, places=places)
    (entry,) = driven.answer.entries
    assert [item.quote.quote for item in entry.evidence] == [QUOTES[0].strip(), QUOTES[4].strip()]
    assert entry.score == 2.0


def test_the_score_is_the_expected_number_of_confirmed_findings() -> None:
    chances = {QUOTES[0].strip(): 0.75, QUOTES[1].strip(): 0.5, QUOTES[2].strip(): 0.49}
    driven = run([("Malaria", QUOTES[:3])], yes=lambda question: chances.get(of(question), 0.0))
    (entry,) = driven.answer.entries
    assert entry.score == pytest.approx(1.25)
    assert driven.answer.score_kind == "confirmed_findings"


def test_the_answer_is_ranked_by_what_is_confirmed_not_by_the_list() -> None:
    driven = run(["Gout", ("Malaria", QUOTES[:3])], yes=lambda question: float("fact" in question.slots))
    assert names(driven) == ["Malaria", "Gout"]
    assert [entry.votes for entry in driven.answer.entries] == [{"forward inference": 2}, {"forward inference": 1}]


def test_a_tie_goes_by_the_place_on_the_list_and_is_noted() -> None:
    driven = run(["Malaria", "Gout"])
    assert names(driven) == ["Malaria", "Gout"]
    assert driven.noted("tie") == ["equal score, ordered by the later list, then by place on it: Malaria, Gout"]


def test_a_confirmed_diagnosis_that_the_last_list_forgets_stays_and_a_doubtful_one_goes() -> None:
    first: list[Named] = [("Malaria", QUOTES[:3]), "Gout"]
    driven = run(first, ["Sarcoidosis"], yes=lambda question: float("fact" in question.slots))
    assert names(driven) == ["Malaria", "Sarcoidosis"]
    assert driven.noted("kept") == ["confirmed earlier, not on the last list: Malaria"]
    assert [entry.entered_in for entry in driven.answer.entries] == ["forward", "reflect 2"]


def test_at_most_k_are_answered() -> None:
    lists: list[list[Named]] = [[(f"Disease {letter}{number}", QUOTES[:3]) for number in range(3)] for letter in "AB"]
    driven = run(*lists, yes=lambda question: float("fact" in question.slots), low=3, k=3, iterations=2)
    assert len(driven.answer.entries) == 3


def test_a_diagnosis_named_twice_on_a_list_is_one_with_both_facts() -> None:
    driven = run([("MI", QUOTES[:1]), ("Myocardial infarction", QUOTES[1:2])], yes=lambda q: float("fact" in q.slots))
    (entry,) = driven.answer.entries
    assert (entry.diagnosis, len(entry.evidence), entry.votes) == ("MI", 2, {"forward inference": 1})


@pytest.mark.parametrize(
    "name", ["Sjögren's syndrome (primary)", "β-thalassemia", "Fever, cough / chills", "IgG4-related"]
)
def test_odd_names_come_through_as_they_are(name: str) -> None:
    driven = run([(name, QUOTES[:3]), "Gout"], yes=sure)
    assert names(driven)[0] == name
    assert name in [item.ask.slots.get("diagnosis") for item in driven.said]


# Faults of the authors' program


def test_the_number_of_reference_diagnoses_is_never_given() -> None:
    """The bounds that a prompt names are options, the same for every case; a case cannot even hold its answer."""
    other = Case(
        "other",
        "A 30-year-old woman has a fever of 39.1 C since Monday. and left calf is swollen and crushing chest pain here.",
    )
    one, two = run(["Malaria"], iterations=1), run([("Malaria", (QUOTES[4],))], case=other, iterations=1)
    prompts = [
        driven.of(FORWARD)["forward inference"].prompt.partition("(end of the case)")[2] for driven in (one, two)
    ]
    assert prompts[0] == prompts[1]
    assert {field.name for field in fields(Case)} == {"id", "text"}


def test_prompts_hold_no_examples() -> None:
    """All ten examples of the authors' prompts are cases that they evaluate on."""
    driven = run(THREE, ["Sarcoidosis"])
    for item in driven.said:
        assert item.prompt.count("THE CASE") == 1
        assert "xample" not in item.prompt


def test_only_yes_or_no_can_be_answered_and_neither_is_a_default() -> None:
    """The original keeps a fact on anything but an exact "No" and adds a finding only on an exact "Yes"."""
    only_no = run([("Malaria", QUOTES[:3])], yes=lambda question: 0.49)  # noqa: ARG005
    assert only_no.answer.entries[0].evidence == ()
    even = run([("Malaria", QUOTES[:3])], yes=lambda question: 0.5)  # noqa: ARG005
    assert len(even.answer.entries[0].evidence) == 4


def test_a_case_without_anything_to_quote_still_has_an_answer() -> None:
    bare = Case("bare", "fever 39")
    driven = drive(with_answers(dual_inf(bare, Options()), sure), World(seed=3))
    assert driven.answer.entries
    assert all(entry.evidence == () for entry in driven.answer.entries)


# The whole


def test_a_golden_trace() -> None:
    driven = run(["Malaria"], [("Gout", QUOTES[:3])], yes=lambda question: float("fact" in question.slots))
    trace = [(driven.batches[item.batch], item.role, item.step) for item in driven.said]
    assert trace == [
        (FORWARD, "forward inference", FORWARD),
        (BACKWARD, "backward inference", BACKWARD),
        (REFLECT, "forward inference", REFLECT),
        (BACKWARD, "backward inference", BACKWARD),
    ]
    assert driven.batches == [FORWARD, BACKWARD, EXAMINATION, REFLECT, BACKWARD, EXAMINATION]


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_model_says_the_real_driver_finishes(policy: Policy, seed: int) -> None:
    document = finished("dual-inf", policy, seed, CASE, iterations=2)
    assert 1 <= document["totals"]["batches"] <= 8


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.id)
def test_hard_texts_finish(case: Case) -> None:
    assert finished("dual-inf", "walk", 0, case, iterations=2)["differential"]


@pytest.mark.parametrize(
    "wrong",
    [{"iterations": 0}, {"iterations": 11}, {"k": 0}, {"k": 11}, {"facts": 0}, {"findings": 2}, {"low": -1},
     {"threshold": 1.1}, {"threshold": float("nan")}, {"temperature": -1}],
)  # fmt: skip
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Options(**wrong)
