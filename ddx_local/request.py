"""What is asked of an engine and what comes back. Frozen values that import nothing of ours."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; `max_tokens` bounds the answer, `seed` makes it repeatable."""

    temperature: float = 0.3
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 256
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One question for a model.

    Args:
        messages: The conversation; the shared beginning of a case's prompts comes first, to share its KV cache.
        sampling: How to draw the answer.
        grammar: Lark text that the answer must obey, or None for free text.
        what: Which step asks, for error messages (never case text).
    """

    messages: tuple[Message, ...]
    sampling: Sampling
    grammar: str | None = None
    what: str = "request"


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer, with what it cost.

    `prompt_tokens` counts the prompt, `cached_tokens` those of them that the KV cache already held, `generated_tokens`
    the answer with its thoughts. `thoughts` is what a thinking model wrote before its answer; no parser sees it.
    """

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class LoglikelihoodRequest:
    """Labels to be scored as continuations of one prompt.

    Args:
        messages: The prompt's conversation.
        answer_prefix: Text that begins the assistant's answer, before the label.
        labels: The continuations; each is scored with the end token after it.
        what: Which step asks, for error messages.
    """

    messages: tuple[Message, ...]
    answer_prefix: str
    labels: tuple[str, ...]
    what: str = "request"


@dataclass(frozen=True, slots=True)
class Loglikelihood:
    """Natural logarithm of P(label, end token | prompt), summed over `tokens` tokens. Unit: nats."""

    label: str
    logprob: float
    tokens: int
    noise: float = 0.0
    """By how much the engine's number format may move `logprob`, in nats."""


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens that a filled request needs (`prompt`, and `answer` at its longest) and that a context holds."""

    prompt: int
    answer: int
    context: int

    @property
    def fits(self) -> bool:
        return self.prompt + self.answer <= self.context
