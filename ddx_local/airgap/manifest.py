"""What a bundle says of itself: every file with its sha256, what it is for, and how large files were cut.

    manifest.json     signed; `files` names every other file of the folder but the three below
    manifest.sig      64 bytes, Ed25519 over the bytes of manifest.json; absent in an unsigned bundle
    SHA256SUMS        the same digests, for `sha256sum -c`
    bundle.pub        who signed

Strict on purpose: an unknown key, a key that stands twice, a path that climbs out, and the file is refused. Standard library only.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from ddx_local.errors import BundleError

NAME, SIGNATURE, SUMS = "manifest.json", "manifest.sig", "SHA256SUMS"
SCHEMA = "ddx-local/bundle/1"
LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Joined:
    """A file that was cut, because a carrier's file system may hold no more than 4 GiB in one; parts in their order."""

    parts: tuple[str, ...]
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A bundle.

    Args:
        package: The version of ddx-local in it.
        sequence: Seconds since 1970 when it was made: a later bundle has a larger one.
        created_at: The same for people, ISO 8601 in UTC.
        platform: `cpu` or `cuda`.
        python: The Python that its wheels are for, such as 3.11.
        machine: What `uname -m` has to say.
        glibc: The C library's least version, such as 2.28.
        fingerprint: Of the key that signs; empty in an unsigned bundle.
        models: Names of the models in it.
        notices: Model -> terms that have to be accepted before it is used.
        disk: Bytes that an installation takes.
        files: Path -> digest.
        joined: Path of a whole file -> its parts among `files`.
    """

    package: str
    sequence: int
    created_at: str
    platform: str
    python: str
    machine: str
    glibc: str
    fingerprint: str
    models: tuple[str, ...]
    notices: Mapping[str, str]
    disk: int
    files: Mapping[str, Entry]
    joined: Mapping[str, Joined]


def to_bytes(manifest: Manifest) -> bytes:
    return (
        json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    ).encode()


def from_bytes(data: bytes) -> Manifest:
    """Reads a manifest.

    Raises:
        BundleError: It is not exactly what `to_bytes` writes of one.
    """
    try:
        table = json.loads(data.decode("ascii"), object_pairs_hook=_once)
        if not isinstance(table, dict) or table.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        files = {str(name): Entry(**entry) for name, entry in table.pop("files").items()}
        joined = {str(name): Joined(tuple(entry.pop("parts")), **entry) for name, entry in table.pop("joined").items()}
        found = Manifest(models=tuple(table.pop("models")), files=files, joined=joined, **table)
        _check(found)
        if to_bytes(found) != data:
            raise ValueError("it is not written as this program writes it")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BundleError(f"{NAME}: cannot be read as a bundle's manifest: {_short(error)}") from None
    return found


def sums(manifest: Manifest, data: bytes) -> str:
    """The text of SHA256SUMS: the manifest's files and the manifest itself."""
    digests = {name: entry.sha256 for name, entry in manifest.files.items()} | {NAME: hashlib.sha256(data).hexdigest()}
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def safe(name: str) -> bool:
    """Whether a path stays inside, on every file system, and is written in one way only."""
    path = PurePosixPath(name)
    parts = name.split("/")
    odd = any(part in ("", ".", "..") or part.endswith((".", " ")) or part.startswith(" ") for part in parts)
    return not (odd or path.is_absolute() or len(name) > 400 or not name.isprintable() or set(name) & set('\\:*?"<>|'))


def _check(manifest: Manifest) -> None:
    for field in fields(Manifest):
        value, kind = getattr(manifest, field.name), _KINDS[field.name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"`{field.name}` is of the wrong kind")
    if manifest.sequence < 0 or manifest.disk < 0 or not manifest.models:
        raise ValueError("a number is negative, or there is no model")
    texts: list[Any] = [*manifest.models, *manifest.notices, *manifest.notices.values()]
    texts += [part for whole in manifest.joined.values() for part in whole.parts]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name or a text is of the wrong kind")
    entries: list[tuple[str, Entry | Joined]] = [*manifest.files.items(), *manifest.joined.items()]
    for name, entry in entries:
        if not safe(name) or name in (NAME, SIGNATURE, SUMS):
            raise ValueError(f"a path may not be in it: {name!r}")
        hexadecimal = (
            isinstance(entry.sha256, str) and len(entry.sha256) == 64 and set(entry.sha256) <= set("0123456789abcdef")
        )
        if not hexadecimal or type(entry.bytes) is not int or entry.bytes < 0:
            raise ValueError(f"the entry of {name} is wrong")
    for name in manifest.models:
        if "/" in name or f"models/{name}/manifest.json" not in manifest.files:
            raise ValueError(f"model {name!r} is not among the files")
    if "requirements.lock" not in manifest.files:
        raise ValueError("requirements.lock is not among the files")
    for name, whole in manifest.joined.items():
        if not whole.parts or not set(whole.parts) <= manifest.files.keys() or name in manifest.files:
            raise ValueError(f"the parts of {name} are not among the files")
    if len({name.casefold() for name in manifest.files}) != len(manifest.files):
        raise ValueError("two paths differ in case alone")


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("package", "created_at", "platform", "python", "machine", "glibc", "fingerprint"), str),
    **dict.fromkeys(("sequence", "disk"), int),
    **dict.fromkeys(("files", "joined", "notices"), dict),
    "models": tuple,
}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key stands twice")
    return table


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def read(folder: Path) -> tuple[Manifest, bytes]:
    """The folder's manifest and its bytes. Raises `BundleError`."""
    path = folder / NAME
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            raise BundleError(f"{NAME}: is a link, or too large")
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        hint = "Give the folder that holds manifest.json; an interrupted `bundle create` has none yet: run it again."
        raise BundleError(f"{folder} is no bundle: {NAME}: {reason}", hint) from None
    return from_bytes(data), data
