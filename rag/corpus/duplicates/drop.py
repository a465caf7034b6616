"""Shards without the passages that are listed as duplicates."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag.corpus.duplicates.listing import KINDS, listed_shard_rows, read_columns, read_metadata
from rag.corpus.passages import ROW_GROUP_ROWS
from rag.errors import ConfigError, DataError, ResourceError
from rag.files import publish

_Rows = npt.NDArray[np.int64]


def drop_duplicates(shards: Sequence[Path], duplicates: Path, kinds: frozenset[str]) -> int:
    """Rewrite the shards without the passages that ``duplicates`` lists as one of ``kinds``; how many those are.

    "exact" takes every passage whose text an earlier one has, also where its cluster is listed as boilerplate; the
    first of them stays. A passage listed as "exact" may also be near another one: dropping "near" alone keeps it.
    Passages are known by their row, so that ids need not differ.

    Each shard is replaced in one step and only if it loses a row. After a crash, or twice, the same call ends with the
    same files and the same number: a shard with as many rows as it should keep is done. Call it with other kinds only
    on the whole shards. Raises ConfigError for an unknown kind, DataError for files that cannot be read or are not
    those of the list, ResourceError where a shard cannot be written.
    """
    if unknown := kinds.difference(KINDS):
        raise ConfigError(f"unknown kinds of duplicates {sorted(unknown)}; known: {', '.join(KINDS)}")
    dropped = _chosen(read_columns(duplicates, ["kind", "is_copy", "row"]), kinds)
    sizes = listed_shard_rows(duplicates)
    if len(sizes) != len(shards):
        raise DataError(f"{duplicates} is of {len(sizes)} shards, not {len(shards)}; ingest the source again")
    first = 0
    for shard, size in zip(shards, sizes, strict=True):
        start, end = np.searchsorted(dropped, [first, first + size])
        if start < end:
            _drop(shard, size, dropped[start:end] - first)
        first += size
    return len(dropped)


def _chosen(listed: pa.Table, kinds: frozenset[str]) -> _Rows:
    """The rows to drop, in ascending order."""
    chosen = pc.is_in(listed.column("kind"), pa.array(sorted(kinds), pa.string()))
    if "exact" in kinds:
        chosen = pc.or_(chosen, listed.column("is_copy"))
    rows: _Rows = np.sort(listed.column("row").filter(chosen).to_numpy())
    return rows


def _drop(shard: Path, size: int, rows: _Rows) -> None:
    """Rewrite a shard of so many rows without these, unless that is done."""
    found = read_metadata(shard).num_rows
    if found == size - len(rows):
        return
    if found != size:
        raise DataError(
            f"{shard} has {found} passages where the list of duplicates knows of {size}; ingest the source again"
        )
    kept = np.ones(size, np.bool_)
    kept[rows] = False
    table = read_columns(shard, None).filter(pa.array(kept)).combine_chunks()
    temporary = shard.with_name(f".{shard.name}.tmp")
    try:
        pq.write_table(table, temporary, row_group_size=ROW_GROUP_ROWS, compression="zstd", write_page_checksum=True)
        publish(temporary, shard)
    except OSError as error:
        raise ResourceError(f"cannot rewrite {shard}: {error}; check the folder and the disk space") from error
