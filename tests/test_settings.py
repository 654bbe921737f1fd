"""Settings: who wins, what is refused and how it is named."""

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ddx_local import settings
from ddx_local.errors import UsageError
from ddx_local.settings import Settings, load, settings_path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file that is used: empty, for the test to fill."""
    path = tmp_path / "my.toml"
    path.write_text("")
    monkeypatch.setenv("DDX_LOCAL_CONFIG", str(path))
    return path


def refused(**flags: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(**flags)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value


# --- who wins -----------------------------------------------------------------------------------------------------------


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load().seed == 0
    file.write_text("seed = 1")
    assert load().seed == 1
    monkeypatch.setenv("DDX_LOCAL_SEED", "2")
    assert load().seed == 2
    assert load(seed=3).seed == 3
    assert load(seed=0).seed == 0, "a flag of zero was given"
    assert load(seed=None).seed == 2, "a flag of None was not"


def test_the_file_sets_methods_options_and_so_does_the_environment_as_json(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('[method.scot]\nagents = 3\nwithout = ["triage"]\n[method.zero-shot]\nk = 2\n')
    assert load().method == {"scot": {"agents": 3, "without": ["triage"]}, "zero-shot": {"k": 2}}
    monkeypatch.setenv("DDX_LOCAL_METHOD", json.dumps({"scot": {"agents": 4}}))
    assert load().method["scot"]["agents"] == 4


def test_the_file_is_found_in_the_user_s_configuration_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings_path() == tmp_path / "ddx-local" / "config.toml"
    assert load().seed == 0, "no file is no fault"
    settings_path().parent.mkdir()
    settings_path().write_text("seed = 5")
    assert load().seed == 5


def test_a_tilde_in_a_path_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.delenv("DDX_LOCAL_STORE")
    monkeypatch.setenv("HOME", "/home/someone")
    file.write_text('store = "~/runs.sqlite"')
    assert load().store_path == Path("/home/someone/runs.sqlite")
    monkeypatch.setenv("DDX_LOCAL_CONFIG", "~/c.toml")
    assert settings_path() == Path("/home/someone/c.toml")


def test_the_store_is_in_the_user_s_data_folder_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DDX_LOCAL_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert load().store_path == tmp_path / "ddx-local" / "runs.sqlite"
    assert load(store=Path("x.sqlite")).store_path == Path("x.sqlite")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        load().seed = 3


# --- what is refused ----------------------------------------------------------------------------------------------------

WRONG = [
    ("seed", "-1", "greater than or equal to 0"),
    ("seed", "many", "valid integer"),
    ("engine", "vlm", "Input should be 'vllm', "),
    ("device", "tpu", "'auto', 'cpu' or 'cuda'"),
    ("dtype", "int8", "'float32'"),
    ("max_model_len", "10", "greater than or equal to 256"),
    ("gpu_memory_fraction", "1.5", "less than or equal to 1"),
    ("kv_cache_gib", "0", "greater than 0"),
    ("at_once", "0", "greater than or equal to 1"),
    ("compiled", "perhaps", "valid boolean"),
]


@pytest.mark.parametrize(("name", "value", "reason"), WRONG)
def test_a_wrong_value_names_the_flag_the_variable_or_the_file(
    name: str, value: str, reason: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refused(**{name: value})
    assert error.message.startswith(f"setting `{name}` (--{name.replace('_', '-')}): ")
    assert reason in error.message
    file.write_text(f"{name} = {json.dumps(value)}")
    error = refused()
    assert error.message.startswith(f"setting `{name}` ({file}): ")
    assert reason in error.message
    file.write_text("")
    monkeypatch.setenv(f"DDX_LOCAL_{name.upper()}", value)
    error = refused()
    assert error.message.startswith(f"setting `{name}` (DDX_LOCAL_{name.upper()}): ")
    assert reason in error.message


def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_name(file: Path) -> None:
    file.write_text('modle = "x"')
    error = refused()
    assert error.message.startswith("settings: unknown key `modle`: did you mean model ")
    assert str(file) in error.hint


@pytest.mark.parametrize(
    ("variable", "meant"),
    [("DDX_LOCAL_MODLE", "MODEL"), ("DDX_LOCAL_MAX_MODEL_LENGTH", "MAX_MODEL_LEN"), ("ddx_local_seeds", "SEED")],
)
def test_a_variable_that_is_nearly_a_setting_is_refused(
    variable: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    assert refused().message == (f"environment: {variable.upper()} is no setting: did you mean DDX_LOCAL_{meant}?")


def test_variables_of_other_parts_and_other_programs_are_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DDX_LOCAL_MODELS", "DDX_LOCAL_DEBUG", "DDX_LOCAL_HOME", "DDX_LOCAL_TEST_WHEELS", "DDX_SEED", "SEED"):
        monkeypatch.setenv(name, "1")
    assert load().seed == 0


@pytest.mark.parametrize("text", ["seed = ", "[method", 'model = "a\nb"', "seed = 1\nseed = 2"])
def test_a_file_that_is_no_toml_is_refused_with_the_place(text: str, file: Path) -> None:
    file.write_text(text)
    error = refused()
    assert str(file) in error.message
    assert "(at " in error.message


def test_a_file_that_is_no_text_is_refused(file: Path) -> None:
    file.write_bytes(b'model = "caf\xe9"')
    assert refused().message == f"settings file {file}: is not UTF-8"


def test_a_file_that_was_named_but_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, reason in ((tmp_path / "nowhere.toml", "No such file"), (tmp_path, "Is a directory")):
        monkeypatch.setenv("DDX_LOCAL_CONFIG", str(path))
        error = refused()
        assert f"DDX_LOCAL_CONFIG={path}: cannot be read: {reason}" in error.message


def test_options_that_are_no_table_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('method = "scot"')
    assert "setting `method`" in refused().message
    file.write_text("")
    monkeypatch.setenv("DDX_LOCAL_METHOD", "scot")
    error = refused()
    assert '"method"' in error.message
    assert "JSON" in error.hint


# --- documentation ------------------------------------------------------------------------------------------------------


def test_every_setting_says_what_it_is() -> None:
    (body,) = [node.body for node in ast.parse(inspect.getsource(settings)).body if isinstance(node, ast.ClassDef)]
    undocumented = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            undocumented += [] if documented else [node.target.id]
    names = [node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    assert set(names) == set(Settings.model_fields)
    assert undocumented == []
