"""Statistics of comparisons: intervals, paired tests, agreement, power. It knows numbers, no cases and no diagnoses.

scipy, statsmodels and scikit-learn do what they have; worked values are in specs/evaluation.md, section 2.6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Z_TWO_SIDED_95 = 1.959964
Z_POWER_80 = 0.841621
DRAWS = 10_000
PIECE = 500_000
"""Numbers that are drawn at once."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95% interval; `se` is the bootstrap's standard error where there is one."""

    value: float
    low: float
    high: float
    se: float | None = None


@dataclass(frozen=True, slots=True)
class McNemar:
    """Paired right or wrong. `b`: only the method was right; `c`: only the baseline was."""

    b: int
    c: int
    two_sided: float
    greater: float
    mid_p: float
    chi_squared: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kappa, None where it is undefined (one category only), with the share of exact agreement beside it."""

    kappa: float | None
    agree: float
    n: int


def mcnemar(b: int, c: int) -> McNemar:
    """McNemar's test of `b` against `c` discordant pairs: exact, mid-p and with continuity correction; none of either: p = 1.

    `greater` is the one-sided exact p for "the method is right more often".
    """
    if b + c == 0:
        return McNemar(b, c, 1.0, 1.0, 1.0, None)
    from scipy.stats import binom, binomtest
    from statsmodels.stats.contingency_tables import mcnemar as exact_or_not

    table = [[0, b], [c, 0]]
    two_sided = float(exact_or_not(table, exact=True).pvalue)
    mid = 1.0 if b == c else 2 * float(binom.cdf(min(b, c), b + c, 0.5) - 0.5 * binom.pmf(min(b, c), b + c, 0.5))
    return McNemar(
        b,
        c,
        min(1.0, two_sided),
        float(binomtest(b, b + c, 0.5, "greater").pvalue),
        mid,
        float(exact_or_not(table, exact=False, correction=True).pvalue),
    )


def sign_test(differences: Sequence[float]) -> float:
    """Two-sided exact sign test; ties are left out, nothing left gives 1."""
    up, down = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    if up + down == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(up, up + down, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given."""
    if not p_values:
        return ()
    from statsmodels.stats.multitest import multipletests

    return tuple(float(value) for value in multipletests(list(p_values), method="holm")[1])


def wilson(k: int, n: int) -> Interval:
    """A share of `n` with Wilson's 95% interval; raises `ValueError` for n = 0."""
    if n <= 0 or not 0 <= k <= n:
        raise ValueError(f"no share: {k} of {n}")
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, method="wilson")
    return Interval(k / n, max(0.0, float(low)), min(1.0, float(high)))


def bootstrap_means(values: Sequence[float], seed: int = 12345, draws: int = DRAWS) -> npt.NDArray[np.float64]:
    """Means of `draws` resamples: `default_rng(seed).integers(0, n, (draws, n))`."""
    data = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    n = len(data)
    # In pieces, which the generator draws as it would the whole: memory must not grow with the cases.
    rows = max(1, PIECE // n)
    sizes = [min(rows, draws - done) for done in range(0, draws, rows)]
    return np.concatenate([data[generator.integers(0, n, (size, n))].mean(axis=1) for size in sizes])


def bootstrap_mean(values: Sequence[float], seed: int = 12345, draws: int = DRAWS) -> Interval:
    """The mean with its percentile bootstrap 95% interval and standard error (ddof 1)."""
    if len(values) == 0:
        raise ValueError("no values")
    means = bootstrap_means(values, seed, draws)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(np.mean(values)), float(low), float(high), float(means.std(ddof=1)))


def bca_mean(values: Sequence[float], seed: int = 12345, draws: int = 9_999) -> Interval:
    """The mean with scipy's bias-corrected and accelerated 95% interval; equal values give that value."""
    if len(set(values)) == 1:
        return Interval(values[0], values[0], values[0], 0.0)
    from scipy.stats import bootstrap

    found = bootstrap((np.asarray(values),), np.mean, n_resamples=draws, method="BCa", rng=np.random.default_rng(seed))
    span = found.confidence_interval
    return Interval(float(np.mean(values)), float(span.low), float(span.high), float(found.standard_error))


def paired_bootstrap(baseline: Sequence[float], method: Sequence[float], seed: int = 7) -> Interval:
    """Mean of method - baseline over the same cases, with the percentile interval of resampled cases."""
    if len(baseline) != len(method):
        raise ValueError(f"not paired: {len(baseline)} and {len(method)} values")
    return bootstrap_mean([b - a for a, b in zip(baseline, method, strict=True)], seed)


