"""A Gemma 3 small enough to be made by a test, as llama.cpp writes one: a random GGUF file of a few thousand weights."""

from pathlib import Path
from typing import Any

import pytest

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[model]{% endif %}"
)
_WIDTH, _HIDDEN, _HEAD = 32, 32, 16
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6


def write(path: Path, *, bos: bool = True) -> Path:
    """Writes the file.

    Args:
        path: Where to.
        bos: Whether it says that every text begins with the BOS.
    """
    gguf: Any = pytest.importorskip("gguf")
    numpy: Any = pytest.importorskip("numpy")

    pieces = [("<pad>", _CONTROL), ("<eos>", _CONTROL), ("<bos>", _CONTROL), ("<unk>", _UNKNOWN)]
    pieces += [("\n", _USER_DEFINED), ("\n\n", _USER_DEFINED), ("  ", _USER_DEFINED)]
    pieces += [(f"<0x{byte:02X}>", _BYTE) for byte in range(256)]
    # In the order in which pairs are joined, then the letters.
    pieces += [(piece, _NORMAL) for piece in ("to", "toe", "▁toe", "▁", "t", "o", "e", "1", "2")]
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_name("Tiny gemma")
    writer.add_context_length(64)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(_HEAD)
    writer.add_value_length(_HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_sliding_window(16)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece for piece, _ in pieces])
    writer.add_token_scores([-float(place) for place in range(len(pieces))])
    writer.add_token_types([kind for _, kind in pieces])
    for name, token in (("pad", 0), ("eos", 1), ("bos", 2), ("unk", 3)):
        getattr(writer, f"add_{name}_token_id")(token)
    writer.add_add_bos_token(bos)
    random = numpy.random.default_rng(1)
    ones = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    shapes = {f"blk.0.{name}.weight": (_WIDTH,) for name in ones}
    shapes |= {"blk.0.attn_q_norm.weight": (_HEAD,), "blk.0.attn_k_norm.weight": (_HEAD,)}
    shapes |= {"output_norm.weight": (_WIDTH,), "token_embd.weight": (len(pieces), _WIDTH)}
    matrices = {"attn_q": (2 * _HEAD, _WIDTH), "attn_k": (_HEAD, _WIDTH), "attn_v": (_HEAD, _WIDTH)}
    matrices |= {"attn_output": (_WIDTH, 2 * _HEAD), "ffn_gate": (_HIDDEN, _WIDTH)}
    matrices |= {"ffn_up": (_HIDDEN, _WIDTH), "ffn_down": (_WIDTH, _HIDDEN)}
    shapes |= {f"blk.0.{name}.weight": shape for name, shape in matrices.items()}
    for name, shape in shapes.items():
        writer.add_tensor(name, random.standard_normal(shape, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
