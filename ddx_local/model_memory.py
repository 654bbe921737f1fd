"""From cards, snapshots and engine settings to a plan of memory on this machine, and what to say where it is too small."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ddx_local import machine, model_fit
from ddx_local.errors import EngineStartError, ModelError
from ddx_local.model_card import ModelCard, cards
from ddx_local.model_fit import Fit, Plan
from ddx_local.model_shape import shape_of, weights_of
from ddx_local.model_store import installed, snapshot


class Choice(Protocol):
    """What the engines' settings have in common."""

    @property
    def folder(self) -> Path: ...
    @property
    def card(self) -> ModelCard: ...
    @property
    def device(self) -> str: ...
    @property
    def quantization(self) -> str | None: ...
    @property
    def context(self) -> int: ...
    @property
    def max_sequences(self) -> int: ...
    @property
    def gpu_memory_fraction(self) -> float: ...
    @property
    def resolved_dtype(self) -> str: ...


def plan_of_card(
    card: ModelCard,
    *,
    device: str,
    dtype: str,
    memory: int,
    context: int | None = None,
    sequences: int = 64,
    quantization: str | None = None,
) -> Plan:
    """A plan for a model, from its snapshot where it is in the store, else from its card.

    Raises:
        ModelError: The snapshot cannot be read.
    """
    shape = card.architecture.shape() if card.architecture else None
    numbers, stored = card.parameters, None
    if card.name in installed():
        folder = snapshot(card.name)
        weights = weights_of(folder)
        numbers, stored = weights.numbers, weights.bytes if weights.packed else None
        shape = shape_of(folder) if card.kind == "chat" else None
    return Plan(
        model=card.name,
        numbers=numbers,
        stored=stored,
        shape=shape,
        device=device,
        dtype=dtype,
        quantization=quantization,
        context=min(context or card.context_length, card.context_length),
        longest=card.context_length,
        sequences=sequences,
        memory=memory,
    )


def plan_of_settings(settings: Choice) -> Plan:
    """The plan that an engine's settings make on this machine. Raises `ModelError` where the snapshot cannot be read."""
    weights = weights_of(settings.folder)
    return Plan(
        model=settings.card.name,
        numbers=weights.numbers,
        stored=weights.bytes if weights.packed else None,
        shape=shape_of(settings.folder),
        device=settings.device,
        dtype=settings.resolved_dtype,
        quantization=settings.quantization,
        context=settings.context,
        longest=settings.card.context_length,
        sequences=settings.max_sequences,
        memory=usable(settings.device, settings.gpu_memory_fraction),
    )


def usable(device: str, fraction: float = 0.9) -> int:
    """Bytes that an engine may use here: the GPUs' share, or the main memory within its cgroup's limit."""
    if device == "cuda":
        return int(sum(gpu.memory for gpu in machine.gpus()) * fraction)
    return machine.memory().usable


def shortage(settings: Choice) -> tuple[str, str] | None:
    """What a start that ran out of memory needed and what there is, and what to do; None where that cannot be said."""
    try:
        found = model_fit.fit(plan_of_settings(settings))
    except (ModelError, OSError, KeyError, ValueError):
        return None
    bound = machine.memory().bound_by if settings.device == "cpu" else "what the GPU gives this program"
    # By these numbers it fits: then others have the memory.
    others = " Other programs may be using the memory: see `free -g` and `nvidia-smi`." if found.fits else ""
    return f"{model_fit.sum_text(found)}; {bound} is {model_fit.gib(found.plan.memory)}", f"{advice(found)}.{others}"


def refuse_hopeless(settings: Choice) -> None:
    """Refuse to load weights that are larger than the main memory: the kernel would end the process without a word.

    Raises:
        EngineStartError: They are, on a CPU.
    """
    if settings.device != "cpu" or (settings.quantization or "").startswith("bitsandbytes"):
        return
    try:
        found = model_fit.fit(plan_of_settings(settings))
    except (ModelError, OSError, KeyError, ValueError):
        return  # the engine says it in its own words
    if found.weights > found.plan.memory:
        raise EngineStartError(
            f"`{settings.card.name}` does not fit: {model_fit.sum_text(found)}; {machine.memory().bound_by} is "
            f"{model_fit.gib(found.plan.memory)}",
            f"{advice(found)}.",
        )


def advice(found: Fit) -> str:
    """One concrete thing to type: the mildest change that fits, or a smaller model."""
    if better := model_fit.best(found.plan):
        return f"Type: {model_fit.command(better)}"
    smaller = next_smaller(found.plan)
    if smaller is None:
        return "No model of the cards fits this memory"
    return f"Use a smaller model: {model_fit.command(smaller)}"


def next_smaller(plan: Plan) -> Fit | None:
    """The largest chat model of the cards that fits in the same way."""
    chats = [card for card in cards().values() if card.kind == "chat" and card.architecture]
    for card in sorted(chats, key=lambda card: -card.parameters):
        if card.parameters >= plan.numbers or card.name == plan.model:
            continue
        other = plan_of_card(
            card,
            device=plan.device,
            dtype=plan.dtype,
            memory=plan.memory,
            context=plan.context,
            sequences=plan.sequences,
        )
        context = min(other.context, 8192)
        if (found := model_fit.fit(replace(other, context=context))).fits:
            return found
    return None


def gib_bytes(gib: float) -> int:
    return math.floor(gib * model_fit.GIB)
