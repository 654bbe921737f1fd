"""Drives a method's flow by hand: real prompts, grammars and parsers; the answers come from small functions or grammar walks.

`drive` answers each round and keeps what was asked. A scripted answer must be one that the step's grammar allows, so that
a test cannot pass on an answer that no engine could give.
"""

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rapidfuzz.distance import Indel

from ddx_local.assets import Assets, Filled
from ddx_local.engines.scripted import walk
from ddx_local.flow import (
    Ask,
    Codes,
    Consult,
    CountSpent,
    CountTokens,
    Flow,
    Key,
    Loglikelihood,
    Note,
    Question,
    Retrieve,
    Round,
    Similarity,
    Weigh,
)
from ddx_local.grammar import accepts
from ddx_local.request import Size

T = TypeVar("T")

Reply = Callable[[Ask[Any]], Any]
"""The answer to a question, as the JSON value that the model would write."""


@dataclass(frozen=True)
class Said:
    """One question as it went out, and what came back; `batch` counts from 0."""

    batch: int
    step: str
    role: str
    ask: Ask[Any]
    filled: Filled
    answer: Any

    @property
    def prompt(self) -> str:
        return self.filled.messages[1].content


@dataclass
class Driven(Generic[T]):
    """What a driven flow did."""

    answer: T
    rounds: list[Round] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    compared: list[tuple[str, str]] = field(default_factory=list)
    weighed: list[Weigh] = field(default_factory=list)

    @property
    def batches(self) -> list[str]:
        return [round_.name for round_ in self.rounds if round_.is_batch]

    def of(self, step: str) -> dict[str, Said]:
        """Role -> question of a step."""
        return {item.role: item for item in self.said if item.step == step}

    def noted(self, kind: str) -> list[str]:
        return [note.detail for note in self.notes if note.kind == kind]


@dataclass(frozen=True)
class World:
    """Answers to whatever a flow asks.

    Args:
        replies: Step name -> answer; a step without one is answered by a walk over its grammar.
        similarity: Of two texts in meaning; in spelling it is the real one.
        fits: Whether a question with this prompt fits the context.
        lawful: Whether scripted answers must obey the grammar.
        seed: Of the walks.
        probability: Of a label under a case text, raw.
        noise: Of every logprob, in nats.
        retrieved: Past cases, as [id, text, diagnoses, similarity] each.
        coded: ICD-10 codes close to a name, as [code, name, fits] each.
    """

    replies: Mapping[str, Reply] = field(default_factory=dict)
    similarity: Callable[[str, str], float] = lambda a, b: 0.0  # noqa: ARG005
    fits: Callable[[Ask[Any]], bool] = lambda ask: True  # noqa: ARG005
    lawful: bool = True
    seed: int = 0
    probability: Callable[[str, str], float] = lambda text, label: 0.1  # noqa: ARG005
    noise: float = 0.0
    retrieved: Callable[[Retrieve], Any] = lambda about: []  # noqa: ARG005
    coded: Callable[[str], Any] = lambda name: []  # noqa: ARG005


def drive(flow: Flow[T], world: World) -> Driven[T]:
    """Run a flow to its end."""
    assets = Assets()
    driven: Driven[Any] = Driven(None)

    def answer(key: Key, question: Question) -> Any:
        match question:
            case Note():
                driven.notes.append(question)
                return None
            case Consult(Similarity(pairs, "spelling")):
                return [round(Indel.normalized_similarity(a, b), 6) for a, b in pairs]
            case Consult(Similarity(pairs)):
                driven.compared.extend(pairs)
                return [world.similarity(a, b) for a, b in pairs]
            case Consult(CountSpent()):
                return (0, None)
            case Consult(Retrieve() as about):
                return world.retrieved(about)
            case Consult(Codes(names)):
                return [world.coded(name) for name in names]
            case Consult(CountTokens(questions)):
                return tuple(_size(assets.fill(ask), fits=world.fits(ask)) for ask in questions)
            case Weigh(_, slots, labels):
                assets.fill(question)
                driven.weighed.append(question)
                found = {label: world.probability(str(slots["case"]), label) for label in labels}
                return tuple(Loglikelihood(label, math.log(p), 3, world.noise) for label, p in found.items())
            case Ask():
                return _answer(question, key)
            case _:
                raise AssertionError(f"a question that this driver does not know: {type(question).__name__}")

    def _answer(ask: Ask[Any], key: Key) -> Any:
        filled = assets.fill(ask)
        reply = world.replies.get(ask.step.name)
        batch = sum(round_.is_batch for round_ in driven.rounds) - 1
        assert filled.grammar is not None
        if reply is None:
            text = walk(filled.grammar, random.Random(f"{world.seed} {len(driven.rounds)} {key}"))
        else:
            text = json.dumps(reply(ask), ensure_ascii=False)
            assert not world.lawful or accepts(filled.grammar, text), f"{ask.step.name}: no engine can answer {text}"
        value = json.loads(text)
        driven.said.append(Said(batch, ask.step.name, ask.role, ask, filled, value))
        return ask.step.parse(value)

    try:
        round_ = next(flow)
        while True:
            driven.rounds.append(round_)
            round_ = flow.send({key: answer(key, question) for key, question in round_.questions.items()})
    except StopIteration as stop:
        driven.answer = stop.value
    return driven


def _size(filled: Filled, *, fits: bool) -> Size:
    prompt = sum(len(message.content.encode()) for message in filled.messages)
    return Size(prompt, filled.longest, prompt + filled.longest - (0 if fits else 1))
