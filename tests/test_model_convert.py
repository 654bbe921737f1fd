"""GGUF to safetensors on a tiny Gemma: tokens, template and BOS are those of the family, or the conversion is refused."""

from pathlib import Path

import pytest

from ddx_local import models
from ddx_local.errors import ModelError
from ddx_local.model_card import ChatQuirks
from ddx_local.model_chat import load_tokenizer
from ddx_local.model_convert import convert
from tests import tiny_gemma
from tests.tiny_model import errors_of

QUIRKS = ChatQuirks(chat_template=tiny_gemma.TEMPLATE, add_bos=True)


def test_a_converted_gemma_has_the_cards_template_and_one_bos_before_a_chat_and_before_plain_text(
    tmp_path: Path,
) -> None:
    convert(tiny_gemma.write(tmp_path / "tiny.gguf"), tmp_path / "out", QUIRKS)
    assert errors_of(models.verify(tmp_path / "out")) == []
    tokenizer = load_tokenizer(tmp_path / "out")
    assert tokenizer.chat_template == tiny_gemma.TEMPLATE
    assert models.chat_ids(tokenizer, [{"role": "user", "content": "toe"}])[:2] == (2, tokenizer("[").input_ids[1])
    assert tokenizer("toe").tokens() == ["<bos>", "toe"]
    assert tokenizer.tokenize("toe toe\n\n12  1\n") == ["toe", "▁toe", "\n\n", "1", "2", "▁▁", "1", "\n"]
    assert tokenizer.tokenize("é") == ["<0xC3>", "<0xA9>"]


def test_weights_come_through_with_the_familys_norms_shifted_by_one(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    reader = pytest.importorskip("gguf").GGUFReader(tiny_gemma.write(tmp_path / "tiny.gguf"))
    convert(tmp_path / "tiny.gguf", tmp_path / "out", QUIRKS)
    given = {tensor.name: tensor.data for tensor in reader.tensors}
    made = safetensors.load_file(tmp_path / "out" / "model.safetensors")
    for ours, theirs, shift in (
        ("model.embed_tokens.weight", "token_embd.weight", 0),
        ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight", 0),
        ("model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight", 1),
        ("model.norm.weight", "output_norm.weight", 1),
    ):
        assert made[ours].float().numpy() == pytest.approx(given[theirs] - shift, rel=2**-7, abs=2**-7), ours


def test_a_gemma_file_that_wants_no_bos_is_not_converted_for_a_card_that_states_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="plain text begins with 0 BOS"):
        convert(tiny_gemma.write(tmp_path / "tiny.gguf", bos=False), tmp_path / "out", QUIRKS)


def test_a_gemma_file_is_not_converted_without_a_template(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no chat template"):
        convert(tiny_gemma.write(tmp_path / "tiny.gguf"), tmp_path / "out", ChatQuirks(add_bos=True))
