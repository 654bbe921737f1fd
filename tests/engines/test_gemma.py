"""Real weights of the Gemma class: its sliding-window layers, with grammars, the prefix cache and exact scores."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ddx_local import models
from ddx_local.assets import Assets
from ddx_local.engines.vllm import VllmEngine, VllmSettings
from ddx_local.flow import Ask
from ddx_local.grammar import accepts
from ddx_local.launch import resolve_device
from ddx_local.methods.baselines import DIFFERENTIAL
from ddx_local.request import LoglikelihoodRequest, Message, Request, Sampling
from tests.engines.contract import CASES

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

NAME = "gemma3-270m"
WINDOW = 512
CASE = (CASES / "sudden-painful-toe.txt").read_text("utf-8")
LABELS = ("gout", "septic arthritis", "pulmonary embolism")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gemma() -> AsyncIterator[VllmEngine]:
    """An engine of its own, with little memory, beside the session's."""
    if NAME not in models.installed():
        pytest.skip(f"{NAME} is not in {models.store_dir()}; run `ddx-local models pull {NAME} --accept-licence`")
    folder = models.snapshot(NAME)
    engine = await VllmEngine.open(
        VllmSettings(
            folder=folder,
            card=models.card(NAME),
            weights_sha256=models.weights_sha256(folder),
            device=resolve_device("auto"),
            max_model_len=4096,
            kv_cache_gib=0.5,
            max_sequences=8,
        )
    )
    yield engine
    await engine.aclose()


async def test_an_answer_of_gemma_obeys_the_grammar_and_a_second_one_reads_the_cache(gemma: VllmEngine) -> None:
    filled = Assets().fill(Ask(DIFFERENTIAL, {"case": CASE, "k": "2"}, "physician", 0.7))
    assert filled.grammar is not None
    sampling = [Sampling(0.7, 1.0, 0, filled.longest, seed) for seed in (1, 2)]
    answers = [
        (await gemma.generate([Request(filled.messages, chosen, filled.grammar, "gemma")]))[0] for chosen in sampling
    ]
    for answer in answers:
        assert answer.finish_reason == "stop"
        assert accepts(filled.grammar, answer.text)
        entries = json.loads(answer.text)["differential"]
        assert all(quote in CASE for entry in entries for quote in entry["evidence"])
    assert answers[0].cached_tokens < answers[1].cached_tokens < answers[1].prompt_tokens


async def test_scores_beyond_the_window_are_those_of_transformers_cached_or_not(gemma: VllmEngine) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    request = LoglikelihoodRequest(
        (Message("system", "You are a physician."), Message("user", f"{CASE}\n\n{CASE}\n\n{CASE}")),
        "The most likely diagnosis is ",
        LABELS,
    )
    ((prompt, labels),) = await gemma.tokens([request])
    assert len(prompt) > WINDOW
    assert prompt[0] == 2 != prompt[1]
    await gemma.forget()
    (fresh,) = await gemma.loglikelihood([request])
    (again,) = await gemma.loglikelihood([request])
    model = AutoModelForCausalLM.from_pretrained(gemma.settings.folder, dtype=torch.float32)
    for ids, first, second in zip(labels, fresh, again, strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *ids]]), logits_to_keep=len(ids) + 1).logits[0, :-1]
        rows = torch.log_softmax(logits, dim=-1)
        theirs = float(rows.gather(1, torch.tensor(ids).unsqueeze(1)).sum())
        assert first.logprob == pytest.approx(theirs, abs=1e-3), first.label
        assert second.logprob == pytest.approx(theirs, abs=1e-3), second.label
