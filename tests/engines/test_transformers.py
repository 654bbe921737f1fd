"""The transformers engine beyond the contract: exact scores, neighbours that do not matter, prefixes computed once."""

import asyncio
import dataclasses
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ddx_local.assets import Assets
from ddx_local.engines.transformers import TransformersEngine, TransformersSettings
from ddx_local.engines.vllm import VllmEngine, VllmSettings
from ddx_local.errors import CaseError, EngineError, EngineStartError
from ddx_local.flow import Ask
from ddx_local.grammar import accepts
from ddx_local.methods.baselines import DIFFERENTIAL
from ddx_local.request import LoglikelihoodRequest, Message, Request, Sampling
from tests.engines.contract import CASES, LETTERS, asking, saying, weighing
from tests.engines.tiny_models import FAMILIES

torch = pytest.importorskip("torch")

LABELS = (
    "gout",
    "septic arthritis of the first metatarsophalangeal joint",
    "Sjögren syndrome",
    "COVID-19",
    "heart failure with preserved ejection fraction (HFpEF)",
    "痛风",
)

Tiny = Callable[[str], TransformersEngine]


@pytest.fixture(params=FAMILIES)
def engine(request: pytest.FixtureRequest, tiny_engine: Tiny) -> TransformersEngine:
    return tiny_engine(request.param)


@pytest.fixture
def llama(tiny_engine: Tiny) -> TransformersEngine:
    return tiny_engine("llama")


def opening(name: str, words: int) -> str:
    return " ".join((CASES / name).read_text("utf-8").split()[:words])


def free(text: str, tokens: int = 24, **sampling: Any) -> Request:
    return Request((Message("user", text),), Sampling(max_tokens=tokens, **sampling))


async def texts(engine: TransformersEngine, requests: list[Request]) -> list[str]:
    return [answer.text for answer in await engine.generate(requests)]


