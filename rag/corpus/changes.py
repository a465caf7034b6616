"""What changed between two ingests of one wiki: passages added, changed and removed, for the index to follow."""

from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag.corpus.passages import PASSAGE_SCHEMA, passage_files
from rag.errors import DataError, ResourceError
from rag.files import publish

CHANGES_FILE = "changes.parquet"
CHANGE_SCHEMA = pa.schema(
    [
        pa.field("passage_id", pa.string(), nullable=False),  # as it is after; of what was removed, as it was before
        pa.field("change", pa.string(), nullable=False),  # added, changed or removed
    ]
)
_KEYS = ["page_id", "ordinal"]
_COLUMNS = pa.schema([PASSAGE_SCHEMA.field(name) for name in (*_KEYS, "passage_id", "text_sha1")])
_ROWS_AT_ONCE = 200_000  # of one side


class ChangeReport(NamedTuple):
    """How many passages and pages of the one ingest are how in the other; a page is changed if a passage of it is."""

    added: int
    changed: int
    removed: int
    unchanged: int
    pages_added: int
    pages_changed: int
    pages_removed: int


def passage_changes(before: Path, after: Path, out: Path) -> ChangeReport:
    """Write ``changes.parquet`` into the folder ``out``, by page and ordinal; unchanged passages are not listed.

    A passage is the same in both if page id and ordinal are, whatever the names of the two sources; it is changed if
    its title or text is another. Pages are compared by ranges of page ids, one range in memory at a time; where the
    shards are in the order of page ids, as those of a dump are, everything is read once.

    Raises DataError where a folder holds no passages, damaged ones or one with the same id twice, and ResourceError
    where ``out`` cannot be written.
    """
    sides = (_row_groups(before), _row_groups(after))
    temporary, total = out / f".{CHANGES_FILE}.tmp", ChangeReport(*[0] * len(ChangeReport._fields))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(temporary, CHANGE_SCHEMA, compression="zstd", write_page_checksum=True) as writer:
            for low, high in pairwise(_borders(sides)):
                changes, counts = _compare(_read(sides[0], low, high), _read(sides[1], low, high))
                writer.write_table(changes)
                total = ChangeReport(*[one + other for one, other in zip(total, counts, strict=True)])
        publish(temporary, out / CHANGES_FILE)
    except OSError as error:
        raise ResourceError(f"cannot write {out / CHANGES_FILE}: {error}; check folder and disk space") from error
    return total


class _RowGroup(NamedTuple):
    path: Path
    number: int
    rows: int
    low: int  # page ids
    high: int


def _row_groups(folder: Path) -> list[_RowGroup]:
    found = []
    for path in passage_files(folder):
        try:
            metadata = pq.read_metadata(path)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{path} cannot be read as passages: {error}; ingest the source again") from error
        column = metadata.schema.names.index("page_id")
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if group.num_rows:  # Parquet knows no least page id of nothing
                ids = group.column(column).statistics
                found.append(_RowGroup(path, number, group.num_rows, ids.min, ids.max))
    return found


def _borders(sides: tuple[list[_RowGroup], list[_RowGroup]]) -> list[int]:
    """Page ids that part all pages into ranges of about ``_ROWS_AT_ONCE`` passages a side."""
    groups = sorted((group for side in sides for group in side), key=lambda group: group.low)
    if not groups:
        return []
    filled = accumulate(group.rows for group in groups)
    borders = {
        group.low
        for group, rows in zip(groups, filled, strict=True)
        if rows // (2 * _ROWS_AT_ONCE) > (rows - group.rows) // (2 * _ROWS_AT_ONCE)
    }
    return sorted({*borders, groups[0].low, max(group.high for group in groups) + 1})


def _read(groups: list[_RowGroup], low: int, high: int) -> pa.Table:
    """The passages of the pages from ``low`` to before ``high``."""
    parts = [_part(group, low, high) for group in groups if group.low < high and group.high >= low]
    table = pa.concat_tables([_COLUMNS.empty_table(), *parts])
    if table.group_by(_KEYS).aggregate([]).num_rows < table.num_rows:
        _refuse_repeated(table, groups[0].path.parent)
    return table


def _part(group: _RowGroup, low: int, high: int) -> pa.Table:
    try:
        with pq.ParquetFile(group.path, page_checksum_verification=True) as file:
            table = file.read_row_group(group.number, columns=_COLUMNS.names).select(_COLUMNS.names)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise DataError(f"{group.path} cannot be read as passages: {error}; ingest the source again") from error
    if group.low >= low and group.high < high:
        return table
    pages = table.column("page_id")
    return table.filter(pc.and_(pc.greater_equal(pages, low), pc.less(pages, high)))


def _refuse_repeated(table: pa.Table, folder: Path) -> None:
    counted = table.group_by(_KEYS).aggregate([("passage_id", "min"), ("passage_id", "count")])
    repeated = counted.filter(pc.greater(counted.column("passage_id_count"), 1)).column("passage_id_min")
    raise DataError(
        f"{folder} holds the passage {pc.min(repeated).as_py()} twice, so what changed in it cannot be told; "
        "a page must be in a dump once"
    )


def _compare(before: pa.Table, after: pa.Table) -> tuple[pa.Table, ChangeReport]:
    both = before.join(after, _KEYS, join_type="full outer", left_suffix="_before", right_suffix="_after")
    both = both.sort_by([(key, "ascending") for key in _KEYS])
    was, remains = both.column("passage_id_before").is_valid(), both.column("passage_id_after").is_valid()
    same = pc.equal(both.column("text_sha1_before"), both.column("text_sha1_after"))
    kept = pc.if_else(same, "unchanged", "changed")
    change = pc.if_else(was, pc.if_else(remains, kept, "removed"), "added")
    ids = pc.coalesce(both.column("passage_id_after"), both.column("passage_id_before"))
    touched = pc.not_equal(change, "unchanged")
    found = {row["values"]: row["counts"] for row in pc.value_counts(change).to_pylist()}
    counts = [found.get(name, 0) for name in ("added", "changed", "removed", "unchanged")]
    report = ChangeReport(*counts, *_count_pages(both.column("page_id"), was, remains, touched))
    return pa.table([ids, change], schema=CHANGE_SCHEMA).filter(touched), report


def _count_pages(
    pages: pa.ChunkedArray, was: pa.ChunkedArray, remains: pa.ChunkedArray, touched: pa.ChunkedArray
) -> list[int]:
    """How many pages were added, changed and removed."""
    table = pa.table({"page": pages, "was": was, "remains": remains, "touched": touched})
    sums = table.group_by("page").aggregate([("was", "any"), ("remains", "any"), ("touched", "any")])
    was, remains, touched = (sums.column(f"{name}_any") for name in ("was", "remains", "touched"))
    flags = pc.invert(was), pc.and_(pc.and_(was, remains), touched), pc.invert(remains)
    return [pc.sum(flag).as_py() or 0 for flag in flags]
