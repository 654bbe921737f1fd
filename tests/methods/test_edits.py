"""Edits as span patches: what changes, what never does, and what the grammar of an edit lets a model say."""

import json
import random
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ddx_local.assets import Assets
from ddx_local.engines.scripted import Policy, walk
from ddx_local.flow import Ask
from ddx_local.grammar import accepts
from ddx_local.methods.counterfactual_steps import EDIT
from ddx_local.methods.edits import Edit, Operation, Patch, apply, patches

TEXT = "He has crushing chest pain since May. His father had crushing chest pain, too. No fever."
OPERATIONS = get_args(Operation)


def change(*spans: tuple[str, str], operation: Operation = "replace") -> Edit:
    return Edit(operation, "symptom", spans)


def edited(text: str, *spans: tuple[str, str], operation: Operation = "replace") -> str:
    return apply(text, patches(text, change(*spans, operation=operation)))


# What changes


@pytest.mark.parametrize("operation", ["negate", "replace", "weaken", "intensify"])
def test_a_quote_that_stands_several_times_is_changed_everywhere(operation: Operation) -> None:
    found = edited(TEXT, ("crushing chest pain", "no pain"), operation=operation)
    assert found == "He has no pain since May. His father had no pain, too. No fever."


def test_a_removal_takes_the_quote_and_nothing_else() -> None:
    assert edited(TEXT, ("crushing chest pain since May", ""), operation="remove") == (
        "He has . His father had crushing chest pain, too. No fever."
    )
    assert len(patches(TEXT, change(("crushing chest pain", ""), operation="remove"))) == 2


def test_an_insertion_comes_once_after_the_first_place_of_its_anchor_and_takes_nothing() -> None:
    (patch,) = patches(TEXT, change(("crushing chest pain", "and cold sweats"), operation="insert"))
    assert (patch.start, patch.end) == (TEXT.index(" since"), TEXT.index(" since"))
    assert edited(TEXT, ("crushing chest pain", "and cold sweats"), operation="insert") == (
        "He has crushing chest pain and cold sweats since May. His father had crushing chest pain, too. No fever."
    )
    assert edited(TEXT, ("No fever.", "A new murmur."), operation="insert") == f"{TEXT} A new murmur."


def test_a_group_of_spans_changes_all_of_them_in_the_order_of_the_text() -> None:
    found = patches(TEXT, change(("No fever.", "Fever."), ("since May", "since June")))
    assert [patch.replacement for patch in found] == ["since June", "Fever."]
    assert edited(TEXT, ("No fever.", "Fever."), ("since May", "since June")) == TEXT.replace(
        "No fever.", "Fever."
    ).replace("since May", "since June")


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ((("crushing chest pain", "mild pain"), ("chest pain since May", "for a day")), "He has mild pain for a day."),
        ((("chest pain since May", "for a day"), ("crushing chest pain", "mild pain")), "He has mild pain for a day."),
        ((("crushing chest pain since May", "no pain"), ("chest pain", "pain")), "He has no pain pain."),
        ((("crushing chest pain", "none"), ("chest pain since May", "none")), "He has none."),
        ((("crushing chest pain", "pain"), ("pain since May", "in pain")), "He has pain in pain."),
        ((("crushing chest pain since May", "a"), ("crushing chest", "b")), "He has b a."),
    ],
)
def test_spans_that_overlap_become_one_with_every_replacement_once(
    spans: tuple[tuple[str, str], ...], expected: str
) -> None:
    text = "He has crushing chest pain since May."
    assert len(patches(text, change(*spans))) == 1
    assert edited(text, *spans) == expected


def test_spans_that_only_touch_stay_two() -> None:
    assert len(patches(TEXT, change(("He has ", "She had "), ("crushing chest pain since", "a cough since")))) == 2


def test_two_insertions_at_one_place_are_one_patch() -> None:
    found = patches(TEXT, change(("No fever.", "A murmur."), ("No fever.", "A rash."), operation="insert"))
    assert found == (Patch(len(TEXT), len(TEXT), " A murmur. A rash."),)