class Passes:
    """What went through a model meanwhile."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.rows: list[int] = []

    def note(self, tails: Any) -> None:
        self.rows.append(len(tails))
        self.tokens.append(sum(map(len, tails)))


@contextmanager
def passes_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    from ddx_local.engines.transformers_rows import Network

    seen, forward = Passes(), Network._forward

    def noting(self: Any, rows: Any, tails: Any, logits: int) -> Any:
        seen.note(tails)
        return forward(self, rows, tails, logits)

    with monkeypatch.context() as patch:
        patch.setattr(Network, "_forward", noting)
        yield seen


@pytest.fixture(scope="session")
def plain() -> Callable[[TransformersEngine], Any]:
    """The same weights in transformers alone."""
    from functools import cache

    from transformers import AutoModelForCausalLM

    load = cache(lambda folder: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval())
    return lambda engine: load(str(engine.settings.folder))


def score_alone(model: Any, prompt: tuple[int, ...], label: tuple[int, ...]) -> float:
    """One label in one pass without a cache, as the textbook has it."""
    ids = torch.tensor([[*prompt, *label]])
    with torch.inference_mode():
        rows = torch.log_softmax(model(ids).logits[0, len(prompt) - 1 : -1].double(), dim=-1)
    return float(rows.gather(1, torch.tensor(label)[:, None]).sum())


async def test_scores_are_those_of_plain_transformers_one_by_one(
    engine: TransformersEngine, plain: Callable[[TransformersEngine], Any]
) -> None:
    await engine.forget()
    prompts = [opening("sudden-painful-toe.txt", words) for words in (90, 91, 20)] + ["A cough.", "A cough."]
    requests = [
        LoglikelihoodRequest((Message("system", "Be brief."), Message("user", text)), "The diagnosis is ", LABELS)
        for text in prompts
    ]
    told = await engine.tokens(requests)
    for _ in range(2):  # with nothing kept, and from what the first time left
        for (prompt, labels), scores in zip(told, await engine.loglikelihood(requests), strict=True):
            for label, score in zip(labels, scores, strict=True):
                assert label[-1] == engine._chat.end_id
                assert score.tokens == len(label)
                assert score.logprob == pytest.approx(score_alone(plain(engine), prompt, label), abs=1e-4)
                assert score.noise == 1e-3


async def test_a_seeds_text_is_the_same_alone_and_among_others(engine: TransformersEngine) -> None:
    case = opening("exertional-chest-pressure.txt", 120)
    requests = [
        free("Tell me of the sea.", temperature=0.7, seed=1),
        free(f"{case} Why?", 60, temperature=1.0, seed=2),
        free(f"{case} What now, and what later?", 9, temperature=1.0, top_k=5, seed=3),
        asking("Tell me of the sea.", LETTERS, seed=4),
        free("Go on.", 40, temperature=0.9, top_p=0.8, seed=5),
        free("Go on.", 40, temperature=0.0),
    ]
    await engine.forget()
    together = await texts(engine, requests)
    assert len(set(together)) == len(requests)
    assert [(await texts(engine, [request]))[0] for request in requests] == together
    assert await texts(engine, requests[::-1]) == together[::-1]


async def test_the_most_probable_text_is_that_of_plain_transformers(
    engine: TransformersEngine, plain: Callable[[TransformersEngine], Any]
) -> None:
    # Longer than the sliding window, with a neighbour that is shorter and one that is longer.
    request = free(opening("weeks-of-bloody-stools.txt", 60), 24, temperature=0.0)
    others = [free("Why?", 30, temperature=0.5), free(opening("weeks-of-bloody-stools.txt", 80), 9, temperature=0.5)]
    (said, *_) = await engine.generate([request, *others])
    ids = engine._chat.ids(request.messages)
    with torch.inference_mode():
        theirs = plain(engine).generate(
            torch.tensor([ids]), max_new_tokens=24, do_sample=False, attention_mask=torch.ones(1, len(ids))
        )
    assert said.text == engine._chat.tokenizer.decode(theirs[0, len(ids) :], skip_special_tokens=True)


async def test_what_prompts_share_is_computed_once_and_kept(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = opening("weeks-of-bloody-stools.txt", 150)
    await engine.forget()
    requests = [free(f"{case}\n\n{task}", 1) for task in ("Why?", "What now?", "Who is to see this patient first?")]
    shared = len(engine._chat.ids((Message("user", case),))) - 20
    with passes_of(monkeypatch) as seen:
        first = await engine.generate(requests)
    prompts = sum(answer.prompt_tokens for answer in first)
    cached = sum(answer.cached_tokens for answer in first)
    assert cached > 2 * shared
    assert sum(seen.tokens) == prompts - cached
    with passes_of(monkeypatch) as seen:
        (again,) = await engine.generate([free(f"{case}\n\nAnd then?", 1)])
    assert again.cached_tokens > shared
    assert sum(seen.tokens) == again.prompt_tokens - again.cached_tokens
    await engine.forget()
    (cold,) = await engine.generate([free(f"{case}\n\nAnd then?", 1)])
    assert cold.cached_tokens == 0
    assert cold.text == again.text


async def test_many_samples_of_one_question_compute_its_prompt_once(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await llama.forget()
    text = opening("thirst-vomiting-and-deep-breathing.txt", 100)
    requests = [free(text, 2, temperature=1.0, seed=seed) for seed in range(20)]
    with passes_of(monkeypatch) as seen:
        answers = await llama.generate(requests)
    assert len({answer.text for answer in answers}) > 10
    assert seen.tokens[0] == answers[0].prompt_tokens - 1
    assert max(seen.tokens[1:]) <= 20


async def test_labels_of_several_prompts_are_scored_in_one_pass(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [weighing(f"A red toe, {number}.", *LABELS) for number in range(4)]
    with passes_of(monkeypatch) as seen:
        await llama.loglikelihood(requests)
    assert 24 in seen.rows
    assert len(seen.rows) <= 4


async def test_a_request_joins_the_answers_that_are_being_given(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    async def ask(request: Request) -> str:
        (text,) = await texts(llama, [request])
        heard.append(text)
        return text

    story = free("A story.", 300, temperature=1.0, seed=3)
    alone = await ask(story)
    with passes_of(monkeypatch) as seen:
        long = asyncio.ensure_future(ask(story))
        while len(seen.rows) < 9:
            await asyncio.sleep(0.001)
        await ask(saying("one"))
        assert await long == alone
    assert heard == [alone, "one", alone]
    assert 2 in seen.rows


async def test_no_more_answers_are_computed_at_once_than_was_set(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await TransformersEngine.open(dataclasses.replace(llama.settings, max_sequences=3))
    words = [f"number {number}" for number in range(8)]
    with passes_of(monkeypatch) as seen:
        assert await texts(engine, [saying(word) for word in words]) == words
    await engine.aclose()
    assert max(seen.rows) == 3


async def test_answers_wait_where_their_keys_and_values_would_not_fit(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (size,) = await llama.measure([saying("number 1")])
    token = 2 * 2 * 32 * 4  # two layers, keys and values, 32 float32 numbers each
    gib = 2.5 * (size.prompt + size.answer) * token / 2**30
    engine = await TransformersEngine.open(dataclasses.replace(llama.settings, kv_cache_gib=gib))
    words = [f"number {number}" for number in range(5)]
    with passes_of(monkeypatch) as seen:
        assert await texts(engine, [saying(word) for word in words]) == words
        scores = await engine.loglikelihood([weighing("A red toe.", *LABELS)])
    await engine.aclose()
    assert max(seen.rows) == 2
    assert [score.logprob for score in scores[0]] == pytest.approx(
        [score.logprob for score in (await llama.loglikelihood([weighing("A red toe.", *LABELS)]))[0]], abs=1e-4
    )


async def test_cancelled_answers_leave_the_batch_before_the_next_token(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with passes_of(monkeypatch) as seen:
        gone = asyncio.ensure_future(
            llama.generate([free(f"Story {number}.", 2000, temperature=1.0, seed=number) for number in range(4)])
        )
        while len(seen.rows) < 4:
            await asyncio.sleep(0.001)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        before = len(seen.rows)
        await llama.generate([saying("one")])
    assert max(seen.rows[before + 1 :]) == 1
    assert llama._owner._waiting == {}


async def test_a_grammar_that_is_refused_fails_its_request_alone_and_is_not_quoted(llama: TransformersEngine) -> None:
    with pytest.raises(CaseError, match="refused a grammar") as caught:
        await llama.generate([asking("Say one.", 'start: NOWHERE "Mrs Example has gout"\n')])
    assert "Example" not in str(caught.value.__dict__)
    assert await texts(llama, [saying("one")]) == ["one"]


async def test_an_answer_at_a_dead_end_is_given_as_it_is(llama: TransformersEngine) -> None:
    grammar = 'start: "ab" SPAN\nSPAN: SUB & /[a-z]{9}/\nSUB: %regex {"substring_chunks": ["xyz"]}\n'
    (answer,) = await llama.generate([asking("Say it.", grammar)])
    assert answer.finish_reason == "stop"
    assert not accepts(grammar, answer.text)


async def test_an_engine_that_dies_answers_all_who_wait_and_all_who_come_later(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ddx_local.engines.transformers_rows import Network

    engine = await TransformersEngine.open(llama.settings)

    def failing(*_: Any) -> Any:
        raise RuntimeError("a kernel failed") from ValueError("root\ncause")

    monkeypatch.setattr(Network, "_forward", failing)
    calls = [engine.generate([free("A story."), free("Another.")]) for _ in range(3)]
    weighed = engine.loglikelihood([weighing("Why?", *LABELS)])
    results = await asyncio.wait_for(asyncio.gather(*calls, weighed, return_exceptions=True), 30)
    for result in results:
        assert isinstance(result, EngineError)
        assert result.message == "the engine died: ValueError: root cause"
    for late in (engine.generate([saying("one")]), engine.loglikelihood([weighing("Why?", "gout")]), engine.forget()):
        with pytest.raises(EngineError, match="the engine died"):
            await asyncio.wait_for(late, 10)
    await asyncio.wait_for(engine.aclose(), 10)


async def test_giving_up_while_the_engine_loads_lets_it_end(llama: TransformersEngine) -> None:
    before = set(threading.enumerate())
    task = asyncio.ensure_future(TransformersEngine.open(llama.settings))
    while not (new := [item for item in set(threading.enumerate()) - before if item.name == "transformers-owner"]):
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(new[0].join, 30)
    assert not new[0].is_alive()


async def test_thoughts_come_first_and_stay_out_of_the_answer(tiny_engine: Tiny) -> None:
    settings = tiny_engine("qwen3").settings
    thinking = settings.card.thinking
    assert thinking is not None
    # Random weights never end their thoughts, but they do say an "e".
    for end, reached in (("e", True), ("</think>", False)):
        card = dataclasses.replace(settings.card, thinking=dataclasses.replace(thinking, end=end))
        engine = await TransformersEngine.open(dataclasses.replace(settings, card=card, thinking=True))
        (answer,) = await engine.generate([asking("Why?", LETTERS)])
        (size,) = await engine.measure([asking("Why?", LETTERS)])
        await engine.aclose()
        assert answer.thoughts
        assert end not in answer.thoughts
        assert accepts(LETTERS, answer.text)
        assert (answer.generated_tokens < thinking.budget_tokens) == reached
        assert size.answer > asking("").sampling.max_tokens + thinking.budget_tokens


async def test_scores_of_rounded_numbers_say_so(llama: TransformersEngine) -> None:
    engine = await TransformersEngine.open(dataclasses.replace(llama.settings, dtype="bfloat16"))
    ((rounded,),) = await engine.loglikelihood([weighing("A red toe.", "gout")])
    await engine.aclose()
    ((exact,),) = await llama.loglikelihood([weighing("A red toe.", "gout")])
    assert rounded.noise == 0.3
    assert 0 < abs(rounded.logprob - exact.logprob) < 1
    assert engine.fingerprint["dtype"] == "bfloat16"
    assert engine.fingerprint != llama.fingerprint


async def fails_to_open(settings: TransformersSettings, **changes: Any) -> EngineStartError:
    with pytest.raises(EngineStartError) as caught:
        await TransformersEngine.open(dataclasses.replace(settings, **changes))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


async def test_quantisation_without_its_package_is_an_error_before_the_weights_are_read(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)  # as if it were not installed
    error = await fails_to_open(llama.settings, quantization="bitsandbytes-4bit")
    assert error.message.startswith("--quantization bitsandbytes-4bit: bitsandbytes cannot be used here: ")
    assert "pip install bitsandbytes" in error.hint


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
async def test_a_gpu_that_is_not_there_is_an_error(llama: TransformersEngine) -> None:
    error = await fails_to_open(llama.settings, device="cuda")
    assert "sees no GPU" in error.message


async def test_weights_that_do_not_load_are_one_line(llama: TransformersEngine, tmp_path: Any) -> None:
    for file in llama.settings.folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    error = await fails_to_open(llama.settings, folder=tmp_path)
    assert error.message.startswith("transformers could not load `tiny-llama` (cpu): ")


async def test_layers_that_do_not_remember_by_token_are_refused(llama: TransformersEngine, tmp_path: Any) -> None:
    for file in llama.settings.folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config | {"layer_types": ["full_attention", "chunked_attention"]}))
    error = await fails_to_open(llama.settings, folder=tmp_path)
    assert "chunked_attention" in error.message
    assert "--engine vllm" in error.hint


@pytest.mark.engine
async def test_five_cases_are_answered_in_one_batch_under_their_grammars(
    real_transformers: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets, requests, cases = Assets(), [], sorted(CASES.glob("*.txt"))[:5]
    for path in cases:
        filled = assets.fill(Ask(DIFFERENTIAL, {"case": path.read_text("utf-8"), "k": "1"}, "physician", 0.7))
        requests.append(Request(filled.messages, Sampling(0.7, max_tokens=filled.longest, seed=7), filled.grammar))
    with passes_of(monkeypatch) as seen:
        answers = await real_transformers.generate(requests)
    assert 5 in seen.rows
    for path, request, answer in zip(cases, requests, answers, strict=True):
        assert answer.finish_reason == "stop"
        assert request.grammar is not None
        assert accepts(request.grammar, answer.text)
        (entry,) = json.loads(answer.text)["differential"]
        assert all(quote in path.read_text("utf-8") for quote in entry["evidence"])


@pytest.mark.engine
@pytest.mark.asyncio(loop_scope="session")
async def test_scores_are_those_of_vllm(real_transformers: TransformersEngine, real_engine: VllmEngine) -> None:
    case = opening("sudden-painful-toe.txt", 70)
    requests = [weighing(f"{case} {question}", *LABELS) for question in ("Why?", "What is it?")]
    ours, theirs = await real_transformers.loglikelihood(requests), await real_engine.loglikelihood(requests)
    assert await real_transformers.tokens(requests) == await real_engine.tokens(requests)
    for mine, other in zip(ours, theirs, strict=True):
        assert [score.tokens for score in mine] == [score.tokens for score in other]
        assert [score.logprob for score in mine] == pytest.approx([score.logprob for score in other], abs=1e-3)


@pytest.mark.engine
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("family", FAMILIES)
async def test_made_checkpoints_are_the_same_models_in_vllm(family: str, tiny_engine: Tiny) -> None:
    ours = tiny_engine(family)
    settings = ours.settings
    theirs = await VllmEngine.open(
        VllmSettings(folder=settings.folder, card=settings.card, weights_sha256="", device="cpu", kv_cache_gib=0.25)
    )
    try:
        # Longer than Gemma's window, so that both must keep to it.
        requests = [weighing(opening("sudden-painful-toe.txt", 40), *LABELS), weighing("A cough.", *LABELS)]
        assert await theirs.tokens(requests) == await ours.tokens(requests)
        for mine, other in zip(await ours.loglikelihood(requests), await theirs.loglikelihood(requests), strict=True):
            assert [score.logprob for score in mine] == pytest.approx([score.logprob for score in other], abs=1e-3)
        assert [answer.text for answer in await theirs.generate([saying("one and two")])] == ["one and two"]
    finally:
        await theirs.aclose()
