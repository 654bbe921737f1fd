"""Does a model fit a memory: weights, keys and values, the passes. Numbers only; it asks no device and loads nothing.

Exact: the bytes of the weights (from a snapshot's headers, or from the card's count) and of keys and values (from the
build, windows included). Estimated, and said so: what a pass needs for a moment, and the program with its libraries.
"""

import math
from dataclasses import dataclass, replace

from ddx_local.model_shape import Shape

GIB = 1 << 30
NUMBER = {"float32": 4, "bfloat16": 2, "float16": 2}
_PROGRAM = {"cpu": int(1.5 * GIB), "cuda": 1 * GIB}
_PASS_TOKENS = 8192
_FOUR_BITS, _EIGHT_BITS = 0.56, 1.06  # bytes of a weight with its scales, bitsandbytes' nf4 and int8
_STEP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run, and on what.

    Args:
        model: Its name.
        numbers: Weights of the model.
        stored: Bytes of packed weights, which stay as they are; None for whole numbers.
        shape: None where it is not known; keys and values then count as nothing, and the fit says so.
        device: `cpu` or `cuda`.
        dtype: Number format of weights, keys and values.
        quantization: What is made of the weights while they are loaded, or None.
        context: Tokens of a sequence.
        longest: Tokens that the model can read at most.
        sequences: Sequences that are computed at once.
        memory: Bytes that may be used, over all GPUs.
    """

    model: str
    numbers: int
    stored: int | None
    shape: Shape | None
    device: str
    dtype: str
    quantization: str | None
    context: int
    longest: int
    sequences: int
    memory: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Bytes of the parts of a plan. `room` is what is left for keys and values, negative where even the rest is too much."""

    plan: Plan
    weights: int
    passes: int
    program: int
    kv_per_token: int | None
    kv_context: int
    room: int

    @property
    def fits(self) -> bool:
        return self.room >= self.kv_context and self.room >= 0

    @property
    def needed(self) -> int:
        """Bytes for one sequence of the plan's context."""
        return self.weights + self.passes + self.program + self.kv_context

    @property
    def at_once(self) -> int:
        """Sequences of the whole context that fit side by side, at most those that are computed at once."""
        if not self.fits:
            return 0
        return min(self.plan.sequences, self.room // self.kv_context) if self.kv_context else self.plan.sequences

    @property
    def longest_context(self) -> int:
        """Tokens of the longest sequence that fits alone, in steps of 256, at most the model's; 0 where none does."""
        low, high = 0, self.plan.longest // _STEP
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fit(replace(self.plan, context=middle * _STEP)).fits else (low, middle - 1)
        return low * _STEP

    @property
    def kv_gib(self) -> float:
        """A size for the KV cache on a CPU: four whole sequences where there is room, in halves of a GiB."""
        wanted = min(self.room, max(4 * self.kv_context, 2 * GIB))
        least = math.ceil(self.kv_context / GIB * 10) / 10
        return max(math.floor(wanted / GIB * 2) / 2, least)


def fit(plan: Plan) -> Fit:
    """The parts of a plan, in bytes."""
    number = NUMBER.get(plan.dtype, 2)
    weights = weight_bytes(plan.numbers, plan.stored, plan.dtype, plan.quantization)
    passes = _pass_bytes(plan, number)
    program = _PROGRAM[plan.device]
    per_token = plan.shape.kv_bytes_per_token(number) if plan.shape else None
    context = plan.shape.kv_bytes(plan.context, number) if plan.shape else 0
    return Fit(plan, weights, passes, program, per_token, context, plan.memory - weights - passes - program)


def weight_bytes(numbers: int, stored: int | None, dtype: str, quantization: str | None = None) -> int:
    """Bytes of the weights in memory; exact where they are loaded as they are, estimated where they are quantised on the way."""
    if stored is not None:
        return stored
    if quantization and quantization.startswith("bitsandbytes"):
        return int(numbers * (_EIGHT_BITS if quantization.endswith("8bit") else _FOUR_BITS))
    if quantization in ("fp8", "int8"):
        return int(numbers * _EIGHT_BITS)
    return numbers * NUMBER.get(dtype, 2)


def _pass_bytes(plan: Plan, number: int) -> int:
    """Four residual streams and three feed-forward rows for each token of a pass, and a float32 row of logits a sequence."""
    if plan.shape is None:
        return 0
    tokens = max(plan.context, _PASS_TOKENS) if plan.device == "cpu" else _PASS_TOKENS
    row = number * (4 * plan.shape.hidden + 3 * plan.shape.intermediate)
    return tokens * row + plan.sequences * plan.shape.vocabulary * 4


def variants(plan: Plan) -> tuple[Plan, ...]:
    """The plan, then what asks for less, the mildest first: numbers of half the size, then 4 bits on a GPU."""
    found = [plan]
    if plan.dtype == "float32" and plan.stored is None:
        found.append(replace(plan, dtype="bfloat16"))
    if plan.stored is None and plan.quantization is None and plan.device == "cuda":
        found.append(replace(plan, dtype="bfloat16", quantization="bitsandbytes-4bit"))
    return tuple(found)


def best(plan: Plan, least: int = 2048) -> Fit | None:
    """The mildest variant that fits, with its context cut to what fits; None where none holds `least` tokens."""
    for variant in variants(plan):
        found = fit(variant)
        if found.fits:
            return found
        shorter = min(found.longest_context, plan.context)
        if shorter >= min(least, plan.longest):
            return fit(replace(variant, context=shorter))
    return None


def command(found: Fit) -> str:
    """What to type so that a fit becomes true."""
    plan = found.plan
    words = ["ddx-local diagnose CASE", f"--model {plan.model}", f"--max-model-len {plan.context}"]
    if plan.quantization:
        words.append(f"--quantization {plan.quantization}")
        if plan.quantization.startswith("bitsandbytes-"):
            words.append("--engine transformers")
    elif plan.stored is None:
        words.append(f"--dtype {plan.dtype}")
    if plan.device == "cpu":
        words.append(f"--kv-cache-gib {found.kv_gib:g}")
    return " ".join(words)


def sum_text(found: Fit) -> str:
    """The parts in one sentence."""
    kv = (
        f"keys and values {gib(found.kv_context)} for one sequence of {found.plan.context} tokens"
        if found.kv_per_token is not None
        else "keys and values not known"
    )
    return (
        f"{gib(found.needed)} needed: weights {gib(found.weights)}, {kv}, passes about {gib(found.passes)}, "
        f"the program about {gib(found.program)}"
    )


def gib(count: int) -> str:
    return f"{count / GIB:.2f} GiB" if count < 10 * GIB else f"{count / GIB:.1f} GiB"
