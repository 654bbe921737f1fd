"""The commands `ddx-local bundle ...`, as they are typed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airgap.world import MODEL, World
from tests.command import Command


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("command"))
    yield found
    found.close()


def test_a_key_a_bundle_a_check_and_a_refusal(command: Command, world: World, tmp_path: Path) -> None:
    key, out = tmp_path / "key", tmp_path / "bundle"
    made = command.run("bundle", "keygen", "--out", key)
    fingerprint = made.out.strip()
    assert len(fingerprint) == 64
    order = world.order
    words = ["bundle", "create", "--model", MODEL, "--no-embedding", "--out", out, "--lock", str(order.lock)]
    words += ["--source", str(order.source), "--own-wheel", str(order.own_wheel)]
    environment = {"DDX_LOCAL_MODELS": str(order.store)}
    neither = command.run(*words, env=environment)
    assert neither.code == 2
    assert "--key KEYDIR or --unsigned" in neither.paragraph
    done = command.run(*words, "--platform", "cpu", "--key", key, env=environment)
    assert (done.code, done.out) == (0, f"{fingerprint}\n"), done.err
    assert "network: open" not in done.err, "the wheels were given"
    done = command.run("bundle", "verify", out, "--key", fingerprint)
    assert done.code == 0
    assert done.out.startswith("whole: ddx-local ")
    assert MODEL in done.out
    (out / "README.txt").write_text("changed")
    done = command.run("bundle", "verify", out)
    assert done.code == 10
    assert "README.txt has 7 bytes" in done.paragraph
    done = command.run("bundle", "install", out, "--prefix", tmp_path / "ddx")
    assert done.code == 10
    assert not (tmp_path / "ddx" / "bin").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["verify", "/nowhere"], 10, "/nowhere is not a folder"),
        (["create", "--model", "nothing", "--unsigned", "--out", "OUT"], 4, "no model is called 'nothing'"),
        (["create", "--model", MODEL, "--unsigned", "--platform", "tpu", "--out", "OUT"], 2, "--platform tpu"),
        (["verify", "/nowhere", "--key", "abc"], 2, "--key abc: is no fingerprint"),
        (["create", "--out", "OUT"], 2, "--model"),
    ],
)
def test_what_is_wrong_with_a_command_is_said_in_one_paragraph(
    command: Command, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    done = command.run("bundle", *(str(tmp_path / "out") if word == "OUT" else word for word in words))
    assert done.code == code
    assert message in done.paragraph
    assert "Traceback" not in done.err
