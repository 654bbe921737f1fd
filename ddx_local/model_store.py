"""The model store: one folder per model with its files and a manifest of their digests. It knows no format of weights.

    <store>/<name>/manifest.json     {"schema", "card", "source", "made_at", "files": {file: {"sha256", "bytes"}}}

A folder without a manifest is not a model: the manifest is written last, in the folder that is then renamed into place.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ddx_local.errors import ModelError, nearest
from ddx_local.home import expanded
from ddx_local.model_card import cards

MANIFEST = "manifest.json"
SCHEMA = "ddx-local/model/1"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class FileEntry:
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a model folder holds: files by path relative to it, with `/` on every platform; itself not among them."""

    card: str
    source: Mapping[str, str]
    made_at: str
    files: Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a model folder.

    Args:
        level: An error makes the model unusable, a warning does not.
        file: Path relative to the folder, empty for the folder as a whole.
        message: What is wrong.
        hint: What to do.
    """

    level: Literal["error", "warning"]
    file: str
    message: str
    hint: str


def store_dir() -> Path:
    """The store's absolute folder: `DDX_LOCAL_MODELS`, else the user's data folder. It need not exist yet."""
    if named := os.environ.get("DDX_LOCAL_MODELS"):
        return expanded(named).absolute()
    from platformdirs import user_data_path

    return user_data_path("ddx-local", appauthor=False) / "models"


def model_folder(name: str, store: Path | None = None) -> Path:
    """Where a model of that name lies, whether it is there or not.

    Raises:
        ModelError: The name could leave the store.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"{name!r} is no model name", hint="A name has a-z, 0-9, dot, dash and underscore, as on the cards."
        )
    return expanded(store_dir() if store is None else store).resolve() / name


def installed(store: Path | None = None) -> tuple[str, ...]:
    """Names of the models in the store, sorted."""
    folder = store_dir() if store is None else store
    return tuple(sorted(path.parent.name for path in folder.glob(f"[!.]*/{MANIFEST}")))


def snapshot(name: str, store: Path | None = None) -> Path:
    """The absolute folder of a model that is in the store.

    Raises:
        ModelError: It is not there, or no model has that name.
    """
    folder = model_folder(name, store)
    if (folder / MANIFEST).is_file():
        return folder
    known = sorted({*cards(), *installed(store)})
    if name not in known:
        raise ModelError(f"no model is called {name!r}; {nearest(name, known)}")
    raise ModelError(f"model {name!r} is not in the store {folder.parent}", hint=f"Run `ddx-local models pull {name}`.")


def files_of(folder: Path) -> tuple[str, ...]:
    """Every file and link below the folder but the manifest, relative, sorted."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return tuple(sorted(name for path in found if (name := path.relative_to(folder).as_posix()) != MANIFEST))


def file_entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def write_manifest(folder: Path, card_name: str, source: Mapping[str, str]) -> Manifest:
    """Hashes every file of the folder and writes the manifest beside them."""
    entries = {name: file_entry(folder / name) for name in files_of(folder)}
    manifest = Manifest(card_name, source, datetime.now(UTC).isoformat(timespec="seconds"), entries)
    text = json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The folder's manifest.

    Raises:
        ModelError: It is missing, or is not a manifest of this version.
    """
    path = folder / MANIFEST
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["schema"] != SCHEMA:
            raise ValueError(f"schema is {table['schema']!r}, not {SCHEMA!r}")
        files = {name: FileEntry(entry["sha256"], entry["bytes"]) for name, entry in table["files"].items()}
        return Manifest(table["card"], table["source"], table["made_at"], files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path} cannot be read as a model manifest: {error!r}",
            hint=f"Delete the folder {folder} and pull the model again.",
        ) from error


def weights_sha256(folder: Path) -> str:
    """One digest for everything in a model folder: weights, tokenizer, template, configuration.

    It is the sha256 of the lines that `sha256sum` prints for the manifest's files in byte order of their names, so it
    does not change with the day of the pull. It trusts the manifest; `verify` is what compares it with the files. A
    folder without a manifest is hashed here and now.
    """
    if (folder / MANIFEST).is_file():
        digests = {name: entry.sha256 for name, entry in read_manifest(folder).files.items()}
    else:
        digests = {name: file_entry(folder / name).sha256 for name in files_of(folder)}
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
