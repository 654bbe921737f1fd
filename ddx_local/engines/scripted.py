"""Engines without a model: canned or computed answers, so that every flow, the store and the server can be tried alone.

`walk` computes an answer that obeys the request's grammar, by a seeded random walk over it; `shortest` and `longest` prefer
early and late ends, which bounds what a method may cost. These answers are no diagnoses and never stand in for a model's.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import llguidance
import numpy as np

from ddx_local.engines.protocol import OnCompletion, Tokens
from ddx_local.errors import ContextLengthExceeded, EngineError
from ddx_local.grammar import byte_tokenizer
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Size

Reply = Callable[[Request], str]
Policy = Literal["walk", "shortest", "longest"]

_MARKS = {"system": 256, "user": 257, "assistant": 258, "answer": 259, "end": 260}
"""Token ids beside the bytes, so that one text in two messages is not the same prompt as in one."""

_END_OF_STRING, _END_OF_LIST = b'"', b"]}"
_LETTERS = frozenset(byte for byte in range(256) if chr(byte).isascii() <= chr(byte).isalnum())


class ScriptedEngine:
    """Answers by `reply`; counts what was asked.

    Args:
        reply: Computes the answer's text; an exception that it raises is the engine's.
        context: Tokens that fit; one token is one byte here.
        delay: Seconds that each answer takes.
        score: Logprob in nats of a label under a prompt.
        model: Under which name it answers, where several of them stand for several models.
        keep: Keep what was asked, for tests to look at; a long run does not.
    """

    def __init__(
        self,
        reply: Reply,
        *,
        context: int = 1 << 20,
        delay: float = 0.0,
        score: Callable[[LoglikelihoodRequest, str], float] | None = None,
        model: str = "scripted",
        keep: bool = True,
    ) -> None:
        self.reply = reply
        self.context = context
        self.delay = delay
        self.model = model
        self.keep = keep
        self.score = score or (lambda _, label: -float(len(label)))
        self.requests: list[Request] = []
        self.batches: list[int] = []
        self.scored: list[LoglikelihoodRequest] = []
        self.closed = False

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {"model": self.model, "engine": "scripted", "engine_version": "1", "context": str(self.context)}

    async def measure(self, requests: Sequence[Request]) -> Sequence[Size]:
        return [Size(_prompt(request), request.sampling.max_tokens, self.context) for request in requests]

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        self._check_open()
        for request in requests:
            self._check_room(_prompt(request), request.sampling.max_tokens, request.what)
        if self.keep:
            self.batches.append(len(requests))
        completions = []
        for index, request in enumerate(requests):
            await asyncio.sleep(self.delay)
            self._check_open()
            if self.keep:
                self.requests.append(request)
            text = self.reply(request)
            length = _bytes(text)
            cut = length > request.sampling.max_tokens
            completion = Completion(text, "length" if cut else "stop", _prompt(request), 0, length)
            completions.append(completion)
            if on_completion is not None:
                on_completion(index, completion)
        return completions

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        self._check_open()
        for request in requests:
            longest = max((_tokens(label) for label in request.labels), default=0)
            self._check_room(_prompt(request) + _bytes(request.answer_prefix), longest, request.what)
        if self.keep:
            self.scored.extend(requests)
        return [
            tuple(Loglikelihood(label, self.score(request, label), _tokens(label)) for label in request.labels)
            for request in requests
        ]

    async def tokens(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[Tokens]:
        """Bytes, with a mark before each message and at the end of each label."""
        return [(_prompt_ids(request), tuple(_label_ids(label) for label in request.labels)) for request in requests]

    async def aclose(self) -> None:
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise EngineError("the engine is closed")

    def _check_room(self, prompt: int, answer: int, what: str) -> None:
        if prompt + answer > self.context:
            raise ContextLengthExceeded(prompt, answer, self.context, what)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _prompt(request: Request | LoglikelihoodRequest) -> int:
    return sum(_bytes(message.content) for message in request.messages)


def _tokens(label: str) -> int:
    return _bytes(label) + 1  # the end token


def _prompt_ids(request: LoglikelihoodRequest) -> tuple[int, ...]:
    said = (id_ for message in request.messages for id_ in (_MARKS[message.role], *_raw(message.content)))
    return (*said, _MARKS["answer"], *_raw(request.answer_prefix))


def _label_ids(label: str) -> tuple[int, ...]:
    return (*_raw(label), _MARKS["end"])


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def by_policy(policy: Policy) -> Reply:
    """A reply that obeys the grammar; free text where there is none."""

    def reply(request: Request) -> str:
        if request.grammar is None:
            return "No grammar, no answer." if policy != "longest" else "x" * request.sampling.max_tokens
        return walk(request.grammar, random.Random(request.sampling.seed), policy)

    return reply


def walk(lark: str, chance: random.Random, policy: Policy = "walk") -> str:
    """An output of the grammar, byte by byte.

    Args:
        lark: The grammar.
        chance: Decides among the bytes that are allowed.
        policy: `walk` at random, `shortest` ends strings and lists as soon as it may, `longest` as late as it may.

    Raises:
        ValueError: The grammar ends in a dead end.
    """
    matcher = llguidance.LLMatcher(byte_tokenizer(), lark)
    out = bytearray()
    while not matcher.is_stopped():
        forced = bytes(matcher.compute_ff_bytes())
        if forced:
            out += forced
            matcher.consume_tokens(list(forced))
            continue
        allowed = list(_allowed(matcher))
        accepting = matcher.is_accepting()
        if not allowed:
            if accepting:
                break
            raise ValueError("the grammar ends in a dead end")
        if accepting and policy != "longest":
            break
        byte = _pick(allowed, chance, policy, out)
        out.append(byte)
        matcher.consume_token(byte)
    if not matcher.is_accepting():
        raise ValueError("the grammar ends in a dead end")
    return out.decode()


def _allowed(matcher: llguidance.LLMatcher) -> Iterator[int]:
    mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    bits = np.unpackbits(mask, bitorder="little")[:256]
    return (int(byte) for byte in np.flatnonzero(bits))


def _in_string(out: bytearray) -> bool:
    """Whether the JSON so far ends inside a string: there a bracket ends nothing, and outside a quotation mark begins one."""
    return out.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"') % 2 == 1


def _pick(allowed: Sequence[int], chance: random.Random, policy: Policy, out: bytearray) -> int:
    if policy == "walk":
        return chance.choice(allowed)
    ending = _END_OF_STRING if _in_string(out) else _END_OF_LIST
    ends = [byte for byte in allowed if byte in ending]
    others = [byte for byte in allowed if byte not in ending]
    if policy == "shortest" and ends:
        return ends[0]
    if policy == "longest" and others:
        # Names of one long word each: no method takes them for one, and they are compared quickly.
        return chance.choice([byte for byte in others if byte in _LETTERS] or others)
    return chance.choice(allowed)