def permutation_p(differences: Sequence[float], seed: int = 11, draws: int = DRAWS) -> float:
    """Two-sided sign-flip permutation test of a mean difference of 0; exact for up to 13 cases that differ."""
    moved = np.asarray([value for value in differences if value != 0], dtype=float)
    if len(moved) == 0:
        return 1.0
    observed = abs(moved.sum())
    if len(moved) <= 13:
        flips = np.array(np.meshgrid(*[[1.0, -1.0]] * len(moved))).reshape(len(moved), -1).T
        return float((np.abs(flips @ moved) >= observed - 1e-12).mean())
    generator = np.random.default_rng(seed)
    beyond = sum(
        int((np.abs(generator.choice([1.0, -1.0], (1000, len(moved))) @ moved) >= observed - 1e-12).sum())
        for _ in range(draws // 1000)
    )
    return (beyond + 1) / (draws // 1000 * 1000 + 1)


def spread(values: Sequence[float], ddof: int = 1) -> float | None:
    """Standard deviation over seeds; None for fewer values than ddof + 1. Print the ddof beside it."""
    return float(np.std(values, ddof=ddof)) if len(values) > ddof else None


def fleiss(table: Sequence[Sequence[int]]) -> Agreement:
    """Fleiss' kappa of a table of cases x categories (how many raters chose each)."""
    from statsmodels.stats.inter_rater import fleiss_kappa

    counts = np.asarray(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = float(fleiss_kappa(counts))
    unanimous = float((counts.max(axis=1) == counts.sum(axis=1)).mean())
    return Agreement(None if math.isnan(kappa) else kappa, unanimous, len(counts))


def fleiss_ratings(ratings: Sequence[Sequence[Any]]) -> Agreement:
    """The same from cases x raters."""
    from statsmodels.stats.inter_rater import aggregate_raters

    return fleiss(aggregate_raters(np.asarray(ratings))[0])


def cohen(
    a: Sequence[Any], b: Sequence[Any], weights: str | None = None, scale: Sequence[Any] | None = None
) -> Agreement:
    """Cohen's kappa of two raters.

    Args:
        a: One rater's ratings.
        b: The other's, of the same cases.
        weights: None, `linear` or `quadratic`.
        scale: All values of the scale: needed with weights, since a value that nobody used still has its distance.
    """
    if weights is not None and scale is None:
        raise ValueError("weighted kappa needs the whole scale")
    import warnings

    from sklearn.metrics import cohen_kappa_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = float(
            cohen_kappa_score(list(a), list(b), weights=weights, labels=None if scale is None else list(scale))
        )
    agree = sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
    return Agreement(None if math.isnan(kappa) else kappa, agree, len(a))


def landis_koch(kappa: float | None) -> str:
    """The band's name, as Landis and Koch (1977) give it."""
    if kappa is None:
        return "undefined"
    bands = ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
    if kappa < 0:
        return "poor"
    return next((name for limit, name in bands[1:] if kappa <= limit), "almost perfect")


def phi(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    """Correlation of two right-or-wrong series; None where one of them never changes."""
    if len(a) < 2 or len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(np.corrcoef(np.asarray(a, dtype=float), np.asarray(b, dtype=float))[0, 1])


def cases_needed(sd: float, difference: float) -> int | None:
    """Cases for 80% power at 5% two-sided, from the sd of paired differences; None for no difference."""
    if difference == 0:
        return None
    return math.ceil((Z_TWO_SIDED_95 + Z_POWER_80) ** 2 * sd**2 / difference**2 - 1e-9)


def detectable(sd: float, n: int) -> float | None:
    """The minimum detectable difference of n cases: 80% power at 5% two-sided.

    None where no case differs from another (sd 0): how much differences spread, and so what would be seen, is then unknown.
    """
    return None if sd == 0 else (Z_TWO_SIDED_95 + Z_POWER_80) * sd / math.sqrt(n)


def power(sd: float, n: int, difference: float) -> float:
    """Power of n paired differences at 5% two-sided, by the normal approximation."""
    from scipy.stats import norm

    if sd == 0:
        return 1.0 if difference else 0.05
    shift = abs(difference) * math.sqrt(n) / sd
    return float(norm.sf(Z_TWO_SIDED_95 - shift) + norm.cdf(-Z_TWO_SIDED_95 - shift))


def discordant_cases_needed(discordant: float, difference: float) -> int:
    """Cases for McNemar's test: shares of discordant pairs and of their difference, 80% power at 5% two-sided."""
    root = Z_TWO_SIDED_95 * math.sqrt(discordant) + Z_POWER_80 * math.sqrt(discordant - difference**2)
    return math.ceil(root**2 / difference**2)
