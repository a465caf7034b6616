"""Passages: disjoint stretches of a page's plain text, and the table that holds all of a corpus.

DPR cuts pages into disjoint passages of 100 words (Karpukhin et al. 2020, arXiv 2004.04906, section 4.1).
"""

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rag.corpus.columns import make_table
from rag.errors import DataError
from rag.records import Page, Passage

PASSAGE_SCHEMA = pa.schema(
    [
        pa.field("passage_id", pa.string(), nullable=False),  # "{source}:{page_id}:{ordinal}"
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int32(), nullable=False),  # of the passage in its page, from 0
        pa.field("words", pa.int16(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),  # of its own words: characters into the page's plain text,
        pa.field("end", pa.int32(), nullable=False),  # or -1 where the source has no text of the page
        pa.field("wrapped", pa.int16(), nullable=False),  # how many of the words are the first of the page once more
        pa.field("text_sha1", pa.string(), nullable=False),  # of title, newline, text
    ]
)
SHARDS = "passages-*.parquet"
# Small enough that one random passage costs milliseconds, large enough that zstd finds repetitions.
ROW_GROUP_ROWS = 4096
_CACHED_ROW_GROUPS = 64  # about 200 MB at 100 words a passage


Tail = Literal["short", "wrap"]


class Span(NamedTuple):
    """A passage and its place in the text of its page."""

    text: str
    words: int
    start: int
    end: int
    wrapped: int = 0


class PassageRow(NamedTuple):
    """One row of PASSAGE_SCHEMA."""

    passage_id: str
    title: str
    text: str
    page_id: int
    revision_id: int
    ordinal: int
    words: int
    start: int
    end: int
    wrapped: int
    text_sha1: str


def split_passages(title: str, text: str, words: int = 100, tail: Tail = "short") -> list[str]:
    """The disjoint passages of a page: ``words`` whitespace-separated words each, joined by single spaces.

    The last passage keeps what is left and may be short. With ``tail`` "wrap" it is filled up with the first words
    of the page, as DPR's files are; a page of fewer than ``words`` words stays short rather than repeat itself.
    The title is not part of the text of any passage. An empty text has no passages.
    Raises DataError if the title is empty or ``words`` is below 1.

    >>> split_passages("Lima", "Lima is the capital of Peru.", words=4)
    ['Lima is the capital', 'of Peru.']
    >>> split_passages("Lima", "Lima is the capital of Peru.", words=4, tail="wrap")
    ['Lima is the capital', 'of Peru. Lima is']
    """
    if not title.strip():
        raise DataError(f"a page without a title cannot be cut into passages; its text begins {text[:60]!r}")
    return [span.text for span in passage_spans(text, words, tail)]


def passage_spans(text: str, words: int = 100, tail: Tail = "short") -> list[Span]:
    """Like ``split_passages``, with each passage's number of words and the place of its own words in ``text``."""
    if words < 1:
        raise DataError(f"passages of {words} words are impossible; give 1 or more")
    tokens = text.split()
    chunks = [tokens[first : first + words] for first in range(0, len(tokens), words)]
    joined = [" ".join(chunk) for chunk in chunks]
    places = _places(text, chunks, joined)
    spans = [Span(own, len(chunk), *place) for own, chunk, place in zip(joined, chunks, places, strict=True)]
    if tail == "wrap" and len(spans) > 1 and spans[-1].words < words:
        spans[-1] = _filled_up(spans[-1], tokens[: words - spans[-1].words])
    return spans


def _places(text: str, chunks: list[list[str]], joined: list[str]) -> list[tuple[int, int]]:
    """Start and end of each chunk of words."""
    if sum(map(len, joined)) + len(joined) - 1 == len(text):
        # Every gap is one character, as in all rendered text: no word has to be looked for.
        ends = list(accumulate(len(own) + 1 for own in joined))
        return [(end - 1 - len(own), end - 1) for own, end in zip(joined, ends, strict=True)]
    places = []
    position = 0
    for chunk in chunks:
        starts = []
        for token in chunk:
            starts.append(text.index(token, position))
            position = starts[-1] + len(token)
        places.append((starts[0], position))
    return places


def _filled_up(span: Span, first_words: list[str]) -> Span:
    wrapped = len(first_words)
    return span._replace(text=" ".join([span.text, *first_words]), words=span.words + wrapped, wrapped=wrapped)


def passage_rows(source: str, page: Page, text: str, words: int = 100, tail: Tail = "short") -> list[PassageRow]:
    """The rows of one page whose plain text is ``text``."""
    return [
        PassageRow(
            passage_id=f"{source}:{page.page_id}:{ordinal}",
            title=page.title,
            text=span.text,
            page_id=page.page_id,
            revision_id=page.revision_id,
            ordinal=ordinal,
            words=span.words,
            start=span.start,
            end=span.end,
            wrapped=span.wrapped,
            text_sha1=text_sha1(page.title, span.text),
        )
        for ordinal, span in enumerate(passage_spans(text, words, tail))
    ]


