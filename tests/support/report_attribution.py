"""Rows of the report's fixture about evidence: posteriors of tokens, probabilities of labels, a sweep over n_docs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLACE = ("model", "task", "corpus", "question_id")
SWEPT = {1: 0.5, 5: 0.7, 10: 0.75}


def token_posteriors(predictions: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For RAG-Token's answers; every token leans on another of the three passages."""
    for row in predictions:
        if row["model"] == "rag-token" and row["task"] != "fever" and row["text"]:
            words = row["text"].split(" ")
            tokens = [words[0], *(f" {word}" for word in words[1:]), ""]
            leaning = [[0.9 if rank == place % 3 else 0.05 for rank in range(3)] for place in range(len(tokens))]
            yield {name: row[name] for name in _PLACE} | {"tokens": tokens, "posteriors": leaning}


def with_label_probs(row: dict[str, Any]) -> dict[str, Any]:
    """A prediction with the probabilities that its labels had."""
    if row["task"] != "fever" or row["text"] not in ("SUPPORTS", "REFUTES"):
        return row
    other = {"SUPPORTS": "REFUTES", "REFUTES": "SUPPORTS"}[row["text"]]
    given = {row["text"]: 0.9, other: 0.06, "NOT ENOUGH INFO": 0.04}
    calibrated = {row["text"]: 0.7, other: 0.18, "NOT ENOUGH INFO": 0.12}
    return row | {"label_probs_json": given, "calibrated_probs_json": calibrated}


def n_docs_sweep() -> Iterator[dict[str, Any]]:
    """Exact match of one model with one, five and ten passages; one question failed with ten."""
    for n_docs, value in SWEPT.items():
        n = 11 if n_docs == 10 else 12
        yield {
            "model": "rag-token", "task": "open-qa", "corpus": "2018", "n_docs": n_docs, "name": "exact_match",
            "value": value, "low": value - 0.2, "high": value + 0.2, "n": n, "n_expected": 12, "n_errors": 12 - n,
            "signature": "exact_match|norm:squad-1|agg:max-over-answers|ci:wilson|v1", "fingerprint": None,
        }  # fmt: skip
