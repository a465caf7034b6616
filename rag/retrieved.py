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
from rag.records import Passage, Question
from rag.retrieval.results import SearchResult
from rag.retrieval.retriever import Retrieved, Retriever, with_passages

RETRIEVED_FILE = "retrieved.parquet"
_QUESTIONS_AT_ONCE = 64
_ROWS_AT_ONCE = 8192
_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("question_id", pa.string()),
        ("rank", pa.int32()),  # from 0
        ("row", pa.int64()),  # of the passage in its index
        ("passage_id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("page_id", pa.int64()),
        ("revision_id", pa.int64()),
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
    for place, (question, passages) in enumerate(zip(asked, found.passages, strict=True)):
        mask = found.mask[place]
        numbers = zip(passages, found.rows[place][mask].tolist(), found.doc_scores[place][mask].tolist(), strict=True)
        for rank, (passage, row, score) in enumerate(numbers):
            own = {"task": task, "question_id": question.question_id, "rank": rank, "row": row, "doc_score": score}
            yield {**own, **passage._asdict()}


class StoredRetriever:
    """Passages that ``retrieve_to_file`` found: the first n_docs of a question's are what asking for n_docs finds.

    That holds where a search looks at the same candidates for fewer passages as for more
    (``IndexConfig.steady_n_docs``). A question has no passage beyond those that were found for it. ``questions`` are
    those of the one task in the file of ``folder``.
    """

    def __init__(self, folder: Path, questions: Sequence[Question]) -> None:
        texts = {question.question_id: question.text for question in questions}
        self._found: dict[str, list[tuple[int, float]]] = {text: [] for text in texts.values()}
        self._passages = _PassagesByRow()
        own: dict[str, str] = {}  # of equal questions, whose passages are equal too, one is read
        for row in _rows_of(folder / RETRIEVED_FILE, _SCHEMA.names):
            text = texts[row["question_id"]]
            if own.setdefault(text, row["question_id"]) == row["question_id"]:
                self._found[text].append((row["row"], row["doc_score"]))
                if row["row"] not in self._passages:
                    self._passages[row["row"]] = Passage(**{name: row[name] for name in Passage._fields})

    def retrieve(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        """The first n_docs passages of every question. Raises DataError for a question that was not asked."""
        result = SearchResult.empty(len(questions), n_docs)
        for place, question in enumerate(questions):
            found = self._of(question)[:n_docs]
            result.mask[place, : len(found)] = True
            for rank, (row, score) in enumerate(found):
                result.rows[place, rank], result.scores[place, rank] = row, score
        return with_passages(result, self._passages)

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """Whether a passage was found for a question."""
        return [bool(self._of(question)) for question in questions]

    def _of(self, question: str) -> list[tuple[int, float]]:
        if question not in self._found:
            raise DataError(f"no passages were stored for {question!r}; retrieve them again")
        return self._found[question]


class _PassagesByRow(dict[int, Passage]):
    def rows(self, rows: Sequence[int]) -> list[Passage]:
        return [self[row] for row in rows]


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
    names = ("task", "question_id", "title", "text", "doc_score")
    of_task = (row for row in _rows_of(path, names) if row["task"] == task)
    for question_id, rows in groupby(of_task, key=lambda row: str(row["question_id"])):
        question = waiting.pop(question_id, None)
        if question is None:
            raise DataError(f"{path} has passages of {question_id!r}, which is no question of {task} or stands twice")
        yield question, [ScoredPassage(row["text"], row["title"], row["doc_score"]) for row in rows]
    yield from ((question, []) for question in waiting.values())


def _rows_of(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of the file; only a part of it is in memory."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
            yield from batch.to_pylist()
