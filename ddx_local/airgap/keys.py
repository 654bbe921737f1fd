"""The key of a bundle: made and used for signing with `cryptography`, checked with the standard library alone.

A key folder holds `bundle.key` (PKCS#8 PEM, 0600, stays at the side that builds) and `bundle.pub` (PEM, goes with every bundle).
The fingerprint is the sha256 of the 32 bytes of the public key; it is what two people compare over another way.
"""

import base64
import binascii
import hashlib
import os
from pathlib import Path

from ddx_local.airgap import ed25519
from ddx_local.errors import BundleError, UsageError

PRIVATE, PUBLIC = "bundle.key", "bundle.pub"
_SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: what comes before the 32 bytes
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----\n", "\n-----END PUBLIC KEY-----\n"


def keygen(folder: Path) -> str:
    """Makes a key folder; returns the fingerprint.

    Raises:
        UsageError: There is a key already, which is never overwritten, or the folder cannot be written.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / PRIVATE, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(private)
        (folder / PUBLIC).write_text(pem(public))
    except FileExistsError:
        raise UsageError(f"{folder / PRIVATE} is there already", "Use it, or give another --out.") from None
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}", "Give another --out.") from None
    return fingerprint(public)


def sign(folder: Path, message: bytes) -> tuple[bytes, bytes]:
    """Signs with the folder's private key; returns the 64 bytes of the signature and the 32 of the public key.

    Raises:
        UsageError: The key is not there or is no Ed25519 key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = folder / PRIVATE
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no private key in PEM"
        raise UsageError(
            f"--key {folder}: {path.name} cannot be read: {reason}", "Make one: `ddx-local bundle keygen`."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"--key {folder}: {path.name} is no Ed25519 key", "Make one: `ddx-local bundle keygen`.")
    return key.sign(message), key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the signature is the key's, by the one code that runs everywhere."""
    return ed25519.verify(public, signature, message)


def pem(public: bytes) -> str:
    return f"{_BEGIN}{base64.b64encode(_SPKI + public).decode()}{_END}"


def read_public(path: Path) -> bytes:
    """The 32 bytes of a public key's PEM file, in the one way that `pem` writes it.

    Raises:
        BundleError: It is missing or is no such file.
    """
    try:
        text = path.read_bytes().decode("ascii")
        der = base64.b64decode(text.removeprefix(_BEGIN).removesuffix(_END), validate=True)
    except (OSError, ValueError, binascii.Error):
        raise BundleError(f"{path.name}: cannot be read as a public key") from None
    public = der[len(_SPKI) :]
    if len(public) != 32 or pem(public) != text:
        raise BundleError(f"{path.name}: is no Ed25519 public key")
    return public


def fingerprint(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()


def expected(given: str) -> str:
    """The fingerprint that `--key` means: 64 hex digits with or without separators, a public key file, or a key folder.

    Raises:
        UsageError: It is none of them.
    """
    path = Path(given).expanduser()
    if (folder := path / PUBLIC).is_file() or path.is_file():
        return fingerprint(read_public(folder if folder.is_file() else path))
    digits = given.replace(":", "").replace(" ", "").lower()
    if len(digits) == 64 and set(digits) <= set("0123456789abcdef"):
        return digits
    raise UsageError(
        f"--key {given}: is no fingerprint and no public key", "Give the 64 digits that `bundle keygen` printed."
    )
