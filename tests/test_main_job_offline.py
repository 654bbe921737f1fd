"""The main job as a user types it, real weights and all, where there is no network, with every address that it uses noted."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from ddx_local import result
from tests.guarded import NOBODY, ROOT, clean_env

pytestmark = pytest.mark.engine

CASE = ROOT / "bench" / "cases" / "sudden-painful-toe.txt"
_ADDRESSED = re.compile(r"\bsa_family=AF_INET")
_LOOPBACK = re.compile(r'inet_addr\("127\.|inet_pton\(AF_INET6, "::1"')


@dataclass(frozen=True)
class Done:
    """A run without a network, and the system calls of all its processes that name an internet address."""

    ran: subprocess.CompletedProcess[str]
    addressed: Sequence[str]
    document: Path

    @property
    def outside(self) -> list[str]:
        return [line for line in self.addressed if not _LOOPBACK.search(line)]


@pytest.fixture(scope="module")
def strace(netns: tuple[str, ...]) -> tuple[str, ...]:
    """The tracing command, or nothing where there is none or it is not permitted."""
    if shutil.which("strace") is None:
        return ()
    tried = subprocess.run([*netns, "strace", "-f", "-o", os.devnull, "true"], capture_output=True, check=False)
    return () if tried.returncode else ("strace", "-f", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg", "-o")


def run(netns: Sequence[str], strace: Sequence[str], folder: Path, *arguments: str) -> Done:
    trace = folder / "trace.txt"
    ran = subprocess.run(
        [*netns, *strace, *([str(trace)] if strace else []), sys.executable, *arguments],
        cwd=folder,
        env=clean_env(
            DDX_LOCAL_MODELS=os.environ["DDX_LOCAL_MODELS"],
            DDX_LOCAL_STORE=str(folder / "runs.sqlite"),
            XDG_CONFIG_HOME=str(folder / "config"),
            GOMP_SPINCOUNT=os.environ["GOMP_SPINCOUNT"],
        ),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    lines = trace.read_text().splitlines() if strace else []
    return Done(ran, [line for line in lines if _ADDRESSED.search(line)], folder / "result.json")


@pytest.fixture(scope="module")
def done(netns: tuple[str, ...], strace: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Done:
    asked = ("diagnose", str(CASE), "--method", "zero-shot", "--quiet", "--json", "result.json")
    return run(netns, strace, tmp_path_factory.mktemp("main-job"), "-m", "ddx_local.cli.main", *asked)


def test_without_a_network_the_case_is_finished(done: Done) -> None:
    assert done.ran.returncode == 0, done.ran.stderr
    assert done.ran.stdout == ""
    document = json.loads(done.document.read_text("utf-8"))
    jsonschema.validate(document, result.schema())
    assert (document["status"], document["engine"]) == ("finished", "vllm")
    assert document["totals"]["generated_tokens"] > 0
    assert document["differential"]
    text = CASE.read_text("utf-8")
    for entry in document["differential"]:
        assert all(text[item["start"] : item["end"]] == item["quote"] for item in entry["evidence"])


def test_no_process_of_it_addresses_anything_outside_loopback(done: Done, strace: tuple[str, ...]) -> None:
    if not strace:
        pytest.skip("strace is not installed, or ptrace is not permitted here")
    assert done.ran.returncode == 0, done.ran.stderr
    assert done.outside == []


def test_the_trace_would_have_seen_it(netns: tuple[str, ...], strace: tuple[str, ...], tmp_path: Path) -> None:
    if not strace:
        pytest.skip("strace is not installed, or ptrace is not permitted here")
    code = f"""
import os, socket, threading
def reach():
    for host in ("127.0.0.1", {NOBODY!r}):
        try: socket.create_connection((host, 9), 1)
        except OSError: pass
        try: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (host, 9))
        except OSError: pass
thread = threading.Thread(target=reach)
thread.start(); thread.join()
if os.fork() == 0: reach()
else: os.wait()
"""
    canary = run(netns, strace, tmp_path, "-c", code)
    assert canary.ran.returncode == 0, canary.ran.stderr
    assert len(canary.addressed) == 8
    assert len(canary.outside) == 4
    assert all(NOBODY in line for line in canary.outside)
