"""What must hold for a source or a corpus as a whole: one row of sums, or one row a task."""

from collections.abc import Mapping
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.expectations import between, one_row, sentence
from data_checks.results import WARNING

_KINDS = ("other_namespaces", "redirects", "disambiguation", "lists", "articles")
_DUPLICATES = ("exact", "near", "boilerplate")
_LONG_PASSAGE = 50  # words; "short" means nothing where all passages are short by intent


def corpus_suite(
    words: int = 100, max_empty_share: float = 0.05, max_duplicate_share: float = 0.2, max_short_share: float = 0.5
) -> ExpectationSuite:
    """The suite for the row of ``corpus_frame``.

    Critical: what is lost or there twice; more than ``max_empty_share`` of the articles without a passage (a warning
    from two fifths of it on); more than ``max_duplicate_share`` exact duplicates. Warnings: near duplicates and
    boilerplate beyond the same share, and passages that are short as if text had been lost.
    """
    lengths = [
        between("mean_words", words / 4, words, f"passages have {words / 4:g} to {words} words on average", WARNING),
        between("short_share", 0, max_short_share, f"at most {max_short_share:.0%} of the passages have under 20 words",
                WARNING),
    ]  # fmt: skip
    return ExpectationSuite(
        name="corpus",
        expectations=[
            one_row("one row of sums"),
            between("pages", 1, None, "the source has pages"),
            between("articles", 1, None, "the source has articles"),
            between("passages", 1, None, "the corpus has passages"),
            between("unaccounted_pages", 0, 0, "every page is counted once"),
            between("lost_passages", 0, 0, "the shards hold every passage that was counted, and no other"),
            between("unexplained_pages", 0, 0, "pages with passages are the articles that are not empty"),
            between("undeclared_drops", 0, 0, "no more passages were dropped than are duplicates"),
            between("repeated_ids", 0, 0, "no passage id is in two shards or twice in one"),
            between("longest", 1, words, f"no passage has more than {words} words"),
            *_empty(max_empty_share),
            *_duplicates(max_duplicate_share),
            *(lengths if words >= _LONG_PASSAGE else []),
        ],
    )


def _empty(most: float) -> list[Any]:
    few = most * 0.4
    return [
        between("empty_share", 0, most, f"at most {most:.1%} of the articles have no passage"),
        between("empty_share", 0, few, f"hardly an article, at most {few:.1%}, has no passage", WARNING),
    ]


def _duplicates(most: float) -> list[Any]:
    return [
        between("exact_share", 0, most, f"at most {most:.1%} of the passages repeat another"),
        between("near_share", 0, most, f"at most {most:.1%} of the passages nearly repeat another", WARNING),
        between("boilerplate_share", 0, most, f"at most {most:.1%} of the passages are boilerplate", WARNING),
    ]


def corpus_frame(source: str, facts: Mapping[str, Any], rows_in_shards: int | None = None) -> pd.DataFrame:
    """The row for ``corpus_suite``.

    ``facts`` are the counts of what became of every page, with "duplicates" (exact, near, boilerplate, dropped) and
    "summary" (of the shards as written). ``rows_in_shards`` is what a reader of the shards counted; None takes the
    summary's. Shares of duplicates are of the passages before any were dropped.
    """
    summary, duplicates = facts["summary"], facts["duplicates"]
    rows = summary["rows"] if rows_in_shards is None else rows_in_shards
    listed = sum(duplicates[kind] for kind in _DUPLICATES)
    with_passages = facts["articles"] - facts["empty_articles"] + facts["kept_redirects"]
    row = {
        "corpus": source,
        "pages": facts["pages"],
        "articles": facts["articles"],
        "passages": summary["rows"],
        "unaccounted_pages": facts["pages"] - sum(facts[kind] for kind in _KINDS),
        "lost_passages": max(facts["passages"], summary["rows"], rows) - min(facts["passages"], summary["rows"], rows),
        "unexplained_pages": _unexplained(with_passages - summary["pages"], duplicates["dropped"]),
        "undeclared_drops": max(0, duplicates["dropped"] - listed) + max(0, -duplicates["dropped"]),
        "repeated_ids": summary["repeated_ids"],
        "longest": summary["max_words"],
        "empty_share": facts["empty_articles"] / max(facts["articles"], 1),
        **{f"{kind}_share": duplicate_share(facts, kind) for kind in _DUPLICATES},
        "mean_words": summary["mean_words"],
        "short_share": summary["short_share"],
    }
    return pd.DataFrame([row])


def _unexplained(missing_pages: int, dropped: int) -> int:
    """Pages that lack or have passages against the count; a page may lose all its passages as duplicates."""
    return 0 if 0 <= missing_pages <= dropped else abs(missing_pages)


def duplicate_share(facts: Mapping[str, Any], kind: str) -> float:
    """The share of a kind of duplicates among the passages before any were dropped.

    >>> duplicate_share({"passages": 90, "duplicates": {"exact": 25, "dropped": 10}}, "exact")
    0.25
    """
    duplicates = facts["duplicates"]
    return float(duplicates[kind] / max(facts["passages"] + duplicates["dropped"], 1))


def coverage_suite(min_coverage: float = 0.7) -> ExpectationSuite:
    """The suite for ``coverage_frame``.

    A question whose answer stands in no passage cannot be answered by reading. Fewer than ``min_coverage`` of a task's
    questions with an answer are a warning: a part of a Wikipedia covers a part of the questions, and that is no fault.
    None at all is critical: the questions are of another world than the corpus.
    """
    return ExpectationSuite(
        name="answer coverage",
        expectations=[
            gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one task")),
            between("n_questions", 1, None, "every task has questions"),
            between("n_covered", 1, None, "some answer of every task stands in a passage"),
            between("coverage", min_coverage, 1, f"at least {min_coverage:.0%} of a task's questions have their answer "
                    "in a passage", WARNING),
        ],
    )  # fmt: skip


def coverage_frame(coverage: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """One row a task: task, n_questions, n_covered, coverage.

    >>> coverage_frame({"nq": {"n_questions": 8, "n_covered": 6}}).to_dict("records")
    [{'task': 'nq', 'n_questions': 8, 'n_covered': 6, 'coverage': 0.75}]
    """
    rows = [
        {
            "task": task,
            "n_questions": found["n_questions"],
            "n_covered": found["n_covered"],
            "coverage": found["n_covered"] / max(found["n_questions"], 1),
        }
        for task, found in coverage.items()
    ]
    return pd.DataFrame(rows, columns=["task", "n_questions", "n_covered", "coverage"])
