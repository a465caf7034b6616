"""Sample predictions with their passages, for people to look at."""

import json
import re
from typing import Any, NamedTuple

from reports.evidence import samples_anchor
from reports.store import Snapshot

_SHOWN_WORDS = 120


class Fragment(NamedTuple):
    """A piece of text, and whether it is one of the gold answers."""

    text: str
    is_answer: bool


class SamplePassage(NamedTuple):
    """A passage behind a prediction."""

    rank: int
    passage_id: str
    title: str
    fragments: tuple[Fragment, ...]
    doc_score: float | None
    prior: float | None
    posterior: float | None
    has_answer: bool | None
    cited: bool


class SampleToken(NamedTuple):
    """A token of an answer, and its posterior over the passages in their order."""

    text: str
    posterior: tuple[float, ...]


class SampleLabel(NamedTuple):
    """A label with its probability, and that after calibration where there is one."""

    label: str
    prob: float
    calibrated: float | None


class SampleAnswer(NamedTuple):
    """What one model answered."""

    model: str
    corpus: str
    text: str
    logprob: float | None
    score: float | None
    seconds: float | None
    error: str | None
    passages: tuple[SamplePassage, ...]
    tokens: tuple[SampleToken, ...]  # of RAG-Token
    labels: tuple[SampleLabel, ...]  # of a classification


class Sample(NamedTuple):
    """One question with the predictions of all models."""

    question_id: str
    text: str
    answers: tuple[str, ...]
    titles: tuple[str, ...]
    predictions: tuple[SampleAnswer, ...]


class TaskSamples(NamedTuple):
    """The samples of one task."""

    anchor: str
    task: str
    split: str
    n_questions: int
    samples: tuple[Sample, ...]


def samples(snapshot: Snapshot, run_id: str, per_task: int = 6) -> tuple[TaskSamples, ...]:
    """Some questions of every task, with what every model made of them.

    The same questions for all models, chosen by a hash of their ids and never by how well they went; one question that
    failed comes first, where there is one.
    """
    chosen = snapshot.query(_CHOSEN, [run_id, run_id, run_id, per_task]).records()
    found: dict[tuple[str, str], list[Sample]] = {}
    sizes = {}
    for row in chosen:
        place = (row["task"], row["split"])
        sizes[place] = row["n_questions"]
        found.setdefault(place, []).append(_sample(snapshot, run_id, row))
    return tuple(TaskSamples(samples_anchor(*place), *place, sizes[place], tuple(s)) for place, s in found.items())


_CHOSEN = """
WITH failed AS (
    SELECT task, split, min(question_id) AS question_id FROM predictions
    WHERE run_id = ? AND error IS NOT NULL GROUP BY ALL
), answered AS (
    SELECT DISTINCT task, split, question_id FROM predictions WHERE run_id = ?
)
SELECT q.*, count(*) OVER (PARTITION BY q.task, q.split) AS n_questions
FROM questions AS q SEMI JOIN answered USING (task, split, question_id)
LEFT JOIN failed AS f USING (task, split, question_id)
WHERE q.run_id = ?
QUALIFY row_number() OVER (PARTITION BY q.task, q.split
                           ORDER BY f.question_id IS NULL, md5(q.question_id), q.question_id) <= ?
ORDER BY q.task, q.split, f.question_id IS NULL, md5(q.question_id), q.question_id
"""

_OF_QUESTION = "run_id = ? AND task = ? AND split = ? AND question_id = ?"


def _sample(snapshot: Snapshot, run_id: str, question: dict[str, Any]) -> Sample:
    key = [run_id, question["task"], question["split"], question["question_id"]]
    rows = snapshot.query(f"SELECT * FROM predictions WHERE {_OF_QUESTION} ORDER BY model, corpus", key).records()
    passages = snapshot.query(f"SELECT * FROM retrieved_passages WHERE {_OF_QUESTION} ORDER BY rank", key).records()
    leaning = snapshot.query(f"SELECT * FROM token_posteriors WHERE {_OF_QUESTION}", key).records()
    tokens = {(row["model"], row["corpus"]): _tokens(row) for row in leaning}
    answers = tuple(question["answers"])
    predictions = []
    for row in rows:
        behind = [p for p in passages if (p["model"], p["corpus"]) == (row["model"], row["corpus"])]
        shown = tuple(_passage(p, answers, row["cited_passage_id"]) for p in behind)
        fields = (row["text"], row["logprob"], row["score"], row["seconds"], row["error"])
        parts = (shown, tokens.get((row["model"], row["corpus"]), ()), _labels(row))
        predictions.append(SampleAnswer(row["model"], row["corpus"], *fields, *parts))
    titles = tuple(question["titles"] or ())
    return Sample(question["question_id"], question["text"], answers, titles, tuple(predictions))


def _tokens(row: dict[str, Any]) -> tuple[SampleToken, ...]:
    """Those that are seen: the one that ends the answer has no text."""
    pairs = zip(row["tokens"], row["posteriors"], strict=True)
    return tuple(SampleToken(text, tuple(posterior)) for text, posterior in pairs if text)


def _labels(row: dict[str, Any]) -> tuple[SampleLabel, ...]:
    given, after = (json.loads(row[name] or "{}") for name in ("label_probs_json", "calibrated_probs_json"))
    return tuple(SampleLabel(label, prob, after.get(label)) for label, prob in given.items())


def _passage(row: dict[str, Any], answers: tuple[str, ...], cited: str | None) -> SamplePassage:
    words = row["text"].split(" ")
    text = " ".join(words[:_SHOWN_WORDS]) + (" …" if len(words) > _SHOWN_WORDS else "")
    return SamplePassage(
        row["rank"],
        row["passage_id"],
        row["title"],
        marked(text, answers if row["has_answer"] else ()),
        row["doc_score"],
        row["prior"],
        row["posterior"],
        row["has_answer"],
        cited == row["passage_id"],
    )


def marked(text: str, answers: tuple[str, ...]) -> tuple[Fragment, ...]:
    """The text in pieces, answers apart from the rest; only to guide the eye, no metric looks at it.

    >>> [fragment.text for fragment in marked("Lima is the capital.", ("lima",))]
    ['Lima', ' is the capital.']
    """
    patterns = [rf"(?<!\w){re.escape(answer)}(?!\w)" for answer in sorted(answers, key=len, reverse=True) if answer]
    if not patterns:
        return (Fragment(text, False),)
    pieces = re.split(f"({'|'.join(patterns)})", text, flags=re.IGNORECASE)
    return tuple(Fragment(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece)
