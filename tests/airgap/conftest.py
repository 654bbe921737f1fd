"""One small bundle for the session; a test that changes it takes a copy."""

import shutil
import zipfile
from pathlib import Path

import pytest

from ddx_local.airgap.wheels import build_own
from tests.airgap.world import ROOT, World


@pytest.fixture(scope="session")
def own_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's own wheel, built from this checkout, without what it demands: the made lock has none of it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("own")
    built = build_own(ROOT, folder)
    assert "ddx_local/_data/deploy/" in "".join(zipfile.ZipFile(built).namelist())
    return built


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, own_wheel: Path) -> World:
    pytest.importorskip("torch")
    return World(tmp_path_factory.mktemp("world"), own_wheel)


@pytest.fixture
def bundle(world: World, tmp_path: Path) -> Path:
    """A copy of the bundle."""
    folder = tmp_path / "bundle"
    shutil.copytree(world.bundle, folder)
    return folder
