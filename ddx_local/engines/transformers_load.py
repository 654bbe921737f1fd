"""A model from its folder into memory, for the transformers engine; what keeps it out is said in one line."""

import importlib
import logging
from dataclasses import dataclass
from typing import Any

from ddx_local.engines.causes import root_cause
from ddx_local.engines.transformers_settings import TransformersSettings
from ddx_local.errors import EngineStartError
from ddx_local.model_memory import refuse_hopeless, shortage

INSTALL = "Install what it names, or the whole engine: `pip install ddx-local[transformers]`."

_PLAIN = frozenset({"full_attention", "sliding_attention"})
"""Kinds of layers whose memory is keys and values by token. Others (recurrent, chunked) cannot be cut and joined by token."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model, the tokens that end its answers, and the tokens whose keys and values fit the memory."""

    model: Any
    ends: frozenset[int]
    room: int


def load(settings: TransformersSettings, end: int) -> Loaded:
    """Load a model.

    Args:
        settings: Which, and how.
        end: The tokenizer's end token; the model's own generation settings may name more.

    Raises:
        EngineStartError: The device, the quantisation, the kind of model or the memory does not allow it.
    """
    refuse_hopeless(settings)
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    if settings.device == "cuda" and not torch.cuda.is_available():
        raise EngineStartError(
            "--device cuda: this PyTorch sees no GPU",
            "Leave --device out, or install the PyTorch that fits the driver.",
        )
    disable_progress_bar()  # standard error shows the live view
    arguments: dict[str, Any] = {
        "dtype": getattr(torch, settings.resolved_dtype),
        "device_map": "auto" if settings.device == "cuda" else None,
        "use_safetensors": True,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    if settings.quantization:
        arguments["quantization_config"] = _bitsandbytes(settings)
    model = AutoModelForCausalLM.from_pretrained(str(settings.folder), **arguments).eval()
    text = model.config.get_text_config(decoder=True)
    others = sorted(set(getattr(text, "layer_types", None) or ()) - _PLAIN)
    if others:
        raise EngineStartError(
            f"model `{settings.card.name}` has layers of the kind {', '.join(others)}, which --engine transformers cannot batch",
            "Use --engine vllm.",
        )
    ends = model.generation_config.eos_token_id
    named = ends if isinstance(ends, list) else [] if ends is None else [ends]
    return Loaded(model, frozenset({end, *named}), _room(model, settings))


def start_error(error: BaseException, settings: TransformersSettings) -> EngineStartError:
    """What kept the engine from starting, in one line, and what to do about it."""
    if isinstance(error, EngineStartError):
        return error
    cause = root_cause(error)
    hint = None
    if isinstance(error, ImportError):
        hint = INSTALL
    elif settings.quantization and ("bitsandbytes" in cause or "quantiz" in cause.lower()):
        hint = "Leave --quantization out: bitsandbytes may not work on this device."
    elif ("memory" in cause.lower() or "bad_alloc" in cause) and (told := shortage(settings)):
        cause, hint = f"{cause}: {told[0]}", told[1]
    elif "memory" in cause.lower():
        hint = "Use a smaller model, --dtype bfloat16, or --quantization bitsandbytes-4bit."
    return EngineStartError(f"transformers could not load `{settings.card.name}` ({settings.device}): {cause}", hint)


def _bitsandbytes(settings: TransformersSettings) -> Any:
    # It says before each 8-bit product that the numbers are cast.
    logging.getLogger("bitsandbytes").setLevel(logging.CRITICAL)
    try:
        importlib.import_module("bitsandbytes")
    except Exception as error:  # its own import fails in many ways where it finds no library for the device
        raise EngineStartError(
            f"--quantization {settings.quantization}: bitsandbytes cannot be used here: {root_cause(error)}",
            "Install it (`pip install bitsandbytes`), or leave --quantization out.",
        ) from error
    import torch
    from transformers import BitsAndBytesConfig

    if settings.quantization == "bitsandbytes-8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, settings.resolved_dtype),
    )


def _room(model: Any, settings: TransformersSettings) -> int:
    """Tokens that fit the memory for keys and values, measured on a pass of two tokens."""
    import torch

    from ddx_local.engines.transformers_rows import EMPTY, Network

    with torch.inference_mode():
        rows, _ = Network(model).extend(EMPTY, [[0, 0]])
    each = sum(keys.nbytes + values.nbytes for keys, values in rows.layers) // 2
    if settings.device == "cpu":
        free = int(settings.kv_cache_gib * 2**30)
    else:
        # Joining and leaving copy keys and values: half of the memory is for the copy.
        free = int(sum(torch.cuda.mem_get_info(gpu)[0] for gpu in range(torch.cuda.device_count())) / 2)
        free = int(free * settings.gpu_memory_fraction)
    return max(int(free // each), 1)