def text_sha1(title: str, text: str) -> str:
    """What identifies the input of the context encoder, so that equal passages share a vector.

    >>> text_sha1("Lima", "Lima is the capital of Peru.")[:8]
    '364009f9'
    """
    return hashlib.sha1(f"{title}\n{text}".encode(), usedforsecurity=False).hexdigest()


def passage_table(rows: Sequence[PassageRow]) -> pa.Table:
    """``rows`` as an Arrow table of PASSAGE_SCHEMA."""
    return make_table(rows, PASSAGE_SCHEMA)


def passage_files(folder: Path) -> list[Path]:
    """The shards of an ingested source, in corpus order; raises DataError where the folder has none."""
    files = sorted(folder.glob(SHARDS), key=lambda path: (len(path.name), path.name))
    if not files:
        raise DataError(f"there are no passages ({SHARDS}) in {folder}; run the ingest stage of this source first")
    return files


class PassageTable:
    """The passages of one corpus, read on demand from the memory-mapped Parquet files of its sources.

    Row numbers run over all files in the order they were given; row r is row r of the index built from this table.
    Row groups are decoded when first needed and the last few are kept, so that a small corpus is held in memory and
    a large one is not.
    """

    def __init__(self, files: Sequence[tuple[Path, pq.ParquetFile]]) -> None:
        self._groups = [(path, file, group) for path, file in files for group in range(file.num_row_groups)]
        sizes = [file.metadata.row_group(group).num_rows for _, file, group in self._groups]
        self._ends = list(accumulate(sizes))
        self._files = list(files)
        self._cache: OrderedDict[int, pa.Table] = OrderedDict()
        self._reading = Lock()

    @classmethod
    def load(cls, paths: Sequence[Path]) -> "PassageTable":
        """Open the passages of one or several sources: folders of shards, or single files.

        Raises DataError if a file is missing, is no Parquet file or has other columns.
        """
        if not paths:
            raise DataError("a passage table needs at least one folder or file of passages; none was given")
        files = [file for path in paths for file in (passage_files(path) if path.is_dir() else [path])]
        return cls([(file, _open(file)) for file in files])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages at these row numbers, in this order; a row may be asked for twice.

        Raises DataError for a file that is damaged there, and for a row outside the table. A negative row is outside:
        FAISS returns -1 for "none found", which must never be read as the last passage.
        """
        wanted: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            wanted.setdefault(self._group_of(row), []).append(place)
        found: dict[int, Passage] = {}
        for group, places in wanted.items():
            offset = self._ends[group - 1] if group else 0
            taken = self._group(group).take([int(rows[place]) - offset for place in places])
            found.update(zip(places, _passages(taken), strict=True))
        return [found[place] for place in range(len(rows))]

    @cached_property
    def passage_ids(self) -> pa.ChunkedArray:
        """The passage id of every row."""
        return self.column("passage_id")

    @cached_property
    def text_sha1(self) -> pa.ChunkedArray:
        """The hash of title and text of every row."""
        return self.column("text_sha1")

    def column(self, name: str) -> pa.ChunkedArray:
        """One whole column, in row order. Raises DataError where a file is damaged."""
        chunks = []
        for path, file in self._files:
            with _named(path):
                chunks += file.read(columns=[name]).column(name).chunks
        return pa.chunked_array(chunks, type=PASSAGE_SCHEMA.field(name).type)

    def block(self, rows: range, columns: Sequence[str]) -> pa.Table:
        """Some columns of one or more rows that lie one after the other. Raises DataError as ``rows`` does."""
        groups = range(self._group_of(rows.start), self._group_of(rows.stop - 1) + 1)
        before = self._ends[groups.start - 1] if groups.start else 0
        read = pa.concat_tables(self._read(group, columns) for group in groups)
        return read.slice(rows.start - before, len(rows))

    def _group_of(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise DataError(
                f"row {row} is not among the {len(self)} passages; the index does not belong to this table, "
                "or a missing result (-1) was not masked"
            )
        return bisect_right(self._ends, row)

    def _group(self, group: int) -> pa.Table:
        with self._reading:
            if group not in self._cache:
                self._cache[group] = self._read(group, Passage._fields)
                if len(self._cache) > _CACHED_ROW_GROUPS:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(group)
            return self._cache[group]

    def _read(self, group: int, columns: Sequence[str]) -> pa.Table:
        path, file, number = self._groups[group]
        with _named(path):
            return file.read_row_group(number, columns=list(columns))


def _passages(table: pa.Table) -> Iterable[Passage]:
    columns = [table.column(name).to_pylist() for name in Passage._fields]
    return (Passage(*values) for values in zip(*columns, strict=True))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What goes wrong with a file of passages as a DataError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"there are no passages at {path}; run the ingest stage of this source first") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as passages: {error}; ingest the source again") from error


def _open(path: Path) -> pq.ParquetFile:
    with _named(path):
        file = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
    if file.schema_arrow.names != PASSAGE_SCHEMA.names:
        found, wanted = ", ".join(file.schema_arrow.names), ", ".join(PASSAGE_SCHEMA.names)
        raise DataError(f"{path} has the columns {found}; passages have {wanted}; ingest the source again")
    return file
