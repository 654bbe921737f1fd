"""How the real engine starts, fails to start, dies, and serves callers on any event loop."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ddx_local.engines.vllm import VllmEngine
from ddx_local.errors import EngineError
from tests.engines.contract import asking, saying, weighing
from tests.engines.test_vllm import prompts_of
from tests.guarded import PRELUDE, ROOT, clean_env

pytestmark = pytest.mark.engine


def test_callers_on_other_event_loops_are_served_too(real_engine: VllmEngine) -> None:
    async def ask(word: str) -> str:
        return (await real_engine.generate([saying(word)]))[0].text

    assert [asyncio.run(ask(word)) for word in ("one", "two")] == ["one", "two"]

    loop = asyncio.new_event_loop()
    with prompts_of(real_engine) as seen:
        asyncio.run(ask("two"))
    left = loop.create_task(real_engine._run(*seen[0]))
    loop.run_until_complete(asyncio.wait({left}, timeout=0.01))
    loop.close()  # the answer comes when nobody can receive it any more
    left._log_destroy_pending = False  # type: ignore[attr-defined]  # as is meant here
    assert asyncio.run(ask("three, and on for longer than that")) == "three, and on for longer than that"
    assert not left.done()
    assert real_engine._owner._waiting == {}


@pytest.mark.asyncio(loop_scope="session")
async def test_an_engine_that_dies_answers_all_who_wait_and_all_who_come_later(
    small_engine: Callable[[], Awaitable[VllmEngine]], real_engine: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.engine.llm_engine import LLMEngine

    engine = await small_engine()
    step, steps = LLMEngine.step, itertools.count()

    def failing(self: Any) -> Any:
        if next(steps) == 2:
            raise RuntimeError("a kernel failed") from ValueError("root\ncause")
        return step(self)

    monkeypatch.setattr(LLMEngine, "step", failing)
    calls = [engine.generate([asking("A story.", tokens=100), asking("Another.", tokens=100)]) for _ in range(3)]
    results = await asyncio.wait_for(
        asyncio.gather(*calls, engine.loglikelihood([weighing("Why?", "a long name " * 9)]), return_exceptions=True),
        60,
    )
    monkeypatch.undo()
    for result in results:
        assert isinstance(result, EngineError)
        assert result.message == "the engine died: ValueError: root cause"
    assert len({id(result) for result in results}) == len(results)
    for late in (engine.generate([saying("one")]), engine.loglikelihood([weighing("Why?", "gout")]), engine.forget()):
        with pytest.raises(EngineError, match="the engine died"):
            await asyncio.wait_for(late, 10)
    await asyncio.wait_for(engine.aclose(), 10)
    # Another engine in the same process is none the worse for it.
    assert [answer.text for answer in await real_engine.generate([saying("alive")])] == ["alive"]


@pytest.mark.asyncio(loop_scope="session")
async def test_giving_up_while_the_engine_loads_lets_it_end(small_engine: Callable[[], Awaitable[VllmEngine]]) -> None:
    before = set(threading.enumerate())
    task = asyncio.ensure_future(small_engine())
    while not (owners := [item for item in set(threading.enumerate()) - before if item.name == "vllm-owner"]):
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(owners[0].join, 60)
    assert not owners[0].is_alive()


START = (
    PRELUDE
    + """
import asyncio, dataclasses, pathlib
go_offline()
from ddx_local import models
from ddx_local.engines.vllm import VllmEngine, VllmSettings

good, card = models.snapshot("smollm2-135m"), models.card("smollm2-135m")
base = VllmSettings(folder=good, card=card, weights_sha256="", device="cpu", max_model_len=512, kv_cache_gib=0.125)

def with_config(name, **changes):
    folder = pathlib.Path(sys.argv[1]) / name
    folder.mkdir()
    for file in good.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(json.loads((good / "config.json").read_text()) | changes))
    return dataclasses.replace(base, folder=folder)

async def main():
    said = {}
    for name, settings in {
        "dtype": dataclasses.replace(base, dtype="int7"),
        "quantization": dataclasses.replace(base, quantization="awq"),
        "shape": with_config("shape", hidden_size=90),
        "family": with_config("family", architectures=["Nothing"], model_type="nothing"),
        "memory": dataclasses.replace(base, kv_cache_gib=4000.0),
    }.items():
        try:
            await VllmEngine.open(settings)
        except DdxLocalError as error:
            said[name] = [error.kind, error.message, error.hint]
    print(json.dumps(said))

asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""
)


def test_what_keeps_the_engine_from_starting_is_said_in_one_line_with_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)],
        env=clean_env(DDX_LOCAL_MODELS=os.environ["DDX_LOCAL_MODELS"]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = json.loads(done.stdout)  # nothing else on standard output
    assert {kind for kind, _, _ in said.values()} == {"EngineStartError"}
    for _, message, hint in said.values():
        assert "\n" not in message
        assert message.startswith("vLLM could not load `smollm2-135m` (cpu): ")
        assert "pydantic.dev" not in message
        assert hint
    causes = {name: message.split("(cpu): ")[1] for name, (_, message, _) in said.items()}
    assert causes["dtype"].startswith("ValidationError: dtype: Input should be 'auto'")
    assert "--dtype" in said["dtype"][2]
    assert causes["quantization"] == "ValidationError: Cannot find the config file for awq"
    assert "--quantization" in said["quantization"][2]
    assert "must match" in causes["shape"] or "shape" in causes["shape"]
    assert "nothing" in causes["family"]
    assert "4000.0 GiB" in causes["memory"]
    assert "--kv-cache-gib, now 4000.0" in said["memory"][2]
