"""Equal budgets: as many samples as `--budget-tokens` pays for, and loops that end while they can still conclude.

Comparing methods at equal cost is what tells more thinking from more tokens. Without a budget nothing here has any effect.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ddx_local.flow import Flow, Spending, note, spending

A = TypeVar("A")

PROBE = 5
"""Samples from which the cost of one is known."""

Draw = Callable[[Sequence[str]], Flow[dict[str, A]]]
"""Draws the samples of these names, all at once."""


def sampled(draw: Draw[A], n: int) -> Flow[dict[str, A]]:
    """`n` samples, named `sample NUMBER` from 1; under a budget as many as it pays for, at least one."""

    def names(first: int, count: int) -> list[str]:
        return [f"sample {number}" for number in range(first, first + count)]

    before = yield from spending()
    if before.budget is None:
        return (yield from draw(names(1, n)))
    found: dict[str, A] = {}
    # One first, then a few, whose mean cost is more certain, then the rest at once.
    for most in (1, PROBE - 1, None):
        now = yield from spending()
        left = affordable(before, now, len(found)) if found else 1
        more = left if most is None else min(most, left)
        if more > 0:
            found |= yield from draw(names(len(found) + 1, more))
    now = yield from spending()
    yield from note("budget", f"{len(found)} samples for {now.spent:,} of {before.budget:,} tokens (n without: {n})")
    return found


def affordable(before: Spending, now: Spending, samples: int) -> int:
    """How many more samples the rest of a budget pays for, at the mean cost of those that there are."""
    assert now.budget is not None
    cost = (now.spent - before.spent) / samples
    return max(0, round((now.budget - now.spent) / cost)) if cost > 0 else 0


def pays_for_turn(start: Spending, done: int, what: str) -> Flow[bool]:
    """Whether a budget pays for one more turn of a loop, and for the conclusion after it.

    Turns are reckoned at the mean cost of those since `start`, and so is the conclusion. A loop that ends for this reason is
    noted, and the result says so.

    Args:
        start: The spending before the first turn.
        done: Turns since then; the first turn is always paid for.
        what: The loop, for the note.
    """
    if start.budget is None or done < 1:
        return True
    now = yield from spending()
    if now.spent + 2 * (now.spent - start.spent) / done <= start.budget:
        return True
    yield from note("budget", f"{what} ends here: {now.spent:,} of {start.budget:,} tokens are used", degraded=True)
    return False
