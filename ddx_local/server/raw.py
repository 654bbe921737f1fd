"""Raw chat and text completions on an engine of ours (scripted, transformers): what vLLM's own app does on vLLM.

It knows the Engine protocol. The engine gives whole answers, so a stream carries them in pieces once they are there; a stop
text is cut off here. A text completion is asked as a user's message, since these engines take conversations.
"""

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import llguidance

from ddx_local.engines.protocol import Engine
from ddx_local.request import Completion, Message, Request, Sampling
from ddx_local.server import fields as f
from ddx_local.server import wire
from ddx_local.server.errors import ApiError, invalid
from ddx_local.server.messages import read_format, read_messages
from ddx_local.server.replies import DONE, event
from ddx_local.server.wire import Usage

Json = dict[str, Any]

DEFAULT_TOKENS = 1024
"""Longest answer where none is asked for, within the context."""

_WHY = "is not supported by this engine; leave it out"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in the engine's own terms: prompts x choices."""

    prompts: tuple[tuple[Message, ...], ...]
    sampling: Sampling
    most: int | None
    grammar: str | None
    choices: int
    stops: tuple[str, ...]
    stream: bool
    usage: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice as it is sent."""

    text: str
    finish_reason: str


def chat(given: Mapping[str, Any]) -> Asked:
    """Read a chat request.

    Raises:
        ApiError: 400; a field is wrong, or asks for what these engines cannot do.
    """
    _refuse(given)
    f.refuse(
        given,
        {
            "tools": f.is_off,
            "tool_choice": lambda value: value in ("none", "auto"),
            "logprobs": f.is_off,
            "top_logprobs": f.is_off,
            "reasoning_effort": f.never,
            "modalities": lambda value: value == ["text"],
            "store": f.is_off,
            "ddx": f.is_off,
        },
        _WHY,
    )
    if "max_tokens" in given and "max_completion_tokens" in given:
        raise invalid("Give `max_completion_tokens` or `max_tokens`, not both.", "max_tokens")
    kind, schema = read_format(given)
    grammar = None if kind == "text" else _grammar(schema if kind == "json_schema" else {"type": "object"})
    name = "max_completion_tokens" if "max_completion_tokens" in given else "max_tokens"
    return _asked(given, (read_messages(given),), grammar, name)


def completion(given: Mapping[str, Any]) -> Asked:
    """Read a text completion request; raises as `chat`."""
    _refuse(given)
    f.refuse(given, {"logprobs": lambda value: value is False}, _WHY)
    prompt = given.get("prompt")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if (
        not isinstance(prompts, list)
        or not 1 <= len(prompts) <= 64
        or not all(isinstance(item, str) for item in prompts)
    ):
        raise invalid("`prompt` must be a text or a list of 1 to 64 texts.", "prompt")
    return _asked(given, tuple((Message("user", item),) for item in prompts), None, "max_tokens", default=16)


async def answers(engine: Engine, asked: Asked) -> tuple[list[Answer], Usage]:
    """Ask the engine; choices of a prompt stand together.

    Raises:
        ContextLengthExceeded: A prompt and its answer do not fit.
        EngineError: The engine is gone.
    """
    most = asked.most
    if most is None:
        sizes = await engine.measure([Request(prompt, Sampling(max_tokens=1)) for prompt in asked.prompts])
        most = max(1, min([DEFAULT_TOKENS, *(size.context - size.prompt - size.answer + 1 for size in sizes)]))
    requests = [
        Request(prompt, replace(asked.sampling, max_tokens=most, seed=_seed(asked, choice)), asked.grammar)
        for prompt in asked.prompts
        for choice in range(asked.choices)
    ]
    found = await engine.generate(requests)
    usage = Usage()
    for index, item in enumerate(found):
        first = index % asked.choices == 0
        said = min(item.generated_tokens, most)
        usage += Usage(item.prompt_tokens if first else 0, said, item.cached_tokens if first else 0)
    return [_finished(item, most, asked.stops) for item in found], usage


async def chat_chunks(chat_: wire.Chat, found: Sequence[Answer], usage: Usage | None) -> AsyncIterator[bytes]:
    """The stream of a chat completion."""
    for index, item in enumerate(found):
        yield event(chat_.begin(index))
        for piece in wire.pieces(item.text):
            yield event(chat_.chunk(index, {"content": piece}))
        yield event(chat_.chunk(index, {}, item.finish_reason))
    if usage is not None:
        yield event(chat_.usage(usage))
    yield DONE


async def text_chunks(text: wire.Text, found: Sequence[Answer], usage: Usage | None) -> AsyncIterator[bytes]:
    """The stream of a text completion."""
    for index, item in enumerate(found):
        pieces = wire.pieces(item.text) or [""]
        for piece in pieces[:-1]:
            yield event(text.part([(index, piece, None)]))
        yield event(text.part([(index, pieces[-1], item.finish_reason)]))
    if usage is not None:
        yield event(text.part([], usage))
    yield DONE


def _refuse(given: Mapping[str, Any]) -> None:
    f.refuse(given, dict.fromkeys((*f.PENALTIES, "logit_bias"), f.is_off), _WHY)


def _asked(
    given: Mapping[str, Any],
    prompts: tuple[tuple[Message, ...], ...],
    grammar: str | None,
    most: str,
    default: int | None = None,
) -> Asked:
    temperature = f.number(given, "temperature", 0, 2, 1.0)
    top_p = f.number(given, "top_p", 0, 1, 1.0)
    seed = f.whole(given, "seed", -(1 << 63), (1 << 63) - 1, -1 if temperature else 0)
    if "seed" not in given and temperature:
        seed = secrets.randbits(31)
    stream = f.flag(given, "stream")
    return Asked(
        prompts=prompts,
        sampling=Sampling(temperature, top_p or 1e-6, 0, 1, seed & 0x7FFFFFFF),
        most=f.whole(given, most, 1, 1 << 20, default or 1) if most in given or default else None,
        grammar=grammar,
        choices=f.whole(given, "n", 1, f.MOST_CHOICES, 1),
        stops=f.stops(given),
        stream=stream,
        usage=f.includes_usage(given),
    )


def _seed(asked: Asked, choice: int) -> int:
    return (asked.sampling.seed + (choice if asked.sampling.temperature else 0)) & 0x7FFFFFFF


def _grammar(schema: Mapping[str, Any]) -> str:
    """A Lark grammar of JSON after a schema, without white space; raises `ApiError` 400."""
    whole = {**schema, "x-guidance": {"whitespace_flexible": False}}
    lark = f"start: %json {json.dumps(whole)}\n"
    if llguidance.LLMatcher.validate_grammar(lark):
        # What the library says may quote the schema.
        raise invalid("`response_format.json_schema.schema` is no JSON Schema that can be enforced.", "response_format")
    return lark


def _finished(item: Completion, most: int, stops: Sequence[str]) -> Answer:
    if item.finish_reason not in ("stop", "length"):
        raise ApiError(500, "The engine ended the answer before its end.", "server_error", "engine_aborted")
    text, reason = item.text, item.finish_reason
    if item.generated_tokens > most:  # the scripted engines count bytes, and leave the cutting to whoever asks
        text = text.encode()[:most].decode(errors="ignore")
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return Answer(text[: min(places)], "stop") if places else Answer(text, reason)
