"""The real command `ddx-local`, each time in a process of its own, started quickly, so that tests can afford many.

A server process imports everything once and forks for each command; the fork's files, environment and folder are its own.
The scripted engine of these processes takes DDX_TEST_DELAY seconds for each answer, so that they can be disturbed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code (negative where a signal ended it) and what it said."""

    code: int
    out: str
    err: str

    @property
    def paragraph(self) -> str:
        """Standard error in one line, however it was wrapped."""
        return " ".join(self.err.split())

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """A client of the server; `folder` takes the files that stand for its standard streams."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.command"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str | Path, stdin: bytes = b"", env: Mapping[str, str] = {}, cwd: Path = ROOT) -> Done:
        """Run a command to its end."""
        self.begin(*words, stdin=stdin, env=env, cwd=cwd)
        return self.end()

    def begin(self, *words: str | Path, stdin: bytes = b"", env: Mapping[str, str] = {}, cwd: Path = ROOT) -> int:
        """Start a command; returns the number of its process, which stays its own until `end`."""
        self._count += 1
        (self._folder / f"{self._count}.in").write_bytes(stdin)
        base = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        return self._ask(
            {
                "words": [str(word) for word in words],
                "files": [str(self._folder / f"{self._count}.{end}") for end in ("in", "out", "err")],
                "env": {**base, **env},
                "cwd": str(cwd),
            }
        )

    def wait_for(self, text: str) -> None:
        """Until the command has said this on standard error."""
        for _ in range(20_000):
            if text in self._said("err"):
                return
            time.sleep(0.001)
        raise AssertionError(f"it never said {text!r}: {self._said('err')}")

    def end(self) -> Done:
        """Wait for the command."""
        code = self._ask({})
        return Done(code, self._said("out"), self._said("err"))

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(60)

    def _said(self, stream: str) -> str:
        path = self._folder / f"{self._count}.{stream}"
        return path.read_bytes().decode() if path.exists() else ""

    def _ask(self, what: Mapping[str, Any]) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(what) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def _serve(lines: IO[str]) -> None:
    from ddx_local import jobs, launch, models
    from ddx_local.cli import forecast, live, main, out, run_live, show
    from ddx_local.engines.scripted import ScriptedEngine
    from ddx_local.settings import Settings

    _ = (jobs, models, forecast, live, out, run_live, show)  # imported before the forks
    fast = launch.open_scripted

    async def slow(settings: Settings, say: Callable[[str], None]) -> ScriptedEngine:
        engine = await fast(settings, say)
        assert isinstance(engine, ScriptedEngine)
        engine.delay = float(os.environ.get("DDX_TEST_DELAY", "0"))
        return engine

    launch.open_scripted = slow
    for line in lines:
        what = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(what)
            try:
                main.main()
            except SystemExit as end:
                os._exit(end.code)  # type: ignore[arg-type]  # the interpreter's own end costs more than most commands
        print(pid, flush=True)
        lines.readline()
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(what: Mapping[str, Any]) -> None:
    for number, path in enumerate(what["files"]):
        opened = os.open(path, os.O_CREAT | (os.O_WRONLY if number else os.O_RDONLY), 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(what["env"])
    os.chdir(what["cwd"])
    sys.stdin = open(0)  # noqa: SIM115
    sys.argv = ["ddx-local", *what["words"]]


if __name__ == "__main__":
    _serve(sys.stdin)
