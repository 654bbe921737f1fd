"""`serve`, `keys` and `audit` as commands: what they say, what they refuse, and how they end."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import CASE

ROOT = Path(__file__).resolve().parents[2]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DDX_LOCAL_", "PYTEST"))}
    return {**kept, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PYTHONPATH": str(ROOT),
            "DDX_LOCAL_MODELS": str(folder / "models")}  # fmt: skip


def command(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "ddx_local.cli.main", *map(str, words)]
    return subprocess.run(
        line, env=environment(folder), cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stderr.split())


@contextmanager
def served(folder: Path, *words: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and where it answers."""
    line = [sys.executable, "-m", "ddx_local.cli.main", "serve", *map(str, words)]
    with subprocess.Popen(line, env=environment(folder), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        found = re.search(r"serving on (https?://\S+|the Unix socket \S+)", first)
        try:
            assert found, first
            yield process, found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def until_ready(http: httpx.Client) -> None:
    for _ in range(3000):
        if http.get("/readyz").status_code == 200:
            return
        time.sleep(0.02)
    raise AssertionError("never ready")


def test_the_demo_answers_on_loopback_without_a_key_and_keeps_nothing(tmp_path: Path) -> None:
    with (
        served(tmp_path, "--demo", "--port", "0", "--demo-delay", "0") as (_, url),
        httpx.Client(base_url=url, trust_env=False, timeout=60) as http,
    ):
        until_ready(http)
        assert "ddx-local panel" in http.get("/").text
        assert http.get("/ddx/v1/status").json()["demo"] is True
        body = {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": CASE}]}
        assert http.post("/v1/chat/completions", json=body, timeout=60).status_code == 200
        assert len(http.get("/ddx/v1/runs").json()["runs"]) == 1
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_unix_socket_of_its_owner_alone_is_served_and_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with served(tmp_path, "--demo", "--uds", path):
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert path.stat().st_mode & 0o077 == 0
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost") as http:
            until_ready(http)
            assert http.get("/v1/models").json()["data"][0]["id"] == "scripted"
    assert not path.exists()


def test_tls_is_spoken_where_a_certificate_is_given(tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", tmp_path / "k.pem", "-out", tmp_path / "c.pem"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl is not here")
    (tmp_path / "k.pem").chmod(0o600)
    flags = ("--ssl-certfile", tmp_path / "c.pem", "--ssl-keyfile", tmp_path / "k.pem")
    with served(tmp_path, "--demo", "--port", "0", *flags) as (_, url):
        port = url.rpartition(":")[2]
        with httpx.Client(
            base_url=f"https://localhost:{port}", verify=str(tmp_path / "c.pem"), trust_env=False
        ) as http:
            until_ready(http)


def test_keys_are_added_listed_used_and_revoked_while_a_server_runs(tmp_path: Path) -> None:
    made = command(tmp_path, "keys", "add", "--name", "desk 1", "--scope", "raw")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    (listed,) = json.loads(command(tmp_path, "keys", "list", "--json").stdout)
    assert (listed["name"], listed["scopes"]) == ("desk 1", ["raw"])
    assert secret.split("_", 2)[2] not in json.dumps(listed)
    with (
        served(tmp_path, "--engine", "scripted", "--port", "0") as (_, url),
        httpx.Client(base_url=url, trust_env=False, timeout=60) as http,
    ):
        assert http.get("/v1/models").status_code == 401
        key = {"authorization": f"Bearer {secret}"}
        assert http.get("/v1/models", headers=key).status_code == 200
        assert command(tmp_path, "keys", "revoke", listed["id"]).returncode == 0
        assert http.get("/v1/models", headers=key).status_code == 401
    verified = command(tmp_path, "audit", "verify")
    assert verified.returncode == 0
    assert re.fullmatch(r"\d+ records hold; head [0-9a-f]{64}\n", verified.stdout)
    exported = command(tmp_path, "audit", "export")
    actions = [json.loads(line)["action"] for line in exported.stdout.splitlines()]
    assert actions == ["key.add", "refused", "models", "key.revoke", "refused"]
    assert command(tmp_path, "audit", "verify", "--head", "0" * 64).returncode == 1


def test_two_servers_share_a_store_and_its_chain(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    flags = ("--demo", "--port", "0", "--demo-delay", "0", "--store", store)
    with served(tmp_path, *flags) as (_, one), served(tmp_path, *flags) as (_, two):
        for url in (one, two):
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
                until_ready(http)
                body = {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": CASE}]}
                assert http.post("/v1/chat/completions", json=body).status_code == 200
                listed = http.get("/ddx/v1/runs").json()["runs"]
        assert len(listed) == 2
    assert command(tmp_path, "audit", "verify", "--store", store).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--port", "0"), 4, "models pull"),
        (("--demo", "--host", "0.0.0.0"), 2, "no API key and no TLS"),
        (("--demo", "--host", "example.org"), 2, "no numeric address"),
        (("--demo", "--keys", "/nowhere/keys.json"), 2, "holds no key"),
        (("--demo", "--ssl-certfile", "c.pem"), 2, "go together"),
        (("--model", "nonsense"), 4, "nonsense"),
        (("--engine", "nonsense"), 2, "engine"),
        (("--port", "99999"), 2, "port"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_paragraph(
    tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    done = command(tmp_path, "serve", *words)
    assert done.returncode == code
    assert told in said(done)
    assert "Traceback" not in done.stderr


def test_a_taken_port_and_a_readable_key_file_are_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = command(tmp_path, "serve", "--demo", "--port", str(taken.getsockname()[1]))
    assert (done.returncode, "in use" in said(done)) == (2, True)
    command(tmp_path, "keys", "add", "--name", "a")
    (tmp_path / "ddx-local" / "keys.json").chmod(0o644)
    done = command(tmp_path, "serve", "--engine", "scripted", "--port", "0")
    assert (done.returncode, "others may read" in said(done)) == (2, True)


def test_a_server_whose_engine_dies_ends_with_75(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from ddx_local.server import demo\n"
        "whole = demo.DemoEngine.generate\n"
        "async def dies(self, *a, **k):\n"
        "    await self.aclose()\n"
        "    return await whole(self, *a, **k)\n"
        "demo.DemoEngine.generate = dies\n"
        "sys.argv = ['ddx-local', 'serve', '--demo', '--port', '0', '--demo-delay', '0']\n"
        "from ddx_local.cli.main import main\n"
        "main()\n"
    )
    line = [sys.executable, "-c", code]
    with subprocess.Popen(line, env=environment(tmp_path), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().partition("serving on ")[2].partition(" ")[0]
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            until_ready(http)
            body = {"model": "scripted", "messages": [{"role": "user", "content": "a"}]}
            assert http.post("/v1/chat/completions", json=body).status_code == 503
            assert http.get("/readyz").status_code == 503
        assert process.wait(60) == 75
        assert "engine" in process.stderr.read()


def test_what_commands_do_with_runs_is_recorded_without_a_word_of_the_case(tmp_path: Path) -> None:
    case, store = tmp_path / "case.txt", tmp_path / "runs.sqlite"
    case.write_text(CASE)
    flags = ("--engine", "scripted", "--method", "zero-shot", "--store", store, "--quiet")
    assert command(tmp_path, "diagnose", case, *flags).returncode == 0
    for words in (("list",), ("show", "last"), ("export", "last"), ("rm", "last", "--yes")):
        assert command(tmp_path, "runs", *words, "--store", store).returncode == 0
    exported = command(tmp_path, "audit", "export", "--store", store).stdout
    records = [json.loads(line) for line in exported.splitlines()]
    assert [item["action"] for item in records] == ["run", "runs.list", "run.show", "run.export", "run.delete"]
    assert {item["actor"] for item in records} == {"local"}
    assert len({item["object"] for item in records if item["object"]}) == 1
    assert "toe" not in exported
    assert command(tmp_path, "audit", "verify", "--store", store).stdout.startswith(
        "6 records hold"
    )  # the export is one too
