"""Labels scored by teacher forcing: all labels of all prompts in as few passes as memory allows, each prompt computed once."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

import torch

from ddx_local.engines.transformers_prefixes import Prefixes, passes, unless
from ddx_local.engines.transformers_rows import Network, Rows

LOGITS = 1 << 27
"""Most logits of one pass (half a GiB in float32)."""


@dataclass(frozen=True, slots=True)
class Score:
    """Labels, with the end token, to be scored behind a prompt."""

    name: str
    prompt: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]


def scores(
    network: Network,
    prefixes: Prefixes,
    work: Sequence[Score],
    wanted: Callable[[str], bool],
    *,
    vocabulary: int,
    room: int,
) -> Generator[None, None, Mapping[str, tuple[float, ...]]]:
    """Sums of the logprobs of each label's tokens, in nats, by name; yields after each pass.

    Args:
        network: The model.
        prefixes: What is kept of earlier prompts.
        work: What to score; a name that is not `wanted` any more is left out of what follows.
        wanted: Whether somebody still waits for the work of that name.
        vocabulary: Width of the logits.
        room: Tokens whose keys and values fit the memory.
    """
    computing = prefixes.rows([each.prompt[:-1] for each in work])
    done = yield from unless(computing, lambda: not any(wanted(each.name) for each in work))
    if done is None:
        return {}
    rows, _ = done
    pairs = sorted(
        ((place, label) for place, each in enumerate(work) for label in range(len(each.labels))),
        key=lambda pair: len(work[pair[0]].labels[pair[1]]),
    )
    lengths = [len(work[place].labels[label]) for place, label in pairs]
    sums: dict[tuple[int, int], float] = {}
    for some in passes(lengths, LOGITS // vocabulary, room // (2 * max(rows.columns, 1))):
        chosen = [pairs[number] for number in some if wanted(work[pairs[number][0]].name)]
        if chosen:
            labels = [work[place].labels[label] for place, label in chosen]
            before = [work[place].prompt[-1] for place, _ in chosen]
            found = _sums(network, rows.pick([place for place, _ in chosen]), before, labels)
            sums |= zip(chosen, found, strict=True)
            yield
    return {
        each.name: tuple(sums[place, label] for label in range(len(each.labels)))
        for place, each in enumerate(work)
        if all((place, label) in sums for label in range(len(each.labels)))
    }


def _sums(network: Network, rows: Rows, before: Sequence[int], labels: Sequence[tuple[int, ...]]) -> list[float]:
    tails = [[first, *label[:-1]] for first, label in zip(before, labels, strict=True)]
    logits = network.logits(rows, tails).float()
    most = max(map(len, labels))
    ids = torch.tensor([[*label, *[0] * (most - len(label))] for label in labels], device=logits.device)
    there = torch.tensor([[place < len(label) for place in range(most)] for label in labels], device=logits.device)
    logprobs = logits.gather(-1, ids[..., None])[..., 0] - logits.logsumexp(dim=-1)
    sums: list[float] = logprobs.double().masked_fill(~there, 0.0).sum(dim=-1).tolist()
    return sums
