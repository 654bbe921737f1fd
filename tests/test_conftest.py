"""The rule of the shared data in CI, with the conftest itself in a project of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

WANTS_DATA = "def test_it(shared_data): assert shared_data.is_dir()\n"
SKIPS_ALL_THE_SAME = "import pytest\ndef test_it(): pytest.skip('shared data not found at nowhere')\n"
SKIPS_AT_IMPORT = "import pytest\npytest.skip('shared data not found at nowhere', allow_module_level=True)\n"
SKIPS_FOR_ANOTHER_REASON = "import pytest\ndef test_it(): pytest.skip('no GPU')\n"


@pytest.mark.parametrize(
    ("test", "data", "ci", "passes"),
    [
        (WANTS_DATA, True, "true", True),
        (WANTS_DATA, False, "true", True),
        (SKIPS_ALL_THE_SAME, True, "true", False),
        (SKIPS_ALL_THE_SAME, True, "", True),
        (SKIPS_ALL_THE_SAME, False, "true", True),
        (SKIPS_AT_IMPORT, True, "true", False),
        (SKIPS_FOR_ANOTHER_REASON, True, "true", True),
    ],
)
def test_in_ci_a_skip_for_want_of_data_that_is_there_fails_the_session(
    test: str, data: bool, ci: str, passes: bool, tmp_path: Path
) -> None:
    tests = tmp_path / "project" / "tests"
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tests / "test_it.py").write_text("def test_another(): pass\n" if test is not SKIPS_AT_IMPORT else "")
    (tests / "test_it_too.py").write_text(test)
    if data:
        (tmp_path / "shared" / "data").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        env=os.environ | {"CI": ci, "PYTHONPATH": str(ROOT)},
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
    )
    says_so = "were skipped for want of it" in done.stdout and "test_it_too.py" in done.stdout.split("shared data")[-1]
    assert says_so is not passes
    assert (done.returncode in (0, 5)) is passes, done.stdout


def test_every_test_has_folders_of_its_own_and_the_models_of_the_machine(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base = tmp_path_factory.getbasetemp()
    for name in (
        "DDX_LOCAL_HOME",
        "DDX_LOCAL_STORE",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
    ):
        assert Path(os.environ[name]).is_relative_to(base), name
    assert not Path(os.environ["DDX_LOCAL_MODELS"]).is_relative_to(base)
    ours = {name for name in os.environ if name.startswith("DDX_LOCAL_")}
    assert ours == {"DDX_LOCAL_HOME", "DDX_LOCAL_STORE", "DDX_LOCAL_MODELS", "DDX_LOCAL_OFFLINE"}
