"""From the files of an artifact to rows of the results database: what each stage adds for its run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from flows.artifacts import Artifact
from flows.study_run import StudyRun

PER_QUESTION_FILE = "per_question.parquet"


def record_dataset(run: StudyRun, kind: str, artifact: Artifact) -> None:
    """The size of a table of data."""
    row = {"kind": kind, "name": artifact.name, "rows": artifact.counts["rows_out"], "counts_json": artifact.facts}
    with run.results.write() as session:
        session.replace("datasets", {"fingerprint": artifact.fingerprint}, [row])


def record_checks(run: StudyRun, artifact: Artifact) -> None:
    """Every expectation of a check stage, and every row that failed one."""
    key = {"run_id": run.run_id, "stage": artifact.stage, "name": artifact.name}
    rows = [
        {
            "suite": report["suite"],
            "n_rows": report["n_rows"],
            "column_name": result["column"] or "",
            "ordinal": number,  # a suite may expect the same of a column twice, with other arguments
            **{name: result[name] for name in ("expectation", "success", "n_unexpected", "observed", "message")},
        }
        for report in artifact.facts["reports"]
        for number, result in enumerate(report["results"])
    ]
    with run.results.write() as session:
        session.replace("checks", key, rows)
    record_rejects(run, artifact)


def record_rejects(run: StudyRun, artifact: Artifact, name: str = "rejects.jsonl") -> None:
    """Rows that a stage could not use, with place and reason."""
    with artifact.file(name).open(encoding="utf-8", newline="\n") as file:
        rejects = [json.loads(line) for line in file]
    rows = [
        {
            "source": reject.get("source", artifact.name),
            "row": reject.get("row", number),
            "reason": reject["reason"],
            "text": str(reject.get("text") or reject.get("title") or reject.get("row_id") or ""),
        }
        for number, reject in enumerate(rejects, start=1)
    ]
    key = {"run_id": run.run_id, "stage": artifact.stage, "name": artifact.name}
    with run.results.write() as session:
        session.replace("rejects", key, rows)


def record_questions(run: StudyRun, task: str, artifact: Artifact) -> None:
    """The questions of a task with their gold answers."""
    columns = ("split", "question_id", "text", "answers", "titles")
    rows = pq.read_table(artifact.file("questions.parquet"), columns=list(columns)).to_pylist()
    with run.results.write() as session:
        session.replace("questions", {"run_id": run.run_id, "task": task}, rows)


def record_recall(run: StudyRun, corpus: str, artifact: Artifact) -> None:
    """How much of an exact search the approximate index finds."""
    with run.results.write() as session:
        key = {"run_id": run.run_id, "corpus": corpus}
        session.replace("index_recall", key, artifact.facts["recalls"])


def record_training(run: StudyRun, model: str, artifact: Artifact) -> None:
    """The log of a training, step by step."""
    columns = ("step", "loss_per_example", "loss_per_token", "distinct_top1")
    rows = [{column: step[column] for column in columns} for step in artifact.facts["steps"]]
    with run.results.write() as session:
        session.replace("training_steps", {"run_id": run.run_id, "model": model}, rows)


def record_evaluation(run: StudyRun, names: Mapping[str, str], predictions: Artifact, metrics: Artifact) -> None:
    """Predictions with their evidence and the metrics over them; ``names`` are model, task and corpus."""
    key = {"run_id": run.run_id, "split": "test", **names}
    extra = {row["question_id"]: row for row in pq.read_table(metrics.file(PER_QUESTION_FILE)).to_pylist()}
    rows = pq.read_table(predictions.file("predictions.parquet")).to_pylist()
    for row in rows:
        row.update({name: extra[row["question_id"]][name] for name in ("normalised", "score")})
    evidence = pq.read_table(predictions.file("retrieved.parquet")).to_pylist()
    for row in evidence:
        held = extra[row["question_id"]]["has_answer"]
        row["has_answer"] = held[row["rank"]] if held else None
    values = [{**metric, "fingerprint": metrics.fingerprint} for metric in metrics.facts["metrics"]]
    with run.results.write() as session:
        session.replace("predictions", key, rows)
        session.replace("retrieved_passages", key, evidence)
        session.replace("metrics", key, values)


def record_comparisons(run: StudyRun, comparisons: Sequence[Mapping[str, Any]]) -> None:
    """The paired comparisons of the run's models."""
    with run.results.write() as session:
        session.replace("comparisons", {"run_id": run.run_id}, comparisons)


def record_expected(run: StudyRun, rows: Sequence[Mapping[str, Any]]) -> None:
    """What the study says that cells should hold, and what they do."""
    with run.results.write() as session:
        session.replace("expected", {"run_id": run.run_id}, rows)


def record_swap(run: StudyRun, model: str, answers: Sequence[Mapping[str, Any]]) -> None:
    """Every office, index and set of answers of the index swap."""
    with run.results.write() as session:
        session.replace("swap_answers", {"run_id": run.run_id, "model": model}, answers)
