"""Keys, signatures, and the verification that runs without any package."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.airgap import ed25519, keys
from ddx_local.errors import BundleError, UsageError

# RFC 8032, section 7.1: public key, message, signature.
RFC = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("public", "message", "signature"), RFC)
def test_the_signatures_of_the_standard_are_genuine_and_no_other_is(public: str, message: str, signature: str) -> None:
    key, text, sign = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
    assert ed25519.verify(key, sign, text)
    assert not ed25519.verify(key, sign, text + b"x")
    assert not ed25519.verify(key, sign[:-1], text)
    assert not ed25519.verify(key[:-1], sign, text)


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200), st.integers(0, 511))
def test_it_agrees_with_cryptography_on_genuine_and_on_changed_signatures(
    seed: bytes, message: bytes, bit: int
) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert ed25519.verify(public, signature, message)
    changed = bytearray(signature)
    changed[bit // 8] ^= 1 << bit % 8
    assert not ed25519.verify(public, bytes(changed), message)
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(public).verify(bytes(changed), message)


def test_a_signature_whose_number_is_written_too_large_is_refused() -> None:
    public, message, signature = (bytes.fromhex(part) for part in RFC[1])
    order = 2**252 + 27742317777372353535851937790883648493
    larger = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    assert not ed25519.verify(public, signature[:32] + larger, message)


def test_a_key_is_made_once_private_and_signs(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    fingerprint = keys.keygen(folder)
    assert stat.S_IMODE((folder / keys.PRIVATE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    signature, public = keys.sign(folder, b"text")
    assert keys.verify(public, signature, b"text")
    assert keys.fingerprint(public) == fingerprint == hashlib.sha256(public).hexdigest()
    assert keys.read_public(folder / keys.PUBLIC) == public
    with pytest.raises(UsageError, match="is there already"):
        keys.keygen(folder)
    for given_as in (fingerprint, fingerprint.upper(), ":".join(fingerprint[i : i + 4] for i in range(0, 64, 4))):
        assert keys.expected(given_as) == fingerprint
    assert keys.expected(str(folder)) == keys.expected(str(folder / keys.PUBLIC)) == fingerprint
    with pytest.raises(UsageError, match="no fingerprint"):
        keys.expected("abc")


@pytest.mark.parametrize(
    "edit", [str.lower, lambda text: text + "\n", lambda text: text.replace("\n", "\r\n"), lambda _: "x"]
)
def test_a_public_key_file_is_read_in_one_way_of_writing_alone(tmp_path: Path, edit: "type[str]") -> None:
    keys.keygen(tmp_path)
    path = tmp_path / keys.PUBLIC
    path.write_bytes(edit(path.read_text()).encode())
    with pytest.raises(BundleError, match=r"bundle\.pub"):
        keys.read_public(path)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"])
def test_a_key_that_cannot_be_used_is_refused_with_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / keys.PRIVATE).write_bytes(content)
    with pytest.raises(UsageError, match=r"bundle\.key cannot be read") as caught:
        keys.sign(tmp_path, b"")
    assert "keygen" in caught.value.hint


def test_openssl_and_coreutils_come_to_the_same_as_the_readme_says(tmp_path: Path) -> None:
    if not any((Path(folder) / "openssl").exists() for folder in os.environ["PATH"].split(":")):
        pytest.skip("openssl is not here")
    fingerprint = keys.keygen(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"text")
    (tmp_path / "manifest.sig").write_bytes(keys.sign(tmp_path, b"text")[0])
    check = "openssl pkeyutl -verify -pubin -inkey bundle.pub -rawin -in manifest.json -sigfile manifest.sig"
    subprocess.run(check.split(), cwd=tmp_path, check=True, capture_output=True)
    shown = "tail -n +2 bundle.pub | head -1 | base64 -d | tail -c 32 | sha256sum"
    done = subprocess.run(["sh", "-c", shown], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == fingerprint
    (tmp_path / "manifest.json").write_bytes(b"texT")
    assert subprocess.run(check.split(), cwd=tmp_path, check=False, capture_output=True).returncode
