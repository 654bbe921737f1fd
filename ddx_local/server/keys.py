"""API keys: 256 random bits each, kept as hashes in one file that only its owner may read. Nothing else is kept of a key.

A key looks like `ddx_ID_SECRET`; the id names it in audit records and metrics, the secret is compared in constant time.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ddx_local.errors import UsageError, nearest
from ddx_local.settings import settings_path

SCOPES = ("raw", "ddx", "panel", "admin", "metrics")
"""raw: the model itself; ddx: the methods; panel: the panel and its runs; metrics: /metrics; admin: all of them."""

_KEY = re.compile(r"ddx_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[\w .@-]{1,64}")


@dataclass(frozen=True, slots=True)
class Key:
    """One key as it is kept."""

    id: str
    name: str
    scopes: tuple[str, ...]
    sha256: str
    created_at: str

    def may(self, scope: str) -> bool:
        """Whether it opens routes of a scope; every key opens those of the scope `any`."""
        return scope == "any" or scope in self.scopes or "admin" in self.scopes


def default_path() -> Path:
    """keys.json beside the settings file."""
    return settings_path().parent / "keys.json"


def read(path: Path) -> tuple[Key, ...]:
    """All keys of a file; none where there is no file.

    Raises:
        UsageError: Others may read it, or it is no file of keys.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & 0o077:
                raise UsageError(
                    f"key file {path}: others may read or change it (mode {mode & 0o777:04o})",
                    f"Run `chmod 600 {path}`, and replace its keys if others use this machine.",
                )
            data = json.loads(file.read().decode())
        return tuple(_key(item) for item in data["keys"])
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(
            f"key file {path}: cannot be read: {error.strerror}", "Check the path and its permissions."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"key file {path}: is no file of keys", "Move it away and add keys again.") from None


def add(path: Path, name: str, scopes: Sequence[str]) -> tuple[Key, str]:
    """Make a key.

    Returns:
        What is kept of it, and the key itself, which is shown once.

    Raises:
        UsageError: An unknown scope, a name that cannot be shown, or a file that cannot be written.
    """
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        known = f"no scope `{wrong[0]}`: {nearest(wrong[0], list(SCOPES))}" if wrong else "no scope was given"
        raise UsageError(f"--scope: {known}", f"Scopes: {', '.join(SCOPES)}.")
    if not _NAME.fullmatch(name):
        raise UsageError("--name: letters, digits, blanks and . @ - only, at most 64", "Name the program or the desk.")
    secret = secrets.token_urlsafe(32)
    key = Key(secrets.token_hex(4), name, tuple(dict.fromkeys(scopes)), _hash(secret), _now())
    _write(path, [*read(path), key])
    return key, f"ddx_{key.id}_{secret}"


def revoke(path: Path, name: str) -> Key:
    """Take a key out, by its id or its name; a running server refuses it at once.

    Raises:
        UsageError: No such key, or several of that name.
    """
    keys = read(path)
    found = [key for key in keys if name in (key.id, key.name)]
    if len(found) != 1:
        known = [key.id for key in keys]
        reason = f"{len(found)} keys have that name" if found else nearest(name, known) if known else "there are none"
        raise UsageError(f"no single key `{name}`: {reason}", "See `ddx-local keys list`, and give an id.")
    _write(path, [key for key in keys if key != found[0]])
    return found[0]


class Keys:
    """The keys of a file, read again when the file changes; `found` is asked for every request.

    Args:
        path: The file; None where no key is needed.
        always: A key is needed even where there is none.
    """

    def __init__(self, path: Path | None, *, always: bool = False) -> None:
        self._path = path
        self._always = always
        self._stamp: tuple[int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()
        if path is not None:
            self._refresh()

    @property
    def needed(self) -> bool:
        """Whether requests need a key: once there was one, for as long as the server runs."""
        return self._always or self._stamp is not None

    def found(self, given: str) -> Key | None:
        """The key that a client gave, if it is one of ours."""
        self._refresh()
        match = _KEY.fullmatch(given)
        if match is None:
            return None
        hashed = _hash(match[2])
        found = None
        for key in self._keys:  # all of them, always: time tells nothing
            if hmac.compare_digest(key.sha256, hashed) and hmac.compare_digest(key.id, match[1]):
                found = key
        return found

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except OSError:
            self._keys = ()
            return
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp == self._stamp:
            return
        if self._stamp is None:
            self._keys = read(self._path)
            self._stamp = stamp if self._keys else None
            return
        self._stamp = stamp
        try:
            self._keys = read(self._path)
        except UsageError:
            self._keys = ()  # a file that became unsafe while the server runs opens nothing


def _key(item: Any) -> Key:
    return Key(
        id=str(item["id"]),
        name=str(item["name"]),
        scopes=tuple(str(scope) for scope in item["scopes"]),
        sha256=str(item["sha256"]),
        created_at=str(item["created_at"]),
    )


def _write(path: Path, keys: Sequence[Key]) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(scratch, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"keys": [asdict(key) for key in keys]}, file, indent=2)
            file.write("\n")
        scratch.replace(path)
    except OSError as error:
        raise UsageError(f"key file {path}: cannot be written: {error.strerror}", "Check the folder.") from None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
