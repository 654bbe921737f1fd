"""Models that lie in a folder come into the store and out of it; those of the hub come over a made hub on loopback."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ddx_local import models
from ddx_local.errors import ModelError
from ddx_local.model_card import HubSource, ModelCard, Source
from ddx_local.model_pull import pull_card
from ddx_local.model_shape import weights_of
from ddx_local.model_store import write_manifest
from tests import tiny_model
from tests.command import Command

NAME = "smollm2-135m"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return tiny_model.build(tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, made: Path) -> ModelCard:
    """The card of the made model, under the name of a shipped one."""
    card = replace(
        models.card(NAME),
        parameters=weights_of(made).numbers,
        source=Source(hub=HubSource(repo="made/tiny")),
    )
    table = {**models.cards(), NAME: card}
    for module in ("model_add", "model_verify", "model_card", "model_store"):
        monkeypatch.setattr(f"ddx_local.{module}.cards", lambda: table)
    monkeypatch.setattr("ddx_local.model_add.card", lambda name: table[name])
    return card


@pytest.mark.usefixtures("tiny")
def test_a_folder_comes_into_the_store_whole_with_links_followed(made: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in made.iterdir():
        (cache / path.name).symlink_to(path)
    (cache / ".hidden").write_text("x")
    folder = models.add(cache, NAME, tmp_path / "store", progress=silent)
    assert folder == tmp_path / "store" / NAME
    assert not [path for path in folder.iterdir() if path.is_symlink()]
    assert not (folder / ".hidden").exists()
    assert models.verify(NAME, tmp_path / "store") == ()
    assert oct(folder.stat().st_mode)[-3:] == "700"
    assert models.add(cache, NAME, tmp_path / "store", progress=silent) == folder


@pytest.mark.usefixtures("tiny")
def test_a_folder_of_another_store_knows_its_own_name_and_keeps_its_source(made: Path, tmp_path: Path) -> None:
    first = models.add(made, NAME, tmp_path / "one", progress=silent)
    shutil.copytree(first, tmp_path / "carried")
    second = models.add(tmp_path / "carried", None, tmp_path / "two", progress=silent)
    assert models.read_manifest(second).source == models.read_manifest(first).source == {"folder": "model"}
    (tmp_path / "carried" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"config\.json: the file"):
        models.add(tmp_path / "carried", None, tmp_path / "three", progress=silent)
    assert models.installed(tmp_path / "three") == ()


def edit(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("pytorch_model.bin", b"\x80\x04", "pickle"),
        ("modeling.py", b"", "code"),
        ("tokenizer.json", b"{}", "tokenizer"),
        ("model.safetensors", b"x" * 99, "safetensors"),
    ],
)
def test_a_folder_that_is_not_safe_or_not_whole_stays_out(
    made: Path, tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(made, folder)
    edit(folder, name, data)
    with pytest.raises(ModelError, match=message) as caught:
        models.add(folder, NAME, tmp_path / "store", progress=silent)
    assert name in caught.value.message
    assert models.installed(tmp_path / "store") == ()
    assert not [path for path in (tmp_path / "store").iterdir() if path.name.endswith(".part")]


def test_another_model_than_the_card_s_is_refused_by_its_size(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"this is not {NAME}: the weights are \d+ numbers"):
        models.add(made, NAME, tmp_path / "store", progress=silent)
    with pytest.raises(ModelError, match="the folder is called 'model', and no card is") as caught:
        models.add(made, None, tmp_path / "store", progress=silent)
    assert "--as NAME" in caught.value.hint
    with pytest.raises(ModelError, match="is not a folder"):
        models.add(tmp_path / "none", NAME, tmp_path / "store", progress=silent)


@pytest.mark.usefixtures("tiny")
def test_a_model_is_removed_and_nothing_else(made: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    models.add(made, NAME, store, progress=silent)
    (store / "other").mkdir()
    models.remove(NAME, store)
    assert {path.name for path in store.iterdir()} == {"other", f".{NAME}.lock"}
    with pytest.raises(ModelError, match="is not in the store"):
        models.remove(NAME, store)
    with pytest.raises(ModelError, match="is no model name"):
        models.remove("../other", store)


OWN_CARD = """\
name = "ward-model"
kind = "chat"
purpose = "A model of our own."
licence = "Apache-2.0"
gated = false
parameters = {parameters}
context_length = 64
dtype = "float32"
[source.hub]
repo = "ward/model"
"""


def test_a_model_of_one_s_own_brings_its_card_along(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, path = tmp_path / "store", tmp_path / "ward-model.toml"
    monkeypatch.setenv("DDX_LOCAL_MODELS", str(store))
    path.write_text(OWN_CARD.format(parameters=weights_of(made).numbers))
    assert "ward-model" not in models.cards()
    folder = models.add(made, own_card=path, progress=silent)
    assert folder == store / "ward-model"
    assert models.card("ward-model").purpose == "A model of our own."
    assert models.verify("ward-model") == ()
    shutil.copytree(folder, tmp_path / "carried")
    monkeypatch.setenv("DDX_LOCAL_MODELS", str(tmp_path / "other"))
    assert models.add(tmp_path / "carried", progress=silent) == tmp_path / "other" / "ward-model"
    (tmp_path / "other" / "ward-model" / "card.toml").write_text("broken")
    assert "ward-model" not in models.cards()
    models.remove("ward-model")
    (tmp_path / "qwen3-4b.toml").write_text(OWN_CARD.format(parameters=1).replace("ward-model", "qwen3-4b"))
    with pytest.raises(ModelError, match="a shipped card is called 'qwen3-4b'"):
        models.add(made, own_card=tmp_path / "qwen3-4b.toml", progress=silent)


# --- the hub ------------------------------------------------------------------------------------------------------------


class Hub(ThreadingHTTPServer):
    """As much of a hub as the client asks for: one repository at one commit, with sha256 of its weights."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.wrong_digest, self.refuse = files, False, 0
        self.asked: list[str] = []

    def digest(self, name: str) -> str:
        return "0" * 64 if self.wrong_digest else hashlib.sha256(self.files[name]).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        if self.server.refuse:
            self._send(
                self.server.refuse, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Ask first."}, body=body
            )
        elif path.startswith("/api/models/made/tiny/revision/"):
            self._send(200, json.dumps(self._info()).encode(), {"Content-Type": "application/json"}, body=body)
        elif (
            path.startswith(f"/made/tiny/resolve/{COMMIT}/")
            and (name := path.rpartition(f"{COMMIT}/")[2]) in self.server.files
        ):
            data = self.server.files[name]
            more = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self._send(200, data, more, body=body)
        else:
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body=body)

    def _info(self) -> dict[str, object]:
        siblings = [
            {"rfilename": name, "size": len(data)}
            | (
                {"lfs": {"sha256": self.server.digest(name), "size": len(data), "pointerSize": 9}}
                if "safetensors" in name
                else {}
            )
            for name, data in self.server.files.items()
        ]
        return {"id": "made/tiny", "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0, "private": False}

    def _send(self, code: int, data: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    files |= {
        "pytorch_model.bin": b"\x80\x04",
        "original/consolidated.00.pth": b"\x80\x04",
        "run.py": b"x",
        "LICENSE": b"Yes.",
    }
    server = Hub(files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_of_the_hub_comes_at_one_commit_without_pickles_and_code(
    hub: Hub, tiny: ModelCard, tmp_path: Path
) -> None:
    said: list[str] = []
    folder = pull_card(tiny, tmp_path / "store", progress=said.append)
    names = {path.name for path in folder.iterdir()}
    assert {
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "LICENSE",
        "manifest.json",
    } <= names
    assert not names & {"pytorch_model.bin", "original", "run.py", ".cache"}
    assert not any(name.endswith((".bin", ".pth", ".py")) for name in hub.asked)
    assert models.read_manifest(folder).source == {"repo": "made/tiny", "revision": COMMIT, "licence": "Apache-2.0"}
    assert any(f"--revision {COMMIT}" in line for line in said)
    assert any(line == "network: open for `models pull`" for line in said)
    assert models.verify(NAME, tmp_path / "store") == ()


@pytest.mark.usefixtures("hub")
def test_a_named_commit_is_what_is_fetched(tiny: ModelCard, tmp_path: Path) -> None:
    said: list[str] = []
    pull_card(tiny, tmp_path / "store", progress=said.append, revision=COMMIT)
    assert f"downloading made/tiny at {COMMIT}" in said
    assert not any("--revision" in line for line in said)


def test_what_the_hub_does_not_hand_out_or_hands_out_wrong_is_refused(
    hub: Hub, tiny: ModelCard, tmp_path: Path
) -> None:
    hub.wrong_digest = True
    with pytest.raises(ModelError, match=r"model\.safetensors: its sha256 is not the one that the hub states"):
        pull_card(tiny, tmp_path / "store", progress=silent)
    hub.wrong_digest, hub.refuse = False, 403
    with pytest.raises(ModelError, match="could not be fetched") as caught:
        pull_card(tiny, tmp_path / "store", progress=silent)
    assert "HF_TOKEN" in caught.value.hint
    hub.refuse = 0
    del hub.files["model.safetensors"]
    with pytest.raises(ModelError, match="holds no safetensors"):
        pull_card(tiny, tmp_path / "store", progress=silent)
    assert models.installed(tmp_path / "store") == ()


# --- the commands -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("command"))
    yield found
    found.close()


def test_fit_prints_the_parts_and_one_command(command: Command) -> None:
    done = command.run("models", "fit", "qwen2.5-7b", "--device", "cuda", "--memory", "24")
    assert done.code == 0
    for word in ("weights", "57,344 bytes a token", "It fits: ", "ddx-local diagnose CASE --model qwen2.5-7b"):
        assert word in done.out
    done = command.run("models", "fit", "qwen2.5-7b", "--device", "cuda", "--memory", "8", "--json")
    assert done.code == 4
    assert done.json["fits"] is False
    assert done.json["bytes"]["kv_per_token"] == 57344
    assert "bitsandbytes-4bit" in done.json["command"]
    assert command.run("models", "fit", "all-minilm-l6-v2").code == 4
    assert command.run("models", "fit", "qwen2.5-7b", "--device", "gpu").code == 2
    assert "1,048,576" not in command.run("models", "fit", "gemma4-31b", "--memory", "100").out


def test_rm_asks_first(command: Command, made: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(made, store / NAME)
    write_manifest(store / NAME, NAME, {})
    environment = {"DDX_LOCAL_MODELS": str(store)}
    refused = command.run("models", "rm", NAME, env=environment)
    assert refused.code == 2
    assert "nothing was deleted" in refused.paragraph
    assert command.run("models", "rm", NAME, "--yes", env=environment).out == f"deleted {store / NAME}\n"
    assert not (store / NAME).exists()
    refused = command.run("models", "add", str(made), "--as", "qwen3-4b", env=environment)
    assert refused.code == 4
    assert "this is not qwen3-4b" in refused.paragraph


def test_the_child_that_fetches_knows_no_store() -> None:
    code = "import sys; import ddx_local.model_hub; print('huggingface_hub' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.split() == ["False", "False"]
