"""Checkpoints that a test makes for itself: random weights in four model classes, each with a tokenizer of its family's kind.

Small enough to be made in a second, real enough for transformers and vLLM to load them as what they are: grouped
attention, Gemma's sliding window (of 16 tokens, so that it matters), each family's own marks, chat format and quirks.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.models import ChatQuirks, HubSource, ModelCard, Source, Thinking

CASES = Path(__file__).resolve().parents[2] / "bench" / "cases"
CONTEXT = 8192
VOCABULARY = 900

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN3 = CHATML + (
    "{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}"
    "<think>\n\n</think>\n\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}<start_of_turn>"
    "{{ 'model' if message['role'] == 'assistant' else message['role'] }}\n{{ message['content'] }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Family:
    """One model class and how its tokenizer and chat differ."""

    model: str
    template: str
    bos: str | None
    eos: str
    others: tuple[str, ...] = ()
    sentencepiece: bool = False
    system_role: bool = True
    thinking: Thinking | None = None
    spread: float = 0.25
    """Of the weights: far enough from uniform that scores differ, not so far that one token is all that is ever said."""
    config: Callable[[], dict[str, Any]] = dict


FAMILIES = {
    "qwen2": Family("Qwen2", CHATML, None, "<|im_end|>", ("<|im_start|>",)),
    "qwen3": Family(
        "Qwen3",
        QWEN3,
        None,
        "<|im_end|>",
        ("<|im_start|>", "<think>", "</think>"),
        thinking=Thinking(start="<think>", end="</think>", budget_tokens=24),
        config=lambda: {"head_dim": 32},
    ),
    "llama": Family("Llama", LLAMA3, "<|begin_of_text|>", "<|eot_id|>", ("<|start_header_id|>", "<|end_header_id|>")),
    "gemma3": Family(
        "Gemma3",
        GEMMA,
        "<bos>",
        "<eos>",
        ("<start_of_turn>", "<end_of_turn>"),
        sentencepiece=True,
        system_role=False,
        spread=0.1,
        config=lambda: {
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
}


def card(name: str) -> ModelCard:
    """The card of a family's checkpoint."""
    family = FAMILIES[name]
    return ModelCard(
        name=f"tiny-{name}",
        kind="chat",
        purpose="For tests.",
        source=Source(hub=HubSource(repo="tests/tiny")),
        licence="Apache-2.0",
        gated=False,
        parameters=150_000,
        context_length=CONTEXT,
        dtype="float32",
        thinking=family.thinking,
        chat=ChatQuirks(system_role=family.system_role, add_bos=family.bos is not None),
    )


def build(name: str, folder: Path) -> Path:
    """Write a family's checkpoint; the same weights each time."""
    import torch
    import transformers

    family = FAMILIES[name]
    tokenizer = _tokenizer(family)
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in (family.bos, family.eos) if word}
    kind = "Gemma3TextConfig" if name == "gemma3" else f"{family.model}Config"
    config = getattr(transformers, kind)(
        vocab_size=-(-len(tokenizer) // 64) * 64,  # padded, as real ones are
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        initializer_range=family.spread,
        bos_token_id=ids.get(family.bos or ""),
        eos_token_id=ids[family.eos],
        pad_token_id=ids[family.eos],
        **family.config(),
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{family.model}ForCausalLM")(config)
    if name == "gemma3":  # as the real one: its turns end with another token than its texts
        model.generation_config.eos_token_id = [ids[family.eos], tokenizer.convert_tokens_to_ids("<end_of_turn>")]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(family: Family) -> Any:
    import transformers
    from tokenizers import processors

    marks = [word for word in (family.bos, family.eos, *family.others) if word]
    backend = (_sentencepiece if family.sentencepiece else _bytes)(_corpus(), marks)
    if family.bos:  # as the real ones: plain text gets a BOS too, which the chat's must not double
        backend.post_processor = processors.TemplateProcessing(
            single=f"{family.bos} $A", special_tokens=[(family.bos, backend.token_to_id(family.bos))]
        )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=family.bos, eos_token=family.eos, pad_token=family.eos
    )
    tokenizer.chat_template = family.template
    return tokenizer


def _corpus() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(CASES.glob("*.txt"))]


def _bytes(corpus: list[str], marks: list[str]) -> Any:
    """Byte-level BPE, as Qwen's and Llama 3's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=marks,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(corpus, trainer)
    return backend


def _sentencepiece(corpus: list[str], marks: list[str]) -> Any:
    """BPE over characters with blanks as marks and bytes for what is unknown, as Gemma's."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    def blanks() -> Any:
        return normalizers.Replace(" ", "▁")

    learned = Tokenizer(models.BPE())
    learned.normalizer = blanks()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=marks, show_progress=False)
    # By words: without a pre-tokenizer whole sentences would become tokens.
    learned.train_from_iterator([f" {word}" for text in corpus for word in text.split()], trainer)
    known = json.loads(learned.to_str())["model"]
    words = [*marks, *(f"<0x{byte:02X}>" for byte in range(256)), *known["vocab"]]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(words))}
    merges = [tuple(pair) for pair in known["merges"]]
    backend = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, fuse_unk=True))
    backend.normalizer = blanks()
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.add_special_tokens(marks)
    return backend
