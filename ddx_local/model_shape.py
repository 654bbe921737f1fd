"""What of a model's build decides its memory: the width of keys and values by layer, windows, widths of the passes.

From a card, from a snapshot's config.json, or from the shapes of the weights themselves, which are the truth where they
are not packed. It loads no weights, only the headers of their files; it knows no device and no engine.
"""

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ddx_local.errors import ModelError

_FLOATS = frozenset(("F64", "F32", "F16", "BF16"))
_PROJECTION = re.compile(r"(?:^|\.)layers\.(\d+)\.(?:self_attn|attn|attention)\.([kv])_proj\.weight$")
_GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}
_HUB_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"gemma3_text": _GEMMA3, "gemma3": _GEMMA3}
"""What published config.json files of a family leave out, because its class has it as the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder as its makers' config.json gives it; the card's table `[architecture]`.

    Args:
        layers: Decoder layers.
        hidden: Width of the residual stream.
        intermediate: Width of the feed-forward layer; of a mixture, the dense part's (0 where there is none).
        heads: Query heads.
        kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        vocabulary: Rows of the embedding, padding included.
        tied: The output layer is the embedding.
        sliding_window: Tokens that a windowed layer looks back; None where all layers see everything.
        full_every: With a window: each n-th layer sees everything all the same.
        experts: Experts of a layer, 0 for a dense model.
        expert_intermediate: Width of an expert.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    sliding_window: int | None = None
    full_every: int | None = None
    experts: int = 0
    expert_intermediate: int = 0
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def shape(self) -> "Shape":
        def window(layer: int) -> int | None:
            return None if self.full_every and (layer + 1) % self.full_every == 0 else self.sliding_window

        width = self.kv_heads * self.head_dim
        caches = tuple(Cache(width, width, window(layer)) for layer in range(self.layers))
        return Shape(caches, self.hidden, max(self.intermediate, self.expert_intermediate), self.vocabulary)


@dataclass(frozen=True, slots=True)
class Cache:
    """What a layer keeps of a token: numbers of its key and of its value; `window` None keeps all tokens."""

    key: int
    value: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Caches by layer (without those that share another's), and the widths of a pass."""

    caches: tuple[Cache, ...]
    hidden: int
    intermediate: int
    vocabulary: int

    def kv_bytes(self, tokens: int, number: int) -> int:
        """Bytes that one sequence keeps.

        Args:
            tokens: Its length.
            number: Bytes of one number: 2 for bfloat16, 4 for float32.
        """
        kept = (min(tokens, cache.window or tokens) * (cache.key + cache.value) for cache in self.caches)
        return number * sum(kept)

    def kv_bytes_per_token(self, number: int) -> int:
        """Bytes that a token adds while it is inside every window."""
        return self.kv_bytes(1, number)


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors of a snapshot: numbers and bytes as stored, and what `Shape` needs of them."""

    numbers: int
    bytes: int
    packed: bool
    projections: Mapping[tuple[int, str], int]


def weights_of(folder: Path) -> Weights:
    """Reads the headers of the folder's safetensors files.

    Raises:
        ModelError: There is none, or one cannot be read.
    """
    numbers = stored = 0
    packed = False
    projections: dict[tuple[int, str], int] = {}
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(f"{folder}: there are no weights (no .safetensors file)")
    for path in files:
        for name, tensor in _header(path).items():
            count = math.prod(tensor["shape"])
            numbers += count
            stored += tensor["data_offsets"][1] - tensor["data_offsets"][0]
            packed |= tensor["dtype"] not in _FLOATS and count > 1024
            if (found := _PROJECTION.search(name)) and "vision" not in name and tensor["dtype"] in _FLOATS:
                projections[int(found[1]), found[2]] = tensor["shape"][0]
    return Weights(numbers, stored, packed, projections)


def shape_of(folder: Path) -> Shape | None:
    """The shape of a snapshot, or None where its kind of memory is not keys and values by token.

    Raises:
        ModelError: There is no config.json that can be read.
    """
    path = folder / "config.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        text: dict[str, Any] = {**table, **(table.get("text_config") or {})}
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"{path} cannot be read: {error}", "Check the model with `ddx-local models verify NAME`."
        ) from error
    return shape_from_config(text, weights_of(folder).projections)


def shape_from_config(
    config: Mapping[str, Any], projections: Mapping[tuple[int, str], int] | None = None
) -> Shape | None:
    """`shape_of`, from the text part of a config.json and the rows of k_proj and v_proj by layer."""
    config = {
        **_HUB_DEFAULTS.get(str(config.get("model_type")), {}),
        **{k: v for k, v in config.items() if v is not None},
    }
    try:
        layers, hidden = int(config["num_hidden_layers"]), int(config["hidden_size"])
        heads, vocabulary = int(config["num_attention_heads"]), int(config["vocab_size"])
        head = int(config.get("head_dim") or hidden // heads)
        width = int(config.get("num_key_value_heads") or heads) * head
    except (KeyError, ValueError, ZeroDivisionError):
        return None
    kinds = _kinds(config, layers)
    if kinds is None or "kv_lora_rank" in config:
        return None
    caches = []
    for layer in range(layers - int(config.get("num_kv_shared_layers") or 0)):
        key = (projections or {}).get((layer, "k")) or _global_width(config, kinds[layer]) or width
        value = (projections or {}).get((layer, "v")) or key
        window = int(config["sliding_window"]) if kinds[layer] == "sliding_attention" else None
        caches.append(Cache(key, value, window))
    widths = [config.get(name) or 0 for name in ("intermediate_size", "moe_intermediate_size")]
    return Shape(tuple(caches), hidden, max(map(int, widths)), vocabulary)


def _kinds(config: Mapping[str, Any], layers: int) -> list[str] | None:
    """`full_attention` or `sliding_attention` by layer; None where there are other kinds."""
    full, sliding = "full_attention", "sliding_attention"
    stated = config.get("layer_types")
    if stated is not None:
        return list(stated) if len(stated) == layers and set(stated) <= {full, sliding} else None
    family = str(config.get("model_type", ""))
    if not config.get("sliding_window") or config.get("use_sliding_window") is False:
        return [full] * layers
    if family.startswith(("gemma3", "gemma4")):
        every = int(config.get("sliding_window_pattern") or 6)
        return [full if (layer + 1) % every == 0 else sliding for layer in range(layers)]
    if family.startswith("gemma2"):
        return [full if layer % 2 else sliding for layer in range(layers)]
    if family.startswith("qwen"):
        # Without the switch being on, Qwen's windows are off.
        first = int(config.get("max_window_layers") or 0) if config.get("use_sliding_window") else layers
        return [full if layer < first else sliding for layer in range(layers)]
    return [sliding if family.startswith("mistral") else full] * layers


def _global_width(config: Mapping[str, Any], kind: str) -> int | None:
    """Gemma 4's layers without a window have wider and fewer heads."""
    if kind != "full_attention" or "global_head_dim" not in config:
        return None
    own = config.get("num_global_key_value_heads") if config.get("attention_k_eq_v", True) else None
    return int(config["global_head_dim"]) * int(own or config["num_key_value_heads"])


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > path.stat().st_size:
                raise ValueError("its header is longer than the file")
            header: dict[str, Any] = json.loads(file.read(length))
    except (OSError, ValueError, struct.error) as error:
        raise ModelError(
            f"{path}: the header of the weights cannot be read: {error}", "Pull or copy the file again."
        ) from error
    header.pop("__metadata__", None)
    return header
