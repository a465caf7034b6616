"""What must hold for the passages of a source, and for a corpus as a whole."""

from collections.abc import Mapping
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

# Marks that no reader of a rendered page sees. An article about markup may show them in earnest; ``max_markup_share``
# is the share of passages that may.
MARKUP = r"\{\{|\[\[|'''|<ref[\s>/]|(?:^|\s)\|-(?:\s|$)|&nbsp;|\[\[(?:File|Image|Category):|\|thumb\|"
CONTROL_CHARACTERS = r"[\x00-\x1f\x7f-\x9f]"
_NOT_BLANK = r"\S"


def passages_suite(words: int = 100, max_markup_share: float = 0.0) -> ExpectationSuite:
    """The suite for rows of a passages table: passage_id, title, text, page_id and words.

    ``words`` is the most that one passage may have.
    """
    mostly = 1.0 - max_markup_share
    return ExpectationSuite(
        name="passages",
        expectations=[
            gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="at least one passage"),
            gxe.ExpectColumnValuesToNotBeNull(column="passage_id", notes="every passage has an id"),
            gxe.ExpectColumnValuesToBeUnique(column="passage_id", notes="passage ids are unique"),
            gxe.ExpectColumnValuesToNotBeNull(column="title", notes="every passage has a title"),
            gxe.ExpectColumnValuesToMatchRegex(column="title", regex=_NOT_BLANK, notes="titles are not blank"),
            gxe.ExpectColumnValuesToNotBeNull(column="text", notes="every passage has a text"),
            gxe.ExpectColumnValuesToMatchRegex(column="text", regex=_NOT_BLANK, notes="texts are not blank"),
            gxe.ExpectColumnValuesToBeBetween(
                column="words", min_value=1, max_value=words, notes=f"passages have 1 to {words} words"
            ),
            gxe.ExpectColumnValuesToNotMatchRegex(
                column="text", regex=MARKUP, mostly=mostly, notes="no wikitext is left in the text"
            ),
            gxe.ExpectColumnValuesToNotMatchRegex(
                column="text", regex=CONTROL_CHARACTERS, notes="no control characters are in the text"
            ),
            gxe.ExpectColumnValuesToNotMatchRegex(
                column="title", regex=CONTROL_CHARACTERS, notes="no control characters are in the title"
            ),
            gxe.ExpectColumnValuesToBeBetween(column="page_id", min_value=1, notes="page ids are positive"),
        ],
    )


def corpus_suite(max_empty_share: float = 0.05, max_duplicate_share: float = 0.2) -> ExpectationSuite:
    """The suite for one row of sums over a whole corpus.

    Columns: corpus, pages, articles, passages, empty_share (articles without a passage), duplicate_share (passages
    whose text another has too), unaccounted_pages (pages that are in no count; 0 where every page is).
    """
    return ExpectationSuite(
        name="corpus",
        expectations=[
            gxe.ExpectTableRowCountToEqual(value=1, notes="one row of sums"),
            gxe.ExpectColumnValuesToBeBetween(column="pages", min_value=1, notes="the dump has pages"),
            gxe.ExpectColumnValuesToBeBetween(column="articles", min_value=1, notes="the dump has articles"),
            gxe.ExpectColumnValuesToBeBetween(column="passages", min_value=1, notes="the corpus has passages"),
            gxe.ExpectColumnValuesToBeBetween(
                column="unaccounted_pages", min_value=0, max_value=0, notes="every page is counted once"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="empty_share", min_value=0, max_value=max_empty_share,
                notes=f"at most {max_empty_share:.1%} of the articles have no passage",
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="duplicate_share", min_value=0, max_value=max_duplicate_share,
                notes=f"at most {max_duplicate_share:.1%} of the passages repeat another",
            ),
        ],
    )  # fmt: skip


def corpus_frame(corpus: str, passages: pd.DataFrame, counts: Mapping[str, Any]) -> pd.DataFrame:
    """The row for ``corpus_suite``, from the passages and the counts of what became of every page."""
    accounted = ("other_namespaces", "redirects", "disambiguation", "articles")
    row = {
        "corpus": corpus,
        "pages": counts["pages"],
        "articles": counts["articles"],
        "passages": len(passages),
        "empty_share": counts["empty_articles"] / max(counts["articles"], 1),
        "duplicate_share": float(passages["text_sha1"].duplicated().mean()) if len(passages) else 0.0,
        "unaccounted_pages": counts["pages"] - sum(counts[kind] for kind in accounted),
    }
    return pd.DataFrame([row])
