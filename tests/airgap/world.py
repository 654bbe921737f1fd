"""A bundle small enough to be made by a test: the program's own wheel, one made wheel, one made model."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

from ddx_local.airgap import keys
from ddx_local.airgap.bundle_create import Order, create
from ddx_local.model_store import write_manifest
from tests import tiny_model

ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2-135m"


def wheel(folder: Path, name: str = "tinydep", version: str = "1.0", *, content: str = "ANSWER = 42\n") -> Path:
    """A wheel of one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": content,
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: MIT\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/licenses/LICENSE": "Do as you like.\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file), text)
    return path


def lock(path: Path, *wheels: Path) -> Path:
    """The lock of some wheels."""
    lines = []
    for item in wheels:
        name, version = item.name.split("-")[:2]
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(item.read_bytes()).hexdigest()}\n")
    path.write_text("".join(lines))
    return path


def store(folder: Path) -> Path:
    """A store with one made model, under the name of a shipped card."""
    tiny_model.build(folder / MODEL)
    write_manifest(folder / MODEL, MODEL, {"name": "made"})
    return folder


class World:
    """What a bundle is made of, and a bundle that was made of it."""

    def __init__(self, folder: Path, own: Path) -> None:
        self.folder = folder
        self.key = folder / "key"
        self.fingerprint = keys.keygen(self.key)
        made = wheel(folder / "source")
        self.order = Order(
            models=[MODEL],
            platform="cpu",
            out=folder / "bundle",
            key=self.key,
            lock=lock(folder / "cpu.lock", made),
            source=folder / "source",
            own_wheel=own,
            store=store(folder / "store"),
        )
        create(self.order, say=lambda _: None)
        self.bundle = self.order.out

    def ordered(self, **changes: object) -> Order:
        return replace(self.order, **changes)  # type: ignore[arg-type]  # a test's own business
