"""Grammars over a model's tokens: which tokens may come next, and the text of those that came.

llguidance itself, which Outlines' CFG type wraps: Outlines' processor has one grammar for a whole batch and builds it anew
for each, and its matchers cannot leave a batch that goes on. Ours has another grammar, or none, in every row.
"""

from collections.abc import Sequence
from typing import Any

import llguidance
import numpy as np
from llguidance.hf import from_tokenizer
from llguidance.numpy import fill_next_token_bitmask

_COMPILED = 64
"""Grammars that are kept compiled: a round asks with the same one many times."""


class Grammars:
    """Compiles grammars for one tokenizer; `ends` are the tokens that may end an answer."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self.vocabulary = vocabulary
        self._tokens = from_tokenizer(tokenizer, max(vocabulary, len(tokenizer)), list(ends))
        self._compiled: dict[str, Any] = {}

    def matcher(self, lark: str) -> Any:
        """A fresh matcher.

        Raises:
            ValueError: llguidance does not take the grammar; the message may quote it.
        """
        known = self._compiled.pop(lark, None) or llguidance.LLMatcher(self._tokens, lark, log_level=0)
        if known.is_error():
            raise ValueError(known.get_error())
        self._compiled[lark] = known
        if len(self._compiled) > _COMPILED:
            del self._compiled[next(iter(self._compiled))]
        return known.deep_copy()

    def allowed(self, matchers: Sequence[Any | None]) -> Any:
        """Which tokens may come next, as a boolean array of shape (matchers, vocabulary); all of them without a grammar."""
        bits = np.full((len(matchers), (self._tokens.vocab_size + 31) // 32), -1, dtype=np.int32)
        for row, matcher in enumerate(matchers):
            if matcher is not None:
                fill_next_token_bitmask(matcher, bits, row)
        unpacked = np.unpackbits(bits.view(np.uint8), axis=1, count=self.vocabulary, bitorder="little")
        return unpacked.view(np.bool_)

    def text(self, ids: Sequence[int]) -> str:
        """The text that the grammar saw in these tokens."""
        return str(self._tokens.decode_bytes(list(ids)).decode(errors="replace"))
