"""Grammar templates: every kind of slot against a JSON parser that does not know the grammar, over hard texts and labels."""

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ddx_local.engines.scripted import walk
from ddx_local.grammar import LEAST_QUOTE, accepts, expand
from ddx_local.grammar_template import GrammarError
from tests.grammars import HARD_LABELS, HARD_TEXTS, LABELS, POLICIES, TEXTS, Slots, compiled, outputs, quotable, said

FORM = """// a comment: {{not read}} "neither is this
start: "{\\"entries\\": " {{list entry 0 count}} ", \\"stances\\": " {{each labels stance}} ", \\"ballot\\": " {{permutation labels}}
       ", \\"chosen\\": " {{subset labels 0 2}} ", \\"one\\": " {{choice labels}} ", \\"number\\": " {{int 8 12}} "}"
entry: "{\\"name\\": " {{name 20}} ", \\"evidence\\": " {{quotes case 60 1 2}} ", \\"reason\\": " {{text 30}} "}"
stance: "{\\"of\\": " {{item}} ", \\"position\\": " position ", \\"quote\\": " {{quote case 40}} (", \\"note\\": " {{text 5}})? "}"
position: "\\"support\\"" | "\\"challenge\\"" | "\\"neutral\\""
"""


def check_form(value: Any, text: str, labels: tuple[str, ...], count: int) -> None:
    assert len(value["entries"]) <= count
    for entry in value["entries"]:
        assert 2 <= len(entry["name"]) <= 20
        assert 1 <= len(entry["reason"]) <= 30
        assert (1 if quotable(text) else 0) <= len(entry["evidence"]) <= 2
        assert all(quote in text and len(quote) <= 60 for quote in entry["evidence"])
    assert [stance["of"] for stance in value["stances"]] == list(labels)
    for stance in value["stances"]:
        assert stance["position"] in ("support", "challenge", "neutral")
        assert (stance["quote"] is None) == (not quotable(text, 40))
        assert stance["quote"] is None or stance["quote"] in text
    assert sorted(value["ballot"]) == sorted(labels)
    assert len(set(value["chosen"])) == len(value["chosen"]) <= 2
    assert set(value["chosen"]) <= set(labels)
    assert value["one"] in labels
    assert 8 <= value["number"] <= 12


@settings(max_examples=40, deadline=None)
@given(HARD_TEXTS, HARD_LABELS, st.integers(0, 3), st.integers(0, 999))
@example(TEXTS["backslashes"], LABELS, 3, 1)
def test_whatever_the_case_and_the_labels_hold_every_walk_is_json_within_its_bound(
    text: str, labels: tuple[str, ...], count: int, seed: int
) -> None:
    slots: Slots = {"case": text, "labels": labels, "count": str(count)}
    for value in said(FORM, slots, seed):
        check_form(value, text, labels, count)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_every_hard_text_can_be_quoted_or_gives_null_and_an_empty_list(text: str) -> None:
    template = 'start: "[" {{quote case 60}} ", " {{quotes case 60 1 3}} "]"'
    seen = set()
    for seed in range(6):
        for quote, quotes in said(template, {"case": text}, seed):
            assert (quote is None) == (quotes == []) == (not quotable(text))
            assert all(LEAST_QUOTE <= len(json.dumps(q, ensure_ascii=False)) - 2 <= 60 for q in quotes)
            assert all(q in text for q in quotes)
            assert quote is None or quote in text
            seen.update(quotes)
    if text == TEXTS["plain"]:
        assert len(seen) > 6, "the walks did not choose among the quotes"


def test_a_case_of_three_thousand_words_can_be_quoted() -> None:
    words = random.Random(5)
    text = " ".join(
        words.choice(["fever", '"so"', "38.5", "°C", "and", "胸痛", "chills,\n", "back\\pain"]) for _ in range(3000)
    )
    slots: Slots = {"case": text, "labels": LABELS[:12], "count": "5"}
    for value in said(FORM, slots):
        check_form(value, text, LABELS[:12], 5)


