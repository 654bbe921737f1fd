"""How soon something is there: the help, and the first round on the embedded model."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.speed.shared import CASES, median

COMMAND = [sys.executable, "-m", "ddx_local.cli.main"]


def help_seconds() -> dict[str, float]:
    """Median of five `ddx-local --help`, as the installed command runs it."""
    command = [str(Path(sys.executable).with_name("ddx-local")), "--help"]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return {"help_seconds": median(times)}


def first_round_seconds() -> dict[str, float]:
    """From the start of `diagnose` to its first finished round."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *COMMAND,
            "diagnose",
            str(next(iter(sorted(CASES.glob("*.txt"))))),
            "--store",
            f"{folder}/runs.sqlite",
        ]
        began = time.perf_counter()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith("scot/panel"):
                    return {"first_round_seconds": time.perf_counter() - began}
        finally:
            process.kill()
            process.wait()
    raise RuntimeError("diagnose ended before its first round")
