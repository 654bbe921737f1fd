"""Puts a model that lies in a folder into the store, and takes one out of it. It opens no network."""

import os
import shutil
import tempfile
from pathlib import Path

from ddx_local import machine
from ddx_local.errors import ModelError
from ddx_local.home import expanded
from ddx_local.model_card import OWN, ModelCard, card, cards, read_card, shipped_names
from ddx_local.model_chat import chat_findings
from ddx_local.model_pull import disk_errors, locked, put_in_place, remove_remains, seal
from ddx_local.model_shape import weights_of
from ddx_local.model_store import MANIFEST, Finding, file_entry, files_of, model_folder, read_manifest, write_manifest
from ddx_local.model_verify import content_findings, first_error, manifest_findings
from ddx_local.model_wheel import Progress


def add(
    folder: Path,
    name: str | None = None,
    store: Path | None = None,
    *,
    own_card: Path | None = None,
    progress: Progress,
) -> Path:
    """Copies a model folder into the store.

    Args:
        folder: What a hub's snapshot or another store's folder holds. Links are followed, as a hub's cache is made of them.
        name: The card's name; None: the one that the folder's manifest says, else the folder's own name.
        store: The store, None for the default one.
        own_card: The card of a model that no shipped card names; it is kept with the model.
        progress: Called before each step.

    Returns:
        The model's folder in the store.

    Raises:
        ModelError: There is no such card, the folder is not safe or not whole, or it holds another model.
    """
    folder = expanded(folder).absolute()
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder")
    manifest = read_manifest(folder) if (folder / MANIFEST).is_file() else None
    kept = folder / OWN if (folder / OWN).is_file() else None
    model = _chosen(name or (manifest.card if manifest else None), own_card or kept, folder)
    target = model_folder(model.name, store)
    with disk_errors(target.parent):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(target, progress):
            if (target / MANIFEST).is_file():
                progress(f"{model.name} is already in {target.parent}")
                return target
            remove_remains(target)
            _check_room(folder, target.parent)
            with tempfile.TemporaryDirectory(prefix=f".{model.name}.", suffix=".part", dir=target.parent) as part:
                out = Path(part) / "model"
                progress(f"copying {folder}")
                _copy(folder, out)
                if manifest and (fault := first_error(list(manifest_findings(out, manifest)))):
                    raise ModelError(
                        f"{folder / fault.file}: {fault.message}", "Copy the folder again, from its source."
                    )
                if own_card:
                    shutil.copyfile(own_card, out / OWN)
                check(out, model)
                (out / MANIFEST).unlink(missing_ok=True)
                write_manifest(out, model.name, manifest.source if manifest else {"folder": folder.name})
                seal(out)
                put_in_place(out, target)
    progress(f"{model.name} is in {target}")
    return target


def check(folder: Path, model: ModelCard) -> None:
    """Raises `ModelError` for a folder that is not safe, not whole, or another model than the card's."""
    embedding = model.kind == "embedding"
    findings: tuple[Finding, ...] = tuple(content_findings(folder, embedding=embedding))
    if not embedding and not first_error(findings):
        findings += chat_findings(folder, model.chat)
    if fault := first_error(findings):
        raise ModelError(f"{model.name}, {fault.file}: {fault.message}", fault.hint)
    weights = weights_of(folder)
    if not weights.packed and abs(weights.numbers - model.parameters) > 0.01 * model.parameters:
        raise ModelError(
            f"this is not {model.name}: the weights are {weights.numbers} numbers, the card says {model.parameters}",
            "Name the right card with --as; see `ddx-local models list`.",
        )


def remove(name: str, store: Path | None = None) -> Path:
    """Deletes a model from the store. Raises `ModelError` where it is not there or cannot be deleted."""
    folder = model_folder(name, store)
    if not folder.is_dir() or folder.is_symlink():
        raise ModelError(f"model {name!r} is not in the store {folder.parent}", "See `ddx-local models list`.")
    with disk_errors(folder.parent), locked(folder, lambda _: None):
        gone = folder.with_name(f".{name}.{os.getpid()}.part")
        folder.rename(gone)
        shutil.rmtree(gone)
    return folder


def _chosen(name: str | None, own: Path | None, folder: Path) -> ModelCard:
    if own is not None:
        found = read_card(own, name if own.name == OWN else None)
        if found.name in shipped_names():
            raise ModelError(f"{own}: a shipped card is called {found.name!r}", "Give your model another name.")
        if name not in (None, found.name):
            raise ModelError(f"--as {name}, but {own.name} is the card of {found.name!r}", "Leave --as out.")
        return found
    if name is None and folder.name not in cards():
        what = f"the folder is called {folder.name!r}, and no card is"
        raise ModelError(what, "Name the model: `ddx-local models add FOLDER --as NAME`, or bring a card: --card FILE.")
    return card(name or folder.name)


def _check_room(folder: Path, store: Path) -> None:
    needed, free = sum((folder / name).stat().st_size for name in files_of(folder)), machine.disk_free(store)
    if needed > free:
        raise ModelError(
            f"the store {store} has {free // 10**6} MB free, {needed // 10**6} MB are needed",
            "Free some space there, or set DDX_LOCAL_MODELS to a folder on another disk.",
        )


def _copy(folder: Path, out: Path) -> None:
    """Copies files alone: a link's target, but no link to a folder, and nothing hidden."""
    for name in files_of(folder):
        path = folder / name
        if any(part.startswith(".") for part in Path(name).parts):
            continue
        if path.is_dir() or not path.is_file():
            raise ModelError(f"{path} is a link to a folder, or a special file", "Copy the folder with `cp -rL` first.")
        (out / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(path, out / name)
    if (folder / MANIFEST).is_file():
        shutil.copyfile(folder / MANIFEST, out / MANIFEST)
    for name in files_of(folder):
        if (out / name).is_file() and file_entry(out / name).bytes != (folder / name).stat().st_size:
            raise ModelError(f"{folder / name} changed while it was copied", "Copy again.")
