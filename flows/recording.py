"""From the files of an artifact to rows of the results database: what each stage adds for its run.

Rows of an artifact that the run's latest call had too are there already, and are not written again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from flows.artifacts import Artifact
from flows.study_run import StudyRun

SWEEP_FILE = "sweep.parquet"  # of the stage recall: rows of the table index_sweep
_OF_A_PREDICTION = ("question_id", "text", "logprob", "cited_passage_id", "seconds", "error")
_CAVEATS = {
    "encoders": "question and passage encoders are of one training",
    "checkpoints": "the model was trained with the passages that it answers from",
    "training": "the trained retriever finds different passages for different questions",
}
_OF_A_CHECK = ("expectation", "success", "n_unexpected", "observed", "message", "severity")


def record_dataset(run: StudyRun, kind: str, artifact: Artifact) -> None:
    """The size of a table of data."""
    if run.rows.knows(artifact):
        return
    row = {"kind": kind, "name": artifact.name, "rows": artifact.counts["rows_out"], "counts_json": artifact.facts}
    run.rows.replace("datasets", {"fingerprint": artifact.fingerprint}, [row])


def record_checks(run: StudyRun, artifact: Artifact) -> None:
    """Every expectation of a check stage, and every row that failed one."""
    if run.rows.knows(artifact):
        return
    key = {"run_id": run.run_id, "stage": artifact.stage, "name": artifact.name}
    rows = [
        {
            **{name: report[name] for name in ("suite", "n_rows", "batch")},
            "column_name": result["column"] or "",
            "ordinal": number,  # a suite may expect the same of a column twice, and is run over every shard
            **{name: result[name] for name in _OF_A_CHECK},
        }
        for number, (report, result) in enumerate(
            (report, result) for report in artifact.facts["reports"] for result in report["results"]
        )
    ]
    run.rows.replace("checks", key, rows)
    record_rejects(run, artifact)


def record_rejects(run: StudyRun, artifact: Artifact, name: str = "rejects.jsonl") -> None:
    """Rows that a stage could not use, with place and reason."""
    if run.rows.knows(artifact):
        return
    with artifact.file(name).open(encoding="utf-8", newline="\n") as file:
        rejects = [json.loads(line) for line in file]
    rows, places = [], set()
    for number, reject in enumerate(rejects, start=1):
        source, row = _place(reject, artifact.name, number)
        if (source, row, reject["reason"]) in places:  # the same place and reason twice is still two rejects
            source = f"{source} ({number})"
        places.add((source, row, reject["reason"]))
        rows.append({"source": source, "row": row, "reason": reject["reason"], "text": _rejected(reject)})
    key = {"run_id": run.run_id, "stage": artifact.stage, "name": artifact.name}
    run.rows.replace("rejects", key, rows)


def _place(reject: Mapping[str, Any], name: str, number: int) -> tuple[str, int]:
    """Source and row of a reject: the file or document it was in, where it says that."""
    source = str(reject.get("source") or name)
    return f"{source}: {reject['key']}" if reject.get("key") else source, reject.get("row", number)


def _rejected(reject: Mapping[str, Any]) -> str:
    """What a reject is of, in the words of whatever turned it away."""
    if "row_id" in reject:
        return f"{reject['row_id']}: {reject.get('value', '')}"
    return str(reject.get("text") or reject.get("title") or "")


def record_dropped_templates(run: StudyRun, artifact: Artifact) -> None:
    """The templates of a dump whose text no handler renders."""
    if run.rows.knows(artifact):
        return
    counts = artifact.facts["unrendered_templates"]
    rows = [{"template": template, "dropped": dropped} for template, dropped in counts.items()]
    run.rows.replace("dropped_templates", {"run_id": run.run_id, "name": artifact.name}, rows)


def record_questions(run: StudyRun, task: str, artifact: Artifact) -> None:
    """The questions of a task with their gold answers."""
    if run.rows.knows(artifact):
        return
    columns = ("split", "question_id", "text", "answers", "titles")
    rows = pq.read_table(artifact.file("questions.parquet"), columns=list(columns)).to_pylist()
    run.rows.replace("questions", {"run_id": run.run_id, "task": task}, rows)


def record_recall(run: StudyRun, corpus: str, artifact: Artifact) -> None:
    """How much of an exact search the index finds, and what other search settings would find and cost."""
    if run.rows.knows(artifact):
        return
    key = {"run_id": run.run_id, "corpus": corpus}
    run.rows.replace("index_recall", key, artifact.facts["recalls"])
    run.rows.replace("index_sweep", key, pq.read_table(artifact.file(SWEEP_FILE)).to_pylist())


def record_caveat(run: StudyRun, suite: str, name: str, problem: str | None) -> None:
    """What is wrong with the encoders that a corpus is searched with, or with the passages of a model, and allowed."""
    row = {
        "suite": suite,
        "expectation": _CAVEATS[suite],
        "success": problem is None,
        "severity": "warning",
        "message": problem,
    }
    run.rows.replace("checks", {"run_id": run.run_id, "stage": suite, "name": name}, [row])


def record_training(run: StudyRun, model: str, artifact: Artifact) -> None:
    """The log of a training, step by step."""
    if run.rows.knows(artifact):
        return
    columns = ("step", "loss_per_example", "loss_per_token", "distinct_top1")
    rows = [{column: step[column] for column in columns} for step in artifact.facts["steps"]]
    run.rows.replace("training_steps", {"run_id": run.run_id, "model": model}, rows)


def record_evaluation(run: StudyRun, names: Mapping[str, str], predictions: Artifact, metrics: Artifact) -> None:
    """Predictions with their evidence and the metrics over them; ``names`` are model, task and corpus."""
    if run.rows.knows(predictions) and run.rows.knows(metrics):
        return
    from rag.evaluation.score_files import PER_QUESTION_FILE

    key = {"run_id": run.run_id, "split": "test", **names}
    extra = {row["question_id"]: row for row in pq.read_table(metrics.file(PER_QUESTION_FILE)).to_pylist()}
    made = pq.read_table(predictions.file("predictions.parquet")).to_pylist()
    evidence = pq.read_table(predictions.file("retrieved.parquet")).to_pylist()
    for row in evidence:
        held = extra[row["question_id"]]["has_answer"]
        row["has_answer"] = held[row["rank"]] if held else None
    cited = {(row["question_id"], row["passage_id"]): row["has_answer"] for row in evidence}
    rows = [
        {
            **{name: row[name] for name in _OF_A_PREDICTION},
            **{name: extra[row["question_id"]][name] for name in ("normalised", "score")},
            "cited_has_answer": cited.get((row["question_id"], row["cited_passage_id"])),
            "n_candidates": len(row["candidates"]) or None,
            "label_probs_json": _by_label(row["label_probs"]),
            "calibrated_probs_json": _by_label(extra[row["question_id"]]["calibrated_probs"]),
        }
        for row in made
    ]
    tokens = [
        {
            "question_id": row["question_id"],
            "tokens": [one["text"] for one in row["tokens"]],
            "posteriors": [one["posterior"] for one in row["tokens"]],
        }
        for row in made
        if row["tokens"]
    ]
    run.rows.replace("predictions", key, rows)
    run.rows.replace("retrieved_passages", key, evidence)
    run.rows.replace("token_posteriors", key, tokens)
    run.rows.replace("metrics", key, _metric_rows(predictions, metrics))


def _by_label(probs: Sequence[Mapping[str, Any]] | None) -> dict[str, float] | None:
    return {one["label"]: one["prob"] for one in probs} if probs else None


def _metric_rows(predictions: Artifact, metrics: Artifact) -> list[dict[str, Any]]:
    """The metrics with how the predictions behind them were made."""
    config: Mapping[str, Any] = predictions.manifest.config
    decoding = {"n_docs": config["n_docs"] if config["search"] else None, **config["task"]}
    extra = {"fingerprint": metrics.fingerprint, "decoding_json": decoding}
    return [{**metric, **extra} for metric in metrics.facts["metrics"]]


def record_sweep(run: StudyRun, names: Mapping[str, str], made: Mapping[int, tuple[Artifact, Artifact]]) -> None:
    """The predictions and metrics of a model and task for every n_docs of a sweep; only the metrics are rows."""
    if all(run.rows.knows(metrics) for _, metrics in made.values()):
        return
    rows = [{"n_docs": n_docs, **row} for n_docs, artifacts in made.items() for row in _metric_rows(*artifacts)]
    run.rows.replace("n_docs_sweep", {"run_id": run.run_id, "split": "test", **names}, rows)


def record_retrieval(run: StudyRun, corpus: str, retriever: str, metrics: Artifact) -> None:
    """The metrics of a retriever alone, of all tasks; no model can have its name, for that has no colon."""
    if run.rows.knows(metrics):
        return
    for task, scores in metrics.facts["tasks"].items():
        key = {"run_id": run.run_id, "split": "test", "model": f"retriever:{retriever}", "task": task, "corpus": corpus}
        rows = [{**metric, "fingerprint": metrics.fingerprint} for metric in scores["metrics"]]
        run.rows.replace("metrics", key, rows)


def record_comparisons(run: StudyRun, compared: Artifact) -> None:
    """The paired comparisons of the run's models."""
    if not run.rows.knows(compared):
        run.rows.replace("comparisons", {"run_id": run.run_id}, compared.facts["comparisons"])


def record_expected(run: StudyRun, rows: Sequence[Mapping[str, Any]]) -> None:
    """What the study says that cells should hold, and what they do."""
    run.rows.replace("expected", {"run_id": run.run_id}, rows)


def record_swap(run: StudyRun, model: str, scored: Artifact) -> None:
    """Every office, index and set of answers of the index swap."""
    if not run.rows.knows(scored):
        run.rows.replace("swap_answers", {"run_id": run.run_id, "model": model}, scored.facts["answers"])