@pytest.mark.parametrize(
    "edit",
    [
        change(("crushing chest pain", "crushing chest pain")),
        change(("a cough since May", "no cough")),
        change(("", "x")),
        change(),
        change(("No fever.", ""), operation="insert"),
        change(("", ""), operation="remove"),
    ],
)
def test_an_edit_that_changes_nothing_has_no_patch(edit: Edit) -> None:
    assert patches(TEXT, edit) == ()
    assert apply(TEXT, ()) == TEXT


def test_of_two_spans_only_the_one_that_changes_something_is_kept() -> None:
    found = patches(TEXT, change(("No fever.", "No fever."), ("since May", "since June")))
    assert [patch.replacement for patch in found] == ["since June"]


def test_an_edit_may_take_everything() -> None:
    assert edited(TEXT, (TEXT, ""), operation="remove") == ""
    assert edited(TEXT, (TEXT, "Nothing.")) == "Nothing."


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("8 mg of morphine, then 18 mg of morphine", "8 mg of morphine", "X, then 18 mg of morphine"),
        ("a tender abdomen or a non-tender abdomen", "tender abdomen", "a X or a non-tender abdomen"),
        ("temperature is 38 but temperature is 38.5 C", "temperature is 38", "X but temperature is 38.5 C"),
        ("chest pain in the army, chest pain in the arm", "chest pain in the arm", "chest pain in the army, X"),
        ("stiff neck (stiff neck), stiff neck.", "stiff neck", "X (X), X."),
        ("胸痛 三小时 胸痛 三小时", "胸痛 三小时", "X X"),
        ("a (b) [c] .* d+ a (b) [c] .* d+", "(b) [c] .* d+", "a X a X"),
    ],
)
def test_a_quote_stands_only_where_its_words_are_whole(text: str, quote: str, expected: str) -> None:
    assert edited(text, (quote, "X")) == expected


WORDS = st.lists(
    st.sampled_from(["fever", "cough", "pain,", "no", "(since", "May)", "38.5", "β-rash", "胸痛", '"so"', "a"]),
    min_size=1,
    max_size=14,
)
NEW = st.text(st.sampled_from("ab c7"), max_size=8).map(str.strip)


