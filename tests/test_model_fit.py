"""Whether a model fits a memory, and what is said where it does not."""

import itertools
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from ddx_local import machine, model_fit, model_memory, models
from ddx_local.engines.transformers_load import start_error as transformers_start_error
from ddx_local.engines.transformers_settings import TransformersSettings
from ddx_local.engines.vllm_owner import start_error
from ddx_local.engines.vllm_settings import VllmSettings
from ddx_local.errors import EngineStartError
from ddx_local.model_fit import GIB, Plan
from ddx_local.settings import Settings
from tests.engines import tiny_models


def plan(
    name: str, memory: float, *, device: str = "cuda", dtype: str = "bfloat16", context: int | None = None
) -> Plan:
    card = models.card(name)
    return model_memory.plan_of_card(
        card, device=device, dtype=dtype, memory=int(memory * GIB), context=context, sequences=16
    )


def test_the_parts_of_a_known_model_are_its_known_numbers() -> None:
    found = model_fit.fit(plan("qwen2.5-7b", 24))
    assert found.weights == 2 * 7_615_616_512
    assert found.kv_per_token == 2 * 2 * 28 * 4 * 128
    assert found.kv_context == found.kv_per_token * 32768
    assert found.fits
    assert found.needed + found.room - found.kv_context == 24 * GIB


def test_a_window_bounds_what_a_long_context_costs() -> None:
    found = model_fit.fit(plan("gemma3-1b", 24))
    full, windowed, row = 4, 22, 2 * 2 * 256
    assert found.kv_context == row * (full * 32768 + windowed * 512)
    assert found.kv_per_token == row * 26


def test_float32_costs_twice_of_bfloat16_and_four_bits_about_a_quarter() -> None:
    base = plan("llama-3.1-8b", 80)
    numbers = 8_030_261_248
    assert model_fit.fit(replace(base, dtype="float32")).weights == 4 * numbers
    quarter = model_fit.fit(replace(base, quantization="bitsandbytes-4bit")).weights
    assert 0.5 * numbers < quarter < 0.6 * numbers


@pytest.mark.parametrize("card", [c for c in models.cards().values() if c.architecture], ids=lambda card: card.name)
def test_the_longest_context_fits_and_a_step_more_does_not(card: models.ModelCard) -> None:
    base = plan(card.name, 2 * card.parameters / GIB + 2.6)
    longest = model_fit.fit(base).longest_context
    assert longest == 0 or model_fit.fit(replace(base, context=longest)).fits
    if longest < card.context_length:
        assert not model_fit.fit(replace(base, context=longest + 256)).fits


def test_what_is_advised_fits_by_its_own_numbers_and_can_be_typed() -> None:
    for name, memory, device, dtype in [
        ("qwen2.5-7b", 24.0, "cuda", "bfloat16"),
        ("llama-3.1-8b", 20.0, "cuda", "bfloat16"),
        ("qwen2.5-14b", 24.0, "cuda", "bfloat16"),
        ("qwen3-4b", 12.0, "cpu", "float32"),
        ("smollm2-135m", 6.0, "cpu", "float32"),
    ]:
        best = model_fit.best(plan(name, memory, device=device, dtype=dtype))
        assert best is not None, name
        assert best.fits
        words = shlex.split(model_fit.command(best))
        flags = dict(itertools.pairwise(words))
        assert flags["--model"] == name
        Settings(
            model=name,
            max_model_len=int(flags["--max-model-len"]),
            kv_cache_gib=float(flags.get("--kv-cache-gib", "1")),
            dtype=flags.get("--dtype", "auto"),  # type: ignore[arg-type]
        )
        if device == "cpu":
            kv = float(flags["--kv-cache-gib"]) * GIB
            assert best.kv_context <= kv
            assert best.weights + best.passes + best.program + kv <= memory * GIB + 0.1 * GIB


