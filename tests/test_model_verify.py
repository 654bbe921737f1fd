"""The verifier finds what makes a model folder unsafe, broken or subtly wrong, on a tiny made-up model."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ddx_local import models
from ddx_local.model_card import ChatQuirks
from ddx_local.model_chat import chat_findings
from ddx_local.model_store import write_manifest
from tests.tiny_model import TEMPLATE, build, errors_of

EDIT = Callable[[Path], object]


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


def test_one_changed_byte_is_found_and_its_file_named(model: Path) -> None:
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    [(file, message)] = errors_of(models.verify("tiny", model.parent))
    assert file == "model.safetensors"
    assert "was changed" in message


def edit_json(folder: Path, name: str, **changes: object) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def set_template(text: str) -> EDIT:
    return lambda folder: (folder / "chat_template.jinja").write_text(text)


@pytest.mark.parametrize(
    ("edit", "file", "message"),
    [
        pytest.param(lambda f: (f / "extra.txt").touch(), "extra.txt", "not in the manifest", id="extra"),
        pytest.param(lambda f: (f / "config.json").unlink(), "config.json", "missing", id="missing"),
        pytest.param(lambda f: (f / "manifest.json").write_text("{}"), "manifest.json", "manifest", id="manifest"),
    ],
)
def test_a_folder_that_differs_from_its_manifest_is_refused(model: Path, edit: EDIT, file: str, message: str) -> None:
    edit(model)
    assert any(file == found and message in text for found, text in errors_of(models.verify("tiny", model.parent)))


def put_in(name: str, content: bytes) -> EDIT:
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("edit", "file", "message"),
    [
        pytest.param(put_in("pytorch_model.bin", b"x"), "pytorch_model.bin", "pickle", id="pickle by name"),
        pytest.param(put_in("notes.txt", b"\x80\x04\x95\x00"), "notes.txt", "pickle", id="pickle by content"),
        pytest.param(put_in("notes.json", b"PK\x03\x04"), "notes.json", "pickle", id="torch archive by content"),
        pytest.param(put_in("modeling_x.py", b"x"), "modeling_x.py", "code", id="python"),
        pytest.param(put_in("x.gguf", b"GGUF"), "x.gguf", "not safetensors", id="gguf"),
        pytest.param(put_in("x.safetensors", b"GGUFGGUFGGUF"), "x.safetensors", "not a safetensors", id="no header"),
        pytest.param(lambda f: os.truncate(f / "model.safetensors", 900), "model.safetensors", "header", id="cut off"),
        pytest.param(lambda f: (f / "model.safetensors").unlink(), "", "no weights", id="no weights"),
        pytest.param(lambda f: (f / "l.json").symlink_to("/etc/hostname"), "l.json", "link", id="link"),
        pytest.param(
            lambda f: edit_json(f, "config.json", auto_map={"AutoModel": "x.Y"}),
            "config.json",
            "auto_map",
            id="auto_map",
        ),
        pytest.param(
            lambda f: edit_json(f, "tokenizer_config.json", auto_map={"AutoTokenizer": ["x.Y", None]}),
            "tokenizer_config.json",
            "auto_map",
            id="auto_map of the tokenizer",
        ),
        pytest.param(
            lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "b.safetensors"}}'),
            "b.safetensors",
            "missing",
            id="missing shard",
        ),
        pytest.param(
            lambda f: (f / "chat_template.jinja").unlink(), "chat_template.jinja", "no chat template", id="no template"
        ),
        pytest.param(set_template("{{ messages["), "chat_template.jinja", "does not render", id="broken template"),
        pytest.param(set_template("<s>hello"), "chat_template.jinja", "user message is not in", id="deaf template"),
        pytest.param(set_template("{{ bos_token }}" + TEMPLATE), "chat_template.jinja", "2 BOS", id="two BOS"),
        pytest.param(
            set_template(TEMPLATE.removeprefix("{{ bos_token }}")),
            "chat_template.jinja",
            "without the BOS",
            id="no BOS",
        ),
        pytest.param(put_in("tokenizer.json", b"{}"), "tokenizer.json", "does not load", id="broken tokenizer"),
    ],
)
def test_an_unsafe_or_broken_model_folder_is_refused(model: Path, edit: EDIT, file: str, message: str) -> None:
    (model / "manifest.json").unlink()
    edit(model)
    [(found, text)] = errors_of(models.verify(model))
    assert found == file
    assert message in text


def test_a_sound_folder_without_manifest_gets_a_warning_only(model: Path) -> None:
    (model / "manifest.json").unlink()
    assert [(finding.level, finding.file) for finding in models.verify(model)] == [("warning", "manifest.json")]


def test_a_family_that_needs_a_bos_gets_one_before_plain_text_too(model: Path) -> None:
    assert chat_findings(model, ChatQuirks(add_bos=True)) == ()
    edit_json(model, "tokenizer.json", post_processor=None)
    assert chat_findings(model, None) == ()
    [finding] = chat_findings(model, ChatQuirks(add_bos=True))
    assert "plain text begins with 0 BOS" in finding.message
    edit_json(model, "config.json", model_type="gemma3_text")
    [finding] = chat_findings(model, None)
    assert "plain text begins with 0 BOS" in finding.message


@pytest.mark.parametrize("quirks", [ChatQuirks(add_bos=True), None], ids=["by its card", "by its kind"])
@pytest.mark.parametrize(
    ("template", "message"),
    [
        (TEMPLATE.removeprefix("{{ bos_token }}"), "begins without the BOS"),
        ("<s>" + TEMPLATE, "begins with 2 BOS"),
        (None, "no chat template"),
    ],
)
def test_a_family_that_needs_a_bos_needs_it_once_in_its_template(
    model: Path, quirks: ChatQuirks | None, template: str | None, message: str
) -> None:
    edit_json(model, "config.json", model_type="gemma3_text")
    assert chat_findings(model, quirks) == ()
    if template is None:
        (model / "chat_template.jinja").unlink()
    else:
        set_template(template)(model)
    [(file, text)] = errors_of(chat_findings(model, quirks))
    assert file == "chat_template.jinja"
    assert message in text


def test_a_bos_that_neither_the_tokenizer_nor_the_template_writes_is_a_warning_where_nothing_is_stated(
    model: Path,
) -> None:
    edit_json(model, "tokenizer.json", post_processor=None)
    set_template(TEMPLATE.removeprefix("{{ bos_token }}"))(model)
    [finding] = chat_findings(model, None)
    assert (finding.level, "neither its text nor the chat template" in finding.message) == ("warning", True)
    assert chat_findings(model, ChatQuirks(add_bos=False)) == ()


def test_a_family_without_bos_needs_none(model: Path) -> None:
    set_template(TEMPLATE.removeprefix("{{ bos_token }}"))(model)
    assert errors_of(chat_findings(model, None))
    assert chat_findings(model, ChatQuirks(add_bos=False)) == ()


def test_a_template_without_system_role_is_an_error_unless_the_card_says_so(model: Path) -> None:
    set_template("{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE)(
        model
    )
    assert [finding.level for finding in chat_findings(model, None)] == ["warning"]
    assert errors_of(chat_findings(model, ChatQuirks()))
    assert chat_findings(model, ChatQuirks(system_role=False)) == ()


def test_a_template_that_writes_the_date_is_a_warning(model: Path) -> None:
    set_template(TEMPLATE + "{{ strftime_now('%d %b %Y') }}")(model)
    [finding] = chat_findings(model, None)
    assert (finding.level, "today's date" in finding.message) == ("warning", True)


def test_an_embedding_model_without_its_pooling_or_with_foreign_code_is_refused(model: Path) -> None:
    kinds = ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling", "evil.module.Run"]
    modules = [{"path": path, "type": kind} for path, kind in zip(["", "1_Pooling", ""], kinds, strict=True)]
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "manifest.json").unlink()
    found = dict(errors_of(models.verify(model)))
    assert set(found) == {"1_Pooling/config.json", "modules.json"}
    assert "evil.module.Run" in found["modules.json"]


def test_a_converted_gemma_without_template_and_bos_is_found_out_on_both_counts(model: Path) -> None:
    edit_json(model, "tokenizer.json", post_processor=None)
    edit_json(model, "config.json", model_type="gemma3_text")
    (model / "chat_template.jinja").unlink()
    files = [file for file, _ in errors_of(chat_findings(model, None))]
    assert files == ["tokenizer_config.json", "chat_template.jinja"]
