"""Sequences under computation and the one thing that is done to them: a forward pass over a few more tokens each.

Keys and values stand right-aligned, so that a sequence is one unbroken run of columns: that is what models with a sliding
window count distances by. A pass pads its new tokens on the right, where causality hides the padding, and aligns again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys and values of a batch of sequences, right-aligned.

    Args:
        layers: (keys, values) of each layer, each of shape (rows, heads, columns, head size); none while nothing is
            computed.
        lengths: Tokens of each row; what stands left of them is padding.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    lengths: tuple[int, ...]

    @property
    def columns(self) -> int:
        return int(self.layers[0][0].shape[2]) if self.layers else 0

    def pick(self, places: Sequence[int]) -> "Rows":
        """These rows, in this order; one that is named twice is copied. Columns that nobody needs any more go."""
        if not places:
            return Rows((), ())
        lengths = tuple(self.lengths[place] for place in places)
        first = self.columns - max(lengths)

        def taken(tensor: Tensor) -> Tensor:
            return tensor[:, :, first:].index_select(0, torch.tensor(list(places), device=tensor.device))

        return Rows(tuple((taken(keys), taken(values)) for keys, values in self.layers), lengths)

    def beginning(self, length: int) -> "Rows":
        """The first tokens of a single row."""
        start = self.columns - self.lengths[0]

        def cut(tensor: Tensor) -> Tensor:
            return tensor[:, :, start : start + length]

        return Rows(tuple((cut(keys), cut(values)) for keys, values in self.layers), (length,))


EMPTY = Rows((), (0,))
"""One row without tokens."""


def join(parts: Sequence[Rows]) -> Rows:
    """All rows of these, one below another."""
    lengths = tuple(length for part in parts for length in part.lengths)
    filled = next((part for part in parts if part.layers), None)
    if filled is None:
        return Rows((), lengths)
    if len(parts) == 1:
        return parts[0]
    columns = max(part.columns for part in parts)

    def stacked(layer: int, side: int) -> Tensor:
        model = filled.layers[layer][side]
        blocks = [
            pad(part.layers[layer][side], (0, 0, columns - part.columns, 0))
            if part.layers
            else model.new_zeros((len(part.lengths), model.shape[1], columns, model.shape[3]))
            for part in parts
        ]
        return torch.cat(blocks)

    return Rows(tuple((stacked(layer, 0), stacked(layer, 1)) for layer in range(len(filled.layers))), lengths)


class Network:
    """A causal language model as a function from rows and new tokens to longer rows and logits."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device = model.get_input_embeddings().weight.device

    def extend(self, rows: Rows, tails: Sequence[Ids]) -> tuple[Rows, Tensor]:
        """Compute at least one more token of each row.

        Returns:
            The longer rows, and the logits behind the last column, of shape (rows, vocabulary): those of a row whose
            tail is the longest.
        """
        cache, logits = self._forward(rows, tails, 1)
        most = max(len(tail) for tail in tails)
        unused = [most - len(tail) for tail in tails]
        lengths = tuple(length + len(tail) for length, tail in zip(rows.lengths, tails, strict=True))
        layers = tuple(
            (_aligned(layer.keys, unused, max(lengths)), _aligned(layer.values, unused, max(lengths)))
            for layer in cache.layers
        )
        return Rows(layers, lengths), logits[:, -1]

    def logits(self, rows: Rows, tails: Sequence[Ids]) -> Tensor:
        """Logits behind every token of the tails, of shape (rows, longest tail, vocabulary)."""
        most = max(len(tail) for tail in tails)
        return self._forward(rows, tails, most)[1][:, -most:]

    def _forward(self, rows: Rows, tails: Sequence[Ids], logits: int) -> tuple[DynamicCache, Tensor]:
        most, columns = max(len(tail) for tail in tails), rows.columns
        ids = torch.tensor([[*tail, *[0] * (most - len(tail))] for tail in tails], device=self.device)
        before = torch.tensor(rows.lengths, device=self.device)[:, None]
        new = torch.tensor([len(tail) for tail in tails], device=self.device)[:, None]
        steps = torch.arange(most, device=self.device)[None]
        old = torch.arange(columns, device=self.device)[None] >= columns - before
        keep = {"logits_to_keep": logits} if self.model._supports_logits_to_keep() else {}
        cache = _cache(rows)
        output = self.model(
            input_ids=ids,
            attention_mask=torch.cat([old, steps < new], dim=1),
            position_ids=before + torch.minimum(steps, new - 1),
            past_key_values=cache,
            use_cache=True,
            **keep,
        )
        return cache, output.logits


def _cache(rows: Rows) -> DynamicCache:
    """Plain layers for every layer, sliding ones too: those that forget would forget the padding's columns with the rest."""
    cache = DynamicCache()
    for keys, values in rows.layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


def _aligned(tensor: Tensor, unused: Sequence[int], columns: int) -> Tensor:
    """The last `columns` columns, after each row is moved to the right over its unused ones."""
    if not any(unused):
        return tensor[:, :, tensor.shape[2] - columns :]
    wide = tensor.shape[2]
    target = torch.arange(wide - columns, wide, device=tensor.device)[None]
    source = (target - torch.tensor(unused, device=tensor.device)[:, None]) % wide
    return tensor.gather(2, source[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[3]))
