"""Two engines as one: the first generates, the second scores (a second number format for exact probabilities on a GPU)."""

from collections.abc import Mapping, Sequence

from ddx_local.engines.protocol import Engine, OnCompletion, Tokens
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size


class SplitEngine:
    """`Engine` that sends texts to one engine and label probabilities to another.

    Args:
        writer: Generates; its context and its fingerprint are this engine's.
        scorer: Scores; its number format is added to the fingerprint.
    """

    def __init__(self, writer: Engine, scorer: Engine) -> None:
        self.writer = writer
        self.scorer = scorer

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {**self.writer.fingerprint, "probability_dtype": self.scorer.fingerprint.get("dtype", "unknown")}

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        return await self.writer.generate(requests, on_completion)

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        return await self.scorer.loglikelihood(requests)

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return await self.writer.measure(requests)

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        return await self.scorer.tokens(requests)

    async def aclose(self) -> None:
        try:
            await self.writer.aclose()
        finally:
            await self.scorer.aclose()
