"""What became of every page of a source, as the files of its folder tell."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag.corpus.dump import SiteInfo
from rag.corpus.ingest.ledger import by_frequency, ledger_files
from rag.corpus.ingest.state import IngestState
from rag.corpus.passages import passage_files

_TOP_TEMPLATES = 50


@dataclass(frozen=True)
class IngestReport:
    """What became of every page of a source.

    pages = other_namespaces + redirects + disambiguation + lists + not_yet + repeated + articles, and
    articles = articles with a passage + empty_articles.
    """

    pages: int
    other_namespaces: int  # pages that are not articles: talk, templates, ...
    redirects: int  # in the article namespace
    kept_redirects: int  # of the redirects: those with a passage
    disambiguation: int  # left out; 0 where the options keep them, for they count as articles then
    lists: int  # left out; 0 where the options keep them
    articles: int
    empty_articles: int  # no plain text: each is a reject
    passages: int  # in the shards
    left_out_by_cap: int  # passages beyond max_passages_per_page
    rejects: int  # articles and kept redirects without a passage, repeated pages, and what could not be read
    unreadable: int  # of the rejects: rows or documents that could not be read
    # Listed as exact, near or boilerplate; copies, which are the exact and those of the boilerplate whose text stood
    # there before; and dropped of all these.
    duplicates: dict[str, int] = field(default_factory=dict)
    site: dict[str, str] = field(default_factory=dict)  # dbname, base and generator of a dump
    unrendered_templates: dict[str, int] = field(default_factory=dict)  # the most frequent, most frequent first
    not_yet: int = 0  # pages of a dump without a revision by the day that was asked for
    repeated: int = 0  # pages of a dump whose id was there before: each is a reject
    dropped_kinds: tuple[str, ...] = ()  # the kinds of duplicates that were to be dropped

    def to_json(self) -> str:
        """The report as one JSON object, the same bytes for the same report."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"


class _Totals(NamedTuple):
    """The sums of a ledger."""

    pages: Counter[str]  # by kind
    kept_redirects: int
    passages: int  # before duplicates are dropped
    left_out_by_cap: int
    unrendered: Counter[str]


def make_report(
    folder: Path, state: IngestState, site: SiteInfo | None, dropped_kinds: tuple[str, ...] = ()
) -> IngestReport:
    """The report of a finished ingest: sums over its ledger and shards, and what only the state knows."""
    totals = _ledger_totals(folder)
    rows = sum(pq.read_metadata(path).num_rows for path in passage_files(folder))
    kinds = totals.pages
    return IngestReport(
        pages=kinds.total(),
        other_namespaces=kinds["other_namespaces"],
        redirects=kinds["redirects"],
        kept_redirects=totals.kept_redirects,
        disambiguation=kinds["disambiguation"],
        lists=kinds["lists"],
        articles=kinds["articles"] + kinds["empty_articles"],
        empty_articles=kinds["empty_articles"],
        passages=rows,
        left_out_by_cap=totals.left_out_by_cap,
        rejects=state.rejects,
        unreadable=state.unreadable,
        duplicates={**(state.duplicates or {}), "dropped": totals.passages - rows},
        site={"dbname": site.dbname, "base": site.base, "generator": site.generator} if site else {},
        unrendered_templates=dict(by_frequency(totals.unrendered)[:_TOP_TEMPLATES]),
        not_yet=kinds["not_yet"],
        repeated=kinds["repeated"],
        dropped_kinds=dropped_kinds,
    )


def _ledger_totals(folder: Path) -> _Totals:
    """The sums over all pages, one shard of the ledger in memory at a time."""
    totals = _Totals(Counter(), 0, 0, 0, Counter())
    for path in ledger_files(folder):
        columns = ["kind", "passages", "left_out_by_cap", "unrendered"]
        table = pq.read_table(path, columns=columns, page_checksum_verification=True)
        kinds, passages = table.column("kind"), table.column("passages")
        totals.pages.update({row["values"]: row["counts"] for row in pc.value_counts(kinds).to_pylist()})
        totals.unrendered.update(_unrendered(table.column("unrendered")))
        kept = pc.and_(pc.equal(kinds, "redirects"), pc.greater(passages, 0))
        totals = totals._replace(
            kept_redirects=totals.kept_redirects + _sum(kept),
            passages=totals.passages + _sum(passages),
            left_out_by_cap=totals.left_out_by_cap + _sum(table.column("left_out_by_cap")),
        )
    return totals


def _unrendered(column: pa.ChunkedArray) -> dict[str, int]:
    items = column.combine_chunks().flatten()
    table = pa.table({"name": items.field("name"), "count": items.field("count")})
    summed = table.group_by("name").aggregate([("count", "sum")])
    return dict(zip(summed["name"].to_pylist(), summed["count_sum"].to_pylist(), strict=True))


def _sum(column: pa.ChunkedArray) -> int:
    return pc.sum(column).as_py() or 0
