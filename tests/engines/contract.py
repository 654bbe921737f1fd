"""What every engine owes its callers, written against the protocol alone. `test_contract.py` runs it on each engine.

A subclass says how an engine of one's own is opened and gives the shared one as the fixture `engine`.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ddx_local.assets import Assets
from ddx_local.engines.protocol import Engine
from ddx_local.errors import ContextLengthExceeded, EngineError
from ddx_local.flow import Ask
from ddx_local.grammar import accepts
from ddx_local.methods.baselines import DIFFERENTIAL
from ddx_local.request import Completion, LoglikelihoodRequest, Message, Request, Sampling

Opener = Callable[[], Awaitable[Engine]]

CASES = Path(__file__).resolve().parents[2] / "bench" / "cases"
LETTERS = "start: /[a-z ]{20,40}/\n"
LABELS = ("Gout", "Septic arthritis", "Pneumonia")


def messages(text: str) -> tuple[Message, ...]:
    return (Message("system", "Answer briefly."), Message("user", text))


def asking(text: str, grammar: str | None = None, *, seed: int = 0, tokens: int = 48) -> Request:
    return Request(messages(text), Sampling(0.7, 1.0, 0, tokens, seed), grammar, "contract")


def saying(word: str) -> Request:
    """A request with one possible answer."""
    return asking(f"Say {word}.", f'start: "{word}"\n')


def weighing(text: str, *labels: str) -> LoglikelihoodRequest:
    return LoglikelihoodRequest(messages(text), "The diagnosis is", tuple(f" {label}" for label in labels), "contract")


class EngineContract:
    async def test_answers_keep_the_order_of_the_requests(self, engine: Engine) -> None:
        words = ["a long answer that ends last of all of them", "b", "c and d", "e"]
        answers = await engine.generate([saying(word) for word in words])
        assert [answer.text for answer in answers] == words
        assert {answer.finish_reason for answer in answers} == {"stop"}

    async def test_each_answer_is_handed_over_once_and_before_the_batch_returns(self, engine: Engine) -> None:
        heard: list[tuple[int, Completion]] = []
        answers = await engine.generate(
            [saying("one and two and three"), saying("two")], lambda index, answer: heard.append((index, answer))
        )
        assert sorted(heard, key=lambda item: item[0]) == list(enumerate(answers))

    async def test_what_the_listener_raises_ends_the_batch(self, engine: Engine) -> None:
        def full_disk(index: int, answer: Completion) -> None:
            raise OSError(f"no space for answer {index} of {answer.generated_tokens} tokens")

        with pytest.raises(OSError, match="no space"):
            await engine.generate([saying("one"), saying("two")], full_disk)
        assert [answer.text for answer in await engine.generate([saying("three")])] == ["three"]

    async def test_the_seed_decides_the_text(self, engine: Engine) -> None:
        requests = [asking("Tell me of the sea.", LETTERS, seed=seed) for seed in (1, 2, 1)]
        first, other, again = [answer.text for answer in await engine.generate(requests)]
        assert first == again != other
        assert [answer.text for answer in await engine.generate(requests)] == [first, other, again]

    async def test_answers_obey_the_grammar(self, engine: Engine) -> None:
        assets = Assets()
        case = (CASES / "sudden-painful-toe.txt").read_text("utf-8")
        filled = assets.fill(Ask(DIFFERENTIAL, {"case": case, "k": "2"}, "physician", 0.7))
        assert filled.grammar is not None
        requests = [
            Request(filled.messages, Sampling(0.7, 1.0, 0, filled.longest, seed), filled.grammar) for seed in (1, 2)
        ]
        for answer in await engine.generate(requests):
            assert answer.finish_reason == "stop"
            assert accepts(filled.grammar, answer.text)
            entries = json.loads(answer.text)["differential"]
            assert 1 <= len(entries) <= 2
            assert all(quote in case for entry in entries for quote in entry["evidence"])

    async def test_an_answer_at_its_token_limit_says_so(self, engine: Engine) -> None:
        (answer,) = await engine.generate([asking("Say it.", 'start: "' + "many words " * 10 + '"\n', tokens=5)])
        assert answer.finish_reason == "length"

    async def test_what_does_not_fit_is_refused_with_the_numbers_before_anything_is_computed(
        self, engine: Engine
    ) -> None:
        heard: list[int] = []
        (size,) = await engine.measure([saying("one")])
        too_long = asking("Say one.", tokens=size.context - size.prompt + 1)
        with pytest.raises(ContextLengthExceeded) as caught:
            await engine.generate([saying("one"), too_long], lambda index, _: heard.append(index))
        error = caught.value
        (whole,) = await engine.measure([too_long])
        assert (error.prompt_tokens, error.answer_tokens, error.context_tokens) == (
            whole.prompt,
            whole.answer,
            whole.context,
        )
        assert whole.prompt + whole.answer == whole.context + 1
        assert not whole.fits
        assert heard == []

    async def test_a_label_that_does_not_fit_is_refused_with_the_numbers(self, engine: Engine) -> None:
        (size,) = await engine.measure([saying("one")])
        with pytest.raises(ContextLengthExceeded) as caught:
            await engine.loglikelihood([weighing("Why?", "Gout", "gout " * size.context)])
        assert caught.value.answer_tokens > caught.value.context_tokens == size.context
        assert "contract" in caught.value.message

    async def test_nothing_asked_is_nothing_answered(self, engine: Engine) -> None:
        assert list(await engine.generate([])) == []
        assert list(await engine.measure([])) == []
        assert list(await engine.loglikelihood([])) == []
        assert list(await engine.loglikelihood([weighing("Why?")])) == [()]

    async def test_a_cancelled_batch_ends_at_once_and_the_engine_goes_on(self, engine: Engine) -> None:
        requests = [asking(f"Story {number}.", "start: /[a-z ]{400}/\n", tokens=401) for number in range(12)]
        task = asyncio.ensure_future(engine.generate(requests))
        await asyncio.sleep(0.03)
        assert not task.done()
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - began < 1
        assert [answer.text for answer in await engine.generate([saying("still here")])] == ["still here"]

    async def test_many_callers_at_once_each_get_their_own(self, engine: Engine) -> None:
        words = [f"number {number}" for number in range(20)]
        batches = await asyncio.gather(*(engine.generate([saying(word), saying(f"{word} b")]) for word in words))
        assert [[answer.text for answer in batch] for batch in batches] == [[word, f"{word} b"] for word in words]

    async def test_what_is_measured_is_what_is_asked(self, engine: Engine) -> None:
        requests = [saying("one"), asking("What is the cause of a painful toe?", LETTERS, tokens=41)]
        answers = await engine.generate(requests)
        sizes = await engine.measure(requests)
        assert [size.prompt for size in sizes] == [answer.prompt_tokens for answer in answers]
        assert all(0 < answer.generated_tokens <= size.answer for answer, size in zip(answers, sizes, strict=True))

    async def test_scores_keep_the_order_of_requests_and_labels(self, engine: Engine) -> None:
        forth = await engine.loglikelihood([weighing("A red toe.", *LABELS), weighing("A cough.", *LABELS[:1])])
        back = await engine.loglikelihood([weighing("A cough.", *LABELS[:1]), weighing("A red toe.", *LABELS[::-1])])
        assert [[score.label for score in scores] for scores in forth] == [[f" {name}" for name in LABELS], [" Gout"]]
        assert [score.logprob for score in forth[0]] == pytest.approx(
            [score.logprob for score in back[1]][::-1], abs=2e-4
        )
        assert len({round(score.logprob, 3) for score in forth[0]}) == len(LABELS)

    async def test_a_score_sums_over_the_labels_tokens_and_the_end_token(self, engine: Engine) -> None:
        ((short, long),) = await engine.loglikelihood([weighing("A red toe.", "a", "a severe attack of acute gout")])
        assert 2 <= short.tokens < long.tokens
        assert long.logprob < short.logprob < 0

    async def test_the_tokens_of_a_score_are_told_beforehand(self, engine: Engine) -> None:
        requests = [weighing("A red toe.", *LABELS), weighing("A cough.", *LABELS[:2])]
        told, scores = await engine.tokens(requests), await engine.loglikelihood(requests)
        assert [[len(ids) for ids in labels] for _, labels in told] == [
            [score.tokens for score in found] for found in scores
        ]
        (toe, of_toe), (cough, of_cough) = told
        assert toe != cough
        assert of_toe[:2] == of_cough
        assert len(set(of_toe)) == len(LABELS)
        assert len({ids[-1] for ids in of_toe}) == 1  # the end token

    async def test_scores_among_grammar_requests_are_those_alone(self, engine: Engine) -> None:
        alone = await engine.loglikelihood([weighing("A red toe.", *LABELS)])
        story = [asking(f"Tell me of the sea {number}.", LETTERS, seed=number) for number in range(6)]
        _, mixed = await asyncio.gather(engine.generate(story), engine.loglikelihood([weighing("A red toe.", *LABELS)]))
        assert [score.logprob for score in mixed[0]] == pytest.approx([score.logprob for score in alone[0]], abs=2e-4)

    async def test_a_closed_engine_answers_nobody_and_lets_nobody_wait(self, another: Opener) -> None:
        engine = await another()
        waiting = asyncio.ensure_future(engine.generate([asking("A story.", "start: /[a-z ]{400}/\n", tokens=401)]))
        await asyncio.sleep(0.03)
        await engine.aclose()
        with pytest.raises(EngineError, match="closed"):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(EngineError, match="closed"):
            await asyncio.wait_for(engine.generate([saying("one")]), 10)
        with pytest.raises(EngineError, match="closed"):
            await asyncio.wait_for(engine.loglikelihood([weighing("A red toe.", *LABELS)]), 10)
        await asyncio.wait_for(engine.aclose(), 10)

    async def test_the_fingerprint_names_model_and_engine(self, engine: Engine) -> None:
        print_ = engine.fingerprint
        assert print_["model"]
        assert print_["engine"]
        assert print_ == engine.fingerprint
        assert all(isinstance(value, str) for value in print_.values())
