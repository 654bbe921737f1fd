"""A second real engine, for tests that close or break one."""

import dataclasses
from collections.abc import Awaitable, Callable

import pytest

from ddx_local.engines.vllm import VllmEngine


@pytest.fixture
def small_engine(real_engine: VllmEngine) -> Callable[[], Awaitable[VllmEngine]]:
    """Opens another engine with the same weights and little memory, beside the shared one."""
    settings = dataclasses.replace(real_engine.settings, max_model_len=512, kv_cache_gib=0.125)

    async def opened() -> VllmEngine:
        return await VllmEngine.open(settings)

    return opened
