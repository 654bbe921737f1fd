"""The fields of requests: which there are, which are refused, and how each is checked. Pure.

A field that is null counts as left out. Messages name fields of OpenAI's and of ours, never what a client wrote.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ddx_local.server.errors import invalid, unsupported

Json = dict[str, Any]

COMMON = ("model", "stream", "stream_options", "temperature", "top_p", "max_tokens", "n", "stop", "seed", "user")
PENALTIES = ("frequency_penalty", "presence_penalty")
CHAT = (
    *COMMON,
    *PENALTIES,
    "messages",
    "max_completion_tokens",
    "response_format",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "modalities",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "verbosity",
    "ddx",
)
COMPLETION = (*COMMON, *PENALTIES, "prompt", "logprobs", "logit_bias", "best_of", "suffix", "echo")
EMBEDDING = ("model", "input", "encoding_format", "dimensions", "user")

IGNORED = ("user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "verbosity")
"""They change nothing on one machine; none of them is kept."""

REFUSED = (
    "vllm_xargs", "prompt_logprobs", "echo", "add_generation_prompt", "add_special_tokens", "allowed_token_ids", "audio",
    "bad_words", "cache_salt", "chat_template", "chat_template_kwargs", "continue_final_message", "data_parallel_rank",
    "documents", "ec_transfer_params", "function_call", "functions", "guided_choice", "guided_grammar", "guided_json",
    "guided_regex", "ignore_eos", "include_reasoning", "include_stop_str_in_output", "kv_hints", "kv_transfer_params",
    "length_penalty", "logits_processors", "media_io_kwargs", "min_p", "min_tokens", "mm_processor_kwargs", "prediction",
    "priority", "prompt_embeds", "prompt_token_ids", "repetition_penalty", "request_id", "return_prompt_text",
    "return_token_ids", "return_tokens_as_token_ids", "session_id", "skip_special_tokens", "spaces_between_special_tokens",
    "stop_token_ids", "structural_tag", "structured_outputs", "thinking_token_budget", "top_k", "truncate_prompt_tokens",
    "truncation_side", "use_beam_search", "watermarking", "web_search_options", "best_of", "suffix", "input_type",
)  # fmt: skip
"""Ways into an engine's own arguments, and other programs' fields: refused by name on every route."""

MOST_MESSAGES = 256
MOST_CHOICES = 16


def given(body: Mapping[str, Any], known: Sequence[str]) -> Json:
    """The fields that were given and are not null.

    Raises:
        ApiError: 400 for a field that is not one of these.
    """
    for name in body:
        if name in known and name not in REFUSED:
            continue
        if name in ("echo", "suffix", "best_of") and name in known and body[name] in (None, False, "", 1):
            continue  # their harmless values, which some clients always send
        if name in REFUSED:
            raise unsupported(name)
        raise invalid("The body has a field that this route does not know.", code="unsupported_parameter")
    return {name: value for name, value in body.items() if value is not None and name not in REFUSED}


def text(fields: Mapping[str, Any], name: str, most: int = 1 << 20) -> str:
    """A text that must be there and not be empty."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise invalid(f"`{name}` must be a text.", name)
    if not value or len(value) > most:
        raise invalid(f"`{name}` must hold 1 to {most} characters.", name)
    return value


def number(fields: Mapping[str, Any], name: str, least: float, most: float, default: float) -> float:
    """A number within bounds."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise invalid(f"`{name}` must be a number from {least:g} to {most:g}.", name)
    return float(value)


def whole(fields: Mapping[str, Any], name: str, least: int, most: int, default: int) -> int:
    """A whole number within bounds."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(f"`{name}` must be a whole number from {least} to {most}.", name)
    return value


def flag(fields: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """True or false."""
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise invalid(f"`{name}` must be true or false.", name)
    return value


def stops(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Up to four texts that end an answer."""
    value = fields.get("stop", [])
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or len(items) > 4 or not all(isinstance(item, str) and item for item in items):
        raise invalid("`stop` must be a text or a list of at most 4 texts, none of them empty.", "stop")
    return tuple(items)


def includes_usage(fields: Mapping[str, Any]) -> bool:
    """Whether a stream ends with a chunk of usage."""
    value = fields.get("stream_options")
    if value is None:
        return False
    if not isinstance(value, dict) or not set(value) <= {"include_usage", "include_obfuscation"}:
        raise invalid("`stream_options` holds include_usage and include_obfuscation alone.", "stream_options")
    if not fields.get("stream"):
        raise invalid("`stream_options` goes with `stream: true` only.", "stream_options")
    if value.get("include_obfuscation"):
        raise unsupported("stream_options", "with include_obfuscation is not supported here")
    return flag({name: item for name, item in value.items() if item is not None}, "include_usage")


def refuse(fields: Mapping[str, Any], harmless: Mapping[str, Callable[[Any], bool]], why: str) -> None:
    """Refuse fields that were given with a value that would have to do something; the first is named.

    Args:
        fields: As given.
        harmless: Field -> whether a value asks for nothing.
        why: The end of "`field` ...".
    """
    for name, is_harmless in harmless.items():
        if name in fields and not is_harmless(fields[name]):
            raise unsupported(name, why)


def never(_: Any) -> bool:
    """Of a field that asks for something whatever it holds."""
    return False


def is_off(value: Any) -> bool:
    """Of a switch or a number that is off."""
    return value in (False, 0, 0.0) or value == {} or value == []


def is_one(value: Any) -> bool:
    """Of a count that is 1."""
    return not isinstance(value, bool) and value == 1
