"""vLLM for a server: `AsyncLLM`, whose core runs in a process of its own, shared by the methods and by vLLM's own server code.

The same engine as `vllm` in all else: prompts, grammars, label probabilities. Requests of one key share their KV prefixes and
those of two keys do not (`SALT`).
"""

import asyncio
import itertools
import os
from typing import Any

from ddx_local.engines.chat import Chat
from ddx_local.engines.front import Front
from ddx_local.engines.salt import SALT
from ddx_local.engines.vllm import VllmEngine
from ddx_local.engines.vllm_owner import prepare, start_error
from ddx_local.engines.vllm_settings import VllmSettings
from ddx_local.errors import CaseError, EngineError


class ServedVllmEngine(VllmEngine):
    """`Engine` over AsyncLLM (`client`), in the event loop that opened it."""

    def __init__(self, settings: VllmSettings, chat: Chat, client: Any) -> None:
        # Not the parent's: there is no thread that owns the engine.
        self.settings = settings
        self.client = client
        self._chat = chat
        self._front = Front(chat, settings.context, settings.thinking)
        self._numbers = itertools.count()

    @classmethod
    async def open(cls, settings: VllmSettings) -> "ServedVllmEngine":
        """Load the model; raises as the parent's."""
        chat = await asyncio.to_thread(Chat.load, settings.folder, settings.card)
        try:
            # Without a running loop AsyncLLM binds itself to that of its first request, and the server answers meanwhile.
            client = await asyncio.to_thread(_build, settings)
        except Exception as error:
            raise start_error(error, settings) from error
        return cls(settings, chat, client)

    @property
    def dead(self) -> str:
        """Why the engine is gone, or ''."""
        return "vLLM's engine process died" if self.client.errored else ""

    async def forget(self) -> None:
        await self.client.reset_prefix_cache()

    async def aclose(self) -> None:
        # vLLM waits for its processes.
        await asyncio.to_thread(self.client.shutdown, 10)

    async def _run(self, ids: list[int], parameters: Any) -> Any:
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        parameters.output_kind = RequestOutputKind.FINAL_ONLY
        prompt: dict[str, Any] = {"prompt_token_ids": ids}
        if salt := SALT.get():
            prompt["cache_salt"] = salt
        last = None
        try:
            async for output in self.client.generate(prompt, parameters, f"ddx{next(self._numbers)}"):
                last = output
        except EngineDeadError:
            raise EngineError("vLLM's engine process died") from None
        except EngineGenerateError as error:
            if self.dead:
                raise EngineError(self.dead) from None
            raise CaseError(f"vLLM failed on a request ({type(error.__cause__).__name__})", "Try again.") from None
        except Exception as error:
            # vLLM's own words may quote the grammar, which holds the words of the case.
            raise CaseError(f"vLLM refused a request ({type(error).__name__})", "Please report this.") from None
        if last is None:
            raise EngineError("vLLM gave no output")
        return last


def _build(settings: VllmSettings) -> Any:
    prepare(settings)
    # A fork of a process whose libraries have threads may never come to life.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    from ddx_local.engines.vllm_forced import ForcedDecoding

    arguments = AsyncEngineArgs(
        **settings.engine_arguments(), logits_processors=[ForcedDecoding], enable_log_requests=False
    )
    return AsyncLLM.from_engine_args(arguments)
