"""OpenAI's replies as JSON values: chat completions, text completions, their chunks, usage, models, embeddings. Pure."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request; `cached` are those of the prompt that the KV cache held."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached)

    def as_json(self) -> Json:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


@dataclass(frozen=True, slots=True)
class Chat:
    """What all parts of one chat completion share."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choices: Sequence[tuple[str, str]], usage: Usage, **more: Any) -> Json:
        """A reply; choices are (content, finish_reason)."""
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {
                    "index": index,
                    "message": {"role": "assistant", "content": content, "refusal": None},
                    "logprobs": None,
                    "finish_reason": reason,
                }
                for index, (content, reason) in enumerate(choices)
            ],
            "usage": usage.as_json(),
            **more,
        }

    def chunk(self, index: int, delta: Mapping[str, Any], finish_reason: str | None = None, **more: Any) -> Json:
        """One chunk of a stream."""
        choice = {"index": index, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
        return {**self._head(), "choices": [choice], **more}

    def begin(self, index: int) -> Json:
        """The first chunk of a choice: its role."""
        return self.chunk(index, {"role": "assistant", "content": ""})

    def usage(self, usage: Usage) -> Json:
        """The chunk of usage, which has no choices."""
        return {**self._head(), "choices": [], "usage": usage.as_json()}

    def _head(self) -> Json:
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}


@dataclass(frozen=True, slots=True)
class Text:
    """What all parts of one text completion share."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def part(self, choices: Sequence[tuple[int, str, str | None]], usage: Usage | None = None) -> Json:
        """A reply, or a chunk of a stream; choices are (index, text, finish_reason)."""
        found: Json = {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
                for index, text, reason in choices
            ],
        }
        return found if usage is None else {**found, "usage": usage.as_json()}


def model(name: str, created: int, **more: Any) -> Json:
    """A model object."""
    return {"id": name, "object": "model", "created": created, "owned_by": "ddx-local", **more}


def pieces(text: str) -> list[str]:
    """A text in the pieces in which it is streamed: words with the white space before them."""
    found, begin = [], 0
    for place in range(1, len(text)):
        if text[place].isspace() and not text[place - 1].isspace():
            found.append(text[begin:place])
            begin = place
    return [*found, text[begin:]] if text[begin:] else found
