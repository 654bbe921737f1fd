"""Python children: the `.pth` file in real environments."""

import re
import subprocess
import venv
from pathlib import Path

import pytest

from ddx_local.offline import PTH_NAME, install_pth, pth_text
from tests.guarded import NOBODY, ROOT, clean_env, run


def child(code: str, python: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(**more)
    del env["PYTHONPATH"]
    return run(code, python=python, env=env)


ATTEMPT = f"import socket; socket.socket().connect(('{NOBODY}', 80))"


def test_a_python_of_the_environment_starts_guarded_when_it_is_told_to(guarded_venv: Path) -> None:
    assert "OfflineViolation: the network is closed" in child(ATTEMPT, guarded_venv, DDX_LOCAL_OFFLINE="1").stderr


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run([sys.executable, '-c', code])",
        "subprocess.run([sys.executable, '-I', '-c', code])",
        "p = multiprocessing.get_context('spawn').Process(target=exec, args=(code,)); p.start(); p.join()",
        "p = multiprocessing.get_context('forkserver').Process(target=exec, args=(code,)); p.start(); p.join()",
    ],
)
def test_a_guarded_process_hands_the_guard_to_its_python_children(start: str, guarded_venv: Path) -> None:
    code = f"""
import multiprocessing, subprocess, sys
from ddx_local.offline import go_offline
go_offline()
code = {ATTEMPT!r}
{start}
"""
    assert "OfflineViolation: the network is closed" in child(code, guarded_venv).stderr


@pytest.mark.parametrize("mark", [{}, {"DDX_LOCAL_OFFLINE": "0"}])
def test_a_python_of_the_environment_is_left_alone_otherwise(mark: dict[str, str], guarded_venv: Path) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('ddx_local')])"
    done = child(code, guarded_venv, **mark)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_child_of_a_pull_has_the_network(guarded_venv: Path) -> None:
    code = """
import subprocess, sys
from ddx_local.offline import go_offline
guard = go_offline()
ask = [sys.executable, "-c", "import sys; print('ddx_local.offline' in sys.modules)"]
with guard.open_network("models pull", lambda line: None):
    subprocess.run(ask, env=guard.child_env(open=True))
    subprocess.run(ask, env=guard.child_env())
subprocess.run(ask)
"""
    for mark in ({}, {"DDX_LOCAL_OFFLINE": "1"}):
        assert child(code, guarded_venv, **mark).stdout.split() == ["False", "True", "True"]


def test_a_python_that_cannot_be_guarded_does_not_start_when_it_is_told_to(tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=False, symlinks=True)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    install_pth(site)  # and no ddx_local there
    code = "print('started')"
    refused = child(code, tmp_path / "bin" / "python", DDX_LOCAL_OFFLINE="1")
    assert (refused.returncode, refused.stdout) == (9, "")
    assert refused.stderr == (
        "ddx-local: DDX_LOCAL_OFFLINE=1, but the network guard does not start: ModuleNotFoundError: "
        "No module named 'ddx_local'. Run scripts/setup, or unset DDX_LOCAL_OFFLINE.\n"
    )
    assert child(code, tmp_path / "bin" / "python").stdout == "started\n"


def test_the_pth_file_is_one_line_and_installing_it_twice_changes_nothing(tmp_path: Path) -> None:
    path = install_pth(tmp_path)
    first = path.stat()
    assert install_pth(tmp_path) == path
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert path.read_text() == pth_text()
    assert pth_text().startswith("import os; ")
    assert pth_text().count("\n") == 1
    path.write_text("import an_older_version\n")
    assert install_pth(tmp_path).read_text() == pth_text()
    assert [p.name for p in tmp_path.iterdir()] == [PTH_NAME]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    from ddx_local.errors import UsageError

    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "nowhere"))):
        install_pth(tmp_path / "nowhere")


def test_the_setup_command_installs_and_proves_it(guarded_venv: Path, tmp_path: Path) -> None:
    def setup(python: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(python), "-m", "ddx_local.offline", *arguments]
        return subprocess.run(command, env=clean_env(**more), cwd="/", capture_output=True, text=True, check=False)

    done = setup(guarded_venv, "install")
    assert (done.returncode, done.stderr) == (0, "")
    assert setup(guarded_venv).returncode == 2
    venv.create(tmp_path, with_pip=False, symlinks=True)
    bare = subprocess.run(
        [str(tmp_path / "bin" / "python"), "-m", "ddx_local.offline", "install"],
        env={k: v for k, v in clean_env().items() if k != "PYTHONPATH"}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert bare.returncode == 1
    assert "no child starts guarded" in bare.stderr
