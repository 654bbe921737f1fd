"""Is a bundle the one that was packed: signature, every digest, nothing more and nothing less, no pickle, no code in models.

Everything that is wrong is named, not the first fault alone. Standard library only, for a machine that has nothing else yet.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddx_local.airgap import keys, manifest
from ddx_local.airgap.manifest import NAME, SIGNATURE, SUMS, Manifest
from ddx_local.errors import BundleError

Say = Callable[[str], None]
UNSIGNED = (
    "THE BUNDLE IS NOT SIGNED: nothing shows who made it, and whoever changed it could change the digests as well"
)
_PICKLE_STARTS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK\x03\x04")
_REFUSED = frozenset((".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".mar", ".npy", ".npz"))


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file of the bundle; the path is relative to it."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A bundle that was verified, and who signed it (empty: nobody)."""

    folder: Path
    manifest: Manifest
    fingerprint: str


def verify(folder: Path, *, key: str | None = None, allow_unsigned: bool = False, say: Say) -> Checked:
    """Checks a whole bundle.

    Args:
        folder: The bundle.
        key: The fingerprint of who has to have signed it; None: whoever it was, whose fingerprint is then said.
        allow_unsigned: Take a bundle without a signature, loudly.
        say: Hears what happens.

    Raises:
        BundleError: Every fault by its file, at most 20 of them.
    """
    faults = list(odd_files(folder))
    _refuse(faults, folder)
    found, data = manifest.read(folder)
    fingerprint = _signed(folder, found, data, key, allow_unsigned=allow_unsigned, say=say)
    say(f"checking {len(found.files)} files, {sum(entry.bytes for entry in found.files.values()) / 1e9:.2f} GB")
    faults += file_faults(folder, found)
    if (folder / SUMS).is_file() and (folder / SUMS).read_bytes() != manifest.sums(found, data).encode():
        faults.append(Fault(SUMS, "its digests are not the manifest's"))
    _refuse(faults, folder)
    return Checked(folder, found, fingerprint)


def odd_files(folder: Path) -> Iterator[Fault]:
    """Links and special files, which are neither followed nor read."""
    if not folder.is_dir():
        raise BundleError(f"{folder} is not a folder", "Give the folder that `bundle create` made.")
    for path in _everything(folder):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield Fault(_name(path, folder), "is a link, and a bundle has none")
        elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            yield Fault(_name(path, folder), "is a special file")


def file_faults(folder: Path, found: Manifest) -> Iterator[Fault]:
    """Missing, extra, cut, changed and forbidden files."""
    own = {NAME, SUMS} | ({SIGNATURE} if found.fingerprint else set())
    present = {_name(path, folder) for path in _everything(folder) if path.is_file()}
    for name in sorted(own - {NAME} - present):
        yield Fault(name, "is missing")
    for name in sorted(present - found.files.keys() - own):
        yield Fault(name, "is not in the manifest: it was put there later")
    for name, entry in found.files.items():
        if name not in present:
            yield Fault(name, "is missing")
            continue
        size = (folder / name).stat().st_size
        if size != entry.bytes:
            yield Fault(name, f"has {size} bytes, the manifest says {entry.bytes}")
        elif sha256(folder / name) != entry.sha256:
            yield Fault(name, "was changed: its sha256 is not the manifest's")
        if forbidden := pickle_fault(folder / name):
            yield Fault(name, forbidden)


def pickle_fault(path: Path) -> str | None:
    """Why a file may not be in a bundle, whoever signed it; wheels are archives of code and go by their digests."""
    if path.suffix == ".whl":
        return None
    with path.open("rb") as file:
        start = file.read(4)
    if path.suffix.lower() in _REFUSED or start.startswith(_PICKLE_STARTS):
        return "is a pickle or an archive of one, which runs code when it is loaded"
    return None


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _signed(folder: Path, found: Manifest, data: bytes, key: str | None, *, allow_unsigned: bool, say: Say) -> str:
    path = folder / SIGNATURE
    if not path.exists() and not found.fingerprint:
        if not allow_unsigned or key:
            raise BundleError(UNSIGNED, "Make it with --key; --allow-unsigned takes it all the same, at your risk.")
        say(f"WARNING: {UNSIGNED}")
        return ""
    public = keys.read_public(folder / keys.PUBLIC)
    fingerprint = keys.fingerprint(public)
    if fingerprint != found.fingerprint:
        raise BundleError(f"{keys.PUBLIC}: is not the key that the manifest names")
    if not path.is_file() or not keys.verify(public, path.read_bytes(), data):
        what = "is missing" if not path.is_file() else f"does not fit {NAME}: one of the two was changed or exchanged"
        raise BundleError(f"{SIGNATURE}: {what}")
    if key and fingerprint != key:
        raise BundleError(
            f"the bundle is signed by {fingerprint}, not by {key}",
            "Ask who made it; if the key was changed on purpose, give the new fingerprint with --key.",
        )
    say(
        f"signed by {fingerprint}" + ("" if key else ": compare it with what its maker told you, or give it with --key")
    )
    return fingerprint


def _refuse(faults: Sequence[Fault], folder: Path) -> None:
    if faults:
        named = "; ".join(f"{fault.file} {fault.what}" for fault in faults[:20])
        more = f"; and {len(faults) - 20} more" if len(faults) > 20 else ""
        raise BundleError(f"the bundle {folder} is not the one that was packed: {named}{more}")


def _everything(folder: Path) -> Iterator[Path]:
    """All below the folder, without following links."""
    for root, folders, files in os.walk(folder):
        yield from (Path(root) / name for name in (*sorted(folders), *sorted(files)))


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()
