"""What must hold for a source or a corpus as a whole: one row of sums, or one row a task."""

from collections.abc import Mapping
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.expectations import between, one_row, sentence
from data_checks.results import WARNING

_KINDS = ("other_namespaces", "redirects", "disambiguation", "lists", "not_yet", "repeated", "articles")
_LONG_PASSAGE = 50  # words; "short" means nothing where all passages are short by intent
_FEW = 20  # of this many a large share may be chance: a small corpus is not stopped for them


def corpus_suite(
    words: int = 100, max_empty_share: float = 0.05, max_duplicate_share: float = 0.2, max_short_share: float = 0.5
) -> ExpectationSuite:
    """The suite for the row of ``corpus_frame``.

    Critical: what is lost or there twice, and passages that were dropped without being duplicates of a chosen kind.

    Shares are critical where they are too large and more than 20 rows make them up, and warnings where there are
    fewer: over ``max_empty_share`` of the articles without a passage (a warning from two fifths of it on), over
    ``max_duplicate_share`` of the passages that repeat the text of an earlier one, over 1 % of the pages repeated (any
    is a warning), over 20 % of the rows unreadable (a warning from 1 % on; more than half of them are critical however
    few). Warnings alone: near duplicates and boilerplate beyond ``max_duplicate_share``, and passages that are short
    as if text had been lost.
    """
    lengths = [
        between("mean_words", words / 4, words, f"passages have {words / 4:g} to {words} words on average", WARNING),
        between("short_share", 0, max_short_share, f"at most {max_short_share:.0%} of the passages have under 20 words",
                WARNING),
    ]  # fmt: skip
    return ExpectationSuite(
        name="corpus",
        expectations=[
            *_lost(),
            between("longest", 1, words, f"no passage has more than {words} words"),
            *_limits("unreadable", 0.01, 0.2, "of the rows could not be read"),
            between("unreadable_share", 0, 0.5, "at least half of the rows could be read"),
            *_limits("repeated", 0, 0.01, "of the pages have the id of an earlier page"),
            *_limits("empty", max_empty_share * 0.4, max_empty_share, "of the articles have no passage"),
            *_limits("exact", max_duplicate_share, max_duplicate_share, "of the passages repeat another"),
            *_duplicates(max_duplicate_share),
            *(lengths if words >= _LONG_PASSAGE else []),
        ],
    )


def _lost() -> list[Any]:
    return [
        one_row("one row of sums"),
        between("pages", 1, None, "the source has pages"),
        between("articles", 1, None, "the source has articles"),
        between("passages", 1, None, "the corpus has passages"),
        between("unaccounted_pages", 0, 0, "every page is counted once"),
        between("unaccounted_rejects", 0, 0, "every reject is a page without a passage or an unreadable row"),
        between("lost_passages", 0, 0, "the shards hold every passage that was counted, and no other"),
        between("unexplained_pages", 0, 0, "pages with passages are the articles that are not empty"),
        between("undeclared_drops", 0, 0, "the passages dropped are the duplicates of the kinds to drop"),
        between("repeated_ids", 0, 0, "no passage id is in two shards or twice in one"),
    ]


def _limits(what: str, usual: float, most: float, text: str) -> list[Any]:
    """The share beyond ``usual`` is a warning; beyond ``most`` it is critical, unless it is of a few."""
    return [
        between(f"many_{what}_share", 0, most, f"at most {most:.1%} {text}, or no more than {_FEW}"),
        between(f"{what}_share", 0, usual, f"{f'at most {usual:.1%}' if usual else 'none'} {text}", WARNING),
    ]


def _duplicates(most: float) -> list[Any]:
    return [
        between("near_share", 0, most, f"at most {most:.1%} of the passages nearly repeat another", WARNING),
        between("boilerplate_share", 0, most, f"at most {most:.1%} of the passages are boilerplate", WARNING),
    ]


