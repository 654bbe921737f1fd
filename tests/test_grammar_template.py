"""Grammar templates as text: which slots one reads, and what is wrong with a wrong one."""

import pytest

from ddx_local.grammar import expand
from ddx_local.grammar_template import GrammarError, slots_of
from tests.grammars import TEXTS, Slots, compiled


def test_slots_of_names_every_slot_that_the_expansion_reads_and_no_more() -> None:
    template = """start: {{choice a}} {{quote b 60}} {{quotes c d 1 e}} {{permutation f}} {{subset g h 2}} {{each i one}}
one: {{item}} {{list two j 3}} {{text k}} {{int 1 l}}
two: {{name 9}}
"""
    assert slots_of(template) == frozenset("abcdefghijkl")
    numbers = dict.fromkeys("dehjkl", "2")
    lists = {name: (f"{name}1", f"{name}2", f"{name}3") for name in "afgi"}
    slots: dict[str, str | tuple[str, ...]] = {**numbers, **lists, "b": TEXTS["plain"], "c": TEXTS["plain"], "d": "30"}
    compiled(template, slots)
    for name in slots:
        with pytest.raises(GrammarError, match=f"slot `{name}`"):
            expand(template, {other: value for other, value in slots.items() if other != name})


@pytest.mark.parametrize(
    ("template", "slots", "message"),
    [
        ("start: {{colour red}}", {}, "no slot kind `colour`"),
        ("start: {{}}", {}, "no slot kind"),
        ("start: {{quote case}}", {"case": "x"}, "takes 2 arguments"),
        ("start: {{int 1 2 3}}", {}, "takes 2 arguments"),
        ("start: start", {}, "recurs"),
        ("start: one\none: two\ntwo: one?", {}, "recurs"),
        ("start: {{list one 0 2}}\none: {{each s one}}", {"s": ("a",)}, "recurs"),
        ("start: missing", {}, "no rule `missing`"),
        ('start: ("a" | "b"', {}, "parenthesis"),
        ('start: "a")', {}, "out of place"),
        ('start: "a" ] "b"', {}, "cannot read"),
        ('start: "a', {}, "cannot read"),
        ('start: "\\x"', {}, "JSON"),
        ('begin: "a"', {}, "no rule `start`"),
        ("", {}, "no rule `start`"),
        ('start: "a"\nstart: "b"', {}, "twice"),
        ('junk\nstart: "b"', {}, "no rule"),
        ("start: {{item}}", {}, "outside"),
        ("start: {{permutation s}}", {"s": tuple(map(str, range(65)))}, "65 items"),
        ("start: {{subset s 0 2}}", {"s": tuple(map(str, range(65)))}, "65 items"),
        ("start: {{permutation s}}", {"s": ("a", "b", "a")}, "twice"),
        ("start: {{subset s 0 1}}", {"s": ("a", "a")}, "twice"),
        ("start: {{permutation s}}", {"s": "text"}, "must hold a list"),
        ("start: {{choice s}}", {"s": "text"}, "must hold a list"),
        ("start: {{each s one}}\none: {{item}}", {}, "must hold a list"),
        ("start: {{quote s 60}}", {"s": ("a",)}, "must hold a text"),
        ("start: {{quotes s 60 1 2}}", {}, "must hold a text"),
        ("start: {{list one 1 n}}\none: {{item}}", {"n": "many"}, "number|outside"),
        ("start: {{subset s 0 n}}", {"s": ("a",), "n": ("1",)}, "must hold a number"),
        ("start: {{text n}}", {}, "must hold a number"),
        ("start: {{subset s 3 1}}", {"s": ("a", "b", "c")}, "cross"),
        ('start: {{list one 3 1}}\none: "1"', {}, "cross"),
        ("start: {{int 3 1}}", {}, "cross"),
        ('start: "a"{3,1}', {}, "cross"),
    ],
)
def test_a_wrong_template_or_slot_is_an_error_that_names_it(template: str, slots: Slots, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        expand(template, slots)
