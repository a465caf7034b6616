"""Articles of a Hugging Face data set such as ``wikimedia/wikipedia``: Parquet with id, url, title and text."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag.corpus.sources.article import Article, Record, make_article
from rag.corpus.sources.files import check_head, source_files
from rag.errors import DataError

_COLUMNS = ("id", "url", "title", "text")
_BATCH_ROWS = 256
_SHARD = re.compile(r"(.*)-([0-9]+)-of-([0-9]+)\.parquet")


def read_hf_articles(path: Path) -> Iterator[Record]:
    """The rows of a Parquet file or of all in a folder, by name, a batch at a time; further columns are not read.

    Raises DataError if a file cannot be read or lacks a column, or if a part "x-00003-of-00041" of a set is not there.
    """
    files = source_files(path, (".parquet",))
    if path.is_dir():
        _check_complete(path, [file.name for file in files])
    for file in files:
        yield from _file_records(path / file.name if path.is_dir() else path)


def _check_complete(folder: Path, names: list[str]) -> None:
    sets: dict[tuple[str, int], set[int]] = {}
    for match in filter(None, map(_SHARD.fullmatch, names)):
        sets.setdefault((match[1], int(match[3])), set()).add(int(match[2]))
    for (name, total), found in sets.items():
        if missing := [number for number in range(total) if number not in found]:
            parts = ", ".join(f"{number:05}" for number in missing[:5])
            raise DataError(
                f"{folder} has {len(found)} of the {total} files {name}-*-of-{total:05}.parquet; {parts} "
                f"{'and others are' if len(missing) > 5 else 'missing'}: download the rest"
            )


def _file_records(path: Path) -> Iterator[Record]:
    row = 0
    try:
        with path.open("rb") as head:
            check_head(str(path), head.read(256))
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            _check_columns(path, file.schema_arrow)
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(_COLUMNS), use_threads=False):
                for values in zip(*(_bytes(batch.column(name)) for name in _COLUMNS), strict=True):
                    row += 1
                    yield _record(f"{path.name}:{row}", row, values)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}; download it again") from error


def _check_columns(path: Path, schema: pa.Schema) -> None:
    readable = {name: schema.field(name).type for name in schema.names if name in _COLUMNS}
    if len(readable) < len(_COLUMNS) or not all(_is_text(kind) for kind in readable.values()):
        found = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise DataError(
            f"{path} has the columns {found}; articles need {', '.join(_COLUMNS)}, as in wikimedia/wikipedia; "
            "check the path and the format of the source"
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def _bytes(column: pa.Array) -> list[bytes | None]:
    """The texts as bytes: one that is not UTF-8 must be the loss of its row, not of the whole batch."""
    text = column.cast(pa.string()) if pa.types.is_integer(column.type) else column
    values: list[bytes | None] = text.cast(pa.large_binary()).to_pylist()
    return values


def _record(place: str, row: int, values: tuple[bytes | None, ...]) -> Record:
    raw = b"\t".join(value or b"" for value in values)
    try:
        return Record(place, row, raw, _article([(value or b"").decode() for value in values]))
    except UnicodeDecodeError as error:
        return Record(place, row, raw, None, f"not UTF-8: {error.reason}")
    except DataError as error:
        return Record(place, row, raw, None, str(error))


def _article(values: list[str]) -> Article:
    key, url, title, text = values
    return make_article(key, title, text, url)