@pytest.mark.parametrize("text", [TEXTS["eight characters"], TEXTS["one endless word"], TEXTS["empty"]])
def test_where_nothing_can_be_quoted_the_grammar_is_that_answer_alone(text: str) -> None:
    assert compiled("start: {{quotes case 60 1 2}}", {"case": text}).longest == 2
    assert said("start: {{quotes case 60 1 2}}", {"case": text}) == [[], [], []]
    assert said("start: {{quote case 60}}", {"case": text}) == [None, None, None]


def test_a_list_of_choices_among_nothing_is_empty_and_an_alternative_with_one_is_gone() -> None:
    slots: Slots = {"none": (), "case": "x"}
    assert said("start: {{list one 1 3}}\none: {{choice none}}", slots) == [[], [], []]
    assert said("start: {{subset none 0 3}}", slots) == [[], [], []]
    assert said("start: {{permutation none}}", slots) == [[], [], []]
    assert said("start: {{each none one}}\none: {{item}}", slots) == [[], [], []]
    assert said('start: {{choice none}} | "7"', slots) == [7, 7, 7]
    assert said('start: "7" {{choice none}}?', slots) == [7, 7, 7]
    with pytest.raises(GrammarError, match="no output"):
        expand("start: {{choice none}}", slots)


def test_a_subset_takes_every_size_within_its_bounds_and_none_beyond() -> None:
    labels = ("a", "b", "c", "d")
    found = outputs("start: {{subset labels low high}}", {"labels": labels, "low": "1", "high": "3"})
    assert all(len(set(value)) == len(value) and set(value) <= set(labels) for value in found)
    assert {len(value) for value in found} == {1, 2, 3}
    assert len({tuple(value) for value in found}) > 10, "order or choice is not free"
    exact = outputs("start: {{subset labels 2 2}}", {"labels": labels}, 10)
    assert {len(value) for value in exact} == {2}
    short = outputs("start: {{subset labels 3 5}}", {"labels": ("a", "b")}, 3)
    assert all(sorted(value) == ["a", "b"] for value in short), "of two items three are two"


@pytest.mark.parametrize("count", [1, 2, 12, 64])
def test_a_permutation_holds_every_item_once_and_has_one_length(count: int) -> None:
    labels = tuple(f'item "{number}"' for number in range(count))
    expanded = compiled("start: {{permutation labels}}", {"labels": labels})
    found = {walk(expanded.lark, random.Random(seed), "walk") for seed in range(5)}
    for output in found:
        assert sorted(json.loads(output)) == sorted(labels)
        assert len(output.encode()) == expanded.longest
    assert len(found) > 1 or count < 3


