"""Passages whose text is there already: exact and near duplicates, and boilerplate.

Texts are compared without their titles and case-folded. Exact duplicates are the same text. Near duplicates have sets
of shingles (5 words in a row) whose Jaccard similarity reaches the threshold; clusters are closed over such pairs, so
two passages of one may be less similar than that. Boilerplate is a cluster, exact duplicates included, that stands on
many pages; which of its passages repeat the text of an earlier one is listed too. Passages that may be near duplicates
are found with MinHash sketches and then compared word by word: what is listed is never a mere collision of hashes.
Texts under 5 words have no shingle and only exact duplicates.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rag.corpus.duplicates.clusters import BytesFile, Clusters
from rag.corpus.duplicates.listing import KINDS, listing_schema, read_columns, read_metadata
from rag.corpus.duplicates.sketches import PERMUTATIONS, Rows, Sketches, SketchFile, band_rows, sketch
from rag.errors import ConfigError, ResourceError
from rag.files import publish

_OUT_ROWS = 1 << 16
_AT_ONCE = 1 << 20  # rows of a whole-corpus array worked on at once


class DuplicateCounts(NamedTuple):
    """How many of ``passages`` are listed as what, and how many clusters have two or more passages.

    ``copies`` have a text that an earlier passage has: all that are listed as exact, and some of the boilerplate.
    """

    passages: int
    exact: int
    near: int
    boilerplate: int
    clusters: int
    copies: int


class _RowGroup(NamedTuple):
    path: Path
    number: int
    first: int  # row of the corpus
    rows: int


_Each = Callable[[Callable[[_RowGroup], Sketches], Iterable[_RowGroup]], Iterable[Sketches]]


class _Members(NamedTuple):
    """The passages of all clusters in corpus order."""

    rows: Rows
    heads: Rows  # row of the first passage of the cluster
    copies: npt.NDArray[np.bool_]  # an earlier passage has the same text
    similarities: npt.NDArray[np.float32]


def find_duplicates(
    shards: Sequence[Path],
    out: Path,
    jaccard: float,
    boilerplate_pages: int,
    progress: Callable[[Iterable[_RowGroup]], Iterable[_RowGroup]] = iter,
    each: _Each = map,
) -> DuplicateCounts:
    """List the duplicates among the passages of ``shards``, in the order given, in the Parquet file ``out``.

    A passage is "boilerplate" if its cluster stands on ``boilerplate_pages`` pages or more; else "exact" if an earlier
    passage has the same text; else "near". The first passage of a cluster is listed only as boilerplate. ``is_copy``
    tells whether an earlier passage has the same text, whatever the kind; ``row`` is the place in the corpus. The same
    shards give the same bytes; ``each`` is ``map``, or does the same on several processes. Call it on whole shards:
    what ``drop_duplicates`` took away is not found again.

    Memory: about 12 bytes a passage and 100 for each that is in a cluster, so under 400 MB with the libraries for 21
    million passages of which a tenth are duplicates. Sketches (80 bytes a passage), the texts of candidates and the
    ids of clusters lie in nameless files beside ``out``, which nothing has to clean up after a crash.

    Raises ConfigError for thresholds that cannot be, DataError for shards that are missing or no passages, and
    ResourceError where ``out`` cannot be written.
    """
    if not 0 < jaccard <= 1 or boilerplate_pages < 2:
        raise ConfigError(
            f"near duplicates need 0 < jaccard <= 1 and boilerplate 2 pages or more, not {jaccard} and "
            f"{boilerplate_pages}; see passages.near_duplicate_jaccard and passages.boilerplate_pages"
        )
    groups = _row_groups(shards)
    try:
        members = _members(groups, out.parent, jaccard, lambda work, items: each(work, progress(items)))
        return _write(groups, members, out, listing_schema(_shard_rows(shards, groups)), boilerplate_pages)
    except OSError as error:
        raise ResourceError(f"cannot write {out}: {error}; check the folder and the disk space") from error


def _row_groups(shards: Sequence[Path]) -> list[_RowGroup]:
    groups = []
    first = 0
    for path in shards:
        metadata = read_metadata(path)
        for number in range(metadata.num_row_groups):
            rows = metadata.row_group(number).num_rows
            groups.append(_RowGroup(path, number, first, rows))
            first += rows
    return groups


def _shard_rows(shards: Sequence[Path], groups: Iterable[_RowGroup]) -> list[int]:
    rows: Counter[Path] = Counter()
    for group in groups:
        rows[group.path] += group.rows
    return [rows[path] for path in shards]


def _sketch(rows: int, group: _RowGroup) -> Sketches:
    return sketch(_texts(read_columns(group.path, ["text"], group.number)), rows)


def _texts(table: pa.Table) -> list[str]:
    return [text.casefold() for text in table.column("text").to_pylist()]


def _taken(groups: list[_RowGroup], rows: Rows, names: list[str]) -> Iterator[pa.Table]:
    """These columns of these rows, which are in corpus order; the part of one row group after the other."""
    for group in groups:
        start, end = np.searchsorted(rows, [group.first, group.first + group.rows])
        if start < end:
            yield read_columns(group.path, names, group.number).take(rows[start:end] - group.first)


def _members(
    groups: list[_RowGroup],
    folder: Path,
    jaccard: float,
    each: _Each,
) -> _Members:
    rows = band_rows(jaccard)
    passages = sum(group.rows for group in groups)
    with closing(SketchFile(folder, passages, PERMUTATIONS // rows)) as sketches:
        for group, made in zip(groups, each(partial(_sketch, rows), groups), strict=True):
            sketches.write(group.first, made)
        heads = np.arange(passages, dtype=np.int32)
        for equal in sketches.equal_texts():
            heads[equal.rows] = np.repeat(equal.rows[equal.starts], equal.sizes)
        copies = ~_are_heads(heads)
        near, similarities = _join_near(groups, sketches, heads, folder, jaccard)
    return _in_clusters(heads, copies, near, similarities)


def _join_near(
    groups: list[_RowGroup], sketches: SketchFile, heads: Rows, folder: Path, jaccard: float
) -> tuple[Rows, npt.NDArray[np.float32]]:
    """Give near duplicates one head in ``heads``; returns the rows compared and how similar each is to another.

    Of equal texts only the first takes part, so a text that stands a million times is compared once.
    """
    firsts = _are_heads(heads)
    met = np.zeros(len(heads), np.bool_)
    for band in range(sketches.bands):
        for equal in sketches.equal_bands(band, firsts):
            met[equal.rows] = True
    rows = np.flatnonzero(met).astype(np.int32)
    with closing(Clusters(folder, jaccard)) as clusters:
        for table in _taken(groups, rows, ["text"]):
            clusters.extend(_texts(table))
        for band in range(sketches.bands):
            for equal in sketches.equal_bands(band, met):
                for group in np.split(np.searchsorted(rows, equal.rows), equal.starts[1:]):
                    clusters.compare(group.tolist())
    heads[rows] = rows[clusters.roots()]
    for part in _parts(len(heads)):
        heads[part] = heads[heads[part]]  # equal texts go where their first one went
    return rows, clusters.similarities()


def _are_heads(heads: Rows) -> npt.NDArray[np.bool_]:
    """Which rows are their own head."""
    own = np.empty(len(heads), np.bool_)
    for part in _parts(len(heads)):
        own[part] = heads[part] == np.arange(part.start, min(part.stop, len(heads)))
    return own


def _parts(length: int) -> Iterator[slice]:
    """A whole-corpus array in parts, so that what is computed from it takes no memory of that size."""
    return (slice(start, start + _AT_ONCE) for start in range(0, length, _AT_ONCE))


def _in_clusters(
    heads: Rows, copies: npt.NDArray[np.bool_], near: Rows, similarities: npt.NDArray[np.float32]
) -> _Members:
    member = ~_are_heads(heads)
    member[heads[member]] = True
    rows = np.flatnonzero(member).astype(np.int32)
    similar = np.zeros(len(rows), np.float32)
    joined = similarities > 0
    similar[np.searchsorted(rows, near[joined])] = similarities[joined]
    # One that was joined to none is the first of nothing but equal texts.
    similar[copies[rows] | (similar == 0)] = 1
    return _Members(rows, heads[rows], copies[rows], similar)


def _write(
    groups: list[_RowGroup], members: _Members, out: Path, schema: pa.Schema, boilerplate_pages: int
) -> DuplicateCounts:
    pages = [table.column("page_id").to_numpy() for table in _taken(groups, members.rows, ["page_id"])]
    page_ids = np.concatenate([np.empty(0, np.int64), *pages])
    boilerplate = _on_many_pages(members.heads, page_ids, boilerplate_pages)
    kinds = np.where(boilerplate, 2, np.where(members.copies, 0, 1)).astype(np.int8)  # places in KINDS
    listed = np.flatnonzero(boilerplate | (members.rows != members.heads))
    heads = np.unique(members.heads)
    temporary = out.with_name(f".{out.name}.tmp")
    with (
        closing(BytesFile(out.parent, "clusters")) as ids,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for table in _taken(groups, heads, ["passage_id"]):
            ids.extend(table.column("passage_id").cast(pa.binary()).to_pylist())
        for start in range(0, len(listed), _OUT_ROWS):
            part = listed[start : start + _OUT_ROWS]
            rows = members.rows[part]
            passages = pa.concat_tables(_taken(groups, rows, ["passage_id"])).column("passage_id")
            clusters = [ids[number].decode() for number in np.searchsorted(heads, members.heads[part]).tolist()]
            columns = [passages, page_ids[part], np.take(KINDS, kinds[part]), clusters]
            columns += [members.similarities[part], rows, members.copies[part]]
            writer.write_table(pa.table(columns, schema=schema))
    publish(temporary, out)
    exact, near, many = np.bincount(kinds[listed], minlength=len(KINDS)).tolist()
    copies = int(members.copies.sum())
    return DuplicateCounts(sum(group.rows for group in groups), exact, near, many, len(heads), copies)


def _on_many_pages(heads: Rows, page_ids: npt.NDArray[np.int64], least: int) -> npt.NDArray[np.bool_]:
    """Whether the cluster of each member has members on at least that many pages."""
    order = np.lexsort((page_ids, heads))
    by_head, by_page = heads[order], page_ids[order]
    new_page = np.append(True, (by_head[1:] != by_head[:-1]) | (by_page[1:] != by_page[:-1]))[: len(order)]
    clusters, counts = np.unique(by_head[new_page], return_counts=True)
    return np.isin(heads, clusters[counts >= least])