def corpus_frame(source: str, facts: Mapping[str, Any], rows_in_shards: int | None = None) -> pd.DataFrame:
    """The row for ``corpus_suite``.

    ``facts`` are the counts of what became of every page, with "duplicates" (exact, near, boilerplate, copies,
    dropped), "dropped_kinds" and "summary" (of the shards as written). ``rows_in_shards`` is what a reader of the
    shards counted; None takes the summary's.

    Shares of duplicates are of the passages that remain: those of a dropped kind are gone. The exact ones are all
    copies, those of boilerplate too, less as many as there are kept redirects: redirects to one page are alike by
    intent. A share whose name begins with "many" is 0 where 20 or fewer make it up.
    """
    summary, duplicates = facts["summary"], facts["duplicates"]
    rows = summary["rows"] if rows_in_shards is None else rows_in_shards
    with_passages = facts["articles"] - facts["empty_articles"] + facts["kept_redirects"]
    row = {
        "corpus": source,
        "pages": facts["pages"],
        "articles": facts["articles"],
        "passages": summary["rows"],
        "rejects": facts["rejects"],
        "unaccounted_pages": facts["pages"] - sum(facts[kind] for kind in _KINDS),
        "unaccounted_rejects": _unaccounted_rejects(facts),
        "lost_passages": max(facts["passages"], summary["rows"], rows) - min(facts["passages"], summary["rows"], rows),
        "unexplained_pages": _unexplained(with_passages - summary["pages"], duplicates["dropped"]),
        "undeclared_drops": abs(duplicates["dropped"] - _to_drop(facts)),
        "repeated_ids": summary["repeated_ids"],
        "longest": summary["max_words"],
        **_shares("unreadable", facts["unreadable"], facts["pages"] + facts["unreadable"]),
        **_shares("repeated", facts["repeated"], facts["pages"]),
        **_shares("empty", facts["empty_articles"], facts["articles"]),
        **_duplicate_shares(facts),
        "mean_words": summary["mean_words"],
        "short_share": summary["short_share"],
    }
    return pd.DataFrame([row])


def _shares(what: str, count: int, total: int) -> dict[str, float]:
    """The share, and again as that of many: 0 where it is made up of a few.

    >>> _shares("empty", 2, 10), _shares("empty", 30, 100)
    ({'empty_share': 0.2, 'many_empty_share': 0.0}, {'empty_share': 0.3, 'many_empty_share': 0.3})
    """
    share = count / max(total, 1)
    return {f"{what}_share": share, f"many_{what}_share": share if count > _FEW else 0.0}


def _unaccounted_rejects(facts: Mapping[str, Any]) -> int:
    """How many rejects there are too many or too few; redirects are rejects only where they are kept."""
    least = facts["empty_articles"] + facts["repeated"] + facts["unreadable"]
    most = least + facts["redirects"] - facts["kept_redirects"]
    return int(max(least - facts["rejects"], facts["rejects"] - most, 0))


def _unexplained(missing_pages: int, dropped: int) -> int:
    """Pages that lack or have passages against the count; a page may lose all its passages as duplicates."""
    return 0 if 0 <= missing_pages <= dropped else abs(missing_pages)


def _to_drop(facts: Mapping[str, Any]) -> int:
    """How many passages are duplicates of the kinds to drop; copies are listed as exact or as boilerplate."""
    duplicates, kinds = facts["duplicates"], facts["dropped_kinds"]
    copies = "exact" in kinds and "boilerplate" not in kinds
    return int(sum(duplicates[kind] for kind in kinds) + (copies and duplicates["copies"] - duplicates["exact"]))


def _duplicate_shares(facts: Mapping[str, Any]) -> dict[str, float]:
    """The shares of what remains after dropping."""
    duplicates, kinds = facts["duplicates"], facts["dropped_kinds"]
    of_boilerplate = duplicates["copies"] - duplicates["exact"]
    exact = 0 if "exact" in kinds else duplicates["exact"]
    copies = 0 if {"exact", "boilerplate"} & set(kinds) else of_boilerplate
    alike = max(exact + copies - facts["kept_redirects"], 0)
    boilerplate = 0 if "boilerplate" in kinds else duplicates["boilerplate"] - ("exact" in kinds) * of_boilerplate
    near = 0 if "near" in kinds else duplicates["near"]
    return {
        **_shares("exact", alike, facts["passages"] - facts["kept_redirects"]),
        "near_share": near / max(facts["passages"], 1),
        "boilerplate_share": boilerplate / max(facts["passages"], 1),
    }


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
