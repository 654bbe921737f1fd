"""How the vLLM engine is built: our settings, and the arguments that vLLM gets for them. It imports no vLLM."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.models import ModelCard


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """How the engine is built. `device` cpu or cuda; `dtype` auto means float32 on a CPU, the weights' own on a GPU."""

    folder: Path
    card: ModelCard
    weights_sha256: str
    device: str
    dtype: str = "auto"
    max_model_len: int | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    gpu_memory_fraction: float = 0.9
    kv_cache_gib: float = 2.0
    max_sequences: int = 64
    quantization: str | None = None
    compiled: bool = False
    thinking: bool = False
    prefix_caching: bool = True

    @property
    def context(self) -> int:
        return min(self.max_model_len or self.card.context_length, self.card.context_length)

    @property
    def resolved_dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.device == "cpu" else (self.card.dtype or "auto")

    @property
    def block_size(self) -> int | None:
        # 32 shares more than the CPU's default of 128 on short prompts; 16 is refused there. On a GPU: vLLM's own choice.
        return 32 if self.device == "cpu" else None

    def engine_arguments(self) -> dict[str, Any]:
        """Arguments for vLLM's `EngineArgs`."""
        arguments: dict[str, Any] = {
            "model": str(self.folder),
            "served_model_name": self.card.name,
            "dtype": self.resolved_dtype,
            "max_model_len": self.context,
            "max_num_seqs": self.max_sequences,
            "tensor_parallel_size": self.tensor_parallel,
            "pipeline_parallel_size": self.pipeline_parallel,
            "quantization": self.quantization,
            "enforce_eager": not self.compiled,
            "enable_prefix_caching": self.prefix_caching,
            "structured_outputs_config": {"backend": "guidance", "disable_any_whitespace": True},
            "load_format": "safetensors",
            "generation_config": "vllm",
            "trust_remote_code": False,
            "use_tqdm_on_load": False,
            "disable_log_stats": False,
            "seed": 0,
            "max_logprobs": 20,
        }
        if self.device == "cpu":
            # A seeded request whose prompt is split by chunked prefill kills the CPU engine.
            arguments |= {
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(self.context, 8192),
                "block_size": self.block_size,
                "kv_cache_memory_bytes": int(self.kv_cache_gib * 2**30),
            }
        else:
            arguments |= {"gpu_memory_utilization": self.gpu_memory_fraction}
        return arguments
