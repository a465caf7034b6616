"""Stored vectors to an index, in blocks: besides the index itself hardly anything lies in memory."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from math import sqrt
from typing import Any, NamedTuple

import faiss
import numpy as np
from jaxtyping import Int

from rag.config import IndexConfig, IndexKind
from rag.errors import ConfigError, DataError, IndexMismatchError
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_file import IndexInfo
from rag.retrieval.index_kinds import (
    KINDS,
    BuildOptions,
    SearchOptions,
    code_bytes,
    empty_index,
    resolve_options,
)
from rag.retrieval.index_train import train
from rag.retrieval.index_units import Batches, Units, cut, find_units
from rag.retrieval.vector_table import Vectors, VectorTable
from rag.retrieval.vectors import VectorFile, row_id_lines, shard_path, vector_table

Progress = Callable[[Batches], Batches]


class Origin(NamedTuple):
    """What an index belongs to; empty where it is not known."""

    encoder_fingerprint: str = ""
    row_ids_sha256: str = ""
    encoder: dict[str, Any] = {}  # noqa: RUF012  (the card, never changed)


def build_index(
    vectors: Vectors,
    config: IndexConfig,
    *,
    kind: IndexKind | None = None,
    encoder_fingerprint: str = "",
    row_ids_sha256: str = "",
    progress: Progress = iter,
) -> PassageIndex:
    """An index of one array of vectors or of several, one after the other, of ``kind`` or the configuration's.

    ``progress`` sees blocks of rows go by, once for every pass over them. The same vectors give the same index, byte
    for byte, with any number of threads. Raises DataError naming the first row that is not finite, and ConfigError
    for the kind ``auto``, which ``resolve_kind`` replaces.

    >>> index = build_index(np.eye(3, dtype=np.float32), IndexConfig(kind="flat"))
    >>> index.search(np.array([[1, 2, 3]], np.float32), n_docs=2).rows.tolist()
    [[2, 1]]
    """
    origin = Origin(encoder_fingerprint, row_ids_sha256)
    return _build(VectorTable.of(vectors), config, _resolved(kind, config), origin, progress)


def build_index_from_files(
    files: Sequence[VectorFile],
    passage_ids: Iterable[Any],
    config: IndexConfig,
    kind: IndexKind | None = None,
    progress: Progress = iter,
) -> PassageIndex:
    """The index of several sources, in the order of ``files``, which must be the order of ``passage_ids``.

    Raises IndexMismatchError if a file's rows are not the passages at its place, or if encoders differ.
    """
    table, origin = match_files(files, passage_ids)
    return _build(table, config, _resolved(kind, config), origin, progress)


def match_files(files: Sequence[VectorFile], passage_ids: Iterable[Any]) -> tuple[VectorTable, Origin]:
    """The vectors of several sources as one table that belongs to ``passage_ids``; raises where they do not.

    Reads every shard once: raises DataError naming one whose bytes are not those that were written.
    """
    encoders = {file.encoder_fingerprint for file in files}
    if len(encoders) != 1:
        raise IndexMismatchError(f"vectors of {len(encoders)} encoders cannot share an index; encode all with one")
    row_ids_sha256 = _match_ids(files, passage_ids)
    for file in files:
        for number in range(len(file.shards)):
            if not file.is_sound(number):
                path = shard_path(file.folder, number)
                raise DataError(f"{path} does not hold the bytes that were written; encode the source again")
    return vector_table(files), Origin(encoders.pop(), row_ids_sha256, asdict(files[0].card))


def _match_ids(files: Sequence[VectorFile], passage_ids: Iterable[Any]) -> str:
    """``hash_row_ids`` of all ids, which are never all in memory; raises where a file's rows have others."""
    ids, every, found = iter(passage_ids), hashlib.sha256(), 0
    for file in files:
        own, start = hashlib.sha256(), found
        for rows in cut(file.count):
            block = list(islice(ids, len(rows)))
            found += len(block)
            for digest in (own, every):
                digest.update(row_id_lines(block))
        if found == start + file.count and own.hexdigest() != file.row_ids_sha256:
            raise IndexMismatchError(
                f"{file.folder}: its vectors are not those of passages {start} to {found - 1}, or in another order; "
                "encode the source again, or give the sources in their order"
            )
    found += sum(1 for _ in ids)
    if found != sum(file.count for file in files):
        raise IndexMismatchError(f"{found} passages for {sum(file.count for file in files)} vectors; encode again")
    return every.hexdigest()


