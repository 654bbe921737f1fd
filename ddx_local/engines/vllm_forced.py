"""Forced decoding inside vLLM: a request's tokens are given, and the model's own logprobs of them are read.

Exact, and it reads the prefix cache (prompt_logprobs do not). The processor runs after vLLM has taken the raw logprobs, so
that what is read is what the model would have said freely; it mixes with other requests in one batch.
"""

from collections.abc import Callable
from typing import Any

from vllm.sampling_params import SamplingParams
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

ARGUMENT = "ddx_local_forced_ids"
"""Key of `SamplingParams.extra_args` that holds the token ids to be said."""


class ForcedDecoding(AdapterLogitsProcessor):  # type: ignore[misc]  # vLLM is untyped to us
    """Lets a request say nothing but its given tokens, one after another."""

    @classmethod
    def validate_params(cls, params: SamplingParams) -> None:
        ids = (params.extra_args or {}).get(ARGUMENT)
        if ids is not None and params.max_tokens != len(ids):
            raise ValueError(f"max_tokens must be the number of {ARGUMENT}")

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> Callable[[list[int], Any], Any] | None:
        ids = (params.extra_args or {}).get(ARGUMENT)
        if ids is None:
            return None

        def force(output_ids: list[int], logits: Any) -> Any:
            wanted = ids[len(output_ids)]
            kept = logits[wanted].item()
            logits.fill_(float("-inf"))
            logits[wanted] = kept
            return logits

        return force
