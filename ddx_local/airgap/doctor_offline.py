"""What the doctor looks at of the offline guarantee: which layers hold, and a real generation with every layer on.

The generation runs in a process of its own: guarded, in an empty network namespace where that is permitted, and under strace
where that is there, which sees what native code tries as well.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ddx_local import offline
from ddx_local.airgap.doctor_check import Check, ok

_NAMESPACE = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
_INET = re.compile(
    r"sa_family=AF_INET6?, .*?(?:inet_addr\(\"(?P<v4>[^\"]+)\"\)|inet_pton\(AF_INET6, \"(?P<v6>[^\"]+)\")"
)
_LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|0\.0\.0\.0|::1|::|::ffff:127\.\d+\.\d+\.\d+")


def layers() -> tuple[Check, ...]:
    """The four layers in this process; the guard has to be on."""
    found = []
    for layer in offline.layers():
        level = "ok" if layer.holds else "warning" if layer.name == "kernel" else "error"
        name = f"offline: {layer.name}"
        found.append(ok(name, layer.detail) if level == "ok" else _not_held(name, level, layer.detail, layer.todo))
    return tuple(found)


def _not_held(name: str, level: str, detail: str, todo: str) -> Check:
    return Check(name, "warning" if level == "warning" else "error", detail, todo)


def generation(settings: dict[str, Any], *, timeout: float = 900) -> Check:
    """Lets the model write a few words with every layer on, and counts the attempts to reach another machine.

    Args:
        settings: What to set in `Settings`, such as the engine and the model.
        timeout: Seconds.
    """
    with tempfile.TemporaryDirectory(prefix="ddx-local-doctor-") as scratch:
        trace, answer = Path(scratch) / "trace", Path(scratch) / "answer.json"
        around, held = _around(trace)
        command = [*around, sys.executable, "-m", "ddx_local.airgap.doctor_run", json.dumps(settings), str(answer)]
        guard = offline.go_offline()
        try:
            done = subprocess.run(
                command, env=guard.child_env(), capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return Check(
                "offline: generation",
                "error",
                f"no answer within {timeout:.0f} s",
                "Try a smaller model: `ddx-local models list`.",
            )
        if not answer.is_file():
            said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return Check(
                "offline: generation",
                "error",
                f"the model could not be run: {said[:300]}",
                "Mend what the other checks name, then try again.",
            )
        found = json.loads(answer.read_text())
        outward = outward_connections(trace.read_text(errors="replace")) if trace.is_file() else []
    return judged(found, outward, held)


def judged(found: dict[str, Any], outward: Sequence[str], held: Sequence[str]) -> Check:
    """What a generation and its trace come to."""
    name, under = "offline: generation", f"with {', '.join(['environment', 'audit hook', *held])}"
    refused = [
        f"{item['by']} ({item['event']}, {item['host_class']}, {item['count']} times)" for item in found["refused"]
    ]
    if outward or refused:
        tried = "; ".join([*(f"connect to {address}" for address in outward[:5]), *refused[:5]])
        return Check(
            name,
            "error",
            f"something tried to leave this machine, {under}: {tried}",
            "Please report it; nothing got out where the kernel's layer holds.",
        )
    return ok(
        name,
        f"{found['model']} wrote {found['tokens']} tokens in {found['seconds']:.0f} s {under}; connections attempted: none",
    )


def outward_connections(trace: str) -> list[str]:
    """Addresses other than loopback in strace's lines of connect, sendto and sendmsg."""
    found = []
    for line in trace.splitlines():
        for match in _INET.finditer(line):
            address = match["v4"] or match["v6"]
            if not _LOOPBACK.fullmatch(address):
                found.append(address)
    return list(dict.fromkeys(found))


def _around(trace: Path) -> tuple[list[str], list[str]]:
    """The commands to run a child under, and the names of the layers that they add."""
    around: list[str] = []
    held: list[str] = []
    if shutil.which("unshare") and _works([*_NAMESPACE, "true"]):
        around += _NAMESPACE
        held.append("an empty network namespace")
    if strace := shutil.which("strace"):
        traced = [strace, "-f", "-qq", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace)]
        if _works([*around, *traced, "true"]):
            around += traced
            held.append("strace")
    return around, held


def _works(command: Sequence[str]) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, timeout=20, check=False, env=dict(os.environ)).returncode == 0
        )
    except (OSError, subprocess.SubprocessError):
        return False
