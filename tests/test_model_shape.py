"""Keys and values by token, from configurations and weights of each class of decoder, and the cards' own arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest

from ddx_local import models
from ddx_local.errors import ModelError
from ddx_local.model_shape import Architecture, Cache, shape_from_config, shape_of, weights_of
from tests.engines import tiny_models

DENSE = {"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 500}


TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "grouped queries": ("Llama", {"num_attention_heads": 8, "num_key_value_heads": 2}),
    "heads wider than the stream": ("Qwen3", {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}),
    "windows in turn with full layers": (
        "Gemma3Text",
        {
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        },
    ),
    "a window on every layer": ("Mistral", {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 16}),
    "windows switched off": (
        "Qwen2",
        {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 16, "use_sliding_window": False},
    ),
    "a mixture of experts": (
        "Qwen3Moe",
        {
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
        },
    ),
}


@pytest.mark.parametrize("name", list(TINY))
def test_the_bytes_of_keys_and_values_and_weights_are_those_of_the_running_model(name: str, tmp_path: Path) -> None:
    kind, more = TINY[name]
    config = {**{k: v for k, v in DENSE.items() if k != "model_type"}, **more}
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    settings = getattr(transformers, f"{kind}Config")(**config)
    model = getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(settings).eval()
    model.save_pretrained(tmp_path)
    shape = shape_of(tmp_path)
    assert shape is not None
    with torch.inference_mode():
        one = model(torch.tensor([[1]]), use_cache=True).past_key_values
    per_token = sum(layer.keys.numel() + layer.values.numel() for layer in one.layers)
    assert shape.kv_bytes_per_token(2) == 2 * per_token
    windows = [cache.window for cache in shape.caches]
    kinds = getattr(settings, "layer_types", None)
    if kinds:
        assert windows == [settings.sliding_window if kind == "sliding_attention" else None for kind in kinds]
    row = per_token // len(windows)
    assert shape.kv_bytes(40, 4) == 4 * sum(row * min(40, window or 40) for window in windows)
    weights = weights_of(tmp_path)
    own = {id(p): p.numel() for p in model.parameters()}
    assert weights.numbers == sum(own.values()), "tied weights count once"
    assert weights.bytes == 4 * weights.numbers
    assert not weights.packed


def test_the_four_families_of_the_engine_tests_agree_with_what_their_projections_say(tmp_path: Path) -> None:
    for name in tiny_models.FAMILIES:
        folder = tiny_models.build(name, tmp_path / name)
        from_weights, config = shape_of(folder), json.loads((folder / "config.json").read_text())
        assert from_weights == shape_from_config(config), name
        assert from_weights is not None
        head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        assert {cache.key for cache in from_weights.caches} == {config["num_key_value_heads"] * head}


def test_a_published_gemma_leaves_its_defaults_out_and_is_understood_all_the_same() -> None:
    text = {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240}
    shape = shape_from_config({**text, "sliding_window": 1024})
    card = models.card("gemma3-4b").architecture
    assert card is not None
    assert shape == card.shape()
    assert [place for place, cache in enumerate(card.shape().caches) if cache.window is None] == [5, 11, 17, 23, 29]


def test_layers_with_wider_heads_and_layers_that_share_a_cache_are_counted_as_they_are() -> None:
    config = {
        "model_type": "gemma4_text",
        "num_hidden_layers": 12,
        "hidden_size": 64,
        "vocab_size": 90,
        "intermediate_size": 32,
        "moe_intermediate_size": 48,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "global_head_dim": 32,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
        "sliding_window": 8,
        "num_kv_shared_layers": 4,
    }
    shape = shape_from_config(config)
    assert shape is not None
    assert shape.caches == (*[Cache(64, 64, 8)] * 5, Cache(32, 32), *[Cache(64, 64, 8)] * 2)
    assert shape.intermediate == 48


@pytest.mark.parametrize(
    "change",
    [{"layer_types": ["linear_attention"] * 3}, {"kv_lora_rank": 8}, {"num_hidden_layers": None}, {"layer_types": []}],
)
def test_a_memory_of_another_kind_is_not_known_rather_than_guessed(change: dict[str, Any]) -> None:
    config = {**DENSE, "num_attention_heads": 4, **change}
    assert shape_from_config({**DENSE, "num_attention_heads": 4}) is not None
    assert shape_from_config(config) is None


def counted(build: Architecture, *, bias: bool, norms: int, head_norms: bool) -> int:
    """The weights of a decoder."""
    queries, keys = build.heads * build.head_dim, build.kv_heads * build.head_dim
    layer = 2 * build.hidden * (queries + keys) + 3 * build.hidden * build.intermediate + norms * build.hidden
    layer += (queries + 2 * keys) * bias + 2 * build.head_dim * head_norms
    return build.layers * layer + build.hidden + build.vocabulary * build.hidden * (1 if build.tied else 2)


GEMMA_VISION = 419_816_304


@pytest.mark.parametrize(
    "card", [card for card in models.cards().values() if card.architecture], ids=lambda card: card.name
)
def test_a_card_s_parameters_are_the_sum_of_its_architecture(card: models.ModelCard) -> None:
    build = card.architecture
    assert build is not None
    family = card.name.split("-")[0]
    gemma = "gemma" in family
    weights = counted(
        build,
        bias=family in ("qwen2.5", "qwen2", "m1", "glm"),
        norms=4 if gemma or family == "glm" else 2,
        head_norms=gemma or family == "qwen3",
    )
    assert card.parameters == weights + (GEMMA_VISION if card.name in ("gemma3-4b", "medgemma-4b") else 0)


@pytest.mark.parametrize("name", ["smollm2-135m", "gemma3-270m"])
def test_a_card_agrees_with_the_snapshot_where_that_is_here(name: str) -> None:
    if name not in models.installed():
        pytest.skip(f"{name} is not in the store")
    card = models.card(name)
    assert card.architecture is not None
    assert shape_of(models.snapshot(name)) == card.architecture.shape()
    assert weights_of(models.snapshot(name)).numbers == card.parameters


@pytest.mark.parametrize("content", [b"", b"\xff" * 7, b"\xff" * 40, b"\x04\0\0\0\0\0\0\0nope"])
def test_a_broken_header_is_refused_with_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        weights_of(tmp_path)


def test_packed_weights_are_told_from_whole_numbers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({"a.qweight": torch.zeros(64, 64, dtype=torch.int32)}, tmp_path / "model.safetensors")
    assert weights_of(tmp_path).packed
    assert weights_of(tmp_path).bytes == 4 * 64 * 64
