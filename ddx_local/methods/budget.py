"""Equal budgets: as many samples as `--budget-tokens` pays for, and debates that end while they can still conclude.

Comparing methods at equal cost is what tells more thinking from more tokens. Without a budget nothing here has any effect.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from ddx_local.flow import Ask, Flow, Spending, ask_each, note, spending

A = TypeVar("A")

PROBE = 5
"""Samples from which the cost of one is known."""


def sampled(build: Callable[[int], Ask[A]], n: int) -> Flow[dict[str, A]]:
    """`n` samples of a question; under a budget as many as it pays for, at least one.

    Args:
        build: The question of the sample with a number, from 1; it is named `sample NUMBER`.
        n: Samples without a budget.
    """

    def questions(first: int, count: int) -> Mapping[str, Ask[A]]:
        return {f"sample {number}": build(number) for number in range(first, first + count)}

    before = yield from spending()
    if before.budget is None:
        return (yield from ask_each(questions(1, n)))
    found: dict[str, A] = {}
    # One first, then a few, whose mean cost is more certain, then the rest at once.
    for most in (1, PROBE - 1, None):
        now = yield from spending()
        left = affordable(before, now, len(found)) if found else 1
        more = left if most is None else min(most, left)
        if more > 0:
            found |= yield from ask_each(questions(len(found) + 1, more))
    now = yield from spending()
    yield from note("budget", f"{len(found)} samples for {now.spent:,} of {before.budget:,} tokens (n without: {n})")
    return found


def affordable(before: Spending, now: Spending, samples: int) -> int:
    """How many more samples the rest of a budget pays for, at the mean cost of those that there are."""
    assert now.budget is not None
    cost = (now.spent - before.spent) / samples
    return max(0, round((now.budget - now.spent) / cost)) if cost > 0 else 0


def pays_for_another(before: Spending, what: str) -> Flow[bool]:
    """Whether a budget pays for another turn of a loop like the one since `before`, and for the conclusion after it.

    The conclusion is reckoned as dear as a turn. A loop that ends for this reason is noted, and the result says so.
    """
    now = yield from spending()
    if now.budget is None or now.spent + 2 * (now.spent - before.spent) <= now.budget:
        return True
    yield from note("budget", f"{what} ends here: {now.spent:,} of {now.budget:,} tokens are used", degraded=True)
    return False
