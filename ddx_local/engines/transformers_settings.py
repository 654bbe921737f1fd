"""How the transformers engine is built. It imports neither torch nor transformers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ddx_local.models import ModelCard

Quantization = Literal["bitsandbytes-4bit", "bitsandbytes-8bit"]

QUANTIZATIONS: tuple[Quantization, ...] = ("bitsandbytes-4bit", "bitsandbytes-8bit")
"""What the engine can do to whole weights while it loads them; a checkpoint that is quantised already says so itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersSettings:
    """How the engine is built.

    Args:
        folder: The model's snapshot.
        card: Its card.
        weights_sha256: Digest of its weights.
        device: cpu, or cuda: every GPU of the machine, then its main memory, as accelerate places the layers.
        dtype: Number format; auto is float32 on a CPU (exact), and the weights' own on a GPU or for quantised weights.
        quantization: What bitsandbytes makes of the weights, or None for the weights as they are.
        max_model_len: Context in tokens; the card's where it is None.
        max_sequences: Answers that are computed at once.
        kv_cache_gib: Memory for keys and values on a CPU, in GiB.
        gpu_memory_fraction: Share of the memory that the weights leave free on a GPU.
        thinking: Let a thinking model think before each answer.
    """

    folder: Path
    card: ModelCard
    weights_sha256: str
    device: Literal["cpu", "cuda"]
    dtype: str = "auto"
    quantization: Quantization | None = None
    max_model_len: int | None = None
    max_sequences: int = 64
    kv_cache_gib: float = 2.0
    gpu_memory_fraction: float = 0.9
    thinking: bool = False

    @property
    def context(self) -> int:
        return min(self.max_model_len or self.card.context_length, self.card.context_length)

    @property
    def resolved_dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.device == "cpu" and self.quantization is None else self.card.dtype
