"""What every engine does: a batch of requests in, a list of answers out, in the same order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size

OnCompletion = Callable[[int, Completion], None]
"""Called with a request's place in the batch as soon as its answer is there, so that it can be recorded at once."""

Tokens = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""Token ids of a prompt up to where a label begins, and of each label with the end token after it."""


class Engine(Protocol):
    """An engine serves many callers at once: requests of all batches that are in flight are computed together."""

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """What decides the answers: card, weights sha256, engine version, dtype, chat template sha256, KV block size."""
        ...

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        """Answer all requests.

        Raises:
            ContextLengthExceeded: Prompt and longest answer of a request do not fit; nothing was computed.
            EngineError: The engine is gone.
        """
        ...

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        """Score each request's labels as continuations of its prompt, the end token included."""
        ...

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        """What `loglikelihood` would send for each request; with the fingerprint it decides the scores. Computes nothing.

        Raises:
            CaseError: A label does not begin where a token begins.
        """
        ...

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        """How many tokens each request needs and how many there are; computes nothing."""
        ...

    async def aclose(self) -> None:
        """Free what the engine holds; waiting requests get an `EngineError`."""
        ...
