"""Metrics of a discussion: consensus, change, transitions, late entries, counterfactual gaps. Plain values in.

Exact meanings: specs/evaluation.md, section 2.4 and 2.5. Names are compared after merging what is the same diagnosis.
"""

import math
from collections.abc import Sequence
from typing import Literal

from ddx_local.clinical.labels import merge

Move = Literal["WW", "WC", "CW", "CC"]
"""First and last answer of a role, wrong or correct."""


def has_consensus(votes: Sequence[str]) -> bool:
    """Whether at least three quarters name one diagnosis: 4 x largest group >= 3 x votes."""
    return bool(votes) and 4 * max(map(len, merge(votes))) >= 3 * len(votes)


def votes_needed(n: int) -> int:
    """Equal votes of n that make a consensus."""
    return math.ceil(3 * n / 4)


def transitions(moves: Sequence[Move]) -> dict[str, float | int | None]:
    """Shares of all role-cases, and the conditional shares: what was repaired of the wrong, what was lost of the right."""
    count = {move: moves.count(move) for move in ("WW", "WC", "CW", "CC")}
    wrong, right = count["WC"] + count["WW"], count["CW"] + count["CC"]
    n = len(moves)
    return {
        **count,
        "n": n,
        "share_WC": count["WC"] / n if n else None,
        "share_CW": count["CW"] / n if n else None,
        "P_C_given_W": count["WC"] / wrong if wrong else None,
        "P_W_given_C": count["CW"] / right if right else None,
        "net": count["WC"] - count["CW"],
    }


def change_rate(changed: Sequence[Sequence[bool]]) -> dict[str, float | int | None]:
    """Roles whose last diagnosis is not their first: pooled over all, and the mean of the cases' own shares."""
    every = [item for case in changed for item in case]
    shares = [sum(case) / len(case) for case in changed if case]
    return {
        "n": len(every),
        "pooled": sum(every) / len(every) if every else None,
        "mean_of_cases": sum(shares) / len(shares) if shares else None,
    }


def late_share(first_rounds: Sequence[float], late_from: float = 5) -> float | None:
    """Share of true positives that no agent had named before round `late_from`; undefined without any."""
    return sum(number >= late_from for number in first_rounds) / len(first_rounds) if first_rounds else None


def gaps(pairs: Sequence[tuple[float, float, str, str]]) -> dict[str, object]:
    """Counterfactual probability gaps.

    Args:
        pairs: (probability before, after, label before, label after) of each edit.

    Returns:
        `cpg`: |before - after| of all (the paper's equation 2); `signed`: before - after of the edits that keep the label,
        whose positive share is the paper's "fraction > 0", and their median.
    """
    signed = [before - after for before, after, one, two in pairs if one == two]
    middle = sorted(signed)
    n = len(middle)
    median = None if not n else (middle[(n - 1) // 2] + middle[n // 2]) / 2
    return {
        "n": len(pairs),
        "cpg": [abs(before - after) for before, after, _, _ in pairs],
        "signed": signed,
        "fraction_positive": sum(value > 1e-12 for value in signed) / n if n else None,
        "median": median,
    }
