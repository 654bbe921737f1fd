"""What the doctor looks at of models and packages: memory, files, tokenizer, template, BOS, embeddings, versions against the lock."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ddx_local import model_fit, model_memory, models
from ddx_local.airgap.doctor_check import Check, ok
from ddx_local.airgap.wheels import read_lock
from ddx_local.errors import DdxLocalError
from ddx_local.machine import Memory
from ddx_local.model_fit import gib


def model(name: str, kind: str, store: Path | None = None) -> Check:
    """Every file of a model: digests, no pickle, tokenizer, chat template, BOS. The first fault is named."""
    what = "model" if kind == "chat" else "embeddings"
    try:
        card = models.card(name)
        if card.kind != kind:
            return Check(
                what, "error", f"`{name}` is for {card.kind}, not for {kind}", "Name another one in the settings."
            )
        findings = models.verify(name, store)
    except DdxLocalError as error:
        return Check(what, "error", error.message, error.hint)
    if not findings:
        return ok(what, f"{name}: every file is what its manifest says")
    first = findings[0]
    more = f" ({len(findings) - 1} more: `ddx-local models verify {name}`)" if len(findings) > 1 else ""
    where = f"{name}, {first.file}" if first.file else name
    return Check(what, first.level, f"{where}: {first.message}{more}", first.hint)


def memory(
    name: str, found: Memory, available: int, *, device: str, dtype: str, context: int | None, kv_gib: float
) -> Check:
    """Whether the model fits the main memory within its cgroup, and what is free of it now."""
    shown = f"{gib(found.usable)} ({found.bound_by}), {gib(available)} free now"
    if device != "cpu":
        return ok("memory", shown)
    try:
        card = models.card(name)
        plan = model_memory.plan_of_card(card, device="cpu", dtype=dtype, memory=found.usable, context=context)
    except DdxLocalError as error:
        return Check("memory", "warning", f"{shown}; what the model needs is not known: {error.message}", error.hint)
    fit = model_fit.fit(plan)
    needed = fit.needed - fit.kv_context + max(fit.kv_context, model_memory.gib_bytes(kv_gib))
    if needed > found.usable:
        return Check("memory", "error", f"{shown}; {name} needs about {gib(needed)}", f"{model_memory.advice(fit)}.")
    if needed > available:
        todo = "End other programs, or give the engine less (`ddx-local models fit`)."
        return Check("memory", "warning", f"{shown}; {name} needs about {gib(needed)}", todo)
    return ok("memory", f"{shown}; {name} needs about {gib(needed)}")


def versions(lock: Path, installed: Mapping[str, str] | None = None) -> Check:
    """Installed packages against the lock; `installed` is for a test."""
    if not lock.is_file():
        return Check("versions", "warning", f"there is no lock {lock.name} to compare with", "Make it: `scripts/lock`.")
    wrong, missing = [], []
    pins = read_lock(lock)
    for pin in pins:
        found = installed.get(pin.name) if installed is not None else _version(pin.name)
        if found is None:
            missing.append(pin.name)
        elif found != pin.version:
            wrong.append(f"{pin.name} {found} instead of {pin.version}")
    if not wrong and not missing:
        return ok("versions", f"{len(pins)} packages are those of {lock.name}")
    parts = [f"{', '.join(wrong[:5])}{' ...' if len(wrong) > 5 else ''}"] if wrong else []
    parts += [f"missing: {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}"] if missing else []
    todo = "Install the bundle again, or run scripts/setup; other versions were not tested together."
    return Check("versions", "warning", f"not as {lock.name} pins them: {'; '.join(parts)}", todo)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
