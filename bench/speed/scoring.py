"""Label probabilities: ours against vLLM's default prompt_logprobs, and against transformers."""

import time
from collections.abc import Coroutine, Sequence
from typing import Any

from bench.speed.shared import forget, median, opened, run, vignettes
from ddx_local import models
from ddx_local.case import Case
from ddx_local.request import LoglikelihoodRequest, Message

PREFIX = "The diagnosis is"
LABELS = (
    " aortic stenosis",
    " stable angina pectoris",
    " iron deficiency anemia",
    " pulmonary embolism",
    " gout",
    " septic arthritis",
    " myocarditis",
    " aortic dissection",
    " hypertrophic cardiomyopathy",
    " gastrointestinal bleeding",
    " heart failure",
    " pneumonia",
)


def requests() -> list[LoglikelihoodRequest]:
    """12 labels for each of 6 variants of a text of two cases: 72 labels. A variant lacks a sentence; they lie all over it."""
    text = "\n\n".join(case.text for case in vignettes(2))
    sentences = text.split(". ")
    spread = [len(sentences) * part // 6 for part in range(1, 6)]
    texts = [text] + [". ".join(sentences[:place] + sentences[place + 1 :]) for place in spread]
    return [
        LoglikelihoodRequest(
            (Message("system", "You are a physician."), Message("user", Case(str(number), text).text)),
            PREFIX,
            LABELS,
            "speed",
        )
        for number, text in enumerate(texts)
    ]


def ratio() -> dict[str, float]:
    """Seconds of vLLM's default prompt_logprobs / ours, 72 labels, from a cold cache; both warm, ours the median of 3."""
    some = requests()[:1]
    run(opened().engine.loglikelihood(some))
    run(_by_prompt_logprobs(some))

    async def ours() -> None:
        await opened().engine.loglikelihood(requests())

    taken = median([_timed(ours()) for _ in range(3)])
    return {"loglikelihood_ratio": _timed(_by_prompt_logprobs(requests())) / taken}


def _timed(work: Coroutine[Any, Any, None]) -> float:
    forget()
    began = time.perf_counter()
    run(work)
    return time.perf_counter() - began


async def _by_prompt_logprobs(asked: Sequence[LoglikelihoodRequest]) -> None:
    from vllm import SamplingParams

    from ddx_local.engines.tasks import all_or_first_error

    engine: Any = opened().engine
    work = []
    for request in asked:
        prompt = engine._chat.ids(request.messages, answer_prefix=request.answer_prefix)
        for label in request.labels:
            ids = [*prompt, *engine._chat.plain_ids(label), engine._chat.end_id]
            work.append(engine._run(ids, SamplingParams(max_tokens=1, prompt_logprobs=0, detokenize=False)))
    await all_or_first_error(work)


def max_error() -> dict[str, float]:
    """Largest difference from transformers in float32, over the 72 labels, in nats."""
    import torch
    from transformers import AutoModelForCausalLM

    scores = run(opened().engine.loglikelihood(requests()))
    engine: Any = opened().engine
    folder = str(models.snapshot("smollm2-135m"))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    worst = 0.0
    for request, row in zip(requests(), scores, strict=True):
        prompt = engine._chat.ids(request.messages, answer_prefix=request.answer_prefix)
        for label, score in zip(request.labels, row, strict=True):
            forced = [*engine._chat.plain_ids(label), engine._chat.end_id]
            with torch.inference_mode():
                logits = model(torch.tensor([[*prompt, *forced]])).logits[0]
            rows = torch.log_softmax(logits[len(prompt) - 1 : -1].double(), dim=-1)
            expected = sum(float(rows[place, token]) for place, token in enumerate(forced))
            worst = max(worst, abs(expected - score.logprob))
    return {"loglikelihood_max_error_nats": worst}
