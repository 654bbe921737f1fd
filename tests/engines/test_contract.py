"""The engine contract on the scripted engine and on the real one."""

import pytest

from ddx_local.engines.protocol import Engine
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.engines.vllm import VllmEngine
from tests.engines.contract import EngineContract, Opener


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
