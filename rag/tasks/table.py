"""The questions of a task's splits as one Parquet table, which is what every later stage reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag.files import publish
from rag.records import Question, Split

_SCHEMA = pa.schema(
    [
        ("split", pa.string()),
        ("question_id", pa.string()),
        ("task", pa.string()),
        ("text", pa.string()),
        ("answers", pa.list_(pa.string())),
        ("titles", pa.list_(pa.string())),
        ("evidence", pa.list_(pa.list_(pa.string()))),
    ]
)


def write_questions(path: Path, splits: Mapping[Split, Sequence[Question]]) -> None:
    """Write the questions of all splits, in their order."""
    rows = [{"split": split, **question._asdict()} for split, questions in splits.items() for question in questions]
    temporary = path.with_name(f"{path.name}.tmp")
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), temporary, compression="zstd")
    publish(temporary, path)


def read_questions(path: Path, split: Split) -> list[Question]:
    """The questions of one split, in the order of its file."""
    rows = pq.read_table(path, filters=[("split", "=", split)]).to_pylist()
    return [
        Question(
            row["question_id"],
            row["task"],
            row["text"],
            tuple(row["answers"]),
            tuple(row["titles"]),
            tuple(map(tuple, row["evidence"])),
        )
        for row in rows
    ]
