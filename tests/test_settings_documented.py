"""Every setting says what it means, in the program and in the manual, and a file of the defaults changes nothing."""

import re
import tomllib
from pathlib import Path

import pytest

from ddx_local import settings_text
from ddx_local.settings import Settings, load
from tests.command import Command

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def test_every_setting_has_a_meaning_in_its_source() -> None:
    told = settings_text.meanings()
    for name in Settings.model_fields:
        assert len(told.get(name, "")) > 10, f"{name} has no docstring below it in settings.py"
        assert told[name].endswith("."), name


def test_the_page_of_the_manual_is_what_the_program_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_text.markdown(), (
        "type: ddx-local config show --defaults --markdown > docs/settings.md"
    )
    for name in Settings.model_fields:
        assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")


def test_the_file_of_defaults_is_toml_and_sets_what_is_set_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = settings_text.toml()
    assert tomllib.loads(text) == {}
    defaults = load().model_dump()
    lines = [
        line
        for line in text.splitlines()
        if re.fullmatch(r"# (\w+ = .*[^t]|\[\w+\])", line) and "# not set" not in line
    ]
    path = tmp_path / "config.toml"
    path.write_text("\n".join(line.removeprefix("# ") for line in lines))
    names = set(tomllib.loads(path.read_text()))
    unset = {name for name in Settings.model_fields if settings_text.default(name) is None}
    assert names | unset == set(Settings.model_fields)
    monkeypatch.setenv("DDX_LOCAL_CONFIG", str(path))
    assert load().model_dump() == defaults


def test_what_holds_is_shown_with_where_it_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my.toml"
    path.write_text("seed = 5\nretention_days = 30\n")
    monkeypatch.setenv("DDX_LOCAL_CONFIG", str(path))
    monkeypatch.setenv("DDX_LOCAL_AT_ONCE", "3")
    shown = {name: (value, origin) for name, value, origin in settings_text.held(load())}
    assert shown["seed"] == (5, str(path))
    assert shown["retention_days"] == (30, str(path))
    assert shown["at_once"] == (3, "DDX_LOCAL_AT_ONCE")
    assert shown["model"][1] == "default"


def test_the_command_shows_path_values_and_defaults(tmp_path: Path) -> None:
    command = Command(tmp_path)
    config = {"DDX_LOCAL_CONFIG": str(tmp_path / "c.toml")}
    (tmp_path / "c.toml").write_text("seed = 9\n")
    assert command.run("config", "path", env=config).out == f"{tmp_path / 'c.toml'}\n"
    assert command.run("config", "show", "--json", env=config).json["seed"] == {
        "value": 9,
        "from": str(tmp_path / "c.toml"),
    }
    assert re.search(r"^seed +9 +", command.run("config", "show", env=config).out, re.MULTILINE)
    assert command.run("config", "show", "--defaults").out == settings_text.toml()
    assert command.run("config", "show", "--defaults", "--markdown").out == settings_text.markdown()
    refused = command.run("config", "show", "--markdown")
    assert refused.code == 2
    command.close()
