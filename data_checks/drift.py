"""How far a snapshot of a source has moved from the one before."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.corpus import duplicate_share
from data_checks.expectations import between, one_row
from data_checks.results import CRITICAL, WARNING


class Band(NamedTuple):
    """How far a number may move: outside the first pair is a warning, outside the second is critical."""

    column: str
    what: str
    usual: tuple[float | None, float | None]
    possible: tuple[float | None, float | None]


# A Wikipedia grows by a few percent a year and loses next to nothing; a fifth of it gone is a broken dump or reader.
BANDS = (
    Band("passages_change", "the number of passages changes", (-0.02, 0.10), (-0.20, None)),
    Band("pages_change", "the number of pages with passages changes", (-0.02, 0.10), (-0.20, None)),
    Band("mean_words_change", "the mean length of passages changes", (-0.05, 0.05), (-0.20, None)),
    Band("short_share_change", "the share of passages under 20 words moves", (-0.05, 0.05), (None, 0.25)),
    Band("exact_share_change", "the share of exact duplicates moves", (None, 0.02), (None, 0.20)),
    Band("length_distance", "the lengths of passages move (total variation distance)", (0.0, 0.05), (0.0, 0.25)),
)


def drift_suite(stops: bool = True) -> ExpectationSuite:
    """The suite for the row of ``drift_frame``, by BANDS; without ``stops`` all of it are warnings."""
    severity = CRITICAL if stops else WARNING
    expectations = [one_row("one row of changes")]
    for band in BANDS:
        expectations.append(between(band.column, *band.usual, f"{band.what} {_range(*band.usual)}", WARNING))
        expectations.append(between(band.column, *band.possible, f"{band.what} {_range(*band.possible)}", severity))
    return ExpectationSuite(name="drift", expectations=expectations)


def _range(low: float | None, high: float | None) -> str:
    """In words.

    >>> _range(-0.02, 0.1), _range(-0.2, None), _range(None, 0.25)
    ('by -2% to +10%', 'by no less than -20%', 'by at most +25%')
    """
    if high is None:
        return f"by no less than {low:+.0%}"
    return f"by at most {high:+.0%}" if not low else f"by {low:+.0%} to {high:+.0%}"


def drift_frame(source: str, facts: Mapping[str, Any], before: Mapping[str, Any]) -> pd.DataFrame:
    """One row: the relative changes of sizes and means, the differences of shares, the distance of the lengths.

    Both mappings are the counts of an ingest with its "summary", as for ``corpus_frame``.
    """
    now, then = facts["summary"], before["summary"]
    row = {
        "corpus": source,
        "passages_change": _relative(now["rows"], then["rows"]),
        "pages_change": _relative(now["pages"], then["pages"]),
        "mean_words_change": _relative(now["mean_words"], then["mean_words"]),
        "short_share_change": now["short_share"] - then["short_share"],
        "exact_share_change": duplicate_share(facts, "exact") - duplicate_share(before, "exact"),
        "length_distance": total_variation(now["words_by_ten"], then["words_by_ten"]),
    }
    return pd.DataFrame([row])


def total_variation(a: Sequence[int], b: Sequence[int]) -> float:
    """The total variation distance of two histograms with the same bins: 0 for equal shares, 1 for none in common.

    half the sum over bins of |a_i / sum(a) - b_i / sum(b)|: the share of passages that would have to move to another
    bin. The shorter histogram is filled up with zeros; an empty one has distance 0 to an empty one and 1 to any other.
    Source: Levin, Peres and Wilmer, Markov Chains and Mixing Times (2009), proposition 4.2.

    >>> total_variation([1, 1], [2, 2]), total_variation([1, 1], [1, 1, 2]), total_variation([4], [0, 1])
    (0.0, 0.5, 1.0)
    """
    size_a, size_b = sum(a), sum(b)
    if not size_a or not size_b:
        return float(size_a != size_b)
    return sum(abs(x / size_a - y / size_b) for x, y in zip_longest(a, b, fillvalue=0)) / 2


def _relative(now: float, then: float) -> float:
    """The change as a share of what was before; growth from nothing counts as a doubling."""
    if not then:
        return float(now > 0)
    return now / then - 1
