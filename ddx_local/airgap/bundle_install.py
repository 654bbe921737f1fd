"""Installs a bundle below one folder, the prefix, so that it is there whole or not at all. Standard library only.

PREFIX/releases/<id>/venv    one release: made in place, marked `complete` last
PREFIX/current               a link to the release that is used, exchanged in one step
PREFIX/models/<name>         the model store, shared by releases; `models add` may put more there
PREFIX/bin/ddx-local         starts what `current` names, with PREFIX/models for its models
PREFIX/installed.json        which bundle it was, by whom it was signed
PREFIX/share                 manual, licences, bill of materials, deployment files, cases
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ddx_local.airgap import manifest, venv
from ddx_local.airgap.bundle_checks import Installed, accepted_terms, fits, no_step_back, read_installed, room, writable
from ddx_local.airgap.bundle_files import alone, unpack
from ddx_local.airgap.bundle_verify import Checked, Say, sha256, verify
from ddx_local.airgap.manifest import Entry, Joined

_SHARED = ("docs/", "licences/", "deploy/", "cases/", "sbom.cdx.json", "README.txt")
_STARTER = """\
#!/bin/sh
# Starts the installed ddx-local with the models that were installed with it.
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
export DDX_LOCAL_MODELS="${DDX_LOCAL_MODELS:-$here/models}"
exec "$here/current/venv/bin/ddx-local" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to install: see `install`."""

    prefix: Path
    key: str | None = None
    allow_unsigned: bool = False
    allow_downgrade: bool = False
    accept_licence: bool = False


def install(folder: Path, wish: Wish, *, say: Say) -> Path:
    """Verifies a bundle and installs it; the same again after an interruption.

    Args:
        folder: The bundle.
        wish: `prefix`: where to. `key`: the fingerprint that has to have signed it; None: the one that signed what is
            installed, or on a first installation whoever it was. The others allow what is refused without them.
        say: Hears what happens.

    Returns:
        The command to type.

    Raises:
        BundleError: The bundle is not whole, not genuine, older than what is there, or not for this machine; the disk
            is too small or read-only; another installation is at work; terms are not accepted.
    """
    prefix = wish.prefix.expanduser().absolute()
    writable(prefix)
    with alone(prefix / ".install.lock", str(prefix)):
        before = read_installed(prefix)
        key = wish.key or (before.fingerprint or None if before else None)
        checked = verify(folder, key=key, allow_unsigned=wish.allow_unsigned, say=say)
        found = checked.manifest
        fits(found)
        no_step_back(found, before, allowed=wish.allow_downgrade)
        accepted_terms(found, accepted=wish.accept_licence)
        release = prefix / "releases" / sha256(folder / manifest.NAME)[:16]
        room(found, prefix, release)
        if not (release / "complete").is_file():
            shutil.rmtree(release, ignore_errors=True)
            say(f"installing {sum(name.endswith('.whl') for name in found.files)} wheels (some minutes)")
            release.mkdir(parents=True)
            # What pip goes by is checked once more as it is copied: the bundle may lie where others write.
            lock = release / "requirements.lock"
            unpack(folder, lock.name, found.files[lock.name], lock)
            venv.make(release / "venv", folder / "wheels", lock)
            os.sync()
            (release / "complete").touch()
        for name in found.models:
            say(f"installing model {name}")
            _model(checked, name, prefix / "models")
        _share(checked, prefix / "share")
        _switch(checked, prefix, release)
    say(f"installed: {prefix / 'bin' / 'ddx-local'}")
    return prefix / "bin" / "ddx-local"


def doctor(command: Path, folder: Path) -> int:
    """Runs the installed program's doctor on the bundle's first model; it prints for itself.

    Returns:
        0 where the program works, also where something is to be looked at; else the doctor's exit code.
    """
    model = manifest.read(folder)[0].models[0]
    code = subprocess.run([str(command), "doctor", "--model", model], check=False).returncode
    return 0 if code == 1 else code


def _model(checked: Checked, name: str, store: Path) -> None:
    start = f"models/{name}/"
    files: dict[str, Entry | Joined] = {
        path: entry for path, entry in checked.manifest.files.items() if path.startswith(start)
    }
    for path, whole in checked.manifest.joined.items():
        if path.startswith(start):
            files = {part: entry for part, entry in files.items() if part not in whole.parts} | {path: whole}
    target = store / name
    own = files[f"{start}manifest.json"]
    if (
        (target / "manifest.json").is_file()
        and sha256(target / "manifest.json") == own.sha256
        and _same(files, start, target)
    ):
        return
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, old = store / f".{name}.new", store / f".{name}.old"
    for leftover in (draft, old):
        shutil.rmtree(leftover, ignore_errors=True)
    for path, entry in files.items():
        unpack(checked.folder, path, entry, draft / path.removeprefix(start))
    if target.exists():
        target.rename(old)
    draft.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _same(files: Mapping[str, Entry | Joined], start: str, target: Path) -> bool:
    there = ((target / path.removeprefix(start), entry) for path, entry in files.items())
    return all(path.is_file() and sha256(path) == entry.sha256 for path, entry in there)


def _share(checked: Checked, share: Path) -> None:
    draft = share.with_name(".share.new")
    shutil.rmtree(draft, ignore_errors=True)
    for path, entry in checked.manifest.files.items():
        if path.startswith(_SHARED):
            unpack(checked.folder, path, entry, draft / path)
    shutil.rmtree(share, ignore_errors=True)
    draft.rename(share)


def _switch(checked: Checked, prefix: Path, release: Path) -> None:
    """From here on the new release is the one that is started; the one before it stays, older ones go."""
    current, draft = prefix / "current", prefix / ".current.new"
    before = current.resolve() if current.is_symlink() else None
    draft.unlink(missing_ok=True)
    draft.symlink_to(Path("releases") / release.name)
    draft.replace(current)
    (prefix / "bin").mkdir(exist_ok=True)
    _write(prefix / "bin" / "ddx-local", _STARTER, 0o755)
    found = checked.manifest
    mark = Installed(
        found.package, found.sequence, found.created_at, checked.fingerprint, sha256(checked.folder / manifest.NAME)
    )
    _write(prefix / "installed.json", json.dumps(asdict(mark), indent=1) + "\n", 0o644)
    for path in (prefix / "releases").iterdir():
        again = before == release and (path / "complete").is_file()
        if path not in (release, before) and not again:
            shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, text: str, mode: int) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)
