"""The master list: what is merged, by which rule, what never is, what is left out, and that all of it is noted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.clinical import labels
from ddx_local.flow import Ask, Consult, Note
from ddx_local.methods.master_list import MOST_PAIRS, Entry, Proposed, build
from ddx_local.methods.proposals import Proposal
from ddx_local.methods.scot_options import Options
from tests.methods.driving import Driven, World, drive

CASE = "A 61-year-old man has crushing chest pain since yesterday and vomits."

DISTINCT = (
    "Pericarditis", "Pulmonary embolism", "Aortic dissection", "Pneumothorax", "Esophageal rupture", "Herpes zoster",
    "Costochondritis", "Panic disorder", "Sarcoidosis", "Lyme disease", "Amyloidosis", "Pheochromocytoma",
    "Myasthenia gravis", "Celiac disease", "Cholecystitis", "Appendicitis", "Hemochromatosis", "Malaria",
)  # fmt: skip


def proposals(lists: Mapping[str, Sequence[str]], start: int = 1) -> list[Proposed]:
    return [
        Proposed(role, place, Proposal(name, ("crushing chest pain ",), f"{name} by {role}"))
        for role, names in lists.items()
        for place, name in enumerate(names, start=start)
    ]


def built(
    lists: Mapping[str, Sequence[str]],
    similarity: Callable[[str, str], float] = lambda a, b: 0.0,  # noqa: ARG005
    verdict: Callable[[str], bool] = lambda line: False,  # noqa: ARG005
    old: Sequence[Entry] = (),
    options: Options | None = None,
) -> Driven[tuple[Entry, ...]]:
    """The list of these proposals; `verdict` says of a line "A | B" whether the model takes the two for the same."""

    def merge(ask: Ask[Any]) -> Any:
        pairs = ask.slots["pairs"]
        return {"pairs": [{"names": line, "verdict": "same" if verdict(line) else "different"} for line in pairs]}

    entered_in = "refinement" if old else "differential"
    flow = build(CASE, old, proposals(lists, start=6 if old else 1), entered_in, options or Options())
    return drive(flow, World({"scot/merge": merge}, similarity))


def between(score: float, *groups: Iterable[str]) -> Callable[[str, str], float]:
    """Similarity of names of one group; 0 between groups."""
    sets = [set(group) for group in groups]
    return lambda a, b: score if any({a, b} <= group for group in sets) else 0.0


def names(driven: Driven[tuple[Entry, ...]]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer]


def asked_pairs(driven: Driven[Any]) -> list[str]:
    return [line for item in driven.said for line in item.ask.slots["pairs"]]


def test_equal_names_become_one_entry_that_remembers_who_said_it_and_how() -> None:
    driven = built({"a": ["MI", "Pericarditis"], "b": ["Pneumothorax", "Myocardial infarction"], "c": ["pericarditis"]})
    by_name = {entry.diagnosis: entry for entry in driven.answer}
    assert set(by_name) == {"MI", "Pericarditis", "Pneumothorax"}
    infarct = by_name["MI"]
    assert infarct.roles == ("a", "b")
    assert [(item.role, item.place, item.proposal.diagnosis) for item in infarct.proposed] == [
        ("a", 1, "MI"),
        ("b", 2, "Myocardial infarction"),
    ]
    assert infarct.best_place == 1
    assert by_name["Pericarditis"].roles == ("a", "c")
    assert {entry.entered_in for entry in driven.answer} == {"differential"}


def test_names_are_kept_as_they_were_said() -> None:
    said = [
        "21-hydroxylase deficiency",
        "  Type 1 diabetes mellitus",
        "β-thalassemia",
        "Graft-versus-host disease (acute)",
    ]
    assert names(built({"a": said})) == said


def test_one_role_that_names_a_diagnosis_twice_is_one_proposer() -> None:
    driven = built({"a": ["MI", "Myocardial infarction"], "b": ["Pericarditis"]})
    assert driven.answer[0].roles == ("a",)


@pytest.mark.parametrize(
    ("score", "merged", "asked"),
    [(0.90, True, False), (0.95, True, False), (0.8999, False, True), (0.75, False, True), (0.7499, False, False)],
)
def test_similar_names_are_merged_from_0_90_and_asked_about_from_0_75(score: float, merged: bool, asked: bool) -> None:
    pair = ("Pericarditis", "Heart sac soreness")
    driven = built({"a": [pair[0], "Malaria"], "b": [pair[1]]}, between(score, pair))
    assert (len(driven.answer) == 2) == merged
    assert asked_pairs(driven) == ([" | ".join(pair)] if asked else [])
    assert bool(driven.noted("merged")) == merged
    if merged:
        assert driven.answer[0].roles == ("a", "b")
        assert all(name in driven.noted("merged")[0] for name in pair)


@pytest.mark.parametrize("verdict", [True, False])
def test_the_models_verdict_on_an_unsure_pair_decides(verdict: bool) -> None:
    pair, other = ("Pericarditis", "Heart sac soreness"), ("Costochondritis", "Soreness where ribs meet gristle")
    driven = built(
        {"a": [pair[0], other[0]], "b": [pair[1], other[1]]},
        between(0.8, pair, other),
        lambda line: verdict and line.startswith("Pericarditis"),
    )
    assert driven.batches == ["scot/merge"], "all pairs are asked about in one question"
    assert sorted(asked_pairs(driven)) == [" | ".join(other), " | ".join(pair)]
    assert names(driven).count("Heart sac soreness") == (0 if verdict else 1)
    assert {"Costochondritis", "Soreness where ribs meet gristle"} <= set(names(driven))
    assert bool(driven.noted("merged")) == verdict


def test_the_thresholds_are_options() -> None:
    pair = ("Pericarditis", "Heart sac soreness")
    lists = {"a": [pair[0]], "b": [pair[1]]}
    strict = Options(same_at=0.99, ask_at=0.99)
    assert len(built(lists, between(0.95, pair), options=strict).answer) == 2
    assert not built(lists, between(0.95, pair), options=strict).said
    assert len(built(lists, between(0.6, pair), options=Options(same_at=0.6, ask_at=0.5)).answer) == 1


CONFLICTS = [
    ("Acute pancreatitis", "Chronic pancreatitis"),
    ("Type 1 diabetes mellitus", "Type 2 diabetes mellitus"),
    ("Viral pneumonia", "Bacterial pneumonia"),
    ("Primary hyperparathyroidism", "Secondary hyperparathyroidism"),
    ("Hepatitis A", "Hepatitis B"),
    ("Basal cell carcinoma", "Squamous cell carcinoma"),
    ("Anterior cruciate ligament tear", "Posterior cruciate ligament tear"),
    ("Gout", "Pseudogout"),
    ("Hemophilia A", "Hemophilia B"),
    ("Hyperkalemia", "Hypokalemia"),
    ("Malaria", "Dengue fever"),
]


@pytest.mark.parametrize("pair", CONFLICTS, ids=" / ".join)
def test_different_diseases_are_never_merged_however_similar_their_names(pair: tuple[str, str]) -> None:
    driven = built(
        {"a": [pair[0], "Sarcoidosis"], "b": [pair[1]]}, lambda *_: 0.99 if {*_} == {*pair} else 0.0, lambda _: True
    )
    assert set(pair) <= set(names(driven))
    assert pair not in driven.compared
    assert pair[::-1] not in driven.compared


def test_different_diseases_are_not_merged_by_way_of_a_third_name_that_is_similar_to_both() -> None:
    trio = ("Acute pancreatitis", "Pancreatitis", "Chronic pancreatitis")
    driven = built({"a": [trio[0]], "b": [trio[1]], "c": [trio[2]]}, between(0.95, trio))
    assert len(driven.answer) == 2
    wordings = [{item.proposal.diagnosis for item in entry.proposed} for entry in driven.answer]
    assert not any({trio[0], trio[2]} <= group for group in wordings)


def test_of_two_ways_to_join_the_more_similar_is_taken() -> None:
    scores = {("Acute pancreatitis", "Pancreatitis"): 0.91, ("Pancreatitis", "Chronic pancreatitis"): 0.97}
    driven = built(
        {"a": ["Acute pancreatitis"], "b": ["Pancreatitis"], "c": ["Chronic pancreatitis"]},
        lambda a, b: scores.get((a, b), scores.get((b, a), 0.0)),
    )
    assert sorted(names(driven)) == ["Acute pancreatitis", "Pancreatitis"]
    assert next(entry for entry in driven.answer if entry.diagnosis == "Pancreatitis").roles == ("b", "c")


def test_an_addition_is_not_merged_with_an_entry_of_which_any_wording_is_another_disease() -> None:
    pair = ("Pancreatitis", "Acute pancreatitis")
    old = built({"a": [pair[0]], "b": [pair[1]]}, between(0.95, pair)).answer
    assert len(old) == 1
    driven = built({"c": ["Chronic pancreatitis"]}, lambda *_: 0.95, old=old)
    assert names(driven) == ["Pancreatitis", "Chronic pancreatitis"]


def test_meaning_is_transitive_where_nothing_forbids_it() -> None:
    trio = ("Pericarditis", "Heart sac soreness", "Sore sac around the heart")
    chain = {frozenset(trio[:2]), frozenset(trio[1:])}
    driven = built({"a": [trio[0]], "b": [trio[1]], "c": [trio[2]]}, lambda a, b: 0.95 if {a, b} in chain else 0.0)
    assert [entry.roles for entry in driven.answer] == [("a", "b", "c")]


def test_at_most_sixteen_pairs_are_asked_about_the_most_similar_ones_and_the_rest_is_noted() -> None:
    lists = {"a": DISTINCT[:9]}
    pairs = [pair for pair in combinations(DISTINCT[:9], 2) if not labels.conflicting(*pair)]
    order = {frozenset(pair): 0.76 + 0.001 * (37 * place % 101) for place, pair in enumerate(pairs)}
    assert len(set(order.values())) == len(order)
    driven = built(lists, lambda a, b: order[frozenset((a, b))])
    lines = asked_pairs(driven)
    assert len(lines) == MOST_PAIRS < len(order)
    best = sorted(order, key=lambda pair: order[pair], reverse=True)[:MOST_PAIRS]
    assert {frozenset(line.split(" | ")) for line in lines} == set(best)
    assert driven.noted("merge") == [f"{len(order) - MOST_PAIRS} of {len(order)} similar pairs were not asked about"]


def test_the_list_holds_at_most_twelve_those_with_most_proposers_then_the_best_place_and_notes_the_rest() -> None:
    lists = {"a": DISTINCT[:8], "b": DISTINCT[8:16], "c": [*DISTINCT[16:], DISTINCT[7], DISTINCT[15]]}
    driven = built(lists, options=Options(k=8))
    assert len(driven.answer) == 12
    assert names(driven)[:2] == [DISTINCT[7], DISTINCT[15]], "two proposers go first, wherever they stand in a list"
    places = [entry.best_place for entry in driven.answer[2:]]
    assert places == sorted(places)
    (note,) = driven.noted("left_out")
    left = [name for name in DISTINCT if name not in names(driven)]
    assert len(left) == 6
    assert all(name in note for name in left)
    assert not any(name in note for name in names(driven))
    assert note.startswith("6 of 18 ")


def test_a_list_that_fits_is_not_noted_as_cut() -> None:
    driven = built({"a": DISTINCT[:6], "b": DISTINCT[6:12]}, options=Options(k=6))
    assert len(driven.answer) == 12
    assert driven.notes == []
    assert len(built({"a": DISTINCT[:5]}, options=Options(most=5)).answer) == 5


def test_without_merge_only_equal_names_are_joined_and_nobody_is_consulted() -> None:
    driven = built({"a": ["MI", "Pericarditis"], "b": ["Myocardial infarction", "Heart sac soreness"]},
                   lambda *_: 0.99, lambda _: True, options=Options(without=("merge",)))  # fmt: skip
    assert len(driven.answer) == 3
    assert driven.rounds == []


def test_a_consultation_is_no_batch_and_comes_once() -> None:
    driven = built({"a": ["Malaria"], "b": ["Pericarditis"]})
    assert [type(question) for round_ in driven.rounds for question in round_.questions.values()] == [Consult]
    assert driven.batches == []


def test_no_new_proposals_change_nothing_and_ask_nothing() -> None:
    old = built({"a": DISTINCT[:3]}).answer
    driven = built({}, old=old)
    assert driven.answer == old
    assert driven.rounds == []


def test_an_addition_is_marked_and_one_that_names_an_old_entry_joins_it_under_the_old_name() -> None:
    old = built({"a": ["MI", "Malaria"]}).answer
    driven = built({"b": ["Myocardial infarction", "Sarcoidosis"], "c": ["sarcoidosis"]}, old=old)
    found = {entry.diagnosis: (entry.entered_in, entry.roles) for entry in driven.answer}
    assert found == {
        "MI": ("differential", ("a", "b")),
        "Malaria": ("differential", ("a",)),
        "Sarcoidosis": ("refinement", ("b", "c")),
    }


def test_entries_that_were_on_the_list_before_are_neither_compared_again_nor_joined_by_an_addition() -> None:
    old = built({"a": ["Pericarditis", "Heart sac soreness"]}).answer
    driven = built({"b": ["Sore sac around the heart"]}, lambda *_: 0.95, old=old)
    assert ("Pericarditis", "Heart sac soreness") not in driven.compared
    assert len(driven.compared) == 2
    assert set(names(driven)) == {"Pericarditis", "Heart sac soreness"}
    assert sum("b" in entry.roles for entry in driven.answer) == 1


def test_an_addition_with_an_alias_does_not_join_two_old_entries_and_each_name_finds_its_own() -> None:
    old = built({"a": ["Malaria", "Ague fever"]}).answer
    assert len(old) == 2
    driven = built({"b": ["Malaria (Ague fever)"], "c": ["Ague fever"]}, old=old)
    assert {entry.diagnosis: entry.roles for entry in driven.answer} == {
        "Malaria": ("a", "b"),
        "Ague fever": ("a", "c"),
    }


POOL = (
    *DISTINCT[:6],
    "MI",
    "Myocardial infarction",
    "heart attack",
    "Acute pancreatitis",
    "Chronic pancreatitis",
    "Pancreatitis",
)
LISTS = st.dictionaries(st.sampled_from("abcde"), st.lists(st.sampled_from(POOL), max_size=5, unique=True), max_size=5)


@settings(max_examples=60, deadline=None)
@given(LISTS, LISTS, st.dictionaries(st.sampled_from(POOL), st.integers(0, 2)), st.randoms(use_true_random=False))
def test_every_proposal_lands_in_exactly_one_entry_and_no_entry_holds_two_diseases(
    first: dict[str, list[str]], second: dict[str, list[str]], kinds: dict[str, int], chance: Any
) -> None:
    def similarity(a: str, b: str) -> float:
        return chance.choice([0.95, 0.8]) if kinds.get(a, 0) == kinds.get(b, 1) else 0.1

    options = Options(most=20)
    old = built(first, similarity, lambda _: chance.random() < 0.5, options=options).answer
    driven = built(second, similarity, lambda _: chance.random() < 0.5, old=old, options=options)
    held = [item for entry in driven.answer for item in entry.proposed]
    assert sorted(map(str, held)) == sorted(map(str, [*proposals(first), *proposals(second, 6 if old else 1)]))
    assert len({entry.diagnosis for entry in driven.answer}) == len(driven.answer)
    for entry in driven.answer:
        wordings = [item.proposal.diagnosis for item in entry.proposed]
        assert not any(labels.conflicting(a, b) for a in wordings for b in wordings)
    assert {entry.diagnosis for entry in old} <= {entry.diagnosis for entry in driven.answer}
    assert all(isinstance(question, Note | Consult | Ask) for r in driven.rounds for question in r.questions.values())
    assert len(driven.batches) <= 1