@st.composite
def case_and_spans(draw: st.DrawFn) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A text of words and up to four quotes that are runs of its words, each with a new text."""
    words = draw(WORDS)
    spans = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(words) - 1))
        end = draw(st.integers(start + 1, len(words)))
        spans.append((" ".join(words[start:end]), draw(NEW)))
    return " ".join(words), tuple(spans)


@settings(max_examples=150, deadline=None)
@given(case_and_spans(), st.sampled_from(OPERATIONS))
@example(("a a a", (("a a", "b"),)), "replace")
def test_the_text_outside_the_patches_is_the_same_and_patches_are_ordered_and_apart(
    drawn: tuple[str, tuple[tuple[str, str], ...]], operation: Operation
) -> None:
    text, spans = drawn
    found = patches(text, change(*spans, operation=operation))
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert all(0 <= patch.start <= patch.end <= len(text) for patch in found)
    after, position = apply(text, found), 0
    rest = after
    for patch in found:
        kept = text[position : patch.start]
        assert rest.startswith(kept + patch.replacement)
        rest, position = rest[len(kept + patch.replacement) :], patch.end
    assert rest == text[position:]
    for patch in found:
        assert text[patch.start : patch.end] != patch.replacement
        assert (patch.start == patch.end) == (operation == "insert")
    quoted = {
        place
        for quote, _ in spans
        for at in range(len(text))
        if text.startswith(quote, at)
        for place in range(at, at + len(quote))
    }
    assert all(place in quoted for patch in found for place in range(patch.start, patch.end))


@settings(max_examples=100, deadline=None)
@given(
    st.permutations(["fever of 39", "dry cough", "stiff neck", "red eyes"]),
    st.lists(NEW, min_size=4, max_size=4),
    st.integers(1, 3),
)
def test_disjoint_quotes_are_replaced_as_by_hand(names: list[str], texts: list[str], times: int) -> None:
    text = " ".join(f"On day {day}: {', then '.join(names)}." for day in range(times))
    # The new texts hold no quote, so that the order of replacing by hand does not matter.
    by_hand = text
    for quote, new in zip(names, texts, strict=True):
        by_hand = by_hand.replace(quote, new)
    found = patches(text, change(*zip(names, texts, strict=True)))
    assert apply(text, found) == by_hand
    assert len(found) == 4 * times


# What can be said


CASE = 'A man has crushing chest pain since May. He says "it burns". His father had gout in both feet. No fever.'


def grammar(case: str = CASE, count: int = 2) -> str:
    slots = {
        "case": case,
        "record": "",
        "role": "cardiologist",
        "diagnosis": "Gout",
        "others": ("Pericarditis",),
        "edits": str(count),
    }
    filled = Assets().fill(Ask(EDIT, slots))
    assert filled.grammar is not None
    return filled.grammar


def said(operation: str, *pieces: Any, feature: str = "symptom") -> str:
    return json.dumps({"edits": [[operation, feature, list(pieces)]]}, ensure_ascii=False)


PAIN = "crushing chest pain "


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("feature", ["symptom", "lab", "imaging", "exam", "vital", "history"])
def test_every_operation_on_every_kind_of_finding_can_be_said_and_is_read(operation: str, feature: str) -> None:
    text = said(operation, PAIN if operation == "remove" else [PAIN, "no pain"], feature=feature)
    assert accepts(grammar(count=1), text)
    (edit,) = EDIT.parse(json.loads(text))
    assert edit == Edit(operation, feature, ((PAIN.strip(), "" if operation == "remove" else "no pain"),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        said("remove", [PAIN, "no pain"]),
        said("remove", [PAIN]),
        said("remove", *[PAIN] * 5),
        said("remove", None),
        said("negate", PAIN),
        said("negate", [PAIN]),
        said("negate", [PAIN, ""]),
        said("negate", ["a dry cough since ", "no cough"]),
        said("negate", ["rushing chest pain ", "no pain"]),
        said("negate", ["crushing chest ", "x" * 41]),
        said("negate", [None, "x"]),
        said("negate"),
        said("negate", *[[PAIN, "x"]] * 5),
        said("insert", [PAIN, "x"], [PAIN, "y"]),
        said("rewrite", [PAIN, "no pain"]),
        said("negate", [PAIN, "no pain"], feature="mood"),
        json.dumps({"edits": []}),
        json.dumps({"edits": json.loads(said("remove", PAIN))["edits"] * 2}),
    ],
)
def test_what_is_no_edit_of_the_case_cannot_be_said(text: str) -> None:
    assert accepts(grammar(count=1), said("negate", *[[PAIN, "x"]] * 4))
    assert not accepts(grammar(count=1), text)


CASES = {
    "quotation marks and newlines": 'She says "my chest hurts" and\n"I can\'t breathe"\tsince the\\flight.',
    "cjk": "患者,男,58 岁,突发胸痛 3 小时,伴大汗。 既往有高血压病史 10 年。",
    "no quote": "fever 39",
    "endless word": "x" * 200,
}


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_walk_is_read_and_changes_only_what_it_quotes(case: str, policy: Policy) -> None:
    lark = grammar(case, 3)
    for seed in range(4):
        edits: Any = EDIT.parse(json.loads(walk(lark, random.Random(seed), policy)))
        assert len(edits) == 3
        for edit in edits:
            assert all(quote in case for quote, _ in edit.spans)
            assert (edit.spans == ()) == (case in (CASES["no quote"], CASES["endless word"]))
            if edit.operation == "remove":
                assert all(new == "" for _, new in edit.spans)
            if edit.operation == "insert":
                assert len(edit.spans) <= 1
            changed = apply(case, patches(case, edit))
            assert (changed != case) == (patches(case, edit) != ())


def test_walks_reach_every_operation_and_groups_of_one_to_four() -> None:
    lark = grammar(CASE, 5)
    edits = [edit for seed in range(12) for edit in EDIT.parse(json.loads(walk(lark, random.Random(seed))))]
    assert {edit.operation for edit in edits} == set(OPERATIONS)
    assert {len(edit.spans) for edit in edits} == {1, 2, 3, 4}
