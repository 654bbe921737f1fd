"""`~` in a path: a home folder, or an error that says what to do; wherever a path comes from a person."""

from pathlib import Path

import pytest

from ddx_local import model_store, settings
from ddx_local.cli.run_live import _files
from ddx_local.errors import UsageError
from ddx_local.home import expanded
from ddx_local.methods.few_shot import Options
from ddx_local.settings import Settings

NOBODY = "~nobody-of-this-name/x"


def test_a_home_folder_is_filled_in_and_any_other_path_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/somebody")
    assert expanded("~/a") == Path("/home/of/somebody/a")
    assert expanded(Path("~")) == Path("/home/of/somebody")
    assert [str(expanded(path)) for path in ("a/~/b", "/x", ".")] == ["a/~/b", "/x", "."]


def test_a_home_folder_of_nobody_is_a_wrong_path_and_no_fault_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for find in (
        lambda: Settings(store=Path(NOBODY)).store_path,
        lambda: model_store.model_folder("m", Path(NOBODY)),
        lambda: _files(Options(pool=NOBODY)),
    ):
        with pytest.raises(UsageError, match="~nobody-of-this-name/x: the beginning `~` stands for a home folder"):
            find()
    monkeypatch.setenv("DDX_LOCAL_CONFIG", NOBODY)
    with pytest.raises(UsageError, match="the beginning `~`"):
        settings.load()


def test_the_files_that_a_method_reads_are_those_that_its_options_name(tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    assert _files(Options(pool=str(pool))) == []
    pool.write_text("{}")
    assert _files(Options(pool=str(pool))) == [str(pool)]
    assert _files(Options()) == []
