"""The second engine: Hugging Face transformers inside this process, for hardware that vLLM does not run on.

It gives the same answers under the same contract: a grammar and a seed of its own for each request of a batch, exact label
probabilities, 4-bit and 8-bit weights by bitsandbytes, layers placed by accelerate. vLLM's numbers are tested against it.
"""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from ddx_local.engines.chat import Chat
from ddx_local.engines.front import Front, Said
from ddx_local.engines.noise import noise_nats
from ddx_local.engines.protocol import OnCompletion, Tokens
from ddx_local.engines.tasks import all_or_first_error, from_thread
from ddx_local.engines.transformers_load import INSTALL
from ddx_local.engines.transformers_owner import Owner
from ddx_local.engines.transformers_settings import TransformersSettings
from ddx_local.errors import EngineStartError
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size

__all__ = ["TransformersEngine", "TransformersSettings", "cuda_or_cpu"]


class TransformersEngine:
    """`Engine` over transformers. Make one with `open`; close it with `aclose`."""

    def __init__(self, settings: TransformersSettings, chat: Chat, owner: Owner) -> None:
        self.settings = settings
        self._chat = chat
        self._front = Front(chat, settings.context, settings.thinking)
        self._owner = owner
        self._numbers = itertools.count()

    @classmethod
    async def open(cls, settings: TransformersSettings) -> "TransformersEngine":
        """Load the model.

        Raises:
            EngineStartError: The model did not load; the message holds the root cause.
            ModelError: The model has no tokenizer or no chat template.
        """
        chat = await asyncio.to_thread(Chat.load, settings.folder, settings.card)
        owner = Owner(settings, chat.tokenizer)
        await owner.started()
        return cls(settings, chat, owner)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return self._front.fingerprint(self.settings) | {
            "engine": "transformers",
            "engine_version": f"transformers {version('transformers')}, torch {version('torch')}",
            "kv_block_size": "none",
        }

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return self._front.sizes(requests)

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        return await self._front.answers(requests, self._say, on_completion)

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        noise = noise_nats(self.settings.resolved_dtype, self.settings.quantization)
        split = self._front.labels(requests)
        sums = await all_or_first_error([self._weigh(*tokens) for tokens in split])
        return [
            tuple(
                Loglikelihood(label, logprob, len(ids), noise)
                for label, logprob, ids in zip(request.labels, logprobs, labels, strict=True)
            )
            for request, logprobs, (_, labels) in zip(requests, sums, split, strict=True)
        ]

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        return self._front.tokens(requests)

    async def forget(self) -> None:
        """Drop the beginnings of prompts that are kept, for measurements that begin cold."""
        name = self._name()
        await from_thread(lambda deliver: self._owner.forget(name, deliver), lambda: self._owner.abort(name))

    async def aclose(self) -> None:
        self._owner.close()
        await asyncio.to_thread(self._owner.join, 30)

    async def _say(self, ids: list[int], request: Request, stop: str | None) -> Said:
        from ddx_local.engines.transformers_batch import Answer

        name = self._name()
        said: Said = await self._do(name, Answer(name, tuple(ids), request.sampling, request.grammar, stop))
        return said

    async def _weigh(self, prompt: tuple[int, ...], labels: tuple[tuple[int, ...], ...]) -> tuple[float, ...]:
        from ddx_local.engines.transformers_scoring import Score

        if not labels:
            return ()
        name = self._name()
        sums: tuple[float, ...] = await self._do(name, Score(name, prompt, labels))
        return sums

    async def _do(self, name: str, work: Any) -> Any:
        """What comes of the work; cancelling the caller stops it there too."""
        return await from_thread(
            lambda deliver: self._owner.put(name, lambda batch: batch.add(work), deliver),
            lambda: self._owner.abort(name),
        )

    def _name(self) -> str:
        return f"q{next(self._numbers)}"


def cuda_or_cpu(device: Literal["auto", "cpu", "cuda"]) -> Literal["cpu", "cuda"]:
    """`auto` as a GPU where PyTorch sees one.

    Raises:
        EngineStartError: PyTorch is not installed.
    """
    if device != "auto":
        return device
    try:
        import torch
    except ImportError:
        raise EngineStartError("PyTorch is not installed", INSTALL) from None
    return "cuda" if torch.cuda.is_available() else "cpu"
