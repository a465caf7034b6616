"""What must hold for the passages of a source: every shard, the source as a whole, and against an earlier snapshot."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.corpus import corpus_frame, corpus_suite, coverage_frame, coverage_suite
from data_checks.drift import drift_frame, drift_suite
from data_checks.errors import CheckFailed, SuiteError
from data_checks.expectations import between, none, not_null, rare, sentence
from data_checks.passage_columns import COLUMNS, passages_frame
from data_checks.results import CheckReport
from data_checks.runner import run_suite

SHARDS = "passages-*.parquet"
# Of the passages that come from wikitext: articles about markup show it in earnest.
TOLERATED_SHARE = 0.001
_BATCH_ROWS = 16384


def passages_suite(words: int = 100, max_markup_share: float = 0.0, max_unclean_share: float = 0.0) -> ExpectationSuite:
    """The suite for the columns of ``passages_frame``.

    ``words`` is the most that one passage may have. ``max_markup_share`` is the share of passages that may show
    wikitext or HTML, ``max_unclean_share`` of those that may have control characters or be not in NFC: up to it each
    such row is a warning; at the default 0 a single one is critical, at 1 none is.
    """
    return ExpectationSuite(
        name="passages",
        expectations=[
            gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one passage")),
            not_null("passage_id", "every passage has an id"),
            gxe.ExpectColumnValuesToBeUnique(column="passage_id", **sentence("passage ids are unique")),
            none("other_id", "passage ids are source:page:ordinal"),
            not_null("page_id", "every passage has a page"),
            between("page_id", 1, None, "page ids are positive"),
            not_null("title", "every passage has a title"),
            gxe.ExpectColumnValuesToMatchRegex(column="title", regex=r"\S", **sentence("titles are not blank")),
            not_null("characters", "every passage has a text"),
            none("undecodable", "titles and texts are valid Unicode"),
            between("words", 1, words, f"passages have 1 to {words} words"),
            none("other_words", "the number of words is that of the text"),
            none("other_sha1", "the hash is that of title and text"),
            *rare("markup", max_markup_share, "no wikitext is left in the text"),
            *rare("html", max_markup_share, "no HTML is left in the text"),
            *rare("control_characters", max_unclean_share, "no control characters are in title or text"),
            *rare("not_nfc", max_unclean_share, "title and text are in Unicode's normal form C"),
        ],
    )


def check_source(
    source: str,
    folder: Path,
    facts: Mapping[str, Any],
    before: Mapping[str, Any] | None = None,
    words: int = 100,
    drift_stops: bool = True,
) -> Iterator[CheckReport]:
    """A report for every shard in ``folder``, one for the whole source, and one for the drift since ``before``.

    ``facts`` are the counts of the ingest and, as "summary", what ``rag.corpus.summary`` found; ``before`` is the same
    of an earlier snapshot. Where "site" says that the source is a dump, markup in more than TOLERATED_SHARE of a shard
    is critical; the texts of other sources are as they are (of DPR's passages one in a hundred has HTML), and there it
    is a warning. One shard at a time is looked at; take the reports one by one (``keep_rejects``). A shard that lost
    all its rows as duplicates is passed over, unless it is the only one. Without ``drift_stops`` no drift is worse than
    a warning, as where the two sources need not be alike. Raises CheckFailed where the folder has no shards or one
    cannot be read.
    """
    shards = sorted(folder.glob(SHARDS), key=lambda path: (len(path.name), path.name))
    if not shards:
        raise CheckFailed(f"there are no passages ({SHARDS}) in {folder}; run the ingest stage of {source} first")
    tolerated = TOLERATED_SHARE if facts.get("site") else 1.0
    suite = passages_suite(words, tolerated, tolerated)
    rows = 0
    for shard in shards:
        frame = read_shard(shard)
        rows += len(frame)
        if len(frame) or len(shards) == 1:
            yield run_suite(frame, suite, "passage_id", shard.stem)
    yield run_suite(corpus_frame(source, facts, rows), corpus_suite(words), "corpus")
    if before is not None:
        yield run_suite(drift_frame(source, facts, before), drift_suite(drift_stops), "corpus")


def read_shard(shard: Path) -> pd.DataFrame:
    """The ``passages_frame`` of a shard, without ever holding all of its texts.

    Raises CheckFailed where the file cannot be read, is damaged or lacks a column.
    """
    try:
        with pq.ParquetFile(shard, page_checksum_verification=True) as file:
            columns = [name for name in (*COLUMNS, "text_sha1") if name in file.schema_arrow.names]
            batches = file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False)
            frames = [passages_frame(pa.Table.from_batches([batch])) for batch in batches]
            empty = file.schema_arrow.empty_table()
    except (OSError, pa.ArrowException, SuiteError) as error:
        raise CheckFailed(f"{shard} cannot be read as passages: {error}; ingest the source again") from error
    return pd.concat(frames, ignore_index=True) if frames else passages_frame(empty)


def check_coverage(
    corpus: str, coverage: Mapping[str, Mapping[str, Any]], min_coverage: float = 0.7
) -> Iterator[CheckReport]:
    """For how many questions of each task the corpus holds an answer; see ``coverage_suite``.

    ``coverage`` has n_questions and n_covered of each task.
    """
    yield run_suite(coverage_frame(coverage), coverage_suite(min_coverage), "task", corpus)
