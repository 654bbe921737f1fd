"""What has to be right before a bundle is installed: the machine, the order of bundles, the terms, the disk. Standard library only."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.airgap.manifest import Manifest
from ddx_local.errors import BundleError


@dataclass(frozen=True, slots=True)
class Installed:
    """What installed.json says: the bundle that is there."""

    package: str
    sequence: int
    created_at: str
    fingerprint: str
    manifest_sha256: str


def fits(found: Manifest) -> None:
    """Raises `BundleError` for a bundle for another machine, Python or C library."""
    here = platform.machine()
    if sys.platform != "linux" or here != found.machine:
        raise BundleError(
            f"the bundle is for Linux on {found.machine}, this is {platform.system()} on {here}",
            "Make one for this machine.",
        )
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python != found.python:
        raise BundleError(
            f"the bundle is for Python {found.python}, this is {python}",
            f"Type the same with python{found.python} in place of {Path(sys.executable).name}.",
        )
    library, version = platform.libc_ver()
    if library == "glibc" and _numbers(version) < _numbers(found.glibc):
        raise BundleError(
            f"the bundle needs glibc {found.glibc}, this system has {version}",
            "Use a newer system, or the container image.",
        )


def read_installed(prefix: Path) -> Installed | None:
    """What is installed there; None where nothing is. Raises `BundleError` for a file that cannot be read."""
    path = prefix / "installed.json"
    try:
        table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Installed(**table)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Install into another --prefix.") from None


def no_step_back(found: Manifest, before: Installed | None, *, allowed: bool) -> None:
    """Raises `BundleError` for a bundle that is older than what is installed."""
    if before is None or found.sequence >= before.sequence or allowed:
        return
    raise BundleError(
        f"the bundle is of {found.created_at}, older than what is installed ({before.created_at}, ddx-local {before.package}): "
        "an old bundle may have faults that were mended since",
        "Install the newest bundle; --allow-downgrade goes back all the same.",
    )


def accepted_terms(found: Manifest, *, accepted: bool) -> None:
    """Raises `BundleError`, with the terms, where they have to be accepted first."""
    if found.notices and not accepted:
        terms = " ".join(f"{name}: {' '.join(notice.split())}" for name, notice in sorted(found.notices.items()))
        raise BundleError(
            f"models are not installed before their terms are accepted. {terms}",
            "If you accept them, add --accept-licence.",
        )


def room(found: Manifest, prefix: Path, release: Path) -> None:
    """Says before anything is copied that there is too little room. What is there already counts as copied."""
    there = sum(
        _size(path) for path in (release, *(prefix / "models" / name for name in found.models)) if path.exists()
    )
    needed, free = found.disk - there, shutil.disk_usage(prefix).free
    if needed > free:
        raise BundleError(
            f"{prefix} has {free / 1e9:.1f} GB free, the installation takes {needed / 1e9:.1f} GB",
            "Free some space, or give another --prefix.",
        )


def writable(prefix: Path) -> None:
    """Makes the prefix; raises `BundleError` where nothing can be written there."""
    try:
        prefix.mkdir(parents=True, exist_ok=True)
        probe = prefix / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BundleError(
            f"--prefix {prefix}: cannot be written: {error.strerror}",
            "Give a folder that you may write, or become its owner.",
        ) from None


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
