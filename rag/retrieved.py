"""What retrievers found, on disk: ``retrieved.parquet`` has one row a task, question and passage, best first.

The texts stand there too, so that the metrics can be computed again from this file and the questions alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag.errors import DataError
from rag.evaluation.retrieval_score import ScoredPassage, judge, score_judged
from rag.evaluation.scorer import Scores
from rag.files import publish
from rag.records import Question
from rag.retrieval.retriever import Retriever

RETRIEVED_FILE = "retrieved.parquet"
_QUESTIONS_AT_ONCE = 64
_ROWS_AT_ONCE = 8192
_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("question_id", pa.string()),
        ("rank", pa.int32()),  # from 0
        ("passage_id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("doc_score", pa.float64()),
    ]
)
_Batches = Iterable[tuple[str, Sequence[Question]]]


def retrieve_to_file(
    retriever: Retriever,
    questions: Mapping[str, Sequence[Question]],
    n_docs: int,
    path: Path,
    progress: Callable[[_Batches], _Batches] = iter,
) -> int:
    """Find the n_docs passages of all questions of some tasks; returns how many rows were written.

    A question for which nothing is found has no row. Only a batch of questions is in memory.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    batches = [
        (task, asked[start : start + _QUESTIONS_AT_ONCE])
        for task, asked in questions.items()
        for start in range(0, len(asked), _QUESTIONS_AT_ONCE)
    ]
    count = 0
    with pq.ParquetWriter(temporary, _SCHEMA, compression="zstd") as writer:
        for task, asked in progress(batches):
            rows = list(_rows(task, asked, retriever, n_docs))
            writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
            count += len(rows)
    publish(temporary, path)
    return count


def _rows(task: str, asked: Sequence[Question], retriever: Retriever, n_docs: int) -> Iterator[dict[str, Any]]:
    found = retriever.retrieve([question.text for question in asked], n_docs)
    for question, passages, scores, mask in zip(asked, found.passages, found.doc_scores, found.mask, strict=True):
        for rank, (passage, score) in enumerate(zip(passages, scores[mask].tolist(), strict=True)):
            yield {
                "task": task,
                "question_id": question.question_id,
                "rank": rank,
                "passage_id": passage.passage_id,
                "title": passage.title,
                "text": passage.text,
                "doc_score": score,
            }


def score_file(
    path: Path, task: str, questions: Sequence[Question], at: Sequence[int], patterns: bool, seed: int
) -> Scores:
    """The metrics of a task over what ``retrieve_to_file`` wrote; see ``score_retrieval``."""
    found = read_retrieved(path, task, questions)
    return score_judged(
        questions, (judge(question, passages, patterns) for question, passages in found), at, patterns, seed
    )


def read_retrieved(
    path: Path, task: str, questions: Sequence[Question]
) -> Iterator[tuple[Question, list[ScoredPassage]]]:
    """Each question of a task with its passages, best first; only a part of the file is in memory.

    The questions come in the order of the file, those without a passage at the end. Raises DataError for an id that is
    no question's, or that stands in two places.
    """
    waiting = {question.question_id: question for question in questions}
    for question_id, rows in groupby(_rows_of(path, task), key=lambda row: str(row["question_id"])):
        question = waiting.pop(question_id, None)
        if question is None:
            raise DataError(f"{path} has passages of {question_id!r}, which is no question of {task} or stands twice")
        yield question, [ScoredPassage(row["text"], row["title"], row["doc_score"]) for row in rows]
    yield from ((question, []) for question in waiting.values())


def _rows_of(path: Path, task: str) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=["task", "question_id", "title", "text", "doc_score"]):
            yield from (row for row in batch.to_pylist() if row["task"] == task)
