"""Files of results: private from the start, whole or not at all, whatever stops the writing."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ddx_local.cli.out import check_writable, json_text, write_private
from ddx_local.errors import UsageError
from tests.command import ROOT

TEXT = json_text({"case_id": "fever", "quote": "“38.9 °C” 漢字"})


def test_a_file_is_made_readable_by_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "out.json", TEXT, "--json", "")
    finally:
        os.umask(before)
    assert (tmp_path / "out.json").read_text("utf-8") == TEXT
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("old", [None, "old"])
def test_an_interrupted_write_leaves_what_was_there_and_nothing_else(
    error: type[BaseException], old: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    if old is not None:
        out.write_text(old)

    def replace(self: Path, target: Path) -> None:
        assert self.read_text("utf-8") == TEXT
        assert target == out
        raise error

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(error):
        write_private(out, TEXT, "--json", "")
    assert [path.name for path in tmp_path.iterdir()] == ([] if old is None else ["out.json"])
    assert old is None or out.read_text() == old


def test_a_disk_that_fills_up_in_the_middle_leaves_no_half_file(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from ddx_local.cli.out import write_private; from ddx_local.errors import UsageError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    write_private(Path(sys.argv[1]), 'x' * 5000, '--json', 'the hint')\n"
        "except UsageError as error:\n    print(error.message, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"--json {out}: cannot be written: File too large the hint\n"
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_text() == "old"


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    old, new = "o" * 3_000_000, "n" * 3_000_000
    code = (
        "import itertools, sys; from pathlib import Path; from ddx_local.cli.out import write_private\n"
        "print('begun', flush=True)\n"
        "for number in itertools.count():\n"
        "    write_private(Path(sys.argv[1]), 'on'[number % 2] * 3_000_000, '--json', '')\n"
    )
    for _ in range(3):
        out.write_text(old)
        with subprocess.Popen(
            [sys.executable, "-c", code, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            for _ in range(30):
                assert out.read_text() in (old, new), "half a file"
            child.kill()
        assert out.read_text() in (old, new), "half a file"


def test_what_cannot_be_written_is_found_out_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "no" / "out.json", tmp_path / "file" / "out.json"):
        with pytest.raises(UsageError, match=r"--out .*: cannot be written"):
            check_writable(path, "--out")
    for path in (tmp_path / "out.json", tmp_path / "file", Path("/dev/null"), Path("/dev/stdout")):
        check_writable(path, "--out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"], "looking makes no file"


def test_a_lone_surrogate_is_written_as_an_escape(tmp_path: Path) -> None:
    import json

    write_private(tmp_path / "out.json", json_text({"a": "lone \ud800"}), "--json", "")
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == {"a": "lone \ud800"}
