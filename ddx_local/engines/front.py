"""What engines with a model do alike, whatever computes the tokens: prompts, room in the context, labels, thoughts first.

It knows conversations, and a `run` that has the model say tokens; it knows no library and no thread.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ddx_local.engines.chat import Chat
from ddx_local.engines.protocol import OnCompletion, Tokens
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import ContextLengthExceeded
from ddx_local.request import Completion, FinishReason, LoglikelihoodRequest, Request, Size


@dataclass(frozen=True, slots=True)
class Said:
    """One run of the model: its tokens with the end token, their text without it, and how much of the prompt was cached."""

    ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    cached: int


Run = Callable[[list[int], Request, str | None], Awaitable[Said]]
"""Prompt ids, sampling and grammar (the messages are in the ids), and a text that ends the answer and is left out of it."""


class Described(Protocol):
    """What of an engine's settings is the same for every library."""

    @property
    def weights_sha256(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def resolved_dtype(self) -> str: ...
    @property
    def quantization(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Front:
    """A model's conversations within a context of `context` tokens; `thinking` is on only where the card says how."""

    chat: Chat
    context: int
    thinking: bool

    def fingerprint(self, settings: "Described") -> dict[str, str]:
        """What of an engine's fingerprint does not depend on the library that computes."""
        template = str(self.chat.tokenizer.chat_template)
        return {
            "model": self.chat.card.name,
            "weights_sha256": settings.weights_sha256,
            "device": settings.device,
            "dtype": settings.resolved_dtype,
            "quantization": settings.quantization or "none",
            "chat_template_sha256": hashlib.sha256(template.encode(errors="surrogatepass")).hexdigest(),
            "context": str(self.context),
            "thinking": str(self.thinking).lower(),
        }

    def sizes(self, requests: Sequence[Request]) -> list[Size]:
        return [
            Size(len(self._ids(request)), request.sampling.max_tokens + self._aside, self.context)
            for request in requests
        ]

    def prompts(self, requests: Sequence[Request]) -> list[list[int]]:
        """Token ids of each prompt.

        Raises:
            ContextLengthExceeded: A prompt and its longest answer do not fit.
        """
        prompts = [self._ids(request) for request in requests]
        for request, ids in zip(requests, prompts, strict=True):
            self._check_room(len(ids), request.sampling.max_tokens + self._aside, request.what)
        return prompts

    def labels(self, requests: Sequence[LoglikelihoodRequest]) -> list[Tokens]:
        """Token ids of each prompt, and of its labels with the end token.

        Raises:
            ContextLengthExceeded: A prompt and a label do not fit.
            CaseError: A label does not begin where a token begins.
        """
        split = self.tokens(requests)
        for request, (prompt, labels) in zip(requests, split, strict=True):
            for ids in labels:
                self._check_room(len(prompt), len(ids), request.what)
        return split

    def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> list[Tokens]:
        """As `labels`, without the check."""
        split = [self.chat.continuations(request) for request in requests]
        return [(tuple(prompt), tuple(tuple(ids) for ids in labels)) for prompt, labels in split]

    async def answers(
        self, requests: Sequence[Request], run: Run, on_completion: OnCompletion | None
    ) -> Sequence[Completion]:
        """All answers, in the order of the requests; raises as `prompts`, before anything is computed."""
        prompts = self.prompts(requests)

        async def one(index: int, request: Request, ids: list[int]) -> Completion:
            completion = await self._answer(request, ids, run)
            if on_completion is not None:
                on_completion(index, completion)
            return completion

        jobs = enumerate(zip(requests, prompts, strict=True))
        return await all_or_first_error([one(index, request, ids) for index, (request, ids) in jobs])

    async def _answer(self, request: Request, ids: list[int], run: Run) -> Completion:
        """Thoughts first where the model thinks, then the answer, bound to the grammar, behind them."""
        thoughts, between, spent, cached = "", list[int](), 0, None
        if self._thinks:
            thoughts, between, spent, cached = await self._think(request, ids, run)
        said = await run([*ids, *between], request, None)
        return Completion(
            text=said.text,
            finish_reason=said.finish_reason,
            prompt_tokens=len(ids),
            cached_tokens=said.cached if cached is None else cached,
            generated_tokens=spent + len(said.ids),
            thoughts=thoughts,
        )

    async def _think(self, request: Request, ids: list[int], run: Run) -> tuple[str, list[int], int, int]:
        """The first phase of a thinking model: free text up to its end mark or its budget; never shown to a parser.

        Returns:
            The thoughts; the tokens between prompt and answer, the end mark included, whether the model wrote it or the
            budget closed the thoughts; how many tokens were generated; how many of the prompt were cached.
        """
        thinking = self.chat.card.thinking
        assert thinking is not None
        free = replace(request, grammar=None, sampling=replace(request.sampling, max_tokens=thinking.budget_tokens))
        said = await run(ids, free, thinking.end)
        between = [*self.chat.beginning(said.ids, said.text), *self.chat.closing_ids()]
        return said.text.strip(), between, len(said.ids), said.cached

    @property
    def _thinks(self) -> bool:
        return self.thinking and self.chat.card.thinking is not None

    @property
    def _aside(self) -> int:
        """Tokens that an answer may need beside itself: thoughts at their longest, and what closes them."""
        thinking = self.chat.card.thinking
        return thinking.budget_tokens + len(self.chat.closing_ids()) if self._thinks and thinking else 0

    def _ids(self, request: Request) -> list[int]:
        return self.chat.ids(request.messages, thinking=self._thinks)

    def _check_room(self, prompt: int, answer: int, what: str) -> None:
        if prompt + answer > self.context:
            raise ContextLengthExceeded(prompt, answer, self.context, what)
