"""Scripted answers: they obey the grammar, depend on the seed alone, and end early or late as they are told."""

import json
import random
import subprocess
import sys

import pytest

from ddx_local.engines.scripted import ScriptedEngine, by_policy, walk
from ddx_local.errors import ContextLengthExceeded
from ddx_local.grammar import accepts, expand
from ddx_local.request import Completion, Message, Request, Sampling

CASE = 'A man of 54 has had "fever" \\ and a cough 漢字 for two days.'
TEMPLATES = (
    'start: "{\\"say\\": " {{text 60}} "}"',
    'start: {{list entry 1 4}}\nentry: "{\\"name\\": " {{name 30}} ", \\"quotes\\": " {{quotes case 60 0 2}} "}"',
    "start: {{permutation pool}}",
    "start: {{subset pool 0 2}}",
    'start: "[" {{int 1 10}} ", " {{choice pool}} "]"',
)
POOL = ("Neurology", 'a "quoted" one', "back\\slash", "漢字")


def grammar(template: str) -> tuple[str, int]:
    expanded = expand(template, {"case": CASE, "pool": POOL})
    return expanded.lark, expanded.longest


@pytest.mark.parametrize("policy", ["walk", "shortest", "longest"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_an_answer_obeys_its_grammar_and_its_bound(template: str, policy: str) -> None:
    lark, longest = grammar(template)
    for seed in range(8):
        answer = walk(lark, random.Random(seed), policy)  # type: ignore[arg-type]
        assert accepts(lark, answer)
        json.loads(answer)
        assert len(answer.encode()) <= longest


def test_shortest_and_longest_bound_what_a_walk_gives() -> None:
    lark, longest = grammar(TEMPLATES[1])
    lengths = {
        policy: [len(walk(lark, random.Random(seed), policy).encode()) for seed in range(8)]
        for policy in ("shortest", "walk", "longest")
    }
    assert max(lengths["shortest"]) < min(lengths["longest"]) <= longest
    assert sum(lengths["shortest"]) < sum(lengths["walk"]) < sum(lengths["longest"])


def test_an_answer_depends_on_the_seed_alone_in_any_process() -> None:
    lark, _ = grammar(TEMPLATES[0])
    answers = [walk(lark, random.Random(seed)) for seed in range(5)]
    assert answers == [walk(lark, random.Random(seed)) for seed in range(5)]
    assert len(set(answers)) == 5
    code = f"import random; from ddx_local.engines.scripted import walk; print(ascii(walk({lark!r}, random.Random(3))))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == ascii(answers[3])


def test_a_grammar_without_any_end_is_an_error_and_not_an_endless_walk() -> None:
    with pytest.raises(ValueError, match="dead end"):
        walk('start: "a" /[^\\x00-\\xff]/ & /b/', random.Random(0))


def asked(text: str, max_tokens: int = 50) -> Request:
    return Request((Message("user", text),), Sampling(max_tokens=max_tokens), None, "toy/say")


async def test_answers_come_in_order_and_each_is_told_as_soon_as_it_is_there() -> None:
    told: list[tuple[int, str]] = []
    engine = ScriptedEngine(lambda request: request.messages[0].content.upper())

    def tell(index: int, completion: Completion) -> None:
        assert len(engine.requests) == index + 1, "told too late"
        told.append((index, completion.text))

    answers = await engine.generate([asked("a"), asked("b")], tell)
    assert [answer.text for answer in answers] == ["A", "B"]
    assert told == [(0, "A"), (1, "B")]
    assert engine.batches == [2]
    assert (answers[0].prompt_tokens, answers[0].generated_tokens, answers[0].finish_reason) == (1, 1, "stop")


async def test_an_answer_past_its_limit_is_cut_off_by_name_and_a_prompt_past_the_context_is_refused() -> None:
    engine = ScriptedEngine(lambda _: "x" * 20, context=100)
    (answer,) = await engine.generate([asked("a", 10)])
    assert answer.finish_reason == "length"
    with pytest.raises(ContextLengthExceeded) as caught:
        await engine.generate([asked("a"), asked("b" * 60)])
    error = caught.value
    assert (error.prompt_tokens, error.answer_tokens, error.context_tokens) == (60, 50, 100)
    assert "toy/say" in error.message
    assert len(engine.requests) == 1, "nothing of the batch was computed"


@pytest.mark.parametrize(("policy", "text"), [("walk", "No grammar, no answer."), ("longest", "x" * 50)])
def test_without_a_grammar_there_is_free_text(policy: str, text: str) -> None:
    assert by_policy(policy)(asked("a")) == text  # type: ignore[arg-type]
