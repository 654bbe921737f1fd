"""Quantised weights: what is asked for, what a checkpoint is already, and whether an engine can do it here.

All of it is known before anything is loaded, and without the libraries: a name that only the library knows is left to it.
"""

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ddx_local.engines.transformers_settings import QUANTIZATIONS, Quantization
from ddx_local.errors import EngineStartError, UsageError, nearest

_BITSANDBYTES = "bitsandbytes"


def checkpoint_method(folder: Path) -> str | None:
    """How the weights of a folder are quantised, as their config names it; None for whole numbers."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        method = config["quantization_config"]["quant_method"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return method if isinstance(method, str) else None


def for_vllm(asked: str | None, folder: Path, device: str) -> str | None:
    """What vLLM is to be told; a checkpoint that is quantised says so itself.

    Raises:
        EngineStartError: It needs a GPU, or a plugin that is not installed.
    """
    method = asked or checkpoint_method(folder)
    where = f"--quantization {asked}" if asked else f"{folder.name} is quantised by {method}"
    if method == "gguf":
        raise EngineStartError(
            f"{where}: this program runs safetensors only",
            "Leave it out; `ddx-local models pull` turns GGUF files into safetensors.",
        )
    if method != _BITSANDBYTES:
        return asked
    if device == "cpu":
        raise EngineStartError(
            f"{where}: vLLM runs it on a GPU only",
            "Leave it out, use a GPU, or use --engine transformers --quantization bitsandbytes-4bit.",
        )
    missing = [name for name in ("vllm-bnb-plugin", _BITSANDBYTES) if not _installed(name)]
    if missing:
        raise EngineStartError(
            f"{where}: vLLM needs {' and '.join(missing)} for it, which is not installed",
            f"Install it beside vLLM: `pip install {' '.join(missing)}`.",
        )
    return asked


def for_transformers(asked: str | None) -> Quantization | None:
    """What bitsandbytes is to make of the weights; a checkpoint that is quantised says so itself.

    Raises:
        UsageError: It is none of `QUANTIZATIONS`.
    """
    if asked is None:
        return None
    if asked == _BITSANDBYTES:  # vLLM's name for the same
        return "bitsandbytes-4bit"
    for name in QUANTIZATIONS:
        if asked == name:
            return name
    raise UsageError(
        f"--quantization {asked}: --engine transformers does not know it: {nearest(asked, list(QUANTIZATIONS))}",
        "For weights that are quantised already leave it out: they say so themselves.",
    )


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
