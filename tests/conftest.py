"""What every test gets: a closed network, folders of its own, and the shared data where it is there.

The network guard is the program's own (`ddx_local.offline`): loopback and Unix sockets work, anything else raises. In CI
a test that was skipped for want of the shared data fails the session if the data is there after all.
"""

import fcntl
import os
import subprocess
import tempfile
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from platformdirs import user_data_path

from ddx_local.offline import MARK, go_offline, install_pth

if TYPE_CHECKING:
    from ddx_local.engines.vllm import VllmEngine
    from ddx_local.launch import Opened

# OpenMP's threads wait for each other by spinning. Where others use the cores too, a token then takes a second; this makes
# the waits short, for a tenth of the speed on a quiet machine. Read once, when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

go_offline()

PROJECT = Path(__file__).resolve().parents[1]
SHARED_DATA = PROJECT.parent / "shared" / "data"
NO_SHARED_DATA = "shared data not found"
"""How the reason of such a skip begins, wherever it is raised."""

# Real-engine tests need the real weights: the one place outside of a test's own folders, fixed before those are set.
MODELS = Path(os.environ.get("DDX_LOCAL_MODELS") or user_data_path("ddx-local", appauthor=False) / "models")
MODELS = MODELS.expanduser().absolute()

_NETNS: tuple[str, ...] = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
_OWN_FOLDERS = {
    "DDX_LOCAL_HOME": "home",
    "DDX_LOCAL_STORE": "store",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "run",
}


def _own_environment(patch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith("DDX_LOCAL_") and name != MARK]:
        patch.delenv(name)
    for name, part in _OWN_FOLDERS.items():
        patch.setenv(name, str(folder / part))
    patch.setenv("DDX_LOCAL_MODELS", str(MODELS))


@pytest.fixture(scope="session", autouse=True)
def _session_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For fixtures of the whole session, such as an engine, which come before any test's own environment."""
    with pytest.MonkeyPatch.context() as patch:
        _own_environment(patch, tmp_path_factory.mktemp("session"))
        # One for all tests: what is kept there (the table of codes) takes seconds to make and holds nothing of a case.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _test_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    _own_environment(monkeypatch, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of evaluation data beside the project, or a skip."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"{NO_SHARED_DATA} at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def netns() -> tuple[str, ...]:
    """The command that runs another in a network namespace with nothing but loopback."""
    if subprocess.run([*_NETNS, "true"], capture_output=True, check=False).returncode:
        pytest.skip("`unshare -rn` with `ip link set lo up` is not permitted here")
    return _NETNS


@pytest.fixture(scope="session")
def guarded_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the package as an editable install puts it there, and the `.pth` file; its Python."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "_ddx_local.pth").write_text(f"{PROJECT}\n")
    install_pth(site)
    return folder / "bin" / "python"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def opened() -> AsyncIterator["Opened"]:
    """The embedded models as `diagnose` opens them, float32, without kept probabilities: one for the session, never closed."""
    from ddx_local.launch import open_all
    from ddx_local.settings import Settings

    # Two real engines on the same few cores slow each other down tenfold: test sessions take turns.
    with (Path(tempfile.gettempdir()) / "ddx-local-test-engine.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        found = await open_all(Settings(probability_cache=False), embedding=True, say=lambda _: None)
        yield found
        await found.engine.aclose()


@pytest.fixture(scope="session")
def real_engine(opened: "Opened") -> "VllmEngine":
    """The shared engine; a test that closes or breaks one opens its own."""
    from ddx_local.engines.vllm import VllmEngine

    assert isinstance(opened.engine, VllmEngine)
    return opened.engine


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_DataSkips(), "ddx-local-data-skips")


class _DataSkips:
    """Remembers the tests that were skipped for want of the shared data, and judges them at the end."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple) and NO_SHARED_DATA in report.longrepr[2]:
            self._names.append(report.nodeid)

    def _wrong(self) -> bool:
        return bool(self._names) and SHARED_DATA.is_dir() and os.environ.get("CI", "").lower() == "true"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._wrong() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._wrong():
            terminalreporter.section("shared data")
            terminalreporter.line(f"The data is there, but these were skipped for want of it: {', '.join(self._names)}")
