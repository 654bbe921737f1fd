"""Settings: flag > environment (`DDX_LOCAL_...`) > settings file > default. Frozen; read once, in `load`."""

import difflib
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from ddx_local.errors import UsageError, nearest
from ddx_local.home import expanded

APP = "ddx-local"

_PREFIX, _CONFIG = "DDX_LOCAL_", "DDX_LOCAL_CONFIG"


def settings_path() -> Path:
    """The settings file: `DDX_LOCAL_CONFIG`, else config.toml in the user's configuration folder."""
    named = os.environ.get(_CONFIG)
    return expanded(named) if named else platformdirs.user_config_path(APP) / "config.toml"


class Settings(BaseSettings):
    """Every setting; a field `x` is `DDX_LOCAL_X` in the environment and `x` in the file."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid")

    model: str = "smollm2-135m"
    """Model card to run."""
    embedding_model: str = "all-minilm-l6-v2"
    """Model card for similarity of meaning."""
    engine: Literal["vllm", "transformers", "scripted"] = "vllm"
    """What runs it."""
    default_method: str = "scot"
    """Method of `diagnose` without --method."""
    seed: int = Field(default=0, ge=0)
    """Seed of a run."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the engine runs; auto: what the installed vLLM is for, or for transformers a GPU where PyTorch sees one."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format; auto: float32 on a CPU (exact), the weights' own on a GPU."""
    probability_dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Number format of label probabilities: opens a second engine where it differs from `dtype`."""
    max_model_len: int | None = Field(default=None, ge=256)
    """Context in tokens; the card's where it is not given."""
    kv_cache_gib: float = Field(default=2.0, gt=0)
    """Memory for the KV cache on a CPU, in GiB."""
    gpu_memory_fraction: float = Field(default=0.9, gt=0, le=1)
    """Share of the GPU's memory that the engine may take."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share each layer."""
    pipeline_parallel: int = Field(default=1, ge=1)
    """GPUs that share the layers."""
    max_sequences: int = Field(default=64, ge=1)
    """Requests that are computed at once."""
    quantization: str | None = None
    """Quantisation, as vLLM names it, or bitsandbytes-4bit and bitsandbytes-8bit for transformers; the card's, or none."""
    compiled: bool = False
    """Compile the model: starts a minute later, runs up to 1.4 times faster."""
    thinking: bool = False
    """Let a thinking model think before each answer."""
    at_once: int = Field(default=8, ge=1)
    """Cases in flight at once."""
    store: Path | None = None
    """The run store; runs.sqlite in the user's data folder where it is not given."""
    retention_days: int | None = Field(default=None, ge=1)
    """Days that runs are kept; older ones are deleted, with their texts, when a run starts. Not set: until `runs purge`."""
    icd10: bool = True
    """Give each diagnosis its ICD-10-CM code, where one fits."""
    budget_tokens: int | None = Field(default=None, ge=1)
    """Tokens that a case may use, prompts and answers together, so that methods are compared at equal cost."""
    supervisor: str = Field(default="supervisor", min_length=1, max_length=80)
    """Who comments under --supervise, as it is recorded."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Models by role: `[roles]` and lines such as `aggregator = "gemma3-270m"`; a method uses those that it has."""
    probability_cache: bool = True
    """Keep label probabilities beside the run store, so that the same question is not computed twice."""
    method: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by method: `[method.scot]` and its fields."""

    @property
    def store_path(self) -> Path:
        """Where the run store is."""
        return expanded(self.store) if self.store else platformdirs.user_data_path(APP) / "runs.sqlite"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # the signature is pydantic-settings' own
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_path()))


def load(**flags: Any) -> Settings:
    """Read the settings; flags that are None were not given.

    Raises:
        UsageError: An unknown key or a wrong value, in the file, the environment or a flag; it is named. Variables of
            the environment have other owners too: one is refused where its name is nearly a setting's.
    """
    _check_file()
    _check_names(name.upper() for name in os.environ)
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        if first["type"] == "extra_forbidden":
            raise UsageError(
                f"settings: unknown key `{name}`: {nearest(name, list(Settings.model_fields))}",
                f"See {settings_path()}.",
            ) from None
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"setting `{name}` ({_origin(name, flags)}): {message}") from None
    except SettingsError as error:
        raise UsageError(
            f"settings: {error}",
            "`method` and `roles` hold options by method and models by role, as JSON in the environment.",
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"settings file {settings_path()}: {error}", "Correct the file or move it away.") from None
    except UnicodeDecodeError:
        raise UsageError(f"settings file {settings_path()}: is not UTF-8", "Save it as UTF-8 text.") from None


def _check_file() -> None:
    """A file that was named but is not there, or cannot be read, is not the same as no settings."""
    path = settings_path()
    try:
        with path.open("rb"):
            return
    except FileNotFoundError as error:
        if not os.environ.get(_CONFIG):
            return
        reason = error.strerror
    except OSError as error:
        reason = error.strerror
    place = f"{_CONFIG}={path}" if os.environ.get(_CONFIG) else str(path)
    raise UsageError(f"settings file {place}: cannot be read: {reason}", "Correct the path or the permissions.")


def _check_names(variables: Iterable[str]) -> None:
    known = [f"{_PREFIX}{name.upper()}" for name in Settings.model_fields]
    for variable in variables:
        if not variable.startswith(_PREFIX) or variable in (*known, *_OTHERS):
            continue
        parts = {name.removeprefix(_PREFIX): name for name in known}
        if close := difflib.get_close_matches(variable.removeprefix(_PREFIX), list(parts), n=1, cutoff=0.75):
            raise UsageError(
                f"environment: {variable} is no setting: did you mean {parts[close[0]]}?", "Correct or unset it."
            )


_OTHERS = ("DDX_LOCAL_CONFIG", "DDX_LOCAL_DEBUG", "DDX_LOCAL_MODELS", "DDX_LOCAL_OFFLINE")
"""Variables of ours that are no settings."""


def _origin(name: str, flags: dict[str, Any]) -> str:
    if flags.get(name) is not None:
        return f"--{name.replace('_', '-')}"
    variable = f"{_PREFIX}{name.upper()}"
    return variable if variable in {known.upper() for known in os.environ} else str(settings_path())
