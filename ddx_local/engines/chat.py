"""Conversations to token ids, once for all engines: the model's own chat template, exactly one BOS, thoughts marked off."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.errors import ModelError
from ddx_local.models import ModelCard
from ddx_local.request import Message


@dataclass(frozen=True)
class Chat:
    """A model's tokenizer with the quirks of its card."""

    tokenizer: Any
    card: ModelCard

    @classmethod
    def load(cls, folder: Path, card: ModelCard) -> "Chat":
        """Read the tokenizer of a snapshot folder; raises `ModelError` where it has none or no chat template."""
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:
            raise ModelError(f"model `{card.name}`: its tokenizer cannot be read ({type(error).__name__})") from error
        if not tokenizer.chat_template:
            raise ModelError(
                f"model `{card.name}` has no chat template",
                "Give the card one (`chat.chat_template`), or use an instruction-tuned model.",
            )
        return cls(tokenizer, card)

    def ids(self, messages: Sequence[Message], *, thinking: bool = False, answer_prefix: str = "") -> list[int]:
        """Token ids of a conversation up to the beginning of the assistant's answer.

        Args:
            messages: The conversation; a system message is joined to the user's for families without that role.
            thinking: Whether the model may think before it answers (for templates that have a switch for it).
            answer_prefix: Text that the answer begins with.

        Raises:
            ModelError: The prompt would begin with two BOS tokens.
        """
        if not self.card.chat.system_role:
            messages = _without_system(messages)
        extra = {"enable_thinking": thinking} if self.card.thinking else {}
        text = self.tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
            **extra,
        )
        ids: list[int] = self.tokenizer(text + answer_prefix, add_special_tokens=False)["input_ids"]
        bos = self.tokenizer.bos_token_id
        if bos is not None and ids[:2] == [bos, bos]:
            raise ModelError(f"model `{self.card.name}`: its chat template begins a prompt with two BOS tokens")
        return ids

    def plain_ids(self, text: str) -> list[int]:
        """Token ids of a piece of text in the middle of a conversation."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    @property
    def end_id(self) -> int:
        """The token that ends an answer."""
        return int(self.tokenizer.eos_token_id)


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    if not system or not rest:
        return tuple(rest)
    return (Message(rest[0].role, f"{system}\n\n{rest[0].content}"), *rest[1:])
