"""The thread that owns a vLLM engine. It knows requests as token ids and sampling parameters, not what they are for."""

import gc
import os
import threading
from functools import partial
from typing import Any

from ddx_local.engines.causes import root_cause
from ddx_local.engines.owner import OwnerThread
from ddx_local.engines.tasks import Deliver
from ddx_local.engines.vllm_settings import VllmSettings
from ddx_local.errors import CaseError, EngineStartError, nearest
from ddx_local.model_memory import refuse_hopeless, shortage

_ONE_AT_A_TIME = threading.Lock()
"""Engines are built and torn down one at a time: vLLM keeps process groups and caches for the whole process."""


class Owner(OwnerThread[Any]):
    """All of vLLM runs in this thread."""

    def __init__(self, settings: VllmSettings) -> None:
        super().__init__("vllm-owner")
        self.holds_engine = False
        self._settings = settings

    def add(self, name: str, ids: list[int], parameters: Any, deliver: Deliver) -> None:
        """Ask the engine for a completion of token ids."""
        self.put(name, partial(self._admit, name, ids, parameters), deliver)

    def forget(self, name: str, deliver: Deliver) -> None:
        """Empty the prefix cache."""
        self.put(name, partial(self._forget, name), deliver)

    def abort(self, name: str) -> None:
        self._inbox.put(partial(self._abort, name))

    def build(self) -> Any:
        with _ONE_AT_A_TIME:
            engine = _build(self._settings)
            self.holds_engine = True
            return engine

    def work(self, engine: Any) -> None:
        while self.take(engine, idle=not engine.has_unfinished_requests()):
            if engine.has_unfinished_requests():
                for output in engine.step():
                    if output.finished:
                        self.deliver(_plain(output.request_id), output)

    def start_error(self, error: BaseException) -> EngineStartError:
        return start_error(error, self._settings)

    def tear_down(self, engine: Any) -> None:
        with _ONE_AT_A_TIME:
            self.holds_engine = False
            others = any(isinstance(thread, Owner) and thread.holds_engine for thread in threading.enumerate())
            _shut_down(engine, others=others)

    def _admit(self, name: str, ids: list[int], parameters: Any, engine: Any) -> None:
        try:
            engine.add_request(name, {"prompt_token_ids": ids}, parameters)
        except Exception as error:
            # vLLM's own words may quote the grammar, which holds the words of the case.
            refused = CaseError(f"vLLM refused a request ({type(error).__name__})", "Please report this.")
            self.deliver(name, refused)

    def _abort(self, name: str, engine: Any) -> None:
        if self._waiting.pop(name, None):
            engine.abort_request([name])

    def _forget(self, name: str, engine: Any) -> None:
        engine.reset_prefix_cache()
        self.deliver(name, None)


def _plain(request_id: str) -> str:
    # vLLM may append a random suffix to an id that it was given.
    return request_id.split("-")[0]


def _build(settings: VllmSettings) -> Any:
    prepare(settings)
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    from ddx_local.engines.vllm_forced import ForcedDecoding

    arguments = EngineArgs(**settings.engine_arguments(), logits_processors=[ForcedDecoding])
    return LLMEngine.from_engine_args(arguments)


def prepare(settings: VllmSettings) -> None:
    """Set this process's environment for vLLM, before its first import."""
    refuse_hopeless(settings)
    if settings.device == "cpu":
        # vLLM would keep a core free for its own front end, which in one process is this very thread.
        os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
        # vLLM would take this, in whole GiB, for the size that it is given as an argument.
        os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)
    # Standard output is for results.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    # Forced decoding is a logits processor, which only the first model runner calls.
    os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    _quieten()


def _quieten() -> None:
    """Keep what the libraries say about themselves away from the user's terminal; errors still come through."""
    import logging
    import warnings

    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\..*")
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)


def _shut_down(engine: Any, *, others: bool) -> None:
    """Free what the engine holds, and with the last one of the process what vLLM keeps for the process."""
    if not others:
        engine.engine_core.shutdown()
        return
    # The same without its last step, which destroys the process groups that the others still use.
    engine.engine_core._finalizer.detach()
    core = engine.engine_core.engine_core
    core.structured_output_manager.clear_backend()
    core.model_executor.shutdown()
    core.scheduler.shutdown()
    gc.unfreeze()
    gc.collect()
    import torch

    if torch.accelerator.is_available():
        torch.accelerator.empty_cache()


def start_error(error: BaseException, settings: VllmSettings) -> EngineStartError:
    """What kept the engine from starting, in one line, and what to do about it."""
    if isinstance(error, EngineStartError):
        return error
    cause = root_cause(error)
    hint = None
    if isinstance(error, ImportError):
        hint = "Install the engine: `pip install ddx-local[cpu]` or `ddx-local[gpu]` (scripts/setup does it)."
    elif settings.quantization is not None and "Unknown quantization method" in cause:
        from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS

        cause = f"--quantization {settings.quantization}: {nearest(settings.quantization, QUANTIZATION_METHODS)}"
        hint = "Leave --quantization out for weights that are quantised already: they say so themselves."
    elif settings.quantization is not None and ("quantization" in cause or settings.quantization in cause):
        hint = f"Leave --quantization out, or name one that `{settings.card.name}` comes in."
    elif "dtype" in cause:
        hint = "Leave --dtype out, or use float32, bfloat16 or float16."
    elif "memory" in cause.lower() or "bad_alloc" in cause:
        hint = (
            f"Give the engine less: a shorter context (--max-model-len, now {settings.context}), a smaller KV cache "
            f"(--kv-cache-gib, now {settings.kv_cache_gib}), or a smaller model."
        )
        if told := shortage(settings):
            cause, hint = f"{cause}: {told[0]}", f"{told[1]} {hint}"
    return EngineStartError(f"vLLM could not load `{settings.card.name}` ({settings.device}): {cause}", hint)
