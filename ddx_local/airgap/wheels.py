"""The wheels of a bundle: fetched as a lock pins them, compared with it, and what they say of themselves.

`fetch` opens the network, by way of pip, so that the user's own index, proxy and certificate settings apply.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from ddx_local import offline
from ddx_local.airgap.bundle_verify import sha256
from ddx_local.errors import BundleError, UsageError

Say = Callable[[str], None]
_LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")
_TORCH_CPU = "https://download.pytorch.org/whl/cpu"
_LICENCE_FILE = re.compile(r"(?:^|/)(?:licen[cs]e|copying|notice|authors)[^/]*$", re.IGNORECASE)
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_")
_OLD_NAMES = {"manylinux2014_": (2, 17), "manylinux2010_": (2, 12), "manylinux1_": (2, 5)}
NOT_FOR_CPU = ("triton", "torchvision", "torchaudio", "torchcodec")
"""Gigabytes that a CPU has no use for."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of a lock; the name in the one way that indexes compare names."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel: what its METADATA says, its digest and its size unpacked."""

    file: str
    name: str
    version: str
    licence: str
    sha256: str
    unpacked: int


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> tuple[Pin, ...]:
    """The pins of a lock file.

    Raises:
        UsageError: It is not there, or has a line that is no pin.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"the lock {path}: {error.strerror}", "Make it: `scripts/lock`.") from None
    pins = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise UsageError(
                f"the lock {path}, line {number}: is no `name==version --hash=sha256:...`",
                "Make it anew: `scripts/lock`.",
            )
        pins.append(Pin(normal(found["name"]), found["version"], found["sha256"]))
    return tuple(pins)


def check_platform(pins: Sequence[Pin], platform: str) -> None:
    """Raises `UsageError` for a CPU lock that brings what only a GPU uses."""
    heavy = sorted({pin.name for pin in pins if pin.name in NOT_FOR_CPU or pin.name.startswith("nvidia-")})
    if platform == "cpu" and heavy:
        raise UsageError(
            f"the lock of the CPU bundle names {', '.join(heavy)}, which only a GPU uses",
            "Make it anew: `scripts/lock`.",
        )


def fetch(lock: Path, folder: Path, *, source: Path | None, say: Say) -> None:
    """Downloads every wheel of a lock, or takes it from `source`; what is there already is kept.

    Raises:
        BundleError: pip could not, or found another file than the lock pins.
    """
    pins = read_lock(lock)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {pin.sha256: pin for pin in pins}
    for path in folder.iterdir():
        if path.suffix == ".whl" and wanted.pop(sha256(path), None) is None:
            path.unlink()
    if not wanted:
        return
    say(f"fetching {len(wanted)} wheels of {lock.name} with pip")
    guard = offline.installed()
    opened = nullcontext() if source or guard is None else guard.open_network("bundle create", say)
    with opened, tempfile.TemporaryDirectory(prefix=".", dir=folder.parent) as scratch:
        environment = guard.child_env(open=source is None) if guard else dict(os.environ)
        rest = Path(scratch) / "rest.lock"
        torch = [pin for pin in wanted.values() if pin.name == "torch"]
        others = [pin for pin in wanted.values() if pin.name != "torch"]
        # pip keeps nothing of a call that is interrupted: by the dozen, most is kept.
        groups = [(others[start : start + 12], None) for start in range(0, len(others), 12)]
        where = ["--no-index", "--find-links", str(source.absolute())] if source else []
        for group, fallback in (*groups, *([(torch, None if source else _TORCH_CPU)] if torch else [])):
            rest.write_text("".join(f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256}\n" for pin in group))
            command = [
                "download",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
                "-q",
                "-d",
                str(folder),
                "-r",
                str(rest),
            ]
            _pip([*command, *where], environment, fallback=[*command, "--index-url", fallback] if fallback else None)
    check(pins, folder)


def check(pins: Sequence[Pin], folder: Path) -> None:
    """Raises `BundleError` unless the folder holds exactly the wheels of the pins."""
    found = {sha256(path): path.name for path in folder.glob("*.whl")}
    missing = [f"{pin.name}=={pin.version}" for pin in pins if pin.sha256 not in found]
    if missing:
        raise BundleError(
            f"not in {folder}, with the digest that the lock pins: {', '.join(missing[:5])}", "Run it again."
        )


def build_own(checkout: Path, folder: Path) -> Path:
    """Builds the project's own wheel from its checkout, without any network; returns it.

    Raises:
        BundleError: It cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix=".", dir=folder.parent) as scratch:
        command = ["wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", scratch, str(checkout)]
        _pip(command, dict(os.environ) | {"SOURCE_DATE_EPOCH": "1704067200", "TMPDIR": scratch})
        (made,) = Path(scratch).glob("*.whl")
        target = folder / made.name
        shutil.copyfile(made, target)
    return target


def packages(folder: Path) -> tuple[Package, ...]:
    """What every wheel of a folder says of itself, by name. Raises `BundleError` for one that cannot be read."""
    return tuple(sorted((package(path) for path in folder.glob("*.whl")), key=lambda item: item.name))


def licence_texts(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """The licence files of a wheel's metadata, by their names within it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            inside = name.partition(".dist-info/")[2]
            if inside and (inside.startswith("licenses/") or _LICENCE_FILE.search(inside)) and not name.endswith("/"):
                yield inside.removeprefix("licenses/"), archive.read(name)


def glibc(names: Sequence[str]) -> tuple[int, int]:
    """The least version of the C library that these wheels' file names ask for."""
    return max((_glibc_of(name) for name in names), default=(2, 17))


def _glibc_of(name: str) -> tuple[int, int]:
    tags = name.removesuffix(".whl").rpartition("-")[2].split(".")
    known = [(int(found[1]), int(found[2])) for tag in tags if (found := _MANYLINUX.match(tag))]
    known += [version for tag in tags for start, version in _OLD_NAMES.items() if tag.startswith(start)]
    return min(known, default=(2, 17))  # a wheel of several tags needs the oldest of them


def package(path: Path) -> Package:
    """What a wheel says of itself. Raises `BundleError` where it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = [
                item for item in archive.namelist() if item.count("/") == 1 and item.endswith(".dist-info/METADATA")
            ]
            head = HeaderParser().parsestr(archive.read(name).decode("utf-8", "replace"))
            unpacked = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BundleError(f"{path.name}: cannot be read as a wheel: {error}") from None
    return Package(path.name, normal(head["Name"]), head["Version"], _licence(head), sha256(path), unpacked)


def _licence(head: Message) -> str:
    """In one line, the newest way of saying it first; empty where it is not said."""
    said = head.get("License-Expression") or head.get("License") or ""
    if said and said != "UNKNOWN" and "\n" not in said.strip():
        return said.strip()[:120]
    classifiers = [item.rpartition(" :: ")[2] for item in head.get_all("Classifier", []) if item.startswith("License")]
    return "; ".join(classifiers)


def _pip(arguments: list[str], environment: dict[str, str], fallback: list[str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode and fallback:
        _pip(fallback, environment)
    elif done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise BundleError(
            f"pip {arguments[0]} failed: {' '.join(lines)[:500]}",
            "Check the index settings (`pip config list`) and run it again.",
        )
