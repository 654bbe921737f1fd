"""A bundle that was changed in any way is refused, and the file is named."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ddx_local.airgap import keys, manifest
from ddx_local.airgap.bundle_create import create
from ddx_local.airgap.bundle_verify import verify
from ddx_local.errors import BundleError
from tests.airgap.world import MODEL, World, lock, wheel

EDIT = Callable[[Path], object]


def silent(_: str) -> None:
    pass


def refusal(folder: Path, **more: object) -> BundleError:
    with pytest.raises(BundleError) as caught:
        verify(folder, say=silent, **more)  # type: ignore[arg-type]
    assert caught.value.exit_code == 10
    assert caught.value.hint
    return caught.value


def flip(path: Path, place: int = -1, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= bit
    path.write_bytes(data)


def one(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def test_an_unchanged_bundle_is_whole_and_says_who_signed_it(world: World) -> None:
    said: list[str] = []
    found = verify(world.bundle, say=said.append)
    assert found.fingerprint == world.fingerprint
    assert "compare it" in said[0]
    verify(world.bundle, key=world.fingerprint, say=said.append)
    assert said[2] == f"signed by {world.fingerprint}"


def test_coreutils_alone_can_check_it(world: World) -> None:
    subprocess.run(["sha256sum", "-c", "--quiet", "--strict", "SHA256SUMS"], cwd=world.bundle, check=True)
    listed = {line.split("  ")[1] for line in (world.bundle / "SHA256SUMS").read_text().splitlines()}
    there = {path.relative_to(world.bundle).as_posix() for path in world.bundle.rglob("*") if path.is_file()}
    assert there - listed == {"SHA256SUMS", "manifest.sig"}


CLASSES = {
    "a wheel": "wheels/tinydep-*.whl",
    "the program's wheel": "wheels/ddx_local-*.whl",
    "weights": f"models/{MODEL}/model.safetensors",
    "the model's manifest": f"models/{MODEL}/manifest.json",
    "a tokenizer": f"models/{MODEL}/tokenizer.json",
    "the bill of materials": "sbom.cdx.json",
    "a licence": "licences/tinydep/LICENSE",
    "the lock": "requirements.lock",
    "the starter": "install.py",
    "the key": "bundle.pub",
    "the manual": "README.txt",
}


@pytest.mark.parametrize("pattern", CLASSES.values(), ids=CLASSES.keys())
def test_a_flipped_byte_is_refused_by_name(bundle: Path, pattern: str) -> None:
    path = one(bundle, pattern)
    flip(path, place=path.stat().st_size // 2)
    assert path.name in refusal(bundle).message


@pytest.mark.parametrize("name", ["manifest.json", "manifest.sig", "SHA256SUMS"])
def test_a_flipped_byte_of_what_vouches_is_refused_by_name(bundle: Path, name: str) -> None:
    for place in (0, 5, -1):
        copy = bundle.with_name(f"{name}{place}")
        shutil.copytree(bundle, copy)
        flip(copy / name, place)
        assert name in refusal(copy).message


@pytest.mark.slow
def test_200_random_flips_are_200_refusals(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(world.bundle, folder)
    names = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    chosen = random.Random(7)
    sizes = [path.stat().st_size for path in names]
    for number in range(200):
        # Half of them by file, so that the small ones have their turn too.
        path = chosen.choice(names) if number % 2 else chosen.choices(names, sizes)[0]
        before = path.read_bytes()
        flip(path, chosen.randrange(len(before)), 1 << chosen.randrange(8))
        assert path.name in refusal(folder).message
        path.write_bytes(before)
    verify(folder, say=silent)


def swap(folder: Path) -> None:
    one_path, other = one(folder, "wheels/tinydep-*.whl"), folder / "sbom.cdx.json"
    first, second = one_path.read_bytes(), other.read_bytes()
    one_path.write_bytes(second)
    other.write_bytes(first)


def link_inside(folder: Path) -> None:
    path = folder / "README.txt"
    path.rename(folder.with_name("elsewhere"))
    path.symlink_to(folder.with_name("elsewhere"))


ODD: dict[str, tuple[EDIT, str]] = {
    "missing": (lambda f: one(f, "wheels/tinydep-*.whl").unlink(), r"wheels/tinydep-1\.0.*is missing"),
    "missing weights": (lambda f: (f / "models" / MODEL / "model.safetensors").unlink(), r"safetensors is missing"),
    "missing signature": (lambda f: (f / "manifest.sig").unlink(), r"manifest\.sig: is missing"),
    "missing sums": (lambda f: (f / "SHA256SUMS").unlink(), "SHA256SUMS is missing"),
    "missing key": (lambda f: (f / "bundle.pub").unlink(), r"bundle\.pub"),
    "missing manifest": (lambda f: (f / "manifest.json").unlink(), r"manifest\.json"),
    "extra": (
        lambda f: (f / "wheels" / "extra-1.0-py3-none-any.whl").write_text("x"),
        r"extra-1\.0.*not in the manifest",
    ),
    "extra hidden": (lambda f: (f / ".hidden").write_text("x"), r"\.hidden is not in the manifest"),
    "a pickle": (
        lambda f: (f / "models" / MODEL / "x.bin").write_bytes(b"\x80\x04."),
        r"x\.bin is not in the manifest",
    ),
    "truncated": (lambda f: os.truncate(one(f, "wheels/tinydep-*.whl"), 10), r"tinydep.*has 10 bytes"),
    "emptied": (lambda f: os.truncate(f / "manifest.json", 0), r"manifest\.json"),
    "longer": (lambda f: os.truncate(f / "README.txt", 10_000), r"README\.txt has \d+ bytes"),
    "swapped": (swap, r"tinydep.*sbom|sbom.*tinydep"),
    "a link": (link_inside, r"README\.txt is a link"),
    "a link to a folder": (lambda f: (f / "more").symlink_to("/etc"), "more is a link"),
    "a pipe": (lambda f: os.mkfifo(f / "pipe"), "pipe is a special file"),
    "not a bundle": (lambda f: shutil.rmtree(f) or f.mkdir(), r"is no bundle"),
    "gone": (shutil.rmtree, "is not a folder"),
}


@pytest.mark.parametrize(("edit", "message"), ODD.values(), ids=ODD.keys())
def test_what_is_odd_is_refused_by_name(bundle: Path, edit: EDIT, message: str) -> None:
    edit(bundle)
    assert re.search(message, refusal(bundle).message)


def signed_again(bundle: Path, world: World, **changes: object) -> None:
    """Puts another manifest into the bundle, signed by its own maker."""
    table = replace(manifest.read(bundle)[0], **changes)  # type: ignore[arg-type]
    data = manifest.to_bytes(table)
    (bundle / "manifest.json").write_bytes(data)
    (bundle / "manifest.sig").write_bytes(keys.sign(world.key, data)[0])
    (bundle / "SHA256SUMS").write_text(manifest.sums(table, data))


@pytest.mark.parametrize(
    "name", ["../out", "/etc/passwd", "a/../../b", "a//b", "a\\b", "./a", "C:x", "a\n", "x/..", "manifest.sig", "a "]
)
def test_a_path_that_climbs_out_is_refused_even_signed(bundle: Path, world: World, name: str) -> None:
    files = manifest.read(bundle)[0].files
    signed_again(bundle, world, files={**files, name: files["README.txt"]})
    assert "a path may not be in it" in refusal(bundle).message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.bin", b"abc"),
        ("x.pt", b"PK\x03\x04"),
        ("x.txt", b"\x80\x04\x95"),
        ("x.pkl", b""),
        ("notes.md", b"PK\x03\x04..."),
    ],
)
def test_a_pickle_is_refused_even_signed(bundle: Path, world: World, name: str, content: bytes) -> None:
    path = f"models/{MODEL}/{name}"
    (bundle / path).write_bytes(content)
    entry = manifest.Entry(hashlib.sha256(content).hexdigest(), len(content))
    signed_again(bundle, world, files={**manifest.read(bundle)[0].files, path: entry})
    assert f"{path} is a pickle" in refusal(bundle).message


def test_an_old_manifest_with_its_own_signature_does_not_fit_new_files(world: World, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(world.bundle, newer)
    made = wheel(tmp_path / "source", content="ANSWER = 43\n")
    order = world.ordered(out=newer, lock=lock(tmp_path / "new.lock", made), source=tmp_path / "source")
    create(order, say=silent)
    verify(newer, say=silent)
    for name in ("manifest.json", "manifest.sig"):
        shutil.copy(world.bundle / name, newer / name)
    message = refusal(newer).message
    assert "tinydep-1.0-py3-none-any.whl was changed" in message
    assert "SHA256SUMS its digests are not the manifest's" in message


def test_another_key_is_refused_however_genuine(bundle: Path, tmp_path: Path) -> None:
    other = keys.keygen(tmp_path / "other")
    assert f"not by {other}" in refusal(bundle, key=other).message
    data = (bundle / "manifest.json").read_bytes()
    (bundle / "manifest.sig").write_bytes(keys.sign(tmp_path / "other", data)[0])
    assert "manifest.sig" in refusal(bundle).message
    shutil.copy(tmp_path / "other" / "bundle.pub", bundle)
    assert "is not the key that the manifest names" in refusal(bundle).message


def test_an_unsigned_bundle_is_refused_unless_it_is_allowed_loudly(world: World, tmp_path: Path) -> None:
    out = tmp_path / "unsigned"
    create(world.ordered(out=out, key=None), say=silent)
    assert "NOT SIGNED" in refusal(out).message
    assert "NOT SIGNED" in refusal(out, allow_unsigned=True, key=world.fingerprint).message
    said: list[str] = []
    assert verify(out, allow_unsigned=True, say=said.append).fingerprint == ""
    assert said[0].startswith("WARNING: THE BUNDLE IS NOT SIGNED")


def test_a_stripped_signature_does_not_make_a_bundle_unsigned(bundle: Path) -> None:
    (bundle / "manifest.sig").unlink()
    assert "manifest.sig: is missing" in refusal(bundle, allow_unsigned=True).message


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"schema": "ddx-local/bundle/1"', '"schema": "ddx-local/bundle/2"'),
        lambda text: text.replace('"platform": "cpu"', '"platform": "cpu", "platform": "cuda"'),
        lambda text: text.replace('"platform": "cpu"', '"platform": 7'),
        lambda text: text.replace('"platform": "cpu"', '"platforn": "cpu"'),
        lambda text: text.replace('"sequence": ', '"sequence": -'),
        lambda text: text.replace('"models": [\n  "smollm2-135m"', '"models": [\n  "../x"'),
        lambda text: text.replace('"requirements.lock"', '"requirements.lick"'),
        lambda text: text + " ",
        lambda text: json.dumps(json.loads(text)),
        lambda _: "[" * 100_000,
        lambda _: "null",
    ],
)
def test_a_manifest_is_read_in_one_way_of_writing_alone(bundle: Path, edit: Callable[[str], str]) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json: cannot be read"):
        manifest.from_bytes(edit((bundle / "manifest.json").read_text()).encode())


def test_the_bundle_s_own_starter_verifies_it_with_python_alone(world: World, bundle: Path) -> None:
    # -S: no site-packages at all, as on a machine that has nothing yet.
    command = [sys.executable, "-I", "-S", str(bundle / "install.py"), "verify", "--key", world.fingerprint]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stdout) == (0, "whole, genuine\n"), done.stderr
    verify(bundle, say=silent)  # it left nothing behind
    flip(bundle / "README.txt")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 10
    assert "README.txt was changed" in " ".join(done.stderr.split())
