"""Intervals and paired tests: how sure is a number, and is a difference one.

All resampling is over questions, seeded, and vectorised; a p-value from draws is (b + 1) / (draws + 1), never 0.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from rag.errors import DataError

Statistic = Callable[[Float[np.ndarray, "draws components"], int], Float[np.ndarray, "draws"]]


class Interval(NamedTuple):
    """An interval of a fraction or of a score."""

    low: float
    high: float


class PairedDifference(NamedTuple):
    """Mean of a minus mean of b over the same questions."""

    difference: float
    low: float
    high: float
    p_value: float  # two-sided, of no difference
    n: int


class McNemar(NamedTuple):
    """Questions that only one of two systems got right, and how likely so uneven a split is by chance."""

    only_a: int
    only_b: int
    p_value: float  # two-sided


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion.

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), with p = successes / n.
    Raises DataError unless 0 <= successes <= n and n > 0.

    >>> [round(bound, 4) for bound in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    if not 0 <= successes <= n or n == 0:
        raise DataError(f"{successes} successes of {n} is no proportion; an interval needs at least one question")
    z = _z(confidence)
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At 0 and at n the bound is exact; arithmetic would miss it by a rounding error.
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == n else (middle + half) / scale
    return Interval(low, high)


def mean_of_sums(sums: Float[np.ndarray, "draws components"], n: int) -> Float[np.ndarray, "draws"]:
    """The mean of the first component: the statistic of a score that is averaged over questions."""
    means: NDArray[np.float64] = sums[:, 0] / n
    return means


def bootstrap_interval(
    values: ArrayLike,
    seed: int,
    statistic: Statistic = mean_of_sums,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile bootstrap interval of a corpus score, by resampling questions.

    ``values`` has a row of sufficient statistics for each question; ``statistic`` turns their sums over a resample of
    n questions into its score. A flat list of numbers is averaged. Raises DataError where there is no question.

    >>> bootstrap_interval([0.5, 0.5, 0.5], seed=0)
    Interval(low=0.5, high=0.5)
    """
    rows = _rows(values)
    scores = statistic(_resampled_sums(rows, draws, seed), len(rows))
    return _percentiles(scores, confidence)


def jackknife_interval(
    value: float, leave_one_out: Float[np.ndarray, "questions"], confidence: float = 0.95
) -> Interval:
    """Normal interval in 0..1 from the scores with each question left out in turn.

    value -+ z sqrt((n-1)/n sum (s_i - mean s)^2). For scores that a repeated question distorts, as it does any count
    of distinct things: a bootstrap resample repeats a third of the questions.
    """
    n = len(leave_one_out)
    if n == 0:
        raise DataError("an interval needs at least one question")
    half = _z(confidence) * math.sqrt((n - 1) * float(np.var(leave_one_out)))
    return Interval(max(0.0, value - half), min(1.0, value + half))


def paired_bootstrap(
    a: ArrayLike, b: ArrayLike, seed: int, draws: int = 1000, confidence: float = 0.95
) -> PairedDifference:
    """Difference of two means over the same questions, with its interval and a two-sided p-value.

    The interval is the percentile bootstrap's. p = (1 + #{|d* - d| >= |d|}) / (draws + 1): how often resampling moves
    the difference d as far as it lies from 0.
    Raises DataError if the lengths differ or there is no question.

    >>> paired_bootstrap([1, 1, 0, 1], [1, 1, 0, 1], seed=0).p_value
    1.0
    """
    differences = _paired(a, b, np.float64)
    means = _resampled_sums(differences[:, None], draws, seed)[:, 0] / len(differences)
    observed = float(differences.mean())
    extreme = int(np.count_nonzero(np.abs(means - observed) >= abs(observed) - 1e-12))
    interval = _percentiles(means, confidence)
    return PairedDifference(observed, interval.low, interval.high, (extreme + 1) / (draws + 1), len(differences))


def mcnemar_exact(a: ArrayLike, b: ArrayLike) -> McNemar:
    """McNemar's exact test on two lists of right (true) and wrong over the same questions.

    Under no difference the discordant questions split like coin flips: p = min(1, 2 P(X <= min(only_a, only_b))).
    Raises DataError if the lengths differ, there is no question or a value is not 0 or 1.

    >>> mcnemar_exact([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0])
    McNemar(only_a=6, only_b=0, p_value=0.03125)
    """
    for values in (a, b):
        if not np.isin(np.asarray(values), (0, 1)).all():
            raise DataError("McNemar's test needs right or wrong for each question; use paired_bootstrap for scores")
    difference = _paired(a, b, np.int64)
    only_a, only_b = int(np.count_nonzero(difference > 0)), int(np.count_nonzero(difference < 0))
    discordant = only_a + only_b
    p_value = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5))) if discordant else 1.0
    return McNemar(only_a, only_b, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: the family-wise error stays below the level they are compared with.

    The i-th smallest (from 0) of m becomes the largest of (m - j) p_j over j <= i, at most 1.
    Raises DataError for a value outside 0..1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    wrong = [p for p in p_values if not 0 <= p <= 1]
    if wrong:
        raise DataError(f"{wrong[0]} is no p-value; Holm's adjustment takes values from 0 to 1")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = largest
    return adjusted


def _z(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise DataError(f"confidence {confidence} is not between 0 and 1; 0.95 is usual")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _rows(values: ArrayLike) -> Float[np.ndarray, "questions components"]:
    rows = np.asarray(values, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) == 0:
        raise DataError(f"an interval needs a row for each of at least one question, got the shape {rows.shape}")
    return rows


def _paired(a: ArrayLike, b: ArrayLike, dtype: Any) -> NDArray[Any]:
    left, right = np.asarray(a, dtype=dtype), np.asarray(b, dtype=dtype)
    if left.shape != right.shape or left.ndim != 1 or len(left) == 0:
        raise DataError(f"a paired test needs two equally long lists, got the shapes {left.shape} and {right.shape}")
    difference: NDArray[Any] = left - right
    return difference


def _resampled_sums(
    rows: Float[np.ndarray, "questions components"], draws: int, seed: int
) -> Float[np.ndarray, "draws components"]:
    """Column sums of ``draws`` samples of n rows with replacement; memory stays that of one sample."""
    rng = np.random.default_rng(seed)
    columns = [np.ascontiguousarray(column) for column in rows.T]
    sums = np.empty((draws, len(columns)))
    for draw in range(draws):
        picked = rng.integers(0, len(rows), len(rows), dtype=np.int32)
        sums[draw] = [column[picked].sum() for column in columns]
    return sums


def _percentiles(scores: NDArray[np.float64], confidence: float) -> Interval:
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(scores, [tail, 100 - tail])
    return Interval(float(low), float(high))
