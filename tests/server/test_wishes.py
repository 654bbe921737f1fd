"""What a client may wish for: options of the method, over those of the settings, and no file of the server."""

from typing import Any

import pytest

from ddx_local.case import Case
from ddx_local.methods.table import METHODS
from ddx_local.server.errors import ApiError
from ddx_local.server.wishes import FILES, wanted
from ddx_local.settings import Settings

CASE = Case("fever", "A man of 54 with fever.")


def refused(method: str, values: dict[str, Any], settings: Settings) -> ApiError:
    with pytest.raises(ApiError) as caught:
        wanted(CASE, METHODS[method], values, 0, settings)
    assert caught.value.status == 400
    return caught.value


def test_options_of_a_client_stand_over_those_of_the_settings() -> None:
    settings = Settings(method={"dxchain": {"turns": 7, "k": 2}})
    wish = wanted(CASE, METHODS["dxchain"], {"k": 3}, 5, settings)
    assert (wish.options.turns, wish.options.k, wish.seed) == (7, 3, 5)


@pytest.mark.parametrize(("method", "option"), [("dxchain", "cases"), ("few-shot", "pool"), ("few-shot-cot", "pool")])
def test_a_client_names_no_file_of_the_server(method: str, option: str) -> None:
    error = refused(method, {option: "/etc/passwd"}, Settings())
    assert error.param == f"ddx.{option}"
    assert "passwd" not in error.message
    settings = Settings(method={method: {option: "/data/past.jsonl"}})
    assert refused(method, {option: ""}, settings).param == f"ddx.{option}"
    wish = wanted(CASE, METHODS[method], {option: "/data/past.jsonl"}, 0, settings)
    assert getattr(wish.options, option) == "/data/past.jsonl"
    assert getattr(wanted(CASE, METHODS[method], {option: ""}, 0, Settings()).options, option) == ""


def test_every_option_that_is_a_free_text_is_known_to_name_a_file() -> None:
    """A method with a new one has to say here whether a client may give it."""
    free = {
        name
        for method in METHODS.values()
        for name, field in method.options.__dataclass_fields__.items()
        if isinstance(field.default, str) and field.default == ""
    }
    assert free == FILES
