"""The vocabulary of flows, driven by hand: what a round holds, who shares one, and what an exception leaves behind."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.flow import (
    Ask,
    Consult,
    CountTokens,
    Flow,
    Note,
    Question,
    Round,
    Similarity,
    Step,
    Weigh,
    ask,
    ask_each,
    note,
    similarities,
    sizes,
    together,
    weigh,
)
from ddx_local.request import Loglikelihood, Size

STEP: Step[str] = Step("toy/step", str)
OTHER: Step[str] = Step("toy/other", str)


def driven(flow: Flow[Any], answer: Callable[[tuple[str, ...], Question], Any]) -> tuple[Any, list[Round]]:
    """The flow's result, and every round it yielded; each question is answered by key."""
    rounds: list[Round] = []
    try:
        round_ = next(flow)
        while True:
            rounds.append(round_)
            round_ = flow.send({key: answer(key, question) for key, question in round_.questions.items()})
    except StopIteration as stop:
        return stop.value, rounds


def by_key(key: tuple[str, ...], _: Question) -> str:
    return "/".join(key)


def asking(*names: str, ends_with: str = "") -> Flow[str]:
    """One round for each name."""
    said = []
    for name in names:
        answers = yield from ask_each({name: Ask(STEP, {}, name)})
        said.append(answers[name])
    return ends_with or " ".join(said)


class Watched:
    """A flow that remembers how it ended."""

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow
        self.ended: BaseException | None = None
        self.closed = False

    def run(self) -> Flow[Any]:
        try:
            return (yield from self.flow)
        except GeneratorExit:
            self.closed = True
            raise
        except BaseException as error:
            self.ended = error
            raise


def test_ask_yields_one_question_named_after_its_step_and_returns_the_answer_as_it_is() -> None:
    flow = ask(STEP, role="nurse", temperature=0.9, case="fever", items=("a", "b"))
    round_ = next(flow)
    assert round_.name == "toy/step"
    assert dict(round_.questions) == {
        ("nurse",): Ask(STEP, {"case": "fever", "items": ("a", "b")}, role="nurse", temperature=0.9)
    }
    assert round_.is_batch
    with pytest.raises(StopIteration) as stop:
        flow.send({("nurse",): ["any", "value"]})
    assert stop.value.value == ["any", "value"]


def test_ask_each_is_one_round_and_its_answers_come_back_under_the_same_names_in_the_same_order() -> None:
    questions = {name: Ask(STEP, {"case": name}, name) for name in ("b", "a", "c")}
    flow = ask_each(questions)
    round_ = next(flow)
    assert list(round_.questions) == [("b",), ("a",), ("c",)]
    with pytest.raises(StopIteration) as stop:
        flow.send({("c",): 3, ("a",): 1, ("b",): 2})
    assert list(stop.value.value.items()) == [("b", 2), ("a", 1), ("c", 3)]


def test_a_round_may_be_given_a_name_and_else_bears_the_first_step() -> None:
    questions = {"one": Ask(OTHER, {}), "two": Ask(STEP, {})}
    assert next(ask_each(questions, "own name")).name == "own name"
    assert next(ask_each(questions)).name == "toy/other"
    labels = {"one": Weigh(STEP, {}, ("A",))}
    assert next(weigh(labels, "own name")).name == "own name"
    assert next(weigh(labels)).name == "toy/step"


def test_nothing_to_ask_is_no_round() -> None:
    assert driven(ask_each({}), by_key) == ({}, [])
    assert driven(weigh({}), by_key) == ({}, [])
    assert driven(similarities([]), by_key) == ((), [])
    assert driven(sizes([]), by_key) == ((), [])
    assert driven(together({}), by_key) == ({}, [])


def test_weigh_is_a_batch_and_returns_the_scores_by_name() -> None:
    scores = (Loglikelihood("A", -1.0, 2), Loglikelihood("B", -2.0, 2))
    result, rounds = driven(weigh({"x": Weigh(STEP, {}, ("A", "B"))}), lambda *_: scores)
    assert result == {"x": scores}
    assert [round_.is_batch for round_ in rounds] == [True]


def test_consultations_and_notes_are_rounds_but_no_batches() -> None:
    question = Ask(STEP, {"case": "x"})
    result, rounds = driven(similarities([("a", "b"), ("a", "c")]), lambda *_: [0.5, 0.25])
    assert result == (0.5, 0.25)
    assert list(rounds[0].questions.values()) == [Consult(Similarity((("a", "b"), ("a", "c"))))]
    sized, more = driven(sizes([question]), lambda *_: [Size(1, 2, 3)])
    assert sized == (Size(1, 2, 3),)
    assert list(more[0].questions.values()) == [Consult(CountTokens((question,)))]
    nothing, last = driven(note("tie", "a and b", degraded=True), lambda *_: None)
    assert nothing is None
    assert list(last[0].questions.values()) == [Note("tie", "a and b", degraded=True)]
    assert [round_.is_batch for round_ in (*rounds, *more, *last)] == [False, False, False]


