"""The engine contract on the scripted engine and on the real ones, over real weights and over made ones of four classes."""

from collections.abc import Callable

import pytest

from ddx_local.engines.protocol import Engine
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.engines.transformers import TransformersEngine
from ddx_local.engines.vllm import VllmEngine
from tests.engines.contract import EngineContract, Opener
from tests.engines.tiny_models import FAMILIES


class TestScripted(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return ScriptedEngine(by_policy("walk"), delay=0.01)

    @pytest.fixture
    def another(self) -> Opener:
        async def opened() -> Engine:
            return ScriptedEngine(by_policy("walk"), delay=0.1)

        return opened


@pytest.mark.engine
@pytest.mark.asyncio(loop_scope="session")
class TestVllm(EngineContract):
    @pytest.fixture
    def engine(self, real_engine: VllmEngine) -> Engine:
        return real_engine

    @pytest.fixture
    def another(self, small_engine: Opener) -> Opener:
        return small_engine


@pytest.mark.parametrize("family", FAMILIES)
class TestTransformers(EngineContract):
    @pytest.fixture
    def engine(self, family: str, tiny_engine: Callable[[str], TransformersEngine]) -> Engine:
        return tiny_engine(family)

    @pytest.fixture
    def another(self, family: str, tiny_engine: Callable[[str], TransformersEngine]) -> Opener:
        return lambda: TransformersEngine.open(tiny_engine(family).settings)


@pytest.mark.engine
class TestTransformersWithRealWeights(EngineContract):
    @pytest.fixture
    def engine(self, real_transformers: TransformersEngine) -> Engine:
        return real_transformers

    @pytest.fixture
    def another(self, real_transformers: TransformersEngine) -> Opener:
        return lambda: TransformersEngine.open(real_transformers.settings)
