"""A bundle is installed whole, again, after an interruption, never over a newer one, and never by two at once."""

import fcntl
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ddx_local.airgap import bundle_checks, bundle_install, keys, manifest, venv
from ddx_local.airgap.bundle_create import create
from ddx_local.airgap.bundle_install import Wish, install
from ddx_local.errors import BundleError
from tests.airgap.test_bundle_verify import signed_again
from tests.airgap.world import MODEL, ROOT, World, lock, wheel


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def installed(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real installation, with a real venv and pip."""
    prefix = tmp_path_factory.mktemp("installed") / "ddx"
    install(world.bundle, Wish(prefix=prefix, key=world.fingerprint), say=silent)
    return prefix


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment is not what a test is about: a folder in its place."""

    def make(folder: Path, wheels: Path, requirements: Path) -> None:
        assert wheels.is_dir()
        assert requirements.is_file()
        (folder / "bin").mkdir(parents=True)

    monkeypatch.setattr(venv, "make", make)


def refusal(bundle: Path, wish: Wish) -> BundleError:
    with pytest.raises(BundleError) as caught:
        install(bundle, wish, say=silent)
    assert caught.value.hint
    return caught.value


@pytest.mark.slow
def test_what_is_installed_runs_with_its_own_models_and_wheels(installed: Path, world: World) -> None:
    python = installed / "current" / "venv" / "bin" / "python"
    code = "import tinydep, ddx_local, sys; print(tinydep.ANSWER, ddx_local.__file__)"
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("42 ")
    assert Path(done.stdout.split()[1]).resolve().is_relative_to(installed.resolve() / "releases")
    assert (installed / "models" / MODEL / "model.safetensors").is_file()
    assert oct((installed / "models").stat().st_mode)[-3:] == "700"
    starter = (installed / "bin" / "ddx-local").read_text()
    assert "DDX_LOCAL_MODELS" in starter
    assert os.access(installed / "bin" / "ddx-local", os.X_OK)
    mark = json.loads((installed / "installed.json").read_text())
    assert mark["fingerprint"] == world.fingerprint
    assert (installed / "share" / "licences" / "MODELS.txt").is_file()
    guard = "import sys; m = sys.modules.get('ddx_local.offline'); sys.exit(not (m and m.installed()))"
    subprocess.run([str(python), "-c", guard], env={"DDX_LOCAL_OFFLINE": "1"}, cwd="/", check=True)


def test_the_same_again_changes_nothing_and_is_quick(installed: Path, world: World) -> None:
    before = {path: path.stat().st_mtime_ns for path in installed.rglob("model.safetensors")}
    said: list[str] = []
    install(world.bundle, Wish(prefix=installed), say=said.append)
    assert not any("wheels" in line for line in said[2:])
    assert before == {path: path.stat().st_mtime_ns for path in installed.rglob("model.safetensors")}


@pytest.mark.slow
def test_the_starter_in_the_bundle_installs_with_python_alone_in_an_empty_network(
    world: World, tmp_path: Path, netns: tuple[str, ...]
) -> None:
    prefix = tmp_path / "ddx"
    command = [sys.executable, "-I", "-S", str(world.bundle / "install.py"), "install", "--no-doctor"]
    done = subprocess.run(
        [*netns, *command, "--prefix", str(prefix), "--key", world.fingerprint],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    assert (prefix / "bin" / "ddx-local").is_file()


@pytest.mark.slow
def test_killed_at_ten_moments_and_typed_again_it_ends_well(world: World, tmp_path: Path) -> None:
    prefix, chosen = tmp_path / "ddx", random.Random(5)
    command = [sys.executable, "-I", "-S", str(world.bundle / "install.py"), "install", "--prefix", str(prefix)]
    for _ in range(10):
        # A group of its own, so that pip and venv go with it.
        child = subprocess.Popen([*command, "--no-doctor"], stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            child.wait(chosen.uniform(0.1, 4))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
        if (prefix / "installed.json").is_file():
            shutil.rmtree(prefix)
    subprocess.run([*command, "--no-doctor"], check=True, capture_output=True)
    python = prefix / "current" / "venv" / "bin" / "python"
    subprocess.run([str(python), "-I", "-c", "import tinydep, ddx_local"], check=True)
    assert len(list((prefix / "releases").iterdir())) == 1
    assert not [path for path in (prefix / "models").iterdir() if path.name.startswith(".")]


def test_a_wheel_with_another_digest_than_the_lock_s_is_refused_by_pip_itself(world: World, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, content="ANSWER = 41\n")
    with pytest.raises(BundleError, match=r"(?i)hash"):
        venv.make(tmp_path / "venv", wheels, world.folder / "cpu.lock")


@pytest.mark.usefixtures("quick")
def test_a_changed_bundle_installs_nothing(bundle: Path, tmp_path: Path) -> None:
    (bundle / "sbom.cdx.json").write_text("{}")
    assert "sbom.cdx.json" in refusal(bundle, Wish(prefix=tmp_path / "ddx")).message
    assert {path.name for path in (tmp_path / "ddx").iterdir()} == {".install.lock"}


@pytest.mark.usefixtures("quick")
def test_an_older_bundle_is_refused_over_a_newer_one_unless_it_is_allowed(
    world: World, bundle: Path, tmp_path: Path
) -> None:
    prefix = tmp_path / "ddx"
    now = manifest.read(bundle)[0]
    signed_again(bundle, world, sequence=now.sequence + 1000)
    install(bundle, Wish(prefix=prefix), say=silent)
    newer = (prefix / "current").resolve()
    assert "older than what is installed" in refusal(world.bundle, Wish(prefix=prefix)).message
    assert (prefix / "current").resolve() == newer
    install(world.bundle, Wish(prefix=prefix, allow_downgrade=True), say=silent)
    assert (prefix / "current").resolve() != newer


@pytest.mark.usefixtures("quick")
def test_an_update_keeps_the_release_before_it_and_what_the_user_added(world: World, tmp_path: Path) -> None:
    prefix, out = tmp_path / "ddx", tmp_path / "next"
    install(world.bundle, Wish(prefix=prefix), say=silent)
    first = (prefix / "current").resolve()
    (prefix / "models" / "own-model").mkdir()
    for number in (1, 2):
        made = wheel(tmp_path / f"source{number}", content=f"ANSWER = {number}\n")
        order = world.ordered(out=out, lock=lock(tmp_path / "x.lock", made), source=tmp_path / f"source{number}")
        create(order, say=silent)
        install(out, Wish(prefix=prefix), say=silent)
        releases = {path.name for path in (prefix / "releases").iterdir()}
        assert len(releases) == 2
        assert (first.name in releases) is (number == 1)
        install(out, Wish(prefix=prefix), say=silent)
        assert {path.name for path in (prefix / "releases").iterdir()} == releases, "typed again, nothing changes"
    assert (prefix / "models" / "own-model").is_dir()


@pytest.mark.usefixtures("quick")
def test_the_key_of_the_first_installation_is_the_one_that_counts(world: World, bundle: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "ddx"
    install(world.bundle, Wish(prefix=prefix), say=silent)
    other = keys.keygen(tmp_path / "other")
    table = replace(manifest.read(bundle)[0], fingerprint=other)
    shutil.copy(tmp_path / "other" / "bundle.pub", bundle)
    entry = manifest.Entry(bundle_install.sha256(bundle / "bundle.pub"), (bundle / "bundle.pub").stat().st_size)
    data = manifest.to_bytes(replace(table, files={**table.files, "bundle.pub": entry}))
    (bundle / "manifest.json").write_bytes(data)
    (bundle / "manifest.sig").write_bytes(keys.sign(tmp_path / "other", data)[0])
    (bundle / "SHA256SUMS").write_text(manifest.sums(manifest.from_bytes(data), data))
    assert f"signed by {other}, not by {world.fingerprint}" in refusal(bundle, Wish(prefix=prefix)).message
    install(bundle, Wish(prefix=prefix, key=other), say=silent)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"python": "3.9"}, r"for Python 3\.9, this is"),
        ({"machine": "aarch64"}, "for Linux on aarch64"),
        ({"glibc": "9.99"}, r"needs glibc 9\.99"),
        ({"disk": 10**17}, r"has .* GB free, the installation takes 100000000\.0 GB"),
        ({"notices": {MODEL: "Be good."}}, r"before their terms are accepted.*Be good\."),
    ],
)
def test_a_bundle_that_does_not_fit_is_refused_before_anything_is_copied(
    bundle: Path, world: World, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    if "glibc" in changes and platform.libc_ver()[0] != "glibc":
        pytest.skip("another C library")
    signed_again(bundle, world, **changes)
    prefix = tmp_path / "ddx"
    found = refusal(bundle, Wish(prefix=prefix))
    assert re.search(message, found.message)
    assert {path.name for path in prefix.iterdir()} == {".install.lock"}
    if "notices" in changes:
        install(bundle, Wish(prefix=prefix, accept_licence=True), say=silent)


@pytest.mark.usefixtures("quick")
def test_two_installations_at_once_are_one(world: World, tmp_path: Path) -> None:
    prefix = tmp_path / "ddx"
    prefix.mkdir()
    with (prefix / ".install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another process is at work" in refusal(world.bundle, Wish(prefix=prefix)).message
    install(world.bundle, Wish(prefix=prefix), say=silent)


def test_a_prefix_that_cannot_be_written_is_said(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "--prefix" in refusal(world.bundle, Wish(prefix=tmp_path / "file")).message
    read_only = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@"', "sh"]
    (tmp_path / "ro").mkdir()
    if subprocess.run([*read_only, str(tmp_path / "ro"), "true"], capture_output=True, check=False).returncode:
        return
    command = [sys.executable, str(world.bundle / "install.py"), "install", "--prefix", str(tmp_path / "ro" / "ddx")]
    done = subprocess.run([*read_only, str(tmp_path / "ro"), *command], capture_output=True, text=True, check=False)
    assert done.returncode == 10
    assert "Read-only file system" in done.stderr


@pytest.mark.usefixtures("quick")
def test_a_damaged_mark_of_an_earlier_installation_is_said(world: World, tmp_path: Path) -> None:
    (tmp_path / "installed.json").write_text("{")
    assert "installed.json: cannot be read" in refusal(world.bundle, Wish(prefix=tmp_path)).message
    assert bundle_checks.read_installed(tmp_path / "none") is None


@pytest.mark.usefixtures("quick")
def test_a_model_that_was_changed_in_the_store_is_put_right(world: World, tmp_path: Path) -> None:
    prefix = tmp_path / "ddx"
    install(world.bundle, Wish(prefix=prefix), say=silent)
    weights = prefix / "models" / MODEL / "model.safetensors"
    right = weights.read_bytes()
    weights.write_bytes(right[:-1] + b"x")
    install(world.bundle, Wish(prefix=prefix), say=silent)
    assert weights.read_bytes() == right


def test_the_installation_code_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ddx_local.airgap.starter;"
        "print(sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names) - {'ddx_local', '__main__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