def test_all_orders_of_three_items_can_be_said() -> None:
    lark = compiled("start: {{permutation labels}}", {"labels": ("a", "b", "c")}).lark
    for ballot in (
        ["a", "b", "c"],
        ["a", "c", "b"],
        ["b", "a", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["c", "b", "a"],
    ):
        assert accepts(lark, json.dumps(ballot))


@pytest.mark.parametrize(
    "ballot", [["a", "b", "a"], ["a", "a"], ["a", "b"], ["a", "b", "c", "a"], ["a", "b", "d"], [], ["a", "b", "C"]]
)
def test_a_ballot_that_repeats_leaves_out_or_invents_an_item_is_refused(ballot: list[str]) -> None:
    lark = compiled("start: {{permutation labels}}", {"labels": ("a", "b", "c")}).lark
    assert not accepts(lark, json.dumps(ballot))


def test_a_subset_with_a_repeated_item_is_refused() -> None:
    lark = compiled("start: {{subset labels 0 3}}", {"labels": ("a", "b", "c")}).lark
    assert accepts(lark, '["c", "a"]')
    assert not accepts(lark, '["c", "c"]')


@settings(max_examples=40, deadline=None)
@given(HARD_LABELS)
def test_only_a_label_of_the_list_can_be_said(labels: tuple[str, ...]) -> None:
    lark = compiled("start: {{choice labels}}", {"labels": labels}).lark
    for label in labels:
        assert accepts(lark, json.dumps(label, ensure_ascii=False))
        for other in (label + "x", label[:-1], label.swapcase(), f"{label} ", "x"):
            assert accepts(lark, json.dumps(other, ensure_ascii=False)) == (other in labels)


def test_the_item_of_each_is_fixed_and_the_order_too() -> None:
    template = 'start: {{each labels pair}}\npair: "{\\"of\\": " {{item}} ", \\"n\\": " {{int 1 2}} "}"'
    lark = compiled(template, {"labels": ("MI", "MI, acute")}).lark
    assert accepts(lark, '[{"of": "MI", "n": 1}, {"of": "MI, acute", "n": 2}]')
    assert not accepts(lark, '[{"of": "MI, acute", "n": 1}, {"of": "MI", "n": 2}]')
    assert not accepts(lark, '[{"of": "MI", "n": 1}]')
    assert not accepts(lark, '[{"of": "MI", "n": 1}, {"of": "MI", "n": 2}]')


@pytest.mark.parametrize(
    "quote",
    [
        "crushing chest pain since last week",
        "crushing chest pain sinc",
        "rushing chest pain since ",
        "Crushing chest pain ",
        "A 61-year-old crushing chest ",
        "chest pain ",
        "has crushing chest pain since yesterday and vomits. has crushing",
        "",
    ],
)
def test_a_quote_that_is_not_in_the_case_or_not_of_legal_length_is_refused(quote: str) -> None:
    lark = compiled("start: {{quote case 60}}", {"case": TEXTS["plain"]}).lark
    assert accepts(lark, '"crushing chest pain since "')
    assert accepts(lark, '"since yesterday and vomits."')
    assert not accepts(lark, json.dumps(quote))
    assert not accepts(lark, "null")


@settings(max_examples=40, deadline=None)
@given(HARD_TEXTS, st.data())
def test_a_piece_of_another_text_is_accepted_only_if_the_case_holds_it(text: str, data: st.DataObject) -> None:
    other = data.draw(HARD_TEXTS)
    pieces = other.split(" ")
    start = data.draw(st.integers(0, len(pieces)))
    quote = " ".join(pieces[start : start + 6])
    lark = compiled("start: {{quote case 60}}", {"case": text}).lark
    if accepts(lark, json.dumps(quote, ensure_ascii=False)):
        assert quote in text


def test_a_text_cut_anywhere_is_not_accepted_nor_is_one_that_goes_on() -> None:
    slots: Slots = {"case": TEXTS["quotation marks"], "labels": LABELS[:2], "count": "1"}
    lark = compiled(FORM, slots).lark
    whole = walk(lark, random.Random(1), "shortest")
    assert accepts(lark, whole)
    assert [cut for cut in range(len(whole)) if accepts(lark, whole[:cut])] == []
    assert not accepts(lark, whole + " ")
    assert not accepts(lark, whole + whole)


def test_text_that_is_no_output_is_not_accepted() -> None:
    lark = compiled(FORM, {"case": "x", "labels": ("a",), "count": "1"}).lark
    for text in ("", "Error", "null", "{}", '{"entries": []}'):
        assert not accepts(lark, text)


@pytest.mark.parametrize(
    ("template", "good", "bad"),
    [
        (
            "start: {{text 5}}",
            ['"a"', '"a b,}"', '"12345"'],
            ['""', '"123456"', '" ab"', '"a\\\\"', '"a\\n"', '"ä"', "a"],
        ),
        (
            "start: {{name 6}}",
            ['"MI"', '"T (2)"', '"a-b/c+"'.replace('+"', '"')],
            ['"M"', '"MI "', '"1234567"', '"a;b"', '"a_b"'],
        ),
        ("start: {{int 9 11}}", ["9", "10", "11"], ["8", "12", "1", "09", "9.0", '"9"', ""]),
    ],
)
def test_free_text_names_and_numbers_are_bounded(template: str, good: list[str], bad: list[str]) -> None:
    lark = compiled(template, {"case": "plain"}).lark
    assert [text for text in good if not accepts(lark, text)] == []
    assert [text for text in bad if accepts(lark, text)] == []


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("患者 胸痛", "肺炎"),
        ("Больной", "грипп"),
        ("fiebre y dolor de cabeza, niño", "neumonía"),
        ("𠮷 fever", "𠮷 病"),
    ],
)
def test_free_text_may_be_written_in_the_letters_of_the_case(case: str, name: str) -> None:
    slots = {"case": case}
    written = json.dumps(name, ensure_ascii=False)
    for kind in ("text", "name"):
        expanded = compiled(f"start: {{{{{kind} 30}}}}", slots)
        assert accepts(expanded.lark, written)
        longest = json.dumps(max(name, key=lambda letter: len(letter.encode())) * 30, ensure_ascii=False)
        assert accepts(expanded.lark, longest)
        assert len(longest.encode()) == expanded.longest
        european = kind == "name" and name == "neumonía"  # names of diseases have such letters in any language
        assert accepts(compiled(f"start: {{{{{kind} 30}}}}", {"case": "plain"}).lark, written) == european


