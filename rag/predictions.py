"""Predictions on disk: written in chunks that survive a kill, kept as two Parquet tables.

``predictions.parquet`` has one row a question, ``retrieved.parquet`` one a question and passage. What a row has
several of (tokens, candidates, labels) are lists of it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag.errors import DataError
from rag.files import publish, write_atomically
from rag.records import Candidate, LabelProb, Prediction, Question, RetrievedPassage, TokenEvidence

PREDICTIONS_FILE = "predictions.parquet"
RETRIEVED_FILE = "retrieved.parquet"
_CHUNKS = ".chunks"  # hidden: scratch of a stage, never part of its result
_CHUNK_QUESTIONS = 64
_PREDICTION_SCHEMA = pa.schema(
    [
        ("question_id", pa.string()),
        ("text", pa.string()),
        ("logprob", pa.float64()),
        ("cited_passage_id", pa.string()),
        ("seconds", pa.float64()),
        ("error", pa.string()),
        ("tokens", pa.list_(pa.struct([("text", pa.string()), ("posterior", pa.list_(pa.float32()))]))),
        ("candidates", pa.list_(pa.struct([("text", pa.string()), ("logprob", pa.float64())]))),
        ("label_probs", pa.list_(pa.struct([("label", pa.string()), ("prob", pa.float64())]))),
        ("truncated", pa.int32()),
    ]
)
_PARTS: dict[str, Callable[..., Any]] = {
    "retrieved": RetrievedPassage,
    "candidates": Candidate,
    "label_probs": LabelProb,
    "tokens": lambda text, posterior: TokenEvidence(text, tuple(posterior)),
}
_RETRIEVED_SCHEMA = pa.schema(
    [
        ("question_id", pa.string()),
        ("rank", pa.int32()),
        ("passage_id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("doc_score", pa.float64()),
        ("prior", pa.float64()),
        ("posterior", pa.float64()),
    ]
)
Chunks = Iterable[Sequence[Question]]


def predict_to_folder(
    questions: Sequence[Question],
    answer: Callable[[Sequence[Question]], Iterable[Prediction]],
    folder: Path,
    progress: Callable[[Chunks], Chunks] = iter,
) -> list[Prediction]:
    """Answer all questions, chunk by chunk; chunks that an earlier, killed call left in ``folder`` are kept.

    Raises DataError unless every question has exactly one prediction at the end.
    """
    chunk_folder = folder / _CHUNKS
    chunk_folder.mkdir(parents=True, exist_ok=True)
    chunks = [questions[start : start + _CHUNK_QUESTIONS] for start in range(0, len(questions), _CHUNK_QUESTIONS)]
    predictions: list[Prediction] = []
    for number, chunk in enumerate(progress(chunks)):
        path = chunk_folder / f"{number:05d}.jsonl"
        if not path.is_file():
            write_atomically(path, "".join(_line(prediction) for prediction in answer(chunk)).encode())
        predictions.extend(_read_chunk(path))
    if [one.question_id for one in predictions] != [question.question_id for question in questions]:
        raise DataError(f"{len(predictions)} predictions are not those of the {len(questions)} questions; run again")
    _write_tables(predictions, folder)
    return predictions


def read_predictions(folder: Path) -> list[Prediction]:
    """The predictions of a folder with their passages, in the order of their questions."""
    evidence: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(folder / RETRIEVED_FILE).to_pylist():
        evidence.setdefault(row["question_id"], []).append(row)
    return [
        _prediction(row | {"retrieved": evidence.get(row["question_id"], ())})
        for row in pq.read_table(folder / PREDICTIONS_FILE).to_pylist()
    ]


def _row(prediction: Prediction) -> dict[str, Any]:
    """The prediction as nested mappings and lists, and back with ``_prediction``."""
    parts = {name: [part._asdict() for part in getattr(prediction, name)] for name in _PARTS}
    return prediction._asdict() | parts


def _prediction(row: dict[str, Any]) -> Prediction:
    parts = {name: tuple(make(**part) for part in row[name]) for name, make in _PARTS.items()}
    return Prediction(**(row | parts))


def _line(prediction: Prediction) -> str:
    row = _row(prediction)
    row["logprob"] = prediction.logprob if math.isfinite(prediction.logprob) else None
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _read_chunk(path: Path) -> Iterator[Prediction]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            row: dict[str, Any] = json.loads(line)
            row["logprob"] = -math.inf if row["logprob"] is None else row["logprob"]
            yield _prediction(row)


def _write_tables(predictions: Sequence[Prediction], folder: Path) -> None:
    rows = [_row(one) for one in predictions]
    evidence = [passage for row in rows for passage in row["retrieved"]]
    for name, schema, content in (
        (PREDICTIONS_FILE, _PREDICTION_SCHEMA, rows),
        (RETRIEVED_FILE, _RETRIEVED_SCHEMA, evidence),
    ):
        temporary = folder / f"{name}.tmp"
        pq.write_table(pa.Table.from_pylist(content, schema=schema), temporary, compression="zstd")
        publish(temporary, folder / name)
