"""The doctor: everything that keeps the program from working here, or from being offline, each with what to do.

It only puts the checks together; each is in doctor_machine, doctor_models or doctor_offline.
"""

import os
import platform
from pathlib import Path

from ddx_local import machine, models
from ddx_local.airgap import doctor_machine, doctor_models, doctor_offline
from ddx_local.airgap.doctor_check import Check
from ddx_local.data import data_dir
from ddx_local.errors import EngineStartError
from ddx_local.launch import resolve_device
from ddx_local.settings import Settings


def examine(settings: Settings, *, offline: bool, port: int = 8000) -> tuple[Check, ...]:
    """Looks at everything.

    Args:
        settings: What is to be run.
        offline: Run a real generation with every offline layer on as well, which takes as long as the model does.
        port: The port that `serve` is to listen on.
    """
    engine, device = _engine(settings)
    places = doctor_machine.places(settings.store_path, models.store_dir(), os.environ)
    card = models.cards().get(settings.model)
    dtype = settings.dtype if settings.dtype != "auto" else "float32" if device == "cpu" or card is None else card.dtype
    checks = [
        doctor_machine.python(),
        doctor_machine.cpu(machine.cpu_flags(), platform.machine(), device=device),
        doctor_models.memory(
            settings.model,
            machine.memory(),
            machine.available(),
            device=device,
            dtype=dtype,
            context=settings.max_model_len,
            kv_gib=settings.kv_cache_gib,
        ),
        doctor_machine.gpu(machine.gpus(), device=device),
        doctor_machine.disk(places),
        doctor_machine.caches(places),
        doctor_machine.compiler(compiled=settings.compiled, found=doctor_machine.find_compiler()),
        doctor_machine.clock(),
        doctor_machine.port(port),
        engine,
        doctor_models.versions(_lock(device)),
        doctor_models.model(settings.model, "chat"),
        doctor_models.model(settings.embedding_model, "embedding"),
        *doctor_offline.layers(),
    ]
    if offline:
        checks.append(doctor_offline.generation({"model": settings.model, "engine": settings.engine}))
    return tuple(checks)


def _engine(settings: Settings) -> tuple[Check, str]:
    """Whether the engine's packages are here, and the device that it runs on."""
    if settings.engine == "scripted":
        return Check("engine", "warning", "scripted: random words, no model", "Set `engine` to vllm."), "cpu"
    if settings.engine == "transformers":
        device = settings.device if settings.device != "auto" else "cuda" if machine.gpus() else "cpu"
        return Check("engine", "ok", "transformers"), device
    try:
        return Check("engine", "ok", "vLLM"), resolve_device(settings.device)
    except EngineStartError as error:
        return Check("engine", "error", error.message, error.hint), "cpu"


def _lock(device: str) -> Path:
    return data_dir("requirements") / f"{device}.lock"
