"""Scores on disk: per question what a report shows beside it, and every metric's value for paired tests."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag.evaluation.answers import normalize_answer
from rag.evaluation.calibration import calibrated
from rag.evaluation.retrieval import answer_in_passage
from rag.evaluation.scorer import QuestionScore, Scores
from rag.files import publish
from rag.records import Prediction, Question
from rag.text import decompose

PER_QUESTION_FILE = "per_question.parquet"
SCORES_FILE = "scores.parquet"
_PER_QUESTION = pa.schema(
    [
        ("question_id", pa.string()),
        ("normalised", pa.string()),
        ("score", pa.float64()),  # by the task's first metric that is averaged over questions
        ("has_answer", pa.list_(pa.bool_())),  # by rank, whether the passage holds an answer; null for other tasks
        # of labels at the fitted temperature; null where none was fitted
        ("calibrated_probs", pa.list_(pa.struct([("label", pa.string()), ("prob", pa.float64())]))),
    ]
)
_SCORES = pa.schema([("question_id", pa.string()), ("metric", pa.string()), ("value", pa.float64())])


def write_scores(
    folder: Path,
    questions: Sequence[Question],
    predictions: Sequence[Prediction],
    scores: Scores,
    patterns: bool = False,
    temperature: float | None = None,
) -> None:
    """Write both tables; questions without a prediction have no row in the first. Options: see ``score_task``."""
    first = scores.per_question[0].metric if scores.per_question else None
    values = {one.question_id: one.value for one in scores.per_question if one.metric == first}
    gold = {question.question_id: question for question in questions}
    rows = [
        {
            "question_id": one.question_id,
            "normalised": None if one.error else decompose(one.text) if patterns else normalize_answer(one.text),
            "score": values.get(one.question_id),
            "has_answer": _has_answer(gold[one.question_id], one, patterns),
            "calibrated_probs": _calibrated(one, temperature),
        }
        for one in predictions
    ]
    _write(folder / PER_QUESTION_FILE, pa.Table.from_pylist(rows, schema=_PER_QUESTION))
    write_per_metric(folder, scores.per_question)


def write_per_metric(folder: Path, values: Sequence[QuestionScore]) -> None:
    """Write the second table alone: the value of every question and metric."""
    _write(folder / SCORES_FILE, pa.Table.from_pylist([one._asdict() for one in values], schema=_SCORES))


def read_scores(path: Path) -> list[QuestionScore]:
    """The per-question values of every metric."""
    return [QuestionScore(**row) for row in pq.read_table(path).to_pylist()]


def _has_answer(question: Question, prediction: Prediction, patterns: bool) -> list[bool] | None:
    if question.task != "open-qa":
        return None
    return [answer_in_passage(passage.text, question.answers, patterns) for passage in prediction.retrieved]


def _calibrated(prediction: Prediction, temperature: float | None) -> list[dict[str, object]] | None:
    if temperature is None or not prediction.label_probs:
        return None
    return [one._asdict() for one in calibrated(prediction.label_probs, temperature)]


def _write(path: Path, table: pa.Table) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    pq.write_table(table, temporary, compression="zstd")
    publish(temporary, path)
