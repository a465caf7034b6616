"""What must hold for a passage index: it finds the pages that somebody asks for by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.expectations import sentence
from data_checks.results import CheckReport
from data_checks.runner import run_suite


def known_items_suite(first: int, min_share: float) -> ExpectationSuite:
    """The suite for the table of ``known_items_frame``: at least ``min_share`` of the pages are among the ``first``."""
    text = (
        f"of the pages that are asked for by their title at least {min_share:.0%} are among the first {first} passages "
        "(if not, vectors and passages are in different orders, or the question encoder belongs to other vectors)"
    )
    found = gxe.ExpectColumnValuesToBeNull(column="missed", mostly=min_share, **sentence(text))
    asked = gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one page is asked for"))
    return ExpectationSuite(name="known items", expectations=[asked, found])


def known_items_frame(items: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The table that ``known_items_suite`` checks; an item has title, rank (None: not found) and best (found first).

    >>> known_items_frame([{"title": "Lima", "rank": None, "best": "Oslo"}]).to_dict("records")
    [{'title': 'Lima', 'missed': "the first passage is of 'Oslo'"}]
    """
    missed = [None if item["rank"] is not None else f"the first passage is of {item['best']!r}" for item in items]
    return pd.DataFrame({"title": [item["title"] for item in items], "missed": pd.Series(missed, dtype=object)})


def check_known_items(
    corpus: str, items: Sequence[Mapping[str, Any]], first: int, min_share: float
) -> Iterator[CheckReport]:
    """The report of a known-item check; see ``known_items_suite``."""
    yield run_suite(known_items_frame(items), known_items_suite(first, min_share), "title", corpus)
