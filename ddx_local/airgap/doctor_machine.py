"""What the doctor looks at on the machine: Python, CPU, GPU, disk, caches, compiler, clock, port.

Each check takes what it looks at as an argument, so that a fault can be planted. It knows no model and opens no network.
"""

import errno
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ddx_local import machine
from ddx_local.airgap.doctor_check import Check, ok
from ddx_local.machine import Gpu

_TOO_EARLY, _TOO_LATE = 1_735_689_600, 4_102_444_800  # 2025 and 2100, in seconds since 1970
_GB = 10**9


def python(version: Sequence[int] = tuple(sys.version_info[:3])) -> Check:
    here = ".".join(str(part) for part in version[:3])
    if (3, 11) <= tuple(version[:2]) < (3, 13):
        return ok("Python", f"{here} ({sys.executable})")
    todo = "Install Python 3.11 and make the environment with it: the locks are made for that version."
    return Check("Python", "error", f"{here} is not supported, which is 3.11 or 3.12", todo)


def cpu(flags: frozenset[str], architecture: str, *, device: str) -> Check:
    if architecture not in ("x86_64", "AMD64"):
        return ok("CPU", f"{architecture}, {os.cpu_count()} cores")
    if flags and "avx2" not in flags:
        level = "error" if device == "cpu" else "warning"
        return Check(
            "CPU",
            "error" if level == "error" else "warning",
            "the CPU has no AVX2",
            "vLLM on a CPU needs it: use another machine, a GPU, or --engine transformers.",
        )
    known = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    return ok("CPU", f"{os.cpu_count()} cores, {', '.join(known) or 'instruction sets not known'}")


def gpu(gpus: Sequence[Gpu], *, device: str) -> Check:
    if gpus:
        shown = "; ".join(f"{card.name}, {card.memory / 2**30:.0f} GiB, driver {card.driver}" for card in gpus)
        return ok("GPU", shown)
    if device == "cuda":
        return Check(
            "GPU", "error", "--device cuda, but nvidia-smi sees no GPU", "Install NVIDIA's driver, or use --device cpu."
        )
    return ok("GPU", "none is seen; the engine runs on the CPU")


def disk(places: Mapping[str, Path], free: Mapping[str, int] | None = None) -> Check:
    """Room where runs, models and temporary files go: an error under 0.2 GB, a warning under 2."""
    found = free or {name: machine.disk_free(path) for name, path in places.items()}
    name = min(found, key=lambda key: found[key])
    text = f"{found[name] / _GB:.1f} GB free for {name} ({places[name]})"
    if found[name] < 0.2 * _GB:
        return Check("disk", "error", text, "Free some space: runs cannot be recorded on a full disk.")
    if found[name] < 2 * _GB:
        return Check("disk", "warning", text, "Free some space soon; `ddx-local runs purge` deletes old runs.")
    return ok("disk", text)


def caches(places: Mapping[str, Path]) -> Check:
    """Whether the program and its libraries may write where they have to."""
    for name, path in places.items():
        if reason := _unwritable(path):
            return Check("caches", "error", f"{name} ({path}) cannot be written: {reason}", _cache_todo(name))
    return ok("caches", f"{', '.join(places)} can be written")


def places(settings_store: Path, models: Path, environment: Mapping[str, str]) -> dict[str, Path]:
    """Where this program, vLLM and torch write."""
    home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return {
        "the run store": settings_store.parent,
        "the model store": models,
        "vLLM's cache": Path(environment.get("VLLM_CACHE_ROOT") or home / "vllm"),
        "torch's cache": Path(environment.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir()),
        "temporary files": Path(tempfile.gettempdir()),
    }


def compiler(*, compiled: bool, found: str | None) -> Check:
    """Torch calls a C++ compiler; without `compiled` nothing does."""
    if found:
        return ok("compiler", found)
    if compiled:
        return Check(
            "compiler",
            "error",
            "the setting `compiled` is on, and there is no C++ compiler",
            "Install g++ or clang++, or leave --compiled out.",
        )
    return ok("compiler", "no C++ compiler; only the setting `compiled` needs one")


def find_compiler() -> str | None:
    named = os.environ.get("CXX")
    return next((path for name in (named, "g++", "clang++") if name and (path := shutil.which(name))), None)


def clock(now: float | None = None) -> Check:
    now = time.time() if now is None else now
    said = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    if _TOO_EARLY < now < _TOO_LATE:
        return ok("clock", said)
    return Check(
        "clock",
        "error",
        f"the clock says {said}",
        "Set it (`date -s`, `hwclock`): the order of runs, retention and bundles go by it.",
    )


def port(number: int = 8000) -> Check:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError as error:
            reason = "another program has it" if error.errno == errno.EADDRINUSE else error.strerror
            todo = f"`ddx-local serve --port N` takes another one; `ss -ltnp 'sport = :{number}'` says who has it."
            return Check("port", "warning", f"port {number} of 127.0.0.1 cannot be had: {reason}", todo)
    return ok("port", f"port {number} of 127.0.0.1 is free for `serve`")


def _unwritable(path: Path) -> str | None:
    """Why nothing can be written there, tried in the nearest folder that exists; None where it can."""
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        if not path.is_dir():
            return f"{path} is no folder"
        with tempfile.NamedTemporaryFile(prefix=".ddx-local-", dir=path):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _cache_todo(name: str) -> str:
    return {
        "the run store": "Give another --store (setting `store`), or make its folder yours.",
        "the model store": "Set DDX_LOCAL_MODELS to a folder of yours, or make it yours.",
        "vLLM's cache": "Set VLLM_CACHE_ROOT to a folder of yours.",
        "torch's cache": "Set TORCHINDUCTOR_CACHE_DIR to a folder of yours.",
    }.get(name, "Set TMPDIR to a folder of yours.")
