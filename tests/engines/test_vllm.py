"""The real engine: exact scores, one prefix computed once, thoughts, and how it ends when something breaks."""

import asyncio
import dataclasses
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ddx_local.engines.chat import Chat
from ddx_local.engines.vllm import VllmEngine
from ddx_local.errors import CaseError, ContextLengthExceeded
from ddx_local.grammar import accepts
from ddx_local.models import ChatQuirks, Thinking
from ddx_local.request import LoglikelihoodRequest, Message, Request, Sampling
from tests.engines.contract import CASES, asking, saying, weighing

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

ANSWER = 'start: "{\\"answer\\": \\"" /[a-z]{3,12}/ "\\"}"\n'
LABELS = (
    "aortic stenosis",
    "stable angina pectoris",
    "iron deficiency anemia",
    "pulmonary embolism",
    "gout",
    "septic arthritis of the first metatarsophalangeal joint",
    "Sjögren syndrome",
    "COVID-19",
    "type 2 diabetes mellitus",
    "heart failure with preserved ejection fraction (HFpEF)",
    "pneumonia",
    "痛风",
)


@contextmanager
def prompts_of(engine: VllmEngine) -> Iterator[list[tuple[list[int], Any]]]:
    """The token ids and parameters of all that goes to vLLM meanwhile."""
    seen: list[tuple[list[int], Any]] = []
    add = engine._owner.add

    def noting(name: str, ids: list[int], parameters: Any, deliver: Any) -> None:
        seen.append((ids, parameters))
        add(name, ids, parameters, deliver)

    engine._owner.add = noting  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del engine._owner.add  # type: ignore[method-assign]


def with_card(engine: VllmEngine, **changes: Any) -> VllmEngine:
    """The same running engine under another card; it thinks where the card says how."""
    card = dataclasses.replace(engine.settings.card, **changes)
    settings = dataclasses.replace(engine.settings, card=card, thinking=card.thinking is not None)
    again = VllmEngine(settings, Chat(engine._chat.tokenizer, card), engine._owner)
    again._numbers = itertools.count(time.monotonic_ns())  # names of its own
    return again


def opening(name: str, words: int) -> str:
    return " ".join((CASES / name).read_text("utf-8").split()[:words])


async def test_scores_are_those_of_transformers(real_engine: VllmEngine) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(real_engine.settings.folder, dtype=torch.float32)
    tokenizer = real_engine._chat.tokenizer
    requests = [
        LoglikelihoodRequest(
            (Message("system", "You are a physician."), Message("user", opening(name, 70))),
            "The most likely diagnosis is ",
            LABELS,
        )
        for name in ("sudden-painful-toe.txt", "exertional-chest-pressure.txt")
    ]
    ours = await real_engine.loglikelihood(requests)
    for request, scores in zip(requests, ours, strict=True):
        talk = [{"role": message.role, "content": message.content} for message in request.messages]
        prompt = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        start = len(tokenizer(prompt + "The most likely diagnosis is").input_ids)
        for label, score in zip(LABELS, scores, strict=True):
            ids = [*tokenizer(prompt + request.answer_prefix + label).input_ids, tokenizer.eos_token_id]
            with torch.inference_mode():
                logits = model(torch.tensor([ids]), logits_to_keep=len(ids) - start + 1).logits[0, :-1]
            rows = torch.log_softmax(logits, dim=-1)
            theirs = float(rows.gather(1, torch.tensor(ids[start:]).unsqueeze(1)).sum())
            assert score.tokens == len(ids) - start
            assert score.logprob == pytest.approx(theirs, abs=1e-3), label


async def test_a_blank_at_the_end_of_the_prefix_changes_no_score(real_engine: VllmEngine) -> None:
    talk = weighing("A red toe.").messages
    ((apart,), (joined,)) = await real_engine.loglikelihood(
        [LoglikelihoodRequest(talk, "It is ", ("gout",)), LoglikelihoodRequest(talk, "It is", (" gout",))]
    )
    assert (apart.label, joined.label) == ("gout", " gout")
    assert apart.tokens == joined.tokens
    assert apart.logprob == pytest.approx(joined.logprob, abs=2e-4)


async def test_a_label_inside_a_token_is_refused_before_anything_is_computed(real_engine: VllmEngine) -> None:
    with prompts_of(real_engine) as seen, pytest.raises(CaseError, match="does not begin where a token begins"):
        await real_engine.loglikelihood(
            [weighing("A red toe.", "gout"), LoglikelihoodRequest(weighing("").messages, "It is hyper", ("tension",))]
        )
    assert seen == []


async def test_a_prompt_that_does_not_fit_keeps_the_others_from_being_computed(real_engine: VllmEngine) -> None:
    with prompts_of(real_engine) as seen:
        with pytest.raises(ContextLengthExceeded):
            await real_engine.generate([saying("one"), asking("Go on.", tokens=real_engine.settings.context)])
        with pytest.raises(ContextLengthExceeded):
            await real_engine.loglikelihood([weighing("Why?", "gout", "gout " * real_engine.settings.context)])
    assert seen == []


async def test_the_second_question_of_a_case_reads_the_first_ones_cache(real_engine: VllmEngine) -> None:
    case = opening("weeks-of-bloody-stools.txt", 150)
    await real_engine.forget()
    first, second = [
        (await real_engine.generate([asking(f"{case}\n\n{task}", ANSWER)]))[0] for task in ("Why?", "What now?")
    ]
    assert first.cached_tokens < 32 < 128 <= second.cached_tokens < second.prompt_tokens
    assert (second.cached_tokens % 32) == 0


