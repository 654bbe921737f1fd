"""Prompts to rows, with what they share computed once: within a call, and between calls by keeping what was computed.

Prompts that share at least half of the shorter one are neighbours: their common beginning is computed as one row and
copied. Every beginning of some length is kept, the last used longest, so that the next round of a case finds it.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import takewhile
from typing import cast

from ddx_local.engines.transformers_rows import EMPTY, Ids, Network, Rows, join

LEAST = 64
"""Tokens from which on a beginning is worth a pass of its own, and its place in memory."""

PASS = 2048
"""Most tokens of one pass: between two passes the engine hears who has given up."""


Computed = tuple[Rows, tuple[int, ...]]


class Prefixes:
    """The beginnings that are kept, at most `room` tokens of them."""

    def __init__(self, network: Network, room: int) -> None:
        self._network = network
        self._room = room
        self._kept: dict[tuple[int, ...], Rows] = {}

    def forget(self) -> None:
        self._kept.clear()

    def rows(self, prompts: Sequence[Ids]) -> Generator[None, None, Computed]:
        """Compute prompts; yields after each pass.

        Returns:
            One row for each prompt, in order, and how many tokens of each another prompt, or an earlier call, computed.
        """
        bases = [EMPTY] * len(prompts)
        cached = [0] * len(prompts)
        for group in neighbours(prompts):
            length = shared(prompts[group[0]], prompts[group[-1]])
            if length < LEAST:
                continue
            base, known = yield from self._base(tuple(prompts[group[0]][:length]))
            for place in group:
                bases[place], cached[place] = base, length
            cached[group[0]] = known
        tails = [prompt[base.lengths[0] :] for prompt, base in zip(prompts, bases, strict=True)]
        order = sorted(range(len(prompts)), key=lambda place: len(tails[place]))
        parts = []
        for some in passes([len(tails[place]) for place in order]):
            places = [order[place] for place in some]
            part = join([bases[place] for place in places])
            if any(tails[place] for place in places):
                part = yield from self._extended(part, [tails[place] for place in places])
            parts.append(part)
        back = sorted(range(len(order)), key=order.__getitem__)
        return join(parts).pick(back), tuple(cached)

    def _base(self, ids: tuple[int, ...]) -> Generator[None, None, tuple[Rows, int]]:
        """One row, from the longest kept beginning on; it is kept in turn."""
        nearest = max(self._kept, key=lambda kept: shared(kept, ids), default=())
        known = shared(nearest, ids)
        row = EMPTY
        if known >= LEAST:
            self._kept[nearest] = self._kept.pop(nearest)
            row = self._kept[nearest].beginning(known)
        else:
            known = 0
        if known < len(ids):
            row = yield from self._extended(row, [ids[known:]])
            self._keep(ids, row)
        return row, known

    def _extended(self, rows: Rows, tails: Sequence[Ids]) -> Generator[None, None, Rows]:
        width = max(PASS // len(tails), 1)
        for start in range(0, max(len(tail) for tail in tails), width):
            pieces = [tail[start : start + width] for tail in tails]
            rows, _ = self._network.extend(rows, pieces)
            yield
        return rows

    def _keep(self, ids: tuple[int, ...], row: Rows) -> None:
        for other in [other for other in self._kept if ids[: len(other)] == other]:
            del self._kept[other]
        self._kept[ids] = row
        while sum(map(len, self._kept)) > self._room:
            del self._kept[next(iter(self._kept))]


def unless(
    computing: Generator[None, None, Computed], given_up: Callable[[], bool]
) -> Generator[None, None, Computed | None]:
    """The same work, or None as soon as nobody waits for it."""
    while True:
        try:
            next(computing)
        except StopIteration as done:
            return cast(Computed, done.value)
        if given_up():
            return None
        yield


def shared(one: Ids, other: Ids) -> int:
    """Tokens that two sequences begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def neighbours(prompts: Sequence[Ids]) -> list[list[int]]:
    """Places of prompts in groups; the first and the last of a group share what all of it share."""
    groups: list[list[int]] = []
    for place in sorted(range(len(prompts)), key=lambda place: tuple(prompts[place])):
        ids = prompts[place]
        if groups:
            first = prompts[groups[-1][0]]
            if 2 * shared(first, ids) >= min(len(first), len(ids)):
                groups[-1].append(place)
                continue
        groups.append([place])
    return groups


def passes(lengths: Sequence[int], tokens: int = PASS, rows: int = PASS) -> list[list[int]]:
    """Places of ascending lengths in groups of so many rows and tokens at most, padding included; one alone may be longer."""
    groups: list[list[int]] = []
    for place, length in enumerate(lengths):
        if not groups or len(groups[-1]) >= rows or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(place)
    return groups
