"""What this machine has: memory and its limits, disks, GPUs. It reads the kernel's files and asks nvidia-smi; it changes nothing."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Memory:
    """Main memory in bytes: what this process may use in all, and who says so (`machine` or `cgroup`)."""

    total: int
    limit: int | None

    @property
    def usable(self) -> int:
        return min(self.total, self.limit or self.total)

    @property
    def bound_by(self) -> str:
        return (
            "the limit of its cgroup" if self.limit is not None and self.limit < self.total else "the machine's memory"
        )


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its name, its memory in bytes, and its driver's version."""

    name: str
    memory: int
    driver: str


def memory(cgroups: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> Memory:
    """The machine's memory and the smallest limit of the cgroups that this process is in."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [limit for file in _limit_files(cgroups, own) if (limit := _number(file)) is not None and limit < total]
    return Memory(total, min(limits, default=None))


def available() -> int:
    """Bytes that could be used now without swapping, machine-wide."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return memory().total


def cpu_flags() -> frozenset[str]:
    """Instruction sets of the CPU, as the kernel names them; empty where it names none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    found = next((line for line in lines if line.startswith(("flags", "Features"))), ":")
    return frozenset(found.partition(":")[2].split())


def gpus() -> tuple[Gpu, ...]:
    """NVIDIA's, as nvidia-smi names them; none where it is not there or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = [[part.strip() for part in line.split(",")] for line in answer.splitlines() if line.count(",") == 2]
    return tuple(Gpu(name, int(mib) << 20, driver) for name, mib, driver in rows if mib.isdigit())


def disk_free(path: Path) -> int:
    """Bytes free where the path is, or would be."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def _limit_files(cgroups: Path, own: Path) -> list[Path]:
    """Of version 2 the whole chain of groups, of version 1 the group itself; the root stands for a container's own."""
    files = [cgroups / "memory.max", cgroups / "memory" / "memory.limit_in_bytes"]
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return files
    for line in lines:
        _, controllers, place = line.split(":", 2)
        group = place.lstrip("/")
        if controllers == "":
            folders = [Path(group), *Path(group).parents]
            files += [cgroups / folder / "memory.max" for folder in folders]
        elif "memory" in controllers.split(","):
            files.append(cgroups / "memory" / group / "memory.limit_in_bytes")
    return files


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
