"""An earlier ingest of the same wiki, asked page by page: what has not changed since is not rendered again."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rag.corpus.ingest.ledger import ledger_files
from rag.corpus.passages import PassageRow, passage_files
from rag.errors import DataError
from rag.records import Page

_LEDGER_COLUMNS = ["page_id", "revision_id", "title", "kind", "passages", "left_out_by_cap", "text_chars", "unrendered"]
# A dump is in the order of its page ids, so both sides are walked along side by side: little has to be kept, and a
# page id is in the range of one shard, or of two. What is ordered otherwise is rendered again.
_CACHED = 2

Ints = NDArray[np.int64]


class EarlierPage(NamedTuple):
    """What the earlier ingest made of a page."""

    passages: list[PassageRow]
    left_out_by_cap: int
    text_chars: int
    unrendered: list[dict[str, object]]


class EarlierIngest:
    """The pages of an earlier ingest; a few shards are in memory at a time."""

    def __init__(self, folder: Path, source: str) -> None:
        """``source`` is the name that copied passages get. Raises DataError where the folder has no whole ingest."""
        pages, passages = ledger_files(folder), passage_files(folder)
        if len(pages) != len(passages):
            raise DataError(
                f"{folder} has {len(passages)} shards of passages and {len(pages)} of pages; ingest it again"
            )
        self._source = source
        self._files = list(zip(pages, passages, strict=True))
        ranges = np.array([_id_range(path) for path in pages], np.int64)
        self._low, self._high = ranges[:, 0], ranges[:, 1]
        self._shards: dict[int, _Shard] = {}

    def find(self, page: Page) -> EarlierPage | None:
        """What became of this very revision under this very title; None where it must be rendered.

        That is also so where the page stands there twice, or has lost passages since, as duplicates do.
        """
        covering = np.flatnonzero((self._low <= page.page_id) & (page.page_id <= self._high)).tolist()
        if len(covering) > _CACHED:
            return None
        found = [(shard, row) for shard in map(self._shard, covering) for row in shard.rows_of(page.page_id)]
        if len(found) != 1:
            return None
        shard, row = found[0]
        return shard.copied(row, page, self._source)

    def _shard(self, number: int) -> "_Shard":
        if number not in self._shards:
            _make_room(self._shards)
            self._shards[number] = _Shard(*self._files[number])
        return self._shards[number]


class _Shard:
    """One shard of the earlier ledger, with the place of each page's passages."""

    def __init__(self, pages: Path, passages: Path) -> None:
        with pq.ParquetFile(pages) as ledger:
            self._ledger = ledger.read(columns=_LEDGER_COLUMNS).combine_chunks()
        ids: Ints = self._ledger.column("page_id").to_numpy()
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]
        self._file = pq.ParquetFile(passages, memory_map=True)
        metadata = self._file.metadata
        self._ends = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
        self._firsts, self._counts = _places(ids, self._file.read(columns=["page_id"]).column(0).to_numpy())
        self._groups: dict[int, list[PassageRow]] = {}

    def rows_of(self, page_id: int) -> list[int]:
        """The rows of the ledger with this page id."""
        first, last = np.searchsorted(self._ids, page_id), np.searchsorted(self._ids, page_id, side="right")
        rows: list[int] = self._order[first:last].tolist()
        return rows

    def copied(self, row: int, page: Page, source: str) -> EarlierPage | None:
        """The page of a row of the ledger, if it is the same revision and all there."""
        kept: dict[str, pa.Scalar] = {name: self._ledger.column(name)[row] for name in _LEDGER_COLUMNS}
        if (kept["revision_id"].as_py(), kept["title"].as_py()) != (page.revision_id, page.title):
            return None
        count = kept["passages"].as_py()
        if kept["kind"].as_py() not in ("articles", "empty_articles") or self._counts[row] != count:
            return None
        first = int(self._firsts[row])
        return EarlierPage(
            [self._passage(number)._replace(passage_id=f"{source}:{page.page_id}:{number - first}")
             for number in range(first, first + count)],
            kept["left_out_by_cap"].as_py(),
            kept["text_chars"].as_py(),
            kept["unrendered"].as_py(),
        )  # fmt: skip

    def _passage(self, row: int) -> PassageRow:
        group = int(np.searchsorted(self._ends, row, side="right"))
        if group not in self._groups:
            _make_room(self._groups)
            columns = self._file.read_row_group(group).to_pydict()
            self._groups[group] = [PassageRow(*values) for values in zip(*columns.values(), strict=True)]
        return self._groups[group][row - int(self._ends[group - 1] if group else 0)]


def _id_range(pages: Path) -> tuple[int, int]:
    """The least and the greatest page id of a ledger file, by what Parquet says of its row groups."""
    metadata = pq.read_metadata(pages)
    column = metadata.schema.names.index("page_id")
    found = [metadata.row_group(group).column(column).statistics for group in range(metadata.num_row_groups)]
    return min((part.min for part in found), default=0), max((part.max for part in found), default=-1)


def _places(pages: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The first row and the number of rows of each page, given the page of every row; pages without rows have 0.

    >>> first, count = _places(np.array([5, 6, 7]), np.array([5, 5, 7]))
    >>> first.tolist(), count.tolist()
    ([0, 2, 2], [2, 0, 1])
    """
    starts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1))
    counts = np.diff(starts, append=len(rows))
    order = np.argsort(rows[starts], kind="stable")
    places = np.searchsorted(rows[starts], pages, sorter=order)
    run = np.append(order, 0)[places]
    if not len(starts):
        return np.zeros_like(pages), np.zeros_like(pages)
    there = (places < len(order)) & (rows[starts][run] == pages)
    return starts[run], np.where(there, counts[run], 0)


def _make_room(cache: dict[int, Any]) -> None:
    if len(cache) >= _CACHED:
        del cache[next(iter(cache))]