def test_the_mildest_change_comes_first() -> None:
    shorter = model_fit.best(plan("llama-3.1-8b", 20))
    assert shorter is not None
    assert shorter.plan.quantization is None
    assert 2048 <= shorter.plan.context < 131072
    packed = model_fit.best(plan("qwen2.5-14b", 24))
    assert packed is not None
    assert packed.plan.quantization == "bitsandbytes-4bit"
    half = model_fit.best(plan("qwen3-4b", 12, device="cpu", dtype="float32"))
    assert half is not None
    assert (half.plan.dtype, half.plan.quantization) == ("bfloat16", None)


def test_where_nothing_of_a_model_fits_a_smaller_one_is_named() -> None:
    found = model_fit.fit(plan("qwen2.5-32b", 8))
    assert not found.fits
    assert model_fit.best(found.plan) is None
    assert "Use a smaller model: ddx-local diagnose CASE --model " in model_memory.advice(found)
    smaller = model_memory.next_smaller(found.plan)
    assert smaller is not None
    assert smaller.fits
    assert "No model" in model_memory.advice(model_fit.fit(plan("qwen2.5-32b", 0.5)))


def test_a_model_whose_build_is_not_known_says_so() -> None:
    found = model_fit.fit(plan("gemma4-31b", 40))
    assert found.kv_per_token is None
    assert "keys and values not known" in model_fit.sum_text(found)


# --- the engines' message -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return tiny_models.build("qwen3", tmp_path_factory.mktemp("fit"))


def vllm_settings(folder: Path, device: str = "cpu") -> VllmSettings:
    return VllmSettings(folder=folder, card=tiny_models.card("qwen3"), weights_sha256="", device=device)


@pytest.mark.parametrize("cause", ["No available memory for the cache blocks", "std::bad_alloc"])
def test_running_out_of_memory_at_start_is_told_with_numbers_and_a_command(folder: Path, cause: str) -> None:
    error = start_error(RuntimeError(cause), vllm_settings(folder))
    assert isinstance(error, EngineStartError)
    for word in ("weights", "keys and values", "8192 tokens", "GiB"):
        assert word in error.message
    assert "\n" not in error.message
    assert "ddx-local diagnose CASE --model tiny-qwen3" in error.hint
    assert "--kv-cache-gib, now 2.0" in error.hint


def test_a_bare_memory_error_is_told_with_numbers_by_either_engine(folder: Path) -> None:
    for error in (
        start_error(MemoryError(), vllm_settings(folder)),
        transformers_start_error(
            MemoryError(),
            TransformersSettings(folder=folder, card=tiny_models.card("qwen3"), weights_sha256="", device="cpu"),
        ),
    ):
        assert "needed: weights" in error.message
        assert "Type: " in error.hint


def test_another_fault_is_not_blamed_on_the_memory(folder: Path) -> None:
    error = start_error(RuntimeError("shape mismatch"), vllm_settings(folder))
    assert "needed" not in error.message


def test_weights_larger_than_the_memory_are_refused_before_they_are_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_memory.refuse_hopeless(vllm_settings(folder))
    monkeypatch.setattr(machine, "memory", lambda: machine.Memory(8 * GIB, 100_000))
    with pytest.raises(EngineStartError, match=r"does not fit: .*the limit of its cgroup is") as caught:
        model_memory.refuse_hopeless(vllm_settings(folder))
    assert start_error(caught.value, vllm_settings(folder)) is caught.value
    model_memory.refuse_hopeless(vllm_settings(folder, "cuda"))


# --- the machine --------------------------------------------------------------------------------------------------------


def test_the_smallest_limit_of_the_groups_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text("1000000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    found = machine.memory(tmp_path, own)
    assert (found.limit, found.usable, found.bound_by) == (1_000_000, 1_000_000, "the limit of its cgroup")
    own.write_text("5:cpu:/x\n4:memory,hugetlb:/y\n")
    (tmp_path / "memory" / "y").mkdir(parents=True)
    (tmp_path / "memory" / "y" / "memory.limit_in_bytes").write_text("2000000\n")
    assert machine.memory(tmp_path, own).limit == 2_000_000
    assert machine.memory(tmp_path / "none", tmp_path / "none").bound_by == "the machine's memory"
