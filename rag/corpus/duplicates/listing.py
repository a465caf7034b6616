"""The list of duplicates as a file, and how it and the shards that it is about are read."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag.errors import DataError

DUPLICATE_SCHEMA = pa.schema(
    [
        pa.field("passage_id", pa.string(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),  # "exact", "near" or "boilerplate"
        pa.field("cluster", pa.string(), nullable=False),  # passage_id of the first passage of its cluster
        pa.field("similarity", pa.float32(), nullable=False),  # to the most similar passage it was compared with
        pa.field("row", pa.int64(), nullable=False),  # in the corpus before anything was dropped
        pa.field("is_copy", pa.bool_(), nullable=False),  # an earlier passage has the same text; true of all "exact"
    ]
)
KINDS = ("exact", "near", "boilerplate")
_SHARD_ROWS = b"openbook.shard_rows"  # the key in the file's metadata


def listing_schema(shard_rows: Sequence[int]) -> pa.Schema:
    """DUPLICATE_SCHEMA with the number of rows that each shard had, by which rows of the corpus are found again."""
    return DUPLICATE_SCHEMA.with_metadata({_SHARD_ROWS: json.dumps(list(shard_rows)).encode()})


def listed_shard_rows(listing: Path) -> list[int]:
    """How many rows each shard had when the list was made; raises DataError where the file does not say."""
    try:
        rows: list[int] = json.loads((pq.read_schema(listing).metadata or {})[_SHARD_ROWS])
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise _unreadable(listing, error) from error
    return rows


def read_columns(path: Path, names: Sequence[str] | None, group: int | None = None) -> pa.Table:
    """These columns, or all, of one row group, or of all; raises DataError where they cannot be read or are damaged."""
    columns = None if names is None else list(names)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns=columns) if group is None else file.read_row_group(group, columns=columns)
        return table.select(columns) if columns else table
    except (OSError, pa.ArrowException, KeyError) as error:
        raise _unreadable(path, error) from error


def read_metadata(path: Path) -> pq.FileMetaData:
    """What a shard says of itself; raises DataError where it cannot be read."""
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} cannot be read as passages: {error}; ingest the source again")
