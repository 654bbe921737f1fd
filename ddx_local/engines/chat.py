"""Conversations to token ids, once for all engines: the model's own chat template, exactly one BOS, thoughts marked off."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ddx_local.errors import CaseError, ModelError
from ddx_local.models import ModelCard
from ddx_local.request import LoglikelihoodRequest, Message


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
            reason = str(error).strip().partition("\n")[0][:200]
            raise ModelError(
                f"model `{card.name}`: its tokenizer cannot be read: {type(error).__name__}: {reason}",
                f"See `ddx-local models verify {card.name}`.",
            ) from error
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
            thinking: Whether the model may think before it answers; the prompt then ends inside its thoughts.
            answer_prefix: Text that the answer begins with.

        Raises:
            ModelError: The prompt would begin with two BOS tokens.
        """
        ids = self.plain_ids(self._text(messages, thinking=thinking) + answer_prefix)
        bos = self.tokenizer.bos_token_id
        if bos is not None and ids[:2] == [bos, bos]:
            raise ModelError(f"model `{self.card.name}`: its chat template begins a prompt with two BOS tokens")
        return ids

    def continuations(self, request: LoglikelihoodRequest) -> tuple[list[int], list[list[int]]]:
        """Token ids of a prompt, and for each label those of the label and the end token.

        White space at the end of the answer's prefix goes to the label, because most tokenizers write a blank into the
        word after it (the convention of lm-evaluation-harness). Prompt and label, joined, must have the tokens of the
        prompt and then others: else what is scored would not be what the model would say.

        Raises:
            CaseError: A label does not begin where a token begins.
        """
        prefix = request.answer_prefix.rstrip()
        blank = request.answer_prefix[len(prefix) :]
        prompt = self.ids(request.messages, answer_prefix=prefix)
        text = self._text(request.messages) + prefix + blank
        found: list[list[int]] = []
        # In one call: the tokenizer reads several texts at once faster than one after another.
        whole = [text + self._inert(label) for label in request.labels]
        tokens = self.tokenizer(whole, add_special_tokens=False)["input_ids"] if whole else []
        for number, joined in enumerate(tokens, start=1):
            if joined[: len(prompt)] != prompt or len(joined) == len(prompt):
                raise CaseError(
                    f"{request.what}: label {number} of {len(request.labels)} does not begin where a token begins, after "
                    "the step's answer_prefix",
                    "End the answer_prefix with a whole word, and begin the label with a letter or a digit.",
                )
            found.append([*joined[len(prompt) :], self.end_id])
        return prompt, found

    def closing_ids(self) -> list[int]:
        """What stands between a thinking model's thoughts and its answer."""
        return self.plain_ids(f"\n{self.card.thinking.end}\n\n") if self.card.thinking else []

    def beginning(self, ids: Sequence[int], text: str) -> list[int]:
        """The first of these tokens: as many as their text's beginning `text` needs, or one token less."""
        kept = list(ids)
        while kept and len(self.tokenizer.decode(kept, clean_up_tokenization_spaces=False)) > len(text):
            kept.pop()
        return kept

    def plain_ids(self, text: str) -> list[int]:
        """Token ids of a piece of text in the middle of a conversation."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    @cached_property
    def end_id(self) -> int:
        """The token that ends an answer: what the chat template writes behind one, which need not be the tokenizer's eos.

        Gemma's instruct models end a turn with a token of their own; their eos ends a document.
        """
        said = "answer"
        turn = [{"role": "user", "content": "question"}, {"role": "assistant", "content": said}]
        text = str(self.tokenizer.apply_chat_template(turn, tokenize=False))
        ending = text[text.rindex(said) + len(said) :].lstrip()
        ids = self.plain_ids(ending)
        special = self.tokenizer.all_special_ids
        added = self.tokenizer.added_tokens_decoder
        if ids and (ids[0] in special or (ids[0] in added and added[ids[0]].special)):
            return int(ids[0])
        return int(self.tokenizer.eos_token_id)

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        """The texts that the tokenizer would read as control tokens: ends of turns and the like."""
        tokens = self.tokenizer.added_tokens_decoder.values()
        marks = sorted((str(token.content) for token in tokens if token.special), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, marks)) or r"(?!)")

    def _inert(self, text: str) -> str:
        """A text in which no piece is a control token: a case that quotes one must not end its own turn."""
        return self._marks.sub(lambda found: f"{found.group()[0]}\u200b{found.group()[1:]}", text)

    def _text(self, messages: Sequence[Message], *, thinking: bool = False) -> str:
        if not self.card.chat.system_role:
            messages = _without_system(messages)
        marks = self.card.thinking
        extra = {"enable_thinking": thinking} if marks else {}
        text = str(
            self.tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._inert(message.content)} for message in messages],
                tokenize=False,
                add_generation_prompt=True,
                **extra,
            )
        )
        if marks is None:
            return text
        begun = text.rstrip().endswith(marks.start)  # some templates begin the thoughts, some leave it to the model
        if thinking:
            return text if begun else f"{text}{marks.start}\n"
        return f"{text.rstrip()}\n\n{marks.end}\n\n" if begun else text


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    if not system or not rest:
        return tuple(rest)
    return (Message(rest[0].role, f"{system}\n\n{rest[0].content}"), *rest[1:])