def describe(kind: IndexKind, table: VectorTable, units: Units, options: BuildOptions, origin: Origin) -> IndexInfo:
    """The description of an index that was just made."""
    return IndexInfo(
        kind=kind,
        metric="inner_product",
        dim=table.dim,
        ntotal=len(table),
        units=len(units),
        options={name: value for name, value in options._asdict().items() if value},
        **origin._asdict(),
    )


def _resolved(kind: IndexKind | None, config: IndexConfig) -> IndexKind:
    if kind is not None:
        return kind
    if config.kind == "auto":
        raise ConfigError("index.kind = auto stands for one of several kinds; take the one that resolve_kind says")
    return config.kind


def _build(
    table: VectorTable, config: IndexConfig, kind: IndexKind, origin: Origin, progress: Progress
) -> PassageIndex:
    if not len(table):
        raise DataError("no vectors to index; the corpus has no passages")
    units = find_units(table, progress)
    options = resolve_options(kind, len(units), table.dim, config)
    index = empty_index(kind, table.dim, options)
    train(index, kind, options, units, table, progress)
    if KINDS[kind].look == "lists":
        _fill_lists(index, units, table, progress)
    else:
        _reserve(index, kind, len(units), options)
        for block in progress(units.blocks()):
            index.add(units.read(table, block))
    info = describe(kind, table, units, options, origin)
    return PassageIndex(index, info, units, table, SearchOptions.of(config))


def _fill_lists(index: Any, units: Units, table: VectorTable, progress: Progress) -> None:
    """In two passes: the first tells how long every list will be, so that none has to grow and move."""
    lists = np.empty(len(units), np.int32)
    for block in progress(units.blocks()):
        lists[block.start : block.stop] = index.quantizer.search(units.read(table, block), 1)[1][:, 0]
    for number, size in enumerate(np.bincount(lists, minlength=index.nlist).tolist()):
        index.invlists.resize(number, size)
        index.invlists.resize(number, 0)
    for block in progress(units.blocks()):
        add_to_lists(
            index, units.read(table, block), np.arange(block.start, block.stop), lists[block.start : block.stop]
        )


def add_to_lists(
    index: Any, vectors: np.ndarray, ids: Int[np.ndarray, " rows"], lists: Int[np.ndarray, " rows"]
) -> None:
    """Put vectors into the lists that were found for them."""
    numbers = lists.astype(np.int64)
    index.add_core(len(vectors), *(faiss.swig_ptr(array) for array in (vectors, ids, numbers)))


def _reserve(index: Any, kind: IndexKind, n: int, options: BuildOptions) -> None:
    """Grow the vectors inside FAISS to their final size and empty them: the memory stays, and no add has to move them.

    A std::vector that grows doubles, and holds the old and the new copy for a moment.
    """
    storage: Any = faiss.downcast_index(index.storage) if KINDS[kind].look == "graph" else index
    storage.codes.resize(n * code_bytes(kind, index.d, options))
    storage.codes.resize(0)
    if KINDS[kind].look != "graph":
        return
    above = n / (options.m - 1) if options.m > 1 else 0.0  # links above level 0, in groups of m: a geometric series
    groups = int(above + 8 * sqrt(above) + 8)  # and what chance may add
    for table, size in ((index.hnsw.neighbors, options.m * (2 * n + groups)), (index.hnsw.offsets, n + 1)):
        table.resize(size)
        table.resize(0)
    index.hnsw.offsets.push_back(0)
