"""By how much a number format moves a label's logprob, as measured between engines (float32 7e-5, bfloat16 0.3 nats)."""

from collections.abc import Mapping

NOISE_NATS: Mapping[str, float] = {"float32": 1e-3}
"""Number format -> nats, rounded up; a format that was not measured counts as bfloat16."""

COARSE_NATS = 0.3


def noise_nats(dtype: str, quantization: str | None = None) -> float:
    """The noise of a logprob summed over a label, in nats."""
    return COARSE_NATS if quantization else NOISE_NATS.get(dtype, COARSE_NATS)