def test_a_round_with_a_model_question_among_others_is_a_batch() -> None:
    assert Round("mixed", {("a",): Note("x", "y"), ("b",): Weigh(STEP, {}, ("A",))}).is_batch
    assert not Round("empty", {}).is_batch


def test_together_sends_the_pending_questions_of_all_branches_as_one_round() -> None:
    flow = together({"left": asking("a", "b"), "right": asking("a", "c")})
    result, rounds = driven(flow, by_key)
    assert [list(round_.questions) for round_ in rounds] == [
        [("left", "a"), ("right", "a")],
        [("left", "b"), ("right", "c")],
    ]
    assert result == {"left": "left/a left/b", "right": "right/a right/c"}


def test_ask_and_weigh_of_different_branches_share_a_round() -> None:
    branches: dict[str, Flow[Any]] = {"a": ask(STEP, role="r"), "w": weigh({"x": Weigh(OTHER, {}, ("L",))})}
    result, rounds = driven(together(branches), lambda key, _: f"to {'/'.join(key)}")
    assert len(rounds) == 1
    assert rounds[0].name == "toy/step + toy/other"
    assert result == {"a": "to a/r", "w": {"x": "to w/x"}}


def test_a_branch_that_ends_early_drops_out_and_one_that_asks_nothing_never_appears() -> None:
    def silent() -> Flow[str]:
        return "said nothing"
        yield

    branches = {"none": silent(), "short": asking("a"), "long": asking("a", "b", "c")}
    result, rounds = driven(together(branches), by_key)
    assert [list(round_.questions) for round_ in rounds] == [
        [("short", "a"), ("long", "a")],
        [("long", "b")],
        [("long", "c")],
    ]
    assert list(result.items()) == [
        ("none", "said nothing"),
        ("short", "short/a"),
        ("long", "long/a long/b long/c"),
    ]


def test_results_are_keyed_by_branch_in_the_order_given_whoever_ends_first() -> None:
    result, _ = driven(together({"late": asking("a", "b"), "early": asking("a")}), by_key)
    assert list(result) == ["late", "early"]


def test_nested_branches_join_their_keys_from_outside_in() -> None:
    inner = together({"x": asking("q"), "y": asking("q", "r")})
    branches: dict[str, Flow[Any]] = {"inner": inner, "plain": asking("q")}
    result, rounds = driven(together(branches), by_key)
    assert [list(round_.questions) for round_ in rounds] == [
        [("inner", "x", "q"), ("inner", "y", "q"), ("plain", "q")],
        [("inner", "y", "r")],
    ]
    assert result == {"inner": {"x": "inner/x/q", "y": "inner/y/q inner/y/r"}, "plain": "plain/q"}


def test_consultations_and_notes_are_answered_while_other_branches_wait_and_cost_no_batch() -> None:
    def with_asides() -> Flow[str]:
        yield from note("before", "x")
        first = yield from ask(STEP, role="a")
        yield from similarities([("a", "b")])
        yield from note("between", "x")
        return first + (yield from ask(STEP, role="b"))

    result, rounds = driven(together({"asides": with_asides(), "plain": asking("p", "q")}), by_key_or_floats)
    assert [round_.is_batch for round_ in rounds] == [False, True, False, False, True]
    assert [list(round_.questions) for round_ in rounds if round_.is_batch] == [
        [("asides", "a"), ("plain", "p")],
        [("asides", "b"), ("plain", "q")],
    ]
    assert result == {"asides": "ab", "plain": "p q"}


def by_key_or_floats(key: tuple[str, ...], question: Question) -> Any:
    return [0.5] if isinstance(question, Consult) else key[-1]


def test_an_exception_thrown_from_outside_closes_every_unfinished_branch_and_comes_out_again() -> None:
    branches = {name: Watched(asking("q", "r")) for name in ("a", "b")}
    flow = together({name: branch.run() for name, branch in branches.items()})
    next(flow)
    with pytest.raises(KeyboardInterrupt):
        flow.throw(KeyboardInterrupt())
    assert [branch.closed for branch in branches.values()] == [True, True]
    with pytest.raises(StopIteration):
        next(flow)


def test_an_exception_that_a_branch_raises_closes_its_siblings_and_comes_out_unchanged() -> None:
    def failing() -> Flow[str]:
        yield from ask(STEP, role="q")
        raise ValueError("the branch's own")

    before, after = Watched(asking("q", "r")), Watched(asking("q", "r"))
    flow = together({"before": before.run(), "failing": failing(), "after": after.run()})
    round_ = next(flow)
    with pytest.raises(ValueError, match="the branch's own"):
        flow.send(dict.fromkeys(round_.questions, "x"))
    assert before.closed
    assert after.closed


