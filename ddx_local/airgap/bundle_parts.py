"""What goes into a bundle, part by part: the program's own wheel, models, licences, the files that lie beside the program."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ddx_local import __version__, models
from ddx_local.airgap import manifest, wheels
from ddx_local.airgap.bundle_files import Packing
from ddx_local.airgap.wheels import Package
from ddx_local.data import data_dir
from ddx_local.errors import UsageError
from ddx_local.model_store import MANIFEST

_ROOT = Path(__file__).resolve().parents[2]


def own_wheel(given: Path | None, folder: Path) -> Package:
    if given is None:
        if not (_ROOT / "pyproject.toml").is_file():
            raise UsageError(
                "the program's own wheel can be built from a checkout alone", "Give it with --own-wheel FILE."
            )
        path = wheels.build_own(_ROOT, folder)
    else:
        path = folder / given.name
        path.write_bytes(given.read_bytes())
    found = wheels.package(path)
    if (found.name, found.version) != ("ddx-local", __version__):
        raise UsageError(
            f"{path.name} is {found.name} {found.version}, not ddx-local {__version__}", "Give another --own-wheel."
        )
    return found


def requirements(lock: Path, own: Package) -> bytes:
    pins = [f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256}\n" for pin in wheels.read_lock(lock)]
    return "".join([*pins, f"{own.name}=={own.version} --hash=sha256:{own.sha256}\n"]).encode()


def pack_model(packing: Packing, name: str, place: Path) -> None:
    table = models.read_manifest(place)
    for file, entry in table.files.items():
        packing.copy(place / file, f"models/{name}/{file}", entry.sha256)
    packing.copy(place / MANIFEST, f"models/{name}/{MANIFEST}")


def pack_licences(packing: Packing, packages: Sequence[Package]) -> None:
    """The packages' own licence texts; of two whose names differ in case alone, the first."""
    taken: set[str] = set()
    for package in packages:
        for name, text in wheels.licence_texts(packing.folder / "wheels" / package.file):
            target = f"licences/{package.name}/{name}"
            if manifest.safe(target) and target.casefold() not in taken and text:
                taken.add(target.casefold())
                packing.write(target, text)


def own_files() -> Iterator[tuple[Path, str]]:
    """What lies beside the program: deployment files, the made-up cases and, in a checkout, the manual and the licence."""
    for folder, pattern, target in (
        (data_dir("deploy"), "*", "deploy"),
        (data_dir("bench") / "cases", "*.txt", "cases"),
        (_ROOT / "docs", "*.md", "docs"),
        (_ROOT, "LICENSE", "licences/ddx-local"),
        (_ROOT, "Containerfile", "deploy"),
    ):
        yield from ((path, f"{target}/{path.name}") for path in sorted(folder.glob(pattern)) if path.is_file())
