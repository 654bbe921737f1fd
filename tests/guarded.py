"""Code under the guard, in child processes: an audit hook cannot be taken out of the process that runs the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# TEST-NET-1 (RFC 5737) and its like for IPv6 (RFC 3849): nobody's, should a packet leave after all.
NOBODY, NOBODY6 = "192.0.2.1", "2001:db8::1"

PRELUDE = """
import json, os, socket, sys
from ddx_local.errors import DdxLocalError, OfflineViolation
from ddx_local.offline import go_offline, installed, layers
"""
GUARDED = PRELUDE + "guard = go_offline()\n"
REFUSED = f"""
import _socket, asyncio, http.client, importlib, urllib.request
HOST, HOST6 = {NOBODY!r}, {NOBODY6!r}
tcp, udp = socket.socket, lambda: socket.socket(type=socket.SOCK_DGRAM)
def refused(call):
    try:
        call()
    except OfflineViolation as error:
        print(json.dumps([error.message, guard.refused]))
    else:
        print(json.dumps([None, guard.refused]))
"""


def clean_env(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME") if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT)} | more


def run(
    code: str, *, python: Path | str = sys.executable, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, str(python), "-c", code],
        env=clean_env() if env is None else env,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def answer(code: str, **how: Any) -> Any:
    done = run(code, **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
