"""Intervals and tests against closed forms and scipy."""

import numpy as np
import pytest
from scipy import stats

from rag.errors import DataError
from rag.evaluation.statistics import (
    bootstrap_interval,
    holm,
    jackknife_interval,
    mcnemar_exact,
    paired_bootstrap,
    wilson_interval,
)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 12), (7, 12), (1607, 3610), (3610, 3610), (1, 20000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilson_equals_scipy(successes: int, n: int, confidence: float) -> None:
    ours = wilson_interval(successes, n, confidence)
    theirs = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)
    assert 0 <= ours.low <= successes / n <= ours.high <= 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_proportion(successes: int, n: int) -> None:
    with pytest.raises(DataError, match="is no proportion"):
        wilson_interval(successes, n)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (3, 3), (10, 2), (2, 10), (150, 110), (40, 1)])
def test_mcnemar_equals_the_binomial_test(only_a: int, only_b: int) -> None:
    both = 5
    a = [1] * both + [1] * only_a + [0] * only_b + [0] * both
    b = [1] * both + [0] * only_a + [1] * only_b + [0] * both
    result = mcnemar_exact(a, b)
    expected = stats.binomtest(only_a, only_a + only_b, 0.5).pvalue if only_a + only_b else 1.0
    assert (result.only_a, result.only_b) == (only_a, only_b)
    assert result.p_value == pytest.approx(expected, rel=1e-9)


def test_mcnemar_is_of_right_and_wrong_only() -> None:
    with pytest.raises(DataError, match="right or wrong"):
        mcnemar_exact([0.5, 1], [1, 1])
    with pytest.raises(DataError, match="equally long"):
        mcnemar_exact([1, 1], [1])


def test_bootstrap_interval_is_near_the_normal_one() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(4000)
    interval = bootstrap_interval(values, seed=7)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_bootstrap_interval_of_a_ratio_of_sums() -> None:
    counts = np.array([[1, 2], [3, 4], [0, 1], [2, 2]] * 50)
    interval = bootstrap_interval(counts, seed=0, statistic=lambda sums, _n: sums[:, 0] / sums[:, 1])
    assert interval.low < 6 / 9 < interval.high
    assert interval.high - interval.low < 0.2


def test_bootstrap_is_seeded() -> None:
    values = [0, 1, 1, 0, 1, 1, 1, 0]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    a, b = np.arange(30) % 2, np.arange(30) % 3 == 0
    assert paired_bootstrap(a, b, seed=3) == paired_bootstrap(a, b, seed=3)
    assert paired_bootstrap(a, b, seed=3) != paired_bootstrap(a, b, seed=4)


def test_paired_bootstrap_of_a_clear_difference() -> None:
    a, b = np.ones(100), np.r_[np.ones(40), np.zeros(60)]
    result = paired_bootstrap(a, b, seed=0)
    assert result.difference == pytest.approx(0.6)
    assert 0.45 < result.low < 0.6 < result.high < 0.75
    assert result.p_value == pytest.approx(1 / 1001)  # never 0
    assert result.n == 100


def test_paired_bootstrap_of_no_difference() -> None:
    values = [0.25, 0.5, 1.0]
    result = paired_bootstrap(values, values, seed=0)
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_paired_bootstrap_agrees_with_a_t_test() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(0.05, 1, 500)
    b = rng.normal(0.0, 1, 500)
    ours = paired_bootstrap(a, b, seed=1, draws=4000).p_value
    assert ours == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.03)


def test_empty_input_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one question"):
        bootstrap_interval([], seed=0)
    with pytest.raises(DataError, match="equally long"):
        paired_bootstrap([], [], seed=0)
    with pytest.raises(DataError, match="at least one question"):
        jackknife_interval(0.5, np.array([]))
    with pytest.raises(DataError, match=r"confidence 1\.0"):
        wilson_interval(1, 2, confidence=1.0)


def test_jackknife_of_a_mean_is_the_normal_interval() -> None:
    values = np.random.default_rng(2).random(50)
    without = (values.sum() - values) / (len(values) - 1)
    interval = jackknife_interval(float(values.mean()), without)
    half = stats.norm.ppf(0.975) * values.std(ddof=1) / np.sqrt(len(values))
    assert interval.low == pytest.approx(values.mean() - half)
    assert interval.high == pytest.approx(values.mean() + half)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(DataError, match="no p-value"):
        holm([0.5, float("nan")])


def test_wilson_covers_what_it_promises() -> None:
    """Coverage of the 95 % interval over 4,000 simulated test sets of 200 questions."""
    rng = np.random.default_rng(0)
    hits = rng.binomial(200, 0.445, 4000)
    intervals = {k: wilson_interval(int(k), 200) for k in np.unique(hits)}
    covered = np.mean([intervals[k].low <= 0.445 <= intervals[k].high for k in hits])
    assert 0.93 <= covered <= 0.97
