"""Shards: the passages of a source, and the ledger of its pages, in files of about equal size.

``passages-00000.parquet`` and ``pages-00000.parquet`` belong together: the passages of every page in the second are
in the first, in the same order. Both appear whole, or not at all.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag.corpus.passages import PASSAGE_SCHEMA, ROW_GROUP_ROWS
from rag.files import publish

SHARD_ROWS = 100_000  # passages after which a shard is closed, at the next border between two blocks
# Columns whose values hardly repeat: a dictionary of them is work for nothing.
_ALL_DIFFERENT = ("passage_id", "text", "text_sha1", "url", "key")


class Shard:
    """One shard that is being written; nothing shows under its final names before ``close``."""

    def __init__(self, folder: Path, number: int, ledger_schema: pa.Schema) -> None:
        """``ledger_schema`` may carry metadata of its own."""
        self.passages = _TableFile(folder / f"passages-{number:05d}.parquet", PASSAGE_SCHEMA)
        self._ledger = _TableFile(folder / f"pages-{number:05d}.parquet", ledger_schema)

    def add(self, passages: pa.Table, ledger: pa.Table) -> None:
        """Append whole pages."""
        self.passages.add(passages)
        self._ledger.add(ledger)

    @property
    def is_full(self) -> bool:
        """Whether the shard should be closed at the next border."""
        return self.passages.rows >= SHARD_ROWS

    def close(self) -> None:
        """Write what is left, sync, and give the files their names."""
        self.passages.close()
        self._ledger.close()

    def discard(self) -> None:
        """Remove what was written."""
        self.passages.discard()
        self._ledger.discard()


class _TableFile:
    """A Parquet file that grows by whole row groups, so that its bytes depend on its rows alone."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path = path
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._schema = schema
        self._writer = pq.ParquetWriter(
            self._temporary,
            schema,
            compression="zstd",
            write_page_checksum=True,
            use_dictionary=[name for name in schema.names if name not in _ALL_DIFFERENT],
        )
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._write_full_groups()

    def close(self) -> None:
        self._write_full_groups()
        if self._waiting_rows:
            self._write(pa.concat_tables(self._waiting))
        self._writer.close()
        publish(self._temporary, self._path)

    def discard(self) -> None:
        self._writer.close()
        self._temporary.unlink(missing_ok=True)

    def _write_full_groups(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        whole = table.num_rows - table.num_rows % ROW_GROUP_ROWS
        for start in range(0, whole, ROW_GROUP_ROWS):
            self._write(table.slice(start, ROW_GROUP_ROWS))
        self._waiting = [table.slice(whole)]
        self._waiting_rows = table.num_rows - whole

    def _write(self, rows: pa.Table) -> None:
        # One chunk a column: where the borders of the blocks were must not show in the file.
        self._writer.write_table(rows.replace_schema_metadata(self._schema.metadata).combine_chunks())
