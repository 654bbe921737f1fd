"""What `ddx-local models fit` prints: the parts of the memory, whether they fit, and one command."""

import typer

from ddx_local import machine, model_fit, model_memory, models
from ddx_local.cli.out import print_json
from ddx_local.errors import ModelError, UsageError, nearest
from ddx_local.model_fit import Fit, gib


def show_fit(
    name: str,
    *,
    device: str | None,
    gib: float | None,
    dtype: str | None,
    context: int | None,
    sequences: int,
    quantization: str | None,
    json_out: bool,
) -> None:
    """Print it; ends with exit code 4 where the model does not fit as asked."""
    card = models.card(name)
    if card.kind != "chat":
        raise ModelError(f"model `{name}` is for {card.kind}: it takes {card.weight_bytes / 2**20:.0f} MiB and no more")
    device = device or ("cuda" if machine.gpus() else "cpu")
    _known("--device", device, ["cpu", "cuda"])
    dtype = dtype or ("float32" if device == "cpu" else card.dtype)
    _known("--dtype", dtype, list(model_fit.NUMBER))
    usable = model_memory.gib_bytes(gib * (0.9 if device == "cuda" else 1)) if gib else model_memory.usable(device)
    if not usable:
        raise UsageError("--device cuda: no GPU is seen here", "Give the size of its memory with --memory GIB.")
    plan = model_memory.plan_of_card(
        card,
        device=device,
        dtype=dtype,
        memory=usable,
        context=context,
        sequences=sequences,
        quantization=quantization,
    )
    found = model_fit.fit(plan)
    if json_out:
        print_json(_document(found))
    else:
        _print(found, bound=_bound(device, given=gib is not None))
    if not found.fits:
        raise typer.Exit(4)


def _document(found: Fit) -> dict[str, object]:
    plan, best = found.plan, model_fit.best(found.plan)
    return {
        "model": plan.model,
        "device": plan.device,
        "dtype": plan.dtype,
        "quantization": plan.quantization,
        "context": plan.context,
        "fits": found.fits,
        "bytes": {
            "memory": plan.memory,
            "needed": found.needed,
            "weights": found.weights,
            "kv_per_token": found.kv_per_token,
            "kv_context": found.kv_context if found.kv_per_token is not None else None,
            "passes_estimate": found.passes,
            "program_estimate": found.program,
        },
        "sequences_at_once": found.at_once,
        "longest_context": found.longest_context if found.kv_per_token is not None else None,
        "command": model_fit.command(best) if best else None,
        "advice": model_memory.advice(found),
    }


def _print(found: Fit, *, bound: str) -> None:
    plan = found.plan
    packed = "as stored" if plan.stored is not None else plan.quantization or plan.dtype
    print(f"{plan.model} on {plan.device}: {gib(plan.memory)} ({bound})")
    print(f"  weights           {gib(found.weights):>12}  {plan.numbers:,} numbers, {packed}")
    if found.kv_per_token is None:
        print("  keys and values      not known  the card has no architecture; it is known once the model is here")
    else:
        print(
            f"  keys and values   {gib(found.kv_context):>12}  {found.kv_per_token:,} bytes a token, {plan.context:,} tokens"
        )
    print(f"  passes            {gib(found.passes):>12}  estimated")
    print(f"  program           {gib(found.program):>12}  estimated")
    print(f"  needed            {gib(found.needed):>12}")
    if found.fits:
        longest = f"; alone one may have {found.longest_context:,}" if plan.context < found.longest_context else ""
        print(f"It fits: {found.at_once} sequences of {plan.context:,} tokens at once{longest}.")
    else:
        print(f"It does not fit: {gib(found.needed - plan.memory)} too much.")
    print(model_memory.advice(found))


def _bound(device: str, *, given: bool) -> str:
    if given:
        return "nine tenths of what was given" if device == "cuda" else "as given"
    return "nine tenths of the GPU's memory" if device == "cuda" else machine.memory().bound_by


def _known(flag: str, value: str, names: list[str]) -> None:
    if value not in names:
        raise UsageError(f"{flag} {value}: {nearest(value, names)}")
