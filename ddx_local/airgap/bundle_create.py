"""Makes a bundle: wheels, models, the program's own wheel, cases, deployment files, licences, bill of materials, signature.

A folder becomes a bundle with its last file, the manifest: whatever ends the work before, it is taken up again by the same command.
"""

import platform as system
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ddx_local import __version__, machine, models
from ddx_local.airgap import keys, manifest, sbom, texts, wheels
from ddx_local.airgap.bundle_files import CHUNK, Packing, alone
from ddx_local.airgap.bundle_parts import own_files, own_wheel, pack_licences, pack_model, requirements
from ddx_local.airgap.bundle_verify import pickle_fault
from ddx_local.airgap.wheels import Package
from ddx_local.data import data_dir
from ddx_local.errors import BundleError, ModelError, UsageError

Say = Callable[[str], None]
_BUILDING = ".building"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be packed.

    Args:
        models: Names of models in the store.
        platform: What the engine's wheels are for.
        out: The bundle's folder.
        key: The folder of the key that signs, or None for an unsigned bundle.
        lock: The lock of the wheels; None: the project's own for the platform.
        source: Folder of wheels to take instead of a download.
        own_wheel: The project's wheel; None: built from the checkout.
        image: A container image's archive to carry as well.
        store: The model store, None for the default one.
        chunk: Largest file in bytes.
    """

    models: Sequence[str]
    platform: Literal["cpu", "cuda"]
    out: Path
    key: Path | None
    lock: Path | None = None
    source: Path | None = None
    own_wheel: Path | None = None
    image: Path | None = None
    store: Path | None = None
    chunk: int = CHUNK


def create(order: Order, *, say: Say) -> str:
    """Makes or finishes a bundle; returns the fingerprint that signed it, empty where none did.

    Raises:
        BundleError: A part is missing or wrong, or another process works on it.
        ModelError: A model is not in the store, or not whole.
        UsageError: The key, the lock or the folder cannot be used.
    """
    found = [models.card(name) for name in order.models]
    # What is tried out after an installation is the first one.
    cards = {card.name: card for card in sorted(found, key=lambda card: card.kind != "chat")}
    for name in cards:
        say(f"checking model {name}")
        _whole(name, order.store)
    lock = order.lock or lock_of(order.platform)
    wheels.check_platform(wheels.read_lock(lock), order.platform)
    public = keys.sign(order.key, b"")[1] if order.key else None
    with _disk_errors(order.out), alone(_claimed(order.out), str(order.out)):
        return _fill(order, lock, cards, public, say)


def lock_of(platform: str) -> Path:
    """The project's lock for a platform. Raises `UsageError` where there is none."""
    path = data_dir("requirements") / f"{platform}.lock"
    if not path.is_file():
        raise UsageError(
            f"--platform {platform}: there is no {path.name} in {path.parent}",
            f"On a machine of that kind: `scripts/lock {platform}`, or give a hash-pinned lock with --lock.",
        )
    return path


def _fill(order: Order, lock: Path, cards: dict[str, models.ModelCard], public: bytes | None, say: Say) -> str:
    packing = Packing(order.out, order.chunk)
    (order.out / _BUILDING).touch()
    (order.out / manifest.NAME).unlink(missing_ok=True)
    _room(order, cards)
    folder = order.out / "wheels"
    wheels.fetch(lock, folder, source=order.source, say=say)
    others = wheels.packages(folder)
    say("building the program's own wheel" if order.own_wheel is None else f"taking {order.own_wheel.name}")
    own = own_wheel(order.own_wheel, folder)
    for package in (*others, own):
        packing.keep(f"wheels/{package.file}", package.sha256)
    packing.write("requirements.lock", requirements(lock, own))
    found = [
        (card, models.read_manifest(models.snapshot(name, order.store)), models.snapshot(name, order.store))
        for name, card in cards.items()
    ]
    for card, _, place in found:
        say(f"packing model {card.name}")
        pack_model(packing, card.name, place)
    if order.image:
        say(f"packing the image {order.image.name}")
        packing.copy(order.image, f"image/{order.image.name}")
    for source, name in own_files():
        packing.copy(source, name)
    now = datetime.now(UTC).replace(microsecond=0)
    packages = tuple(package for package in others if package.file != own.file)
    listed = [(card, table, models.weights_sha256(place)) for card, table, place in found]
    packing.write("sbom.cdx.json", sbom.document(own, packages, listed, created_at=now.isoformat()).encode())
    pack_licences(packing, packages)
    packing.write("licences/MODELS.txt", texts.model_licences([card for card, _, _ in found]).encode())
    packing.write("install.py", texts.BOOTSTRAP.encode())
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    about = texts.readme(__version__, now.date().isoformat(), list(cards), order.platform, python)
    packing.write("README.txt", about.encode())
    if public:
        packing.write(keys.PUBLIC, keys.pem(public).encode())
    return _finish(order, packing, _manifest(order, packing, (*packages, own), cards, public, now), say)


