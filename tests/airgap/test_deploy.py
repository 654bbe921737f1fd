"""What the container, the service and the quadlet say, and that the container's steps work, as far as no engine is needed."""

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ddx_local.offline_switches import ENFORCED
from tests.airgap.world import ROOT, World

CONTAINERFILE = (ROOT / "Containerfile").read_text()
SERVICE = ROOT / "deploy" / "ddx-local.service"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, continued lines joined."""
    lines = [line for line in CONTAINERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())]


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def test_the_image_bakes_every_offline_switch_in() -> None:
    found = dict(re.findall(r'([A-Za-z_]+)="?([^"\s]+)"?', last("ENV")))
    assert {name: found.get(name) for name in ENFORCED} == ENFORCED
    assert found["DDX_LOCAL_OFFLINE"] == "1"


def test_the_image_is_built_from_the_bundle_alone_and_runs_as_nobody_special() -> None:
    words = [word for word, _ in instructions()]
    assert set(words) <= {
        "ARG",
        "FROM",
        "COPY",
        "RUN",
        "LABEL",
        "ENV",
        "USER",
        "WORKDIR",
        "VOLUME",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    assert not re.search(r"curl|wget|apt|https?://|pip install|:latest", CONTAINERFILE)
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last("USER"))
    assert words.index("USER") < words.index("ENTRYPOINT")
    for word in ("ENTRYPOINT", "CMD", "VOLUME"):
        assert last(word).startswith("[")
    assert "org.opencontainers.image.licenses" in last("LABEL")
    if shutil.which("hadolint"):
        subprocess.run(["hadolint", str(ROOT / "Containerfile")], check=True)


@pytest.mark.slow
def test_what_the_image_s_build_runs_installs_the_bundle(world: World, tmp_path: Path, netns: tuple[str, ...]) -> None:
    stages = instructions()
    second = [place for place, (word, _) in enumerate(stages) if word == "FROM"][1]
    runs = [rest for word, rest in stages[:second] if word == "RUN"]
    assert len(runs) == 3
    place = tmp_path / "opt"
    script = "\n".join(runs).replace("/bundle", str(world.bundle)).replace("/opt/ddx-local", str(place))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PLATFORM": "cpu",
        "KEY": world.fingerprint,
        "ACCEPT": "",
    }
    done = subprocess.run(
        [*netns, "sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert os.access(place / "bin" / "ddx-local", os.X_OK)
    assert (place / "share" / "deploy" / "healthcheck.py").is_file()
    assert (place / "models").stat().st_mode & 0o055 == 0o055
    wrong = subprocess.run(
        [*netns, "sh", "-eu", "-c", script], env={**environment, "PLATFORM": "cuda"}, capture_output=True, check=False
    )
    assert wrong.returncode


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


def test_the_service_lets_nothing_out_and_leaves_nothing_readable() -> None:
    service = unit(SERVICE)["Service"]
    wanted = {
        "NoNewPrivileges": "true",
        "ProtectSystem": "strict",
        "IPAddressDeny": "any",
        "IPAddressAllow": "localhost",
        "StateDirectory": "ddx-local",
        "StateDirectoryMode": "0700",
        "UMask": "0077",
        "LimitCORE": "0",
        "User": "ddx-local",
    }
    assert {name: service[name] for name in wanted} == wanted
    assert "MemoryDenyWriteExecute" not in service
    assert "AF_INET" in service["RestrictAddressFamilies"], "the network guard asks the kernel which interfaces are up"


def test_systemd_itself_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here")
    path = tmp_path / "ddx-local.service"
    path.write_text(SERVICE.read_text().replace("/opt/ddx-local/bin/ddx-local", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(path)], capture_output=True, check=False
    )
    assert rated.returncode == 0, "its exposure is above 2.0"


def test_the_quadlet_has_no_network_and_a_read_only_root() -> None:
    container = unit(ROOT / "deploy" / "ddx-local.container")["Container"]
    wanted = {
        "Network": "none",
        "ReadOnly": "true",
        "NoNewPrivileges": "true",
        "DropCapability": "all",
        "Pull": "never",
    }
    assert {name: container[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("answer", "code"), [(b"HTTP/1.1 200 OK\r\n\r\n", 0), (b"HTTP/1.1 503 No\r\n\r\n", 1), (b"", 1)]
)
def test_the_health_check_believes_a_200_and_nothing_else(tmp_path: Path, answer: bytes, code: int) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        check = [sys.executable, "-I", "-S", str(ROOT / "deploy" / "healthcheck.py")]
        assert subprocess.run([*check, str(path)], check=False).returncode == code
        thread.join()
    assert subprocess.run([*check, str(tmp_path / "none")], check=False).returncode == 1


def test_every_command_of_the_manual_exists() -> None:
    from ddx_local.airgap.texts import readme
    from ddx_local.cli.main import app

    text = (ROOT / "docs" / "deploy.md").read_text() + readme("1", "2026-01-01", ["m"], "cpu", "3.11")
    groups = {
        group.name: {command.name for command in group.typer_instance.registered_commands}
        for group in app.registered_groups
    }
    single = {command.name for command in app.registered_commands}
    said = re.findall(r"(?:bin/|`)ddx-local ([a-z]+)(?: ([a-z]+))?", text)
    assert len(said) > 8
    for verb, more in said:
        assert verb in single or more in groups[verb] or not more, (verb, more)
