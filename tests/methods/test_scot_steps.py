"""SCoT's options: the paper's values, and what is out of range."""

from typing import Any

import pytest

from ddx_local.methods.scot_options import Options


@pytest.mark.parametrize(
    "wrong",
    [
        {"agents": 0},
        {"agents": 13},
        {"k": 0},
        {"k": 11},
        {"k": 6, "most": 5},
        {"most": 21},
        {"temperature_innovative": -0.1},
        {"temperature_conservative": 2.1},
        {"temperature_innovative": float("nan")},
        {"same_at": 1.1},
        {"ask_at": 0.0},
        {"ask_at": 0.95, "same_at": 0.9},
        {"without": ("differential",)},
        {"without": ("vote",)},
        {"relevance_weighting": True, "without": ("relevance",)},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Options(**wrong)


def test_the_options_are_the_papers() -> None:
    options = Options()
    assert (options.agents, options.k, options.most) == (5, 5, 12)
    assert (options.temperature_innovative, options.temperature_conservative) == (0.7, 0.3)
    assert (options.same_at, options.ask_at) == (0.90, 0.75)
    assert (options.relevance_weighting, options.without) == (False, ())
