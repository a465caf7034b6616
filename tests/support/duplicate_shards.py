"""Shards of passages that are the same, nearly the same, or others, for what looks for duplicates."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [f"word{number}" for number in range(100)]
TEXT = " ".join(WORDS)
NEAR = " ".join([*WORDS[:50], "another", *WORDS[51:]])  # 91 of 101 shingles are the same
OTHER = " ".join(reversed(WORDS))


def write_shard(path: Path, rows: list[tuple[int, str]], first: int = 0) -> Path:
    """A shard of passages with these page ids and texts, written as the ingest does."""
    table = pa.table(
        {
            "passage_id": pa.array([f"w:{page}:{first + row}" for row, (page, _) in enumerate(rows)], pa.string()),
            "title": pa.array([f"Title {page}" for page, _ in rows], pa.string()),
            "text": pa.array([text for _, text in rows], pa.string()),
            "page_id": pa.array([page for page, _ in rows], pa.int64()),
        }
    )
    pq.write_table(table, path, row_group_size=4096, compression="zstd", write_page_checksum=True)
    return path