def test_a_branch_that_fails_before_its_first_question_leaves_no_sibling_open() -> None:
    def failing() -> Flow[str]:
        raise ValueError("at once")
        yield

    first, last = Watched(asking("q")), Watched(asking("q"))
    flow = together({"first": first.run(), "failing": failing(), "last": (last_flow := last.run())})
    with pytest.raises(ValueError, match="at once"):
        next(flow)
    assert first.closed
    assert isinstance(last_flow, Generator)
    with pytest.raises(StopIteration):
        next(last_flow)


def test_closing_the_whole_closes_the_branches() -> None:
    branches = {name: Watched(asking("q")) for name in ("a", "b")}
    flow = together({name: branch.run() for name, branch in branches.items()})
    next(flow)
    flow.close()
    assert [branch.closed for branch in branches.values()] == [True, True]


def test_an_exception_in_a_nested_branch_closes_the_cousins_too() -> None:
    def failing() -> Flow[str]:
        yield from ask(STEP, role="q")
        raise ValueError("deep")

    cousin, sibling = Watched(asking("q", "r")), Watched(asking("q", "r"))
    inner = together({"failing": failing(), "sibling": sibling.run()})
    branches: Mapping[str, Flow[Any]] = {"cousin": cousin.run(), "inner": inner}
    flow = together(branches)
    round_ = next(flow)
    with pytest.raises(ValueError, match="deep"):
        flow.send(dict.fromkeys(round_.questions, "x"))
    assert (cousin.closed, sibling.closed) == (True, True)


PLANS = st.lists(st.sampled_from(["ask", "ask two", "weigh", "note", "consult"]), max_size=7)


def planned(plan: list[str], name: str) -> Flow[list[Any]]:
    """A little flow; what it returns shows every answer that it got."""
    got: list[Any] = []
    for place, what in enumerate(plan):
        tag = f"{name}{place}"
        if what == "ask":
            got.append((yield from ask(STEP, role=tag)))
        elif what == "ask two":
            got.append((yield from ask_each({f"{tag}x": Ask(STEP, {}), f"{tag}y": Ask(STEP, {})})))
        elif what == "weigh":
            got.append((yield from weigh({tag: Weigh(OTHER, {}, ("L",))})))
        elif what == "note":
            yield from note("plan", tag)
        else:
            got.append((yield from similarities([(tag, "b")])))
    return got


def answered(key: tuple[str, ...], question: Question) -> Any:
    if isinstance(question, Note):
        return None
    if isinstance(question, Consult):
        assert isinstance(question.about, Similarity)
        return [float(len(question.about.pairs[0][0]))]
    return f"answer to {key[-1]}"


def batches(rounds: list[Round]) -> list[Round]:
    return [round_ for round_ in rounds if round_.is_batch]


@given(st.dictionaries(st.sampled_from("abcd"), PLANS, max_size=4))
def test_together_takes_as_many_batches_as_its_longest_branch_and_changes_no_answer(
    plans: dict[str, list[str]],
) -> None:
    alone = {name: driven(planned(plan, name), answered) for name, plan in plans.items()}
    result, rounds = driven(together({name: planned(plan, name) for name, plan in plans.items()}), answered)
    assert result == {name: value for name, (value, _) in alone.items()}
    assert len(batches(rounds)) == max((len(batches(own)) for _, own in alone.values()), default=0)
    asked = [key[1:] for round_ in rounds for key in round_.questions if key[1:] != ("note",)]
    assert len(asked) == sum(len(r.questions) for _, own in alone.values() for r in own if r.name != "note")
    for place, round_ in enumerate(batches(rounds)):
        expected = {
            (name, *key): question
            for name, (_, own) in alone.items()
            if place < len(batches(own))
            for key, question in batches(own)[place].questions.items()
        }
        assert dict(round_.questions) == expected


@given(PLANS, PLANS, PLANS)
def test_nesting_changes_neither_batches_nor_answers(a: list[str], b: list[str], c: list[str]) -> None:
    flat, flat_rounds = driven(together({"a": planned(a, "a"), "b": planned(b, "b"), "c": planned(c, "c")}), answered)
    branches: dict[str, Flow[Any]] = {
        "inner": together({"a": planned(a, "a"), "b": planned(b, "b")}),
        "c": planned(c, "c"),
    }
    nested, nested_rounds = driven(together(branches), answered)
    assert {**nested["inner"], "c": nested["c"]} == flat
    assert len(batches(nested_rounds)) == len(batches(flat_rounds))


def test_one_flow_can_be_suspended_between_rounds_for_as_long_as_one_likes() -> None:
    flow = asking("a", "b")
    first = next(flow)
    second = flow.send({("a",): "first"})
    assert list(first.questions) == [("a",)]
    assert list(second.questions) == [("b",)]
    with pytest.raises(StopIteration) as stop:
        flow.send({("b",): "second"})
    assert stop.value.value == "first second"
