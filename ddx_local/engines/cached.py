"""An engine whose label probabilities are kept: each is computed once, for all runs, processes and cases in flight.

It wraps any engine and knows none. What decides a score makes its key (the engine's fingerprint and the exact token ids of
prompt and label; in a server also whose API key asks), so that a score of another model, template, number format, prompt
or label can never come back.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ddx_local.engines.protocol import Engine, OnCompletion, Tokens
from ddx_local.engines.salt import SALT
from ddx_local.errors import EngineError
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size
from ddx_local.score_cache import Score, ScoreCache

SCORING = 1
"""Part of every key: to be raised when engines come to compute a label's score otherwise than before."""

_Places = Mapping[bytes, tuple[int, str]]
"""Key -> the first request that wants it, and its label there."""


class CachedEngine:
    """`Engine` over another engine and a cache, both of which it closes."""

    def __init__(self, engine: Engine, cache: ScoreCache) -> None:
        self.engine = engine
        self._cache = cache
        self._fingerprint = dict(engine.fingerprint)
        self._asking: dict[bytes, asyncio.Future[Mapping[bytes, Score]]] = {}
        self._closed = False
        self._wanted = self._computed = self._calls = 0

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return self.engine.fingerprint

    @property
    def counts(self) -> Mapping[str, int]:
        """How many label scores were asked for, how many of them the engine computed, and in how many calls."""
        return {"scores": self._wanted, "scores_computed": self._computed, "scoring_calls": self._calls}

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        return await self.engine.generate(requests, on_completion)

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return await self.engine.measure(requests)

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        return await self.engine.tokens(requests)

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        """As the engine's own; only what is not kept, and what nobody else asks right now, reaches the engine, in one call.

        Raises:
            StoreError: The cache is damaged.
        """
        self._check_open()
        keys = keys_of(self._fingerprint, await self.engine.tokens(requests), SALT.get())
        places: dict[bytes, tuple[int, str]] = {}
        for number, (request, row) in enumerate(zip(requests, keys, strict=True)):
            for label, key in zip(request.labels, row, strict=True):
                places.setdefault(key, (number, label))
        self._wanted += sum(len(row) for row in keys)
        scores = await self._scores(requests, places)
        return [
            tuple(Loglikelihood(label, *scores[key]) for label, key in zip(request.labels, row, strict=True))
            for request, row in zip(requests, keys, strict=True)
        ]

    async def aclose(self) -> None:
        self._closed = True
        try:
            await self.engine.aclose()
        finally:
            self._cache.close()

    async def _scores(self, requests: Sequence[LoglikelihoodRequest], places: _Places) -> Mapping[bytes, Score]:
        found: dict[bytes, Score] = {}
        while missing := [key for key in places if key not in found]:
            self._check_open()
            found |= self._cache.get_many(self._fingerprint["model"], missing)
            others = {key: ask for key in missing if key not in found and (ask := self._asked_by_another(key))}
            mine = [key for key in missing if key not in found and key not in others]
            if mine:
                found |= await self._ask(requests, places, mine)
            if others:
                # Not awaited themselves: cancelling this caller would cancel them for all who wait.
                await asyncio.wait(set(others.values()))
                found |= {key: ask.result()[key] for key, ask in others.items() if key in ask.result()}
        return found

    def _asked_by_another(self, key: bytes) -> asyncio.Future[Mapping[bytes, Score]] | None:
        ask = self._asking.get(key)
        # A caller on another event loop cannot be waited for.
        return ask if ask is not None and ask.get_loop() is asyncio.get_running_loop() else None

    async def _ask(
        self, requests: Sequence[LoglikelihoodRequest], places: _Places, keys: Sequence[bytes]
    ) -> Mapping[bytes, Score]:
        """Have the engine compute these; who waits for them gets nothing where that fails, and then asks for itself."""
        ask: asyncio.Future[Mapping[bytes, Score]] = asyncio.get_running_loop().create_future()
        self._asking.update(dict.fromkeys(keys, ask))
        due: dict[int, list[bytes]] = {}
        for key in keys:
            due.setdefault(places[key][0], []).append(key)
        scores: dict[bytes, Score] = {}
        try:
            self._calls += 1
            self._computed += len(keys)
            answers = await self.engine.loglikelihood(
                [replace(requests[number], labels=tuple(places[key][1] for key in row)) for number, row in due.items()]
            )
            for row, labels in zip(due.values(), answers, strict=True):
                scores |= {
                    key: Score(item.logprob, item.tokens, item.noise) for key, item in zip(row, labels, strict=True)
                }
        finally:
            for key in keys:
                if self._asking.get(key) is ask:
                    del self._asking[key]
            ask.set_result(scores)
        if not self._closed:
            self._cache.put_many(self._fingerprint["model"], scores)
        return scores

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed")


def keys_of(fingerprint: Mapping[str, str], tokens: Sequence[Tokens], salt: str = "") -> list[list[bytes]]:
    """The key of each label of each request: sha256 over all that decides its score.

    Args:
        fingerprint: The engine's.
        tokens: As `Engine.tokens` gives them.
        salt: Of whose scores they are; '' for everybody's.
    """
    # JSON holds no line feed, which therefore parts the three without doubt.
    head = hashlib.sha256(f"{salt}{SCORING}\n{json.dumps(fingerprint, sort_keys=True)}\n".encode())
    rows: list[list[bytes]] = []
    for prompt, labels in tokens:
        begun = head.copy()
        begun.update(f"{json.dumps(prompt)}\n".encode())
        row: list[bytes] = []
        for label in labels:
            whole = begun.copy()
            whole.update(json.dumps(label).encode())
            row.append(whole.digest())
        rows.append(row)
    return rows