@pytest.mark.parametrize(
    ("template", "slots"),
    [
        ("start: {{text 20}}", {}),
        ("start: {{name 20}}", {}),
        ("start: {{list one 1 4}}\none: {{text 9}}", {}),
        ("start: {{each labels one}}\none: {{item}}", {"labels": LABELS}),
        ("start: {{subset labels 0 2}}", {"labels": ("aa", "bb", "cc")}),
        ('start: "ab"{2,3} ("c" | "de")?', {}),
    ],
)
def test_the_bound_is_reached_by_the_longest_output(template: str, slots: Slots) -> None:
    expanded = compiled(template, {**slots})
    longest = max(len(walk(expanded.lark, random.Random(seed), "longest").encode()) for seed in range(20))
    assert longest == expanded.longest


def test_policies_bound_each_other() -> None:
    parts = ('"{\\"a\\": " {{subset labels 0 3}}', '", \\"b\\": " {{list one 0 4}}', '", \\"c\\": " {{text 30}} "}"')
    template = f"start: {' '.join(parts)}\none: {{{{name 9}}}}"
    lark = compiled(template, {"labels": ("x)", "y]", "z}")}).lark
    for seed in range(10):
        lengths = {policy: len(walk(lark, random.Random(seed), policy)) for policy in POLICIES}
        assert lengths["shortest"] <= lengths["walk"] <= lengths["longest"]
        least = json.loads(walk(lark, random.Random(seed), "shortest"))
        assert (least["a"], least["b"], len(least["c"])) == ([], [], 1)
        most = json.loads(walk(lark, random.Random(seed), "longest"))
        assert (len(most["a"]), len(most["b"]), len(most["c"])) == (3, 4, 30)


@pytest.mark.parametrize(
    "name",
    [
        "21-hydroxylase deficiency",
        "Crohn's disease",
        "Type 1 diabetes mellitus",
        "Gout (acute)",
        "HbS/C disease",
        "G6PD",
        "Guillain-Barré syndrome",
        "Müllerian agenesis",
        "β-thalassemia",
        "α1-antitrypsin deficiency",
    ],
)
def test_names_of_diseases_can_be_said(name: str) -> None:
    expanded = compiled("start: {{name 60}}", {"case": "plain"})
    said = json.dumps(name, ensure_ascii=False)
    assert accepts(expanded.lark, said)
    assert len(said.encode()) <= expanded.longest


def test_a_name_holds_at_most_four_letters_beyond_ascii_where_the_case_has_none() -> None:
    expanded = compiled("start: {{name 60}}", {"case": "plain"})
    assert accepts(expanded.lark, f'"{"é" * 4}{"e" * 56}"')
    assert not accepts(expanded.lark, f'"{"é" * 5} syndrome"')
    assert not accepts(expanded.lark, '"肺炎"')
    assert expanded.longest == 60 + 4 + 2


def test_a_walk_is_repeatable() -> None:
    lark = compiled(FORM, {"case": TEXTS["emoji"], "labels": LABELS, "count": "3"}).lark
    assert walk(lark, random.Random(3)) == walk(lark, random.Random(3)) != walk(lark, random.Random(4))


def test_sixty_four_items_are_the_most() -> None:
    assert said("start: {{subset s 64 64}}", {"s": tuple(map(str, range(64)))})


def test_the_same_case_quoted_under_two_bounds_and_a_second_text_do_not_mix() -> None:
    template = 'start: "[" {{quote one 20}} ", " {{quote one 50}} ", " {{quote two 50}} "]"'
    slots = {"one": TEXTS["plain"], "two": TEXTS["newlines"]}
    for short, long, other in outputs(template, slots, 8):
        assert len(short) <= 20
        assert short in TEXTS["plain"]
        assert long in TEXTS["plain"]
        assert other in TEXTS["newlines"]
