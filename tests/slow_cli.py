"""The real command line with a scripted engine that takes DDX_TEST_DELAY seconds for each answer, so that it can be disturbed.

With arguments it is `ddx-local`. Without any it serves: each line of standard input, a JSON list of arguments, is run in a
process of its own, forked so that it need not import everything again; the answer is that process's number, and what it
says on standard error goes to the file `PID.err` of the current folder.
"""

import json
import os
import sys
from collections.abc import Callable

from ddx_local import jobs, launch
from ddx_local.cli import live, main, out, run_live, show
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.settings import Settings

USED = (jobs, live, out, run_live, show)
"""Imported before the fork."""

fast = launch.open_scripted


async def slow(settings: Settings, say: Callable[[str], None]) -> ScriptedEngine:
    engine = await fast(settings, say)
    assert isinstance(engine, ScriptedEngine)
    engine.delay = float(os.environ.get("DDX_TEST_DELAY", "0"))
    return engine


launch.open_scripted = slow


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            errors = os.open(f"{os.getpid()}.err", os.O_CREAT | os.O_WRONLY)
            for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
                os.dup2(source, target)
            sys.argv = ["ddx-local", *json.loads(line)]
            main.main()
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main.main() if len(sys.argv) > 1 else serve()
