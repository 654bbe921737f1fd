"""Logits to tokens, row by row: each row has its own temperature, cuts and source of chance, so that neighbours do not matter."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ddx_local.request import Sampling


def source(seed: int) -> torch.Generator:
    """Chance for one answer, the same on every device."""
    return torch.Generator().manual_seed(seed)


def draw(scores: Tensor, samplings: Sequence[Sampling], sources: Sequence[torch.Generator]) -> list[int]:
    """One token for each row.

    A row takes one number u from its source, and the token at which the sum of the probabilities, in the order of the
    vocabulary, passes u: a last digit that differs between batch sizes then hardly ever changes the text.

    Args:
        scores: Logits of shape (rows, vocabulary); -inf for what may not come.
        samplings: How to draw; temperature 0 takes the most probable.
        sources: One for each row.
    """
    tokens: list[int] = scores.argmax(dim=-1).tolist()
    rows = [row for row, sampling in enumerate(samplings) if sampling.temperature > 0]
    if rows:
        some = [samplings[row] for row in rows]
        heat = torch.tensor([sampling.temperature for sampling in some], device=scores.device)
        logits = cut(scores[rows] / heat[:, None], some)
        sums = torch.softmax(logits, dim=-1, dtype=torch.float64).cumsum(dim=-1)
        chances = torch.stack([torch.rand((), generator=sources[row], dtype=torch.float64) for row in rows])
        # Below the last sum, whatever the rounding: what is found has a probability.
        wanted = chances.to(scores.device) * (1 - 1e-12) * sums[:, -1]
        found = torch.searchsorted(sums, wanted[:, None], right=True)[:, 0].tolist()
        for row, token in zip(rows, found, strict=True):
            tokens[row] = token
    return tokens


def cut(logits: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """Leave each row its `top_k` best tokens, and of these the best ones that together reach `top_p`."""
    vocabulary = logits.shape[-1]
    most = [sampling.top_k if 0 < sampling.top_k < vocabulary else vocabulary for sampling in samplings]
    share = [sampling.top_p for sampling in samplings]
    if all(count == vocabulary for count in most) and all(part >= 1 for part in share):
        return logits
    ordered, places = logits.sort(dim=-1, descending=True, stable=True)
    counts = torch.tensor(most, device=logits.device)[:, None]
    ordered = ordered.masked_fill(torch.arange(vocabulary, device=logits.device)[None] >= counts, -torch.inf)
    chances = torch.softmax(ordered, dim=-1, dtype=torch.float64)
    before = chances.cumsum(dim=-1) - chances
    limits = torch.tensor([part if part < 1 else 2.0 for part in share], device=logits.device)[:, None]
    kept = ordered.masked_fill(before >= limits, -torch.inf)
    return torch.empty_like(logits).scatter_(-1, places, kept)
