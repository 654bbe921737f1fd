"""The environment of an installation: made from a bundle's wheels alone, by the Python that runs. Standard library only."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ddx_local.errors import BundleError

_OFFLINE = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def make(folder: Path, wheels: Path, requirements: Path) -> None:
    """Makes the environment and installs into it, with the index off and every digest checked again.

    Args:
        folder: Where to; not there yet.
        wheels: Folder of wheels.
        requirements: Their names, versions and digests.

    Raises:
        BundleError: Python's own `venv` is missing, or pip refuses a wheel.
    """
    name = Path(sys.executable).name
    hint = f"Install your system's package with `venv` and `ensurepip` for {name}, and type the same again."
    _run([sys.executable, "-m", "venv", str(folder)], "the environment cannot be made", hint)
    python = str(folder / "bin" / "python")
    command = [
        python,
        "-m",
        "pip",
        "--isolated",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        str(wheels.absolute()),
    ]
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-compile", "--no-cache-dir"]
    _run([*command, *options, "-r", str(requirements)], "pip could not install the wheels", None)
    # In parallel, and now: later the folder may be read-only. A few packages ship files that no Python can compile.
    compiled = [python, "-m", "compileall", "-qq", "-j", "0", str(folder / "lib")]
    subprocess.run(compiled, env=_environment(), capture_output=True, check=False)
    _run([python, "-m", "ddx_local.offline", "install"], "the network guard could not be installed", None)


def _run(command: Sequence[str], what: str, hint: str | None) -> None:
    done = subprocess.run(
        command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=False
    )
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-2:]
        raise BundleError(f"{what}: {' '.join(errors)[:500] or f'exit code {done.returncode}'}", hint)


def _environment() -> dict[str, str]:
    """Without what would lead pip or Python elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "VIRTUAL_ENV"))}
    return kept | _OFFLINE