def _manifest(
    order: Order,
    packing: Packing,
    packages: Sequence[Package],
    cards: dict[str, models.ModelCard],
    public: bytes | None,
    now: datetime,
) -> manifest.Manifest:
    weights = sum(entry.bytes for name, entry in packing.files.items() if name.startswith("models/"))
    # A third more for compiled Python, and what pip needs for a moment.
    disk = int(sum(package.unpacked for package in packages) * 1.35) + weights + (300 << 20)
    major, minor = wheels.glibc([package.file for package in packages])
    return manifest.Manifest(
        package=__version__,
        sequence=int(now.timestamp()),
        created_at=now.isoformat(),
        platform=order.platform,
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
        machine=system.machine(),
        glibc=f"{major}.{minor}",
        fingerprint=keys.fingerprint(public) if public else "",
        models=tuple(cards),
        notices={name: card.licence_notice for name, card in cards.items() if card.licence_notice},
        disk=disk,
        files=packing.files,
        joined=packing.joined,
    )


def _finish(order: Order, packing: Packing, found: manifest.Manifest, say: Say) -> str:
    for name in packing.files:
        if not manifest.safe(name):
            raise BundleError(f"{name}: such a name may not be in a bundle", "Rename the file.")
        if fault := pickle_fault(order.out / name):
            raise BundleError(f"{name}: {fault}", "Leave it out.")
    data = manifest.to_bytes(found)
    packing.sweep(frozenset((_BUILDING,)))
    (order.out / manifest.SUMS).write_text(manifest.sums(found, data))
    if order.key:
        (order.out / manifest.SIGNATURE).write_bytes(keys.sign(order.key, data)[0])
    (order.out / f"{manifest.NAME}.new").write_bytes(data)
    (order.out / _BUILDING).unlink()
    (order.out / f"{manifest.NAME}.new").replace(order.out / manifest.NAME)
    size = sum(entry.bytes for entry in found.files.values())
    say(f"{order.out}: {len(found.files)} files, {size / 1e9:.2f} GB; an installation takes {found.disk / 1e9:.1f} GB")
    return found.fingerprint


def _whole(name: str, store: Path | None) -> None:
    models.snapshot(name, store)
    for finding in models.verify(name, store):
        if finding.level == "error":
            raise ModelError(f"model `{name}`, {finding.file}: {finding.message}", finding.hint)


def _claimed(out: Path) -> Path:
    """Makes the folder, unless it holds other things; returns the place of its lock."""
    out.mkdir(parents=True, exist_ok=True)
    ours = (out / _BUILDING).exists() or (out / manifest.NAME).exists()
    if not ours and any(out.iterdir()):
        raise UsageError(f"--out {out}: is a folder with other things in it", "Give a new folder.")
    return out.with_name(f".{out.name}.lock")


def _room(order: Order, cards: Iterable[str]) -> None:
    needed = 0
    for name in cards:
        for file, entry in models.read_manifest(models.snapshot(name, order.store)).files.items():
            there = order.out / "models" / name / file
            needed += 0 if there.is_file() else entry.bytes
    free = machine.disk_free(order.out)
    if needed > free:
        raise BundleError(
            f"--out {order.out}: {free / 1e9:.1f} GB are free, the models alone take {needed / 1e9:.1f} GB",
            "Give another --out.",
        )


@contextmanager
def _disk_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"--out {out}: {error.filename or out}: {error.strerror or error}",
            "Give another --out, or free some space, and run it again.",
        ) from error
