"""An earlier ingest of the same wiki, asked page by page: what has not changed since is not rendered again.

It only saves time: what is missing or damaged there is not found, and never an error.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rag.corpus.ingest.ledger import LEDGERS
from rag.corpus.passages import PassageRow
from rag.records import Page

_LEDGER_COLUMNS = ["page_id", "revision_id", "title", "kind", "passages", "left_out_by_cap", "wikitext_hash",
                   "text_chars", "unrendered"]  # fmt: skip
_DAMAGED = (OSError, pa.ArrowException)
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
        """``source`` is the name that copied passages get."""
        self._source = source
        self._files, ranges = [], []
        for pages in sorted(folder.glob(LEDGERS)):
            passages = pages.with_name(pages.name.replace("pages-", "passages-", 1))
            if passages.exists() and (ids := _id_range(pages)):
                self._files.append((pages, passages))
                ranges.append(ids)
        self._low, self._high = np.array(ranges, np.int64).reshape(-1, 2).T
        self._shards: dict[int, _Shard] = {}
        self._damaged: set[int] = set()

    def find(self, page: Page, wikitext_hash: str) -> EarlierPage | None:
        """What became of this very revision with this text and title; None where it must be rendered.

        That is also so where the page stands there twice, or has lost passages since, as duplicates do, and where a
        revision has no id or no text: nothing would tell it from another.
        """
        if page.revision_id <= 0 or not wikitext_hash:
            return None
        covering = np.flatnonzero((self._low <= page.page_id) & (page.page_id <= self._high)).tolist()
        if len(covering) > _CACHED:
            return None
        found = [(number, *place) for number in covering for place in self._places(number, page.page_id)]
        if len(found) != 1:
            return None
        number, shard, row = found[0]
        try:
            return shard.copied(row, page, wikitext_hash, self._source)
        except _DAMAGED:
            self._damaged.add(number)
            return None

    def _places(self, number: int, page_id: int) -> list[tuple["_Shard", int]]:
        """A shard with each row of its ledger that has this page; nothing if the shard is damaged."""
        if number in self._damaged:
            return []
        try:
            shard = self._shard(number)
        except _DAMAGED:
            self._damaged.add(number)
            return []
        return [(shard, row) for row in shard.rows_of(page_id)]

    def _shard(self, number: int) -> "_Shard":
        if number not in self._shards:
            _make_room(self._shards)
            self._shards[number] = _Shard(*self._files[number])
        return self._shards[number]


class _Shard:
    """One shard of the earlier ledger, with the place of each page's passages."""

    def __init__(self, pages: Path, passages: Path) -> None:
        with pq.ParquetFile(pages, page_checksum_verification=True) as ledger:
            self._ledger = ledger.read(columns=_LEDGER_COLUMNS).combine_chunks()
        ids: Ints = self._ledger.column("page_id").to_numpy()
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]
        self._file = pq.ParquetFile(passages, memory_map=True, page_checksum_verification=True)
        metadata = self._file.metadata
        self._ends = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
        self._firsts, self._counts = _places(ids, self._file.read(columns=["page_id"]).column(0).to_numpy())
        self._groups: dict[int, list[PassageRow]] = {}

    def rows_of(self, page_id: int) -> list[int]:
        """The rows of the ledger with this page id."""
        first, last = np.searchsorted(self._ids, page_id), np.searchsorted(self._ids, page_id, side="right")
        rows: list[int] = self._order[first:last].tolist()
        return rows

    def copied(self, row: int, page: Page, wikitext_hash: str, source: str) -> EarlierPage | None:
        """The page of a row of the ledger, if it is the same revision with the same text and all there."""
        kept: dict[str, pa.Scalar] = {name: self._ledger.column(name)[row] for name in _LEDGER_COLUMNS}
        same = tuple(kept[name].as_py() for name in ("revision_id", "title", "wikitext_hash"))
        if same != (page.revision_id, page.title, wikitext_hash):
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


def _id_range(pages: Path) -> tuple[int, int] | None:
    """The least and the greatest page id of a ledger file, by what Parquet says of its row groups; None if nothing."""
    try:
        metadata = pq.read_metadata(pages)
        column = metadata.schema.names.index("page_id")
    except (OSError, pa.ArrowException, ValueError):
        return None
    found = [metadata.row_group(group).column(column).statistics for group in range(metadata.num_row_groups)]
    if not found or not all(part is not None and part.has_min_max for part in found):
        return None
    return min(part.min for part in found), max(part.max for part in found)


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
