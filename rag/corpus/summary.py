"""What a source looks like as a whole, counted over its shards of passages in one pass."""

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag.corpus.passages import passage_files
from rag.errors import DataError

SHORT_WORDS = 20  # a passage of fewer is short
_COLUMNS = ("passage_id", "title", "text", "page_id", "words")
_SHOWN_IDS = 20
_BATCH_ROWS = 16384

_Digests = npt.NDArray[np.uint64]


class CorpusSummary(NamedTuple):
    """Sizes, lengths and ids of all passages of a source."""

    rows: int
    shard_rows: tuple[int, ...]  # of each shard, in order
    pages: int  # different page ids
    titles: int  # different titles
    repeated_ids: int  # rows whose passage_id an earlier row has, in the same shard or another
    repeated_examples: tuple[str, ...]  # some of these ids, sorted
    characters: int  # of all texts
    min_words: int  # 0 where there are no rows, as for the other numbers of words
    median_words: int  # the smallest number that at least half of the passages do not exceed
    p95_words: int
    max_words: int
    mean_words: float
    short_share: float  # passages of under SHORT_WORDS words
    words_by_ten: tuple[int, ...]  # passages of up to 10 words, of 11 to 20, ...

    def to_json(self) -> str:
        """The summary as one JSON object, the same bytes for the same shards."""
        return json.dumps(self._asdict(), ensure_ascii=False, indent=2) + "\n"


def summarise(folder: Path) -> CorpusSummary:
    """Count over the shards of a folder of passages.

    Reads each shard once, a few thousand rows at a time. 8 bytes a passage and 32 a page stay in memory (about 400 MB
    for the 21 million passages of an English Wikipedia) to tell ids and titles apart by 64 bits of BLAKE2; ids that
    look repeated are read again and compared as they are. Raises DataError if there are no shards, if one cannot be
    read or lacks a column.
    """
    return summarise_shards(passage_files(folder))


def summarise_shards(shards: Sequence[Path]) -> CorpusSummary:
    """``summarise`` for shards that are named one by one."""
    counts = _Counts(sum(_rows(shard) for shard in shards))
    shard_rows = []
    for shard in shards:
        before = counts.rows
        for batch in _batches(shard, _COLUMNS):
            counts.add(batch)
        shard_rows.append(counts.rows - before)
    repeated, examples = _repeated(shards, counts.ids)
    return counts.summary(tuple(shard_rows), repeated, examples)


class _Counts:
    """What has been counted so far."""

    def __init__(self, rows: int) -> None:
        self.rows = 0
        self.ids: _Digests = np.empty(rows, np.uint64)
        self._titles: list[_Digests] = []
        self._pages: list[npt.NDArray[np.int64]] = []
        self._characters = 0
        self._by_words: npt.NDArray[np.int64] = np.zeros(1, np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        self.ids[self.rows : self.rows + batch.num_rows] = _digests(batch.column("passage_id").to_pylist())
        self.rows += batch.num_rows
        self._characters += pc.sum(pc.utf8_length(batch.column("text"))).as_py() or 0
        page = batch.column("page_id").to_numpy()
        # Passages of a page stand side by side, so that one look at the title a page is enough.
        first = np.flatnonzero(np.diff(page, prepend=page[:1] - 1))
        self._pages.append(page[first])
        self._titles.append(_digests(batch.column("title").take(pa.array(first)).to_pylist()))
        by_words = np.bincount(np.maximum(batch.column("words").to_numpy(), 0), minlength=len(self._by_words))
        by_words[: len(self._by_words)] += self._by_words
        self._by_words = by_words

    def summary(self, shard_rows: tuple[int, ...], repeated: int, examples: tuple[str, ...]) -> CorpusSummary:
        words = np.flatnonzero(self._by_words)
        total = int(self._by_words @ np.arange(len(self._by_words)))
        return CorpusSummary(
            rows=self.rows,
            shard_rows=shard_rows,
            pages=_different(self._pages),
            titles=_different(self._titles),
            repeated_ids=repeated,
            repeated_examples=examples,
            characters=self._characters,
            min_words=int(words.min(initial=len(self._by_words))) if self.rows else 0,
            median_words=self._percentile(50),
            p95_words=self._percentile(95),
            max_words=int(words.max(initial=0)),
            mean_words=total / max(self.rows, 1),
            short_share=int(self._by_words[:SHORT_WORDS].sum()) / max(self.rows, 1),
            words_by_ten=self._by_ten(),
        )

    def _percentile(self, percent: int) -> int:
        """By nearest rank: the smallest number of words that so many percent of the passages do not exceed."""
        if not self.rows:
            return 0
        rank = -(-percent * self.rows // 100)
        return int(np.searchsorted(np.cumsum(self._by_words), rank))

    def _by_ten(self) -> tuple[int, ...]:
        words = np.flatnonzero(self._by_words)
        bins = np.bincount(np.maximum(words - 1, 0) // 10, weights=self._by_words[words])
        return tuple(int(count) for count in bins)


def _digests(texts: Sequence[str]) -> _Digests:
    joined = b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts])
    return np.frombuffer(joined, "<u8").astype(np.uint64)


def _different(parts: Sequence[npt.NDArray[np.int64]] | Sequence[_Digests]) -> int:
    return len(np.unique(np.concatenate(parts))) if parts else 0


def _repeated(shards: Sequence[Path], digests: _Digests) -> tuple[int, tuple[str, ...]]:
    """How many rows have an id that an earlier row has, and some of these ids."""
    digests.sort()
    doubled = np.unique(digests[1:][digests[1:] == digests[:-1]])
    if not len(doubled):
        return 0, ()
    seen: set[str] = set()
    repeated: set[str] = set()
    rows = 0
    for shard in shards:
        for batch in _batches(shard, ("passage_id",)):
            ids = batch.column(0).to_pylist()
            for place in np.flatnonzero(np.isin(_digests(ids), doubled)):
                rows += ids[place] in seen
                (repeated if ids[place] in seen else seen).add(ids[place])
    return rows, tuple(sorted(repeated)[:_SHOWN_IDS])


def _rows(shard: Path) -> int:
    try:
        rows: int = pq.read_metadata(shard).num_rows
        return rows
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(shard, error) from error


def _unreadable(shard: Path, error: Exception) -> DataError:
    return DataError(f"{shard} cannot be read as passages: {error}; ingest the source again")


def _batches(shard: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(shard, page_checksum_verification=True) as file:
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise DataError(f"{shard} lacks the columns {', '.join(missing)}; ingest the source again")
            yield from file.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(shard, error) from error
