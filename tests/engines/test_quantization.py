"""Quantised weights: what a run may ask for, and the errors that come before anything is loaded."""

import json
import sys
from pathlib import Path

import pytest

from ddx_local.engines.quantization import checkpoint_method, for_transformers, for_vllm
from ddx_local.errors import EngineStartError, UsageError


def checkpoint(folder: Path, method: str | None) -> Path:
    folder.mkdir()
    config = {"model_type": "llama"} | ({"quantization_config": {"quant_method": method, "bits": 4}} if method else {})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def install(name: str, site: Path) -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")


def test_whole_weights_without_a_wish_are_run_as_they_are(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "whole", None)
    assert checkpoint_method(folder) is None
    assert for_vllm(None, folder, "cpu") is None
    assert for_transformers(None) is None


@pytest.mark.parametrize("text", ["", "[]", '"x"', "{}", '{"quantization_config": 4}', '{"quantization_config": null}'])
def test_a_config_that_says_nothing_of_it_is_one_of_whole_weights(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    assert checkpoint_method(tmp_path) is None
    assert checkpoint_method(tmp_path / "nowhere") is None


@pytest.mark.parametrize("method", ["gptq", "awq", "compressed-tensors", "fp8"])
def test_a_checkpoint_that_is_quantised_says_so_itself(method: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "small", method)
    assert checkpoint_method(folder) == method
    assert for_vllm(None, folder, "cpu") is None
    assert for_vllm(method, folder, "cuda") == method


def test_vllm_runs_bitsandbytes_on_a_gpu_only(tmp_path: Path) -> None:
    whole, small = checkpoint(tmp_path / "whole", None), checkpoint(tmp_path / "small-bnb-4bit", "bitsandbytes")
    with pytest.raises(EngineStartError, match=r"^--quantization bitsandbytes: vLLM runs it on a GPU only") as caught:
        for_vllm("bitsandbytes", whole, "cpu")
    assert "--engine transformers" in caught.value.hint
    with pytest.raises(EngineStartError, match=r"^small-bnb-4bit is quantised by bitsandbytes: .* GPU only"):
        for_vllm(None, small, "cpu")


@pytest.mark.parametrize("asked", ["bitsandbytes", None])
def test_bitsandbytes_without_its_packages_names_them(
    asked: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    monkeypatch.setattr(sys, "path", [str(site)])
    folder = checkpoint(tmp_path / "model", "bitsandbytes")
    with pytest.raises(EngineStartError, match="needs vllm-bnb-plugin and bitsandbytes for it"):
        for_vllm(asked, folder, "cuda")
    install("bitsandbytes", site)
    with pytest.raises(EngineStartError, match="needs vllm-bnb-plugin for it") as caught:
        for_vllm(asked, folder, "cuda")
    assert "pip install vllm-bnb-plugin`" in caught.value.hint
    install("vllm-bnb-plugin", site)
    assert for_vllm(asked, folder, "cuda") == asked


def test_gguf_is_refused_because_the_store_holds_safetensors(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError, match="safetensors only"):
        for_vllm("gguf", checkpoint(tmp_path / "model", None), "cuda")


def test_transformers_has_two_quantisations_and_knows_vllms_name_for_one() -> None:
    assert for_transformers("bitsandbytes-8bit") == "bitsandbytes-8bit"
    assert for_transformers("bitsandbytes-4bit") == for_transformers("bitsandbytes") == "bitsandbytes-4bit"
    with pytest.raises(UsageError, match="did you mean bitsandbytes-4bit") as caught:
        for_transformers("bitsandbytes4bit")
    assert "leave it out" in caught.value.hint
    with pytest.raises(UsageError, match="known: bitsandbytes-4bit, bitsandbytes-8bit"):
        for_transformers("awq")


@pytest.mark.engine
async def test_a_method_that_vllm_does_not_know_names_the_nearest() -> None:
    from ddx_local import models
    from ddx_local.engines.vllm import VllmEngine, VllmSettings

    name = "smollm2-135m"
    settings = VllmSettings(
        folder=models.snapshot(name), card=models.card(name), weights_sha256="", device="cpu", quantization="gptqq"
    )
    with pytest.raises(EngineStartError, match="--quantization gptqq: did you mean gptq or ") as caught:
        await VllmEngine.open(settings)
    assert "Leave --quantization out" in caught.value.hint


@pytest.mark.engine
@pytest.mark.parametrize(
    ("engine", "asked", "said"),
    [
        ("vllm", "bitsandbytes", "vLLM runs it on a GPU only"),
        ("transformers", "bitsandbytes-3bit", "did you mean bitsandbytes-"),
    ],
)
async def test_the_flag_is_checked_before_anything_is_loaded(engine: str, asked: str, said: str) -> None:
    from ddx_local import settings
    from ddx_local.launch import open_all

    heard: list[str] = []
    chosen = settings.load(engine=engine, quantization=asked, device="cpu")
    with pytest.raises((EngineStartError, UsageError), match=said):
        await open_all(chosen, embedding=False, say=heard.append)
    assert heard == []
