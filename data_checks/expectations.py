"""How the suites here spell an expectation: a sentence for people, and what a failure means."""

from typing import Any

import great_expectations.expectations as gxe

from data_checks.results import CRITICAL, INFO, WARNING


def sentence(text: str, severity: str = CRITICAL) -> dict[str, Any]:
    """The arguments that every expectation takes: what a good table is like, in reports as in Data Docs.

    Raises ValueError for a severity that Great Expectations does not know.
    """
    if severity not in (CRITICAL, WARNING, INFO):
        raise ValueError(f"{severity!r} is no severity; use {CRITICAL!r}, {WARNING!r} or {INFO!r}")
    return {"notes": text, "description": text, "severity": severity}


def between(column: str, low: float | None, high: float | None, text: str, severity: str = CRITICAL) -> Any:
    """Every value of a column lies between two numbers, these included; None is no limit."""
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high, **sentence(text, severity))


def not_null(column: str, text: str) -> Any:
    """No value of a column is missing."""
    return gxe.ExpectColumnValuesToNotBeNull(column=column, **sentence(text))


def none(column: str, text: str, severity: str = CRITICAL) -> Any:
    """No row has anything in a column that names what is wrong."""
    return gxe.ExpectColumnValuesToBeNull(column=column, **sentence(text, severity))


def rare(column: str, share: float, text: str) -> list[Any]:
    """Like ``none`` where ``share`` is 0; otherwise each such row is a warning, and more than this share critical."""
    if share <= 0:
        return [none(column, text)]
    few = sentence(f"at most {share:.2%} of the rows break the rule that {text}")
    limit = gxe.ExpectColumnProportionOfNonNullValuesToBeBetween(column=column, max_value=share, **few)
    return [*([limit] if share < 1 else []), none(column, text, WARNING)]


def one_row(text: str) -> Any:
    """A table of sums has a single row."""
    return gxe.ExpectTableRowCountToEqual(value=1, **sentence(text))
