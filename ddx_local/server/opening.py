"""Which engine a server opens, and how: the scripted one, that of transformers, or vLLM's asynchronous one with its own app."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from ddx_local import launch, models
from ddx_local.launch import Opened
from ddx_local.recorder import Consultant
from ddx_local.server.engine_room import Running
from ddx_local.settings import Settings

Say = Callable[[str], None]


def opener(settings: Settings, *, demo: bool, delay: float, say: Say, keeps: bool) -> Callable[[], Awaitable[Running]]:
    """What opens the engine, with everything cheap checked first.

    Raises:
        ModelError: The model is not there; it says what to pull.
    """
    if settings.engine != "scripted":
        models.snapshot(settings.model)
        models.snapshot(settings.embedding_model)
    if demo or settings.engine == "scripted":
        return lambda: _demo(delay if demo else 0.0, settings)
    beside = settings.store_path if keeps else None
    if settings.engine == "vllm":
        return lambda: _vllm(settings, say, beside)
    return lambda: _plain(settings, say, beside)


async def _plain(settings: Settings, say: Say, beside: Path | None) -> Running:
    return Running(await launch.open_all(settings, embedding=True, say=say, store=beside))


async def _demo(delay: float, settings: Settings) -> Running:
    from ddx_local.clinical.similarity import spelling_similarity
    from ddx_local.flow import Similarity
    from ddx_local.server.demo import DemoEngine

    engine = DemoEngine(context=settings.max_model_len or 1 << 20, delay=delay)
    consultants: dict[type, Consultant] = {Similarity: spelling_similarity}
    consultants.update(launch.consultants_of_files(consultants, keep=True))
    return Running(Opened(engine, consultants))


async def _vllm(settings: Settings, say: Say, beside: Path | None) -> Running:
    from ddx_local.server.vllm_inner import open_vllm

    return await open_vllm(settings, say, beside)
