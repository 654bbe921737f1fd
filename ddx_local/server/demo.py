"""The engine of `serve --demo`: made-up answers in the right form, so that the panel can be tried without a model.

Its names of diagnoses are drawn by chance and its sentences say that they are none of a model; quotes are the case's own,
because the grammars allow no others. It works in a thread, so that the server goes on answering.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence

import llguidance
import numpy as np

from ddx_local.engines.protocol import OnCompletion
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.grammar import byte_tokenizer
from ddx_local.request import Completion, LoglikelihoodRequest, Request

NAMES = (
    "Pneumonia", "Pulmonary embolism", "Acute pericarditis", "Stable angina", "Aortic dissection", "Gout",
    "Septic arthritis", "Cellulitis", "Acute pancreatitis", "Cholecystitis", "Appendicitis", "Pyelonephritis",
    "Diabetic ketoacidosis", "Hyperthyroidism", "Adrenal insufficiency", "Iron deficiency anemia", "Lymphoma",
    "Multiple myeloma", "Migraine", "Bacterial meningitis", "Ischemic stroke", "Guillain-Barré syndrome", "Herpes zoster",
    "Sarcoidosis", "Rheumatoid arthritis", "Systemic lupus erythematosus", "Kawasaki disease", "Ulcerative colitis",
)  # fmt: skip
SENTENCES = (
    "Made up for the demonstration.", "No model has read this case.", "A sentence by chance.", "Demonstration text.",
    "Said by nobody, to show the place.", "An example of a reason.", "Only the form is real.", "Drawn by chance.",
)  # fmt: skip
WORDS = ("demonstration", "answer", "by", "chance", "without", "a", "model", "only", "its", "form", "is", "real")

_ENOUGH = 6000
"""Bytes behind which an answer is brought to its end."""


class DemoEngine(ScriptedEngine):
    """Made-up answers; `delay` seconds for each batch, as if a model worked."""

    def __init__(self, *, context: int = 1 << 20, delay: float = 0.0) -> None:
        super().__init__(answer, context=context, delay=0.0, score=_score)
        self.pause = delay

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        self._check_open()
        await asyncio.sleep(self.pause)
        self._check_open()
        texts = await asyncio.to_thread(lambda: [answer(request) for request in requests])
        prepared = dict(zip(map(id, requests), texts, strict=True))
        completions = await ScriptedEngine(lambda request: prepared[id(request)], context=self.context).generate(
            requests, on_completion
        )
        self.batches.append(len(requests))
        self.requests.extend(requests)
        del self.requests[:-100]
        del self.batches[:-1000]
        return completions


def answer(request: Request) -> str:
    """The made-up answer to a request; the same seed gives the same one."""
    chance = random.Random(request.sampling.seed)
    if request.grammar is not None:
        return written(request.grammar, chance)
    count = chance.randint(6, 24)
    return f"Demonstration {chance.randint(100, 999)}: {' '.join(chance.choice(WORDS) for _ in range(count))}."


def written(lark: str, chance: random.Random) -> str:
    """An output of a grammar: phrases of ours where its strings are free, chance elsewhere.

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
        if _opens_string(out) and (phrase := _phrase(matcher, out, chance)):
            out += phrase
            continue
        allowed = list(_allowed(matcher))
        if not allowed or (matcher.is_accepting() and len(out) > 1):
            break
        byte = _pick(allowed, out, chance)
        out.append(byte)
        matcher.consume_token(byte)
    if not matcher.is_accepting():
        raise ValueError("the grammar ends in a dead end")
    return out.decode()


def _phrase(matcher: llguidance.LLMatcher, out: bytearray, chance: random.Random) -> bytes:
    """A phrase that may stand here as a whole string, already consumed; b'' where none may."""
    named = out.rstrip(b' "').endswith((b'"diagnosis":', b'"name":')) or out.endswith((b'["', b',"'))
    pool = list(NAMES if named else SENTENCES)
    chance.shuffle(pool)
    for phrase in pool:
        data = phrase.encode() + b'"'
        taken = matcher.try_consume_tokens(list(data))
        if taken == len(data):
            return data
        if taken:
            matcher.rollback(taken)
    return b""


def _opens_string(out: bytearray) -> bool:
    quotes = out.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"')
    return out.endswith(b'"') and quotes % 2 == 1


def _allowed(matcher: llguidance.LLMatcher) -> Iterator[int]:
    mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    return (int(byte) for byte in np.flatnonzero(np.unpackbits(mask, bitorder="little")[:256]))


def _pick(allowed: Sequence[int], out: bytearray, chance: random.Random) -> int:
    if len(out) > _ENOUGH:
        ends = [byte for byte in allowed if byte in b'"]}']
        if ends:
            return ends[0]
    # White space is allowed anywhere in some grammars, and shows nothing.
    visible = [byte for byte in allowed if byte > 32] or list(allowed)
    # A quote ends where a word ends, so that it reads like one.
    if ord('"') in visible and out[-1:] == b" ":
        visible = [byte for byte in visible if byte != ord('"')] or visible
    letters = [byte for byte in allowed if chr(byte).isalnum()]
    if 32 in allowed and ord('"') not in allowed and len(allowed) <= 3:
        return chance.choice(list(allowed))
    return chance.choice(letters if letters and chance.random() < 0.9 else visible)


def _score(request: LoglikelihoodRequest, label: str) -> float:
    """A logprob that depends on the text, so that changes of a case have effects."""
    return -4 * random.Random(f"{request.messages[-1].content} {label}").random()
