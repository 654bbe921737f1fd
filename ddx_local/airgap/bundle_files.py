"""Files on their way into a bundle and out of it: copied whole or in parts, never half, and kept where they are right already.

It knows digests and sizes, not what the files are for. Standard library only.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ddx_local.airgap.bundle_verify import sha256
from ddx_local.airgap.manifest import Entry, Joined
from ddx_local.errors import BundleError

CHUNK = (4 << 30) - 1
"""The largest file that FAT32 holds."""
_BLOCK = 1 << 20


class Packing:
    """A bundle's folder while it is filled: what was placed, with its digest."""

    def __init__(self, folder: Path, chunk: int = CHUNK) -> None:
        self.folder = folder
        self.files: dict[str, Entry] = {}
        self.joined: dict[str, Joined] = {}
        self._chunk = chunk

    def write(self, name: str, data: bytes) -> None:
        """Place a text or other bytes."""
        path = self._path(name)
        if not path.is_file() or path.read_bytes() != data:
            with _whole(path) as draft:
                draft.write_bytes(data)
        self.files[name] = Entry(hashlib.sha256(data).hexdigest(), len(data))

    def keep(self, name: str, digest: str | None = None) -> None:
        """Take up a file that lies there already."""
        path = self.folder / name
        self.files[name] = Entry(digest or sha256(path), path.stat().st_size)

    def copy(self, source: Path, name: str, digest: str | None = None) -> None:
        """Copy a file, in parts where it is larger than a chunk; `digest` is what it has to be.

        Raises:
            BundleError: It is another file.
        """
        size = source.stat().st_size
        if size <= self._chunk:
            self.files[name] = self._part(source, name, 0, size)
            whole = self.files[name].sha256
        else:
            parts = [f"{name}.part{number:03}" for number in range(-(-size // self._chunk))]
            for number, part in enumerate(parts):
                start = number * self._chunk
                self.files[part] = self._part(source, part, start, min(self._chunk, size - start))
            whole = sha256(source)
            self.joined[name] = Joined(tuple(parts), whole, size)
        if digest is not None and whole != digest:
            raise BundleError(f"{source} is not what its own manifest says", "Check it: `ddx-local models verify`.")

    def sweep(self, keep: frozenset[str]) -> None:
        """Delete what an earlier try left and this one does not want."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(self.folder).as_posix() not in self.files.keys() | keep:
                path.unlink()

    def _part(self, source: Path, name: str, start: int, length: int) -> Entry:
        digest = hashlib.sha256()
        for block in _blocks(source, start, length):
            digest.update(block)
        entry, path = Entry(digest.hexdigest(), length), self._path(name)
        if path.is_file() and path.stat().st_size == length and sha256(path) == entry.sha256:
            return entry
        with _whole(path) as draft, draft.open("wb") as file:
            for block in _blocks(source, start, length):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        return entry

    def _path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def unpack(folder: Path, name: str, entry: Entry | Joined, target: Path) -> None:
    """Copy a file out of a bundle, its parts joined, and check the digest of what was written.

    Raises:
        BundleError: It is not what the manifest says.
    """
    parts = entry.parts if isinstance(entry, Joined) else (name,)
    digest = hashlib.sha256()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with target.open("wb") as file:
        for part in parts:
            path = folder / part
            for block in _blocks(path, 0, path.stat().st_size):
                digest.update(block)
                file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != entry.sha256:
        raise BundleError(f"{name}: what was copied is not what the manifest says")


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, which the system lets go with the process.

    Raises:
        BundleError: Another process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BundleError(f"another process is at work on {what}", "Wait for it to end.") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    draft = path.with_name(f".{path.name}.new")
    yield draft
    draft.replace(path)


def _blocks(path: Path, start: int, length: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        while length and (block := file.read(min(_BLOCK, length))):
            length -= len(block)
            yield block
    if length:
        raise BundleError(f"{path} became shorter while it was read", "Run it again.")
