"""More engines: a second real one, for tests that close or break one, and transformers over made and real weights."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ddx_local import models
from ddx_local.engines.transformers import TransformersEngine, TransformersSettings
from ddx_local.engines.vllm import VllmEngine
from tests.engines import tiny_models

T = TypeVar("T")


@pytest.fixture
def small_engine(real_engine: VllmEngine) -> Callable[[], Awaitable[VllmEngine]]:
    """Opens another engine with the same weights and little memory, beside the shared one."""
    settings = dataclasses.replace(real_engine.settings, max_model_len=512, kv_cache_gib=0.125)

    async def opened() -> VllmEngine:
        return await VllmEngine.open(settings)

    return opened


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it on an event loop of its own, whether or not one runs here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The checkpoint of a family of `tiny_models`, made when it is first asked for."""
    pytest.importorskip("torch")
    return cache(lambda name: tiny_models.build(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session")
def tiny_engine(tiny_folder: Callable[[str], Path]) -> Iterator[Callable[[str], TransformersEngine]]:
    """The transformers engine of a family, one for the whole session; a test that closes one opens its own."""
    with ExitStack() as stack:

        def opened(name: str) -> TransformersEngine:
            settings = TransformersSettings(
                folder=tiny_folder(name), card=tiny_models.card(name), weights_sha256=f"tiny-{name}", device="cpu"
            )
            engine = run_apart(TransformersEngine.open(settings))
            stack.callback(lambda: run_apart(engine.aclose()))
            return engine

        yield cache(opened)


@pytest.fixture(scope="session")
def real_transformers() -> Iterator[TransformersEngine]:
    """The embedded model in the transformers engine, in float32: one for the whole session."""
    name = "smollm2-135m"
    folder = models.snapshot(name)
    settings = TransformersSettings(
        folder=folder, card=models.card(name), weights_sha256=models.weights_sha256(folder), device="cpu"
    )
    engine = run_apart(TransformersEngine.open(settings))
    yield engine
    run_apart(engine.aclose())