async def test_what_goes_to_the_model_begins_with_one_bos(real_engine: VllmEngine) -> None:
    bos = real_engine._chat.tokenizer.bos_token_id
    with prompts_of(real_engine) as seen:
        await real_engine.generate([saying("one")])
        await real_engine.loglikelihood([weighing("A red toe.", "gout")])
    assert [(ids[0] == bos, ids[1] == bos) for ids, _ in seen] == [(True, False), (True, False)]


async def test_a_family_without_a_system_role_still_reads_the_system_text(real_engine: VllmEngine) -> None:
    plain = with_card(real_engine, chat=ChatQuirks(system_role=False))
    with prompts_of(real_engine) as seen:
        await plain.generate([saying("one")])
    text = real_engine._chat.tokenizer.decode(seen[0][0])
    assert "<|im_start|>user\nAnswer briefly.\n\nSay one.<|im_end|>" in text


async def test_thoughts_come_first_and_stay_out_of_the_answer(real_engine: VllmEngine) -> None:
    # The model has never learned to end its thoughts, but it does end its sentences.
    thinker = _thinker(real_engine, end=".")
    with prompts_of(thinker) as seen:
        (answer,) = await thinker.generate([_greedy("Why is the toe red?")])
    assert answer.thoughts
    assert "." not in answer.thoughts
    assert answer.thoughts not in answer.text
    assert accepts(ANSWER, answer.text)
    assert json.loads(answer.text)["answer"]
    (free, free_parameters), (bound, bound_parameters) = seen
    assert free_parameters.structured_outputs is None
    assert bound_parameters.structured_outputs.grammar == ANSWER
    assert bound[: len(free)] == free
    between = thinker._chat.tokenizer.decode(bound[len(free) :])
    assert between.strip("\n") == f"{answer.thoughts}\n."
    assert answer.prompt_tokens == len(free)
    assert answer.generated_tokens > len(thinker._chat.plain_ids(answer.text))


async def test_thoughts_that_reach_their_budget_are_closed(real_engine: VllmEngine) -> None:
    thinker = _thinker(real_engine, end="</think>")
    with prompts_of(thinker) as seen:
        (answer,) = await thinker.generate([_greedy("Tell me a long story of the sea and the ships on it.")])
    free, bound = (ids for ids, _ in seen)
    closing = thinker._chat.closing_ids()
    assert len(bound) == len(free) + 24 + len(closing)
    assert bound[-len(closing) :] == closing
    assert thinker._chat.tokenizer.decode(closing) == "\n</think>\n\n"
    assert accepts(ANSWER, answer.text)
    assert answer.finish_reason == "stop"
    assert "</think>" not in answer.thoughts


async def test_the_length_check_counts_the_thoughts(real_engine: VllmEngine) -> None:
    thinker = _thinker(real_engine, end="</think>")
    (size,) = await thinker.measure([saying("one")])
    (plain,) = await real_engine.measure([saying("one")])
    aside = 24 + len(thinker._chat.closing_ids())
    assert size.answer == plain.answer + aside
    assert size.prompt > plain.prompt  # the mark that begins the thoughts
    room = size.context - size.prompt - aside
    with pytest.raises(ContextLengthExceeded) as caught, prompts_of(thinker) as seen:
        await thinker.generate([asking("Say one.", tokens=room + 1)])
    assert caught.value.answer_tokens == room + 1 + aside
    assert seen == []


def _greedy(text: str) -> Request:
    return dataclasses.replace(asking(text, ANSWER), sampling=Sampling(0.0, max_tokens=48))


def _thinker(engine: VllmEngine, end: str) -> VllmEngine:
    return with_card(engine, thinking=Thinking(start="<think>", end=end, budget_tokens=24))


async def test_cancelled_requests_leave_the_engine(real_engine: VllmEngine) -> None:
    task = asyncio.ensure_future(
        real_engine.generate([asking(f"Story {number}.", "start: /[a-z ]{900}/\n", tokens=901) for number in range(4)])
    )
    while not real_engine._owner._waiting:
        assert not task.done()
        await asyncio.sleep(0.01)
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await real_engine.generate([saying("done")])
    assert real_engine._owner._waiting == {}


async def test_seeded_sampling_survives_prompts_that_together_exceed_a_step(real_engine: VllmEngine) -> None:
    words = opening("agitation-after-a-new-tablet.txt", 150)
    limit = real_engine.settings.engine_arguments()["max_num_batched_tokens"]
    requests = [asking(f"{number}: {words} {words} {words}", tokens=2, seed=number) for number in range(14)]
    assert limit < sum(size.prompt for size in await real_engine.measure(requests)) < 1.3 * limit
    answers = await real_engine.generate(requests)
    assert all(answer.generated_tokens >= 1 for answer in answers)


async def test_a_grammar_that_vllm_refuses_fails_its_case_alone_and_is_not_quoted(real_engine: VllmEngine) -> None:
    with pytest.raises(CaseError, match="vLLM refused a request") as caught:
        await real_engine.generate([asking("Say one.", 'start: NOWHERE "Mrs Example has gout"\n')])
    assert "Example" not in caught.value.message
    assert [answer.text for answer in await real_engine.generate([saying("one")])] == ["one"]
