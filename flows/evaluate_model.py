"""Answer every test question with a trained model, and score the answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, own_corpus, search_identity
from flows.open_models import allowed_passages, open_rag
from flows.recording import record_caveat, record_evaluation
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import TaskConfig
from rag.records import Split

if TYPE_CHECKING:
    from rag.records import Question

# Of a task, what decides the answers.
_OF_DECODING = {
    "prefix",
    "labels",
    "classification",
    "decoding",
    "num_beams",
    "length_penalty",
    "early_stopping",
    "min_new_tokens",
    "max_new_tokens",
    "no_repeat_ngram_size",
    "sequence_decoding",
    "samples",
    "temperature",
    "top_k",
    "top_p",
    "sampling_seed",
}


@flow(name="evaluate-model", flow_run_name=run_name("evaluate model: {study} {model}"))
def evaluate_model(study: str, model: str, overrides: tuple[str, ...] = ()) -> None:
    """Predictions and metrics of the model on every task it was trained on."""
    with study_run(study, overrides) as run:
        corpus = own_corpus(run, model)
        for task in run.study.models[model].tasks:
            evaluate_task(run, model, task, corpus)


def evaluate_task(run: StudyRun, model: str, task: str, corpus: Corpus | None) -> None:
    """Predict, score, record."""
    questions = run.result("questions", task)
    name, parents = f"{model}.{task}", {"questions": questions}
    config = run.study.tasks[task]
    predictions = predict(run, name, model, corpus, config, read_later(questions), parents)
    dev = None
    if config.calibrate:
        dev = predict(run, f"{name}.dev", model, corpus, config, read_later(questions, "dev"), parents)
    metrics = score(run, name, task, questions, predictions, dev)
    names = {"model": model, "task": task, "corpus": corpus.name if corpus else ""}
    record_evaluation(run, names, predictions, metrics)
    if predictions.facts["caveat"]:
        record_caveat(run, "checkpoints", model, predictions.facts["caveat"])


def read_later(questions: Artifact, split: Split = "test") -> "Callable[[], Sequence[Question]]":
    """What reads the questions of a task, once they are needed."""

    def read() -> "list[Question]":
        from rag.tasks.table import read_questions

        return read_questions(questions.file("questions.parquet"), split)

    return read


class FirstPassages(NamedTuple):
    """The first ``n_docs`` of passages that were retrieved before, for the questions they were retrieved for."""

    n_docs: int
    retrieved: Artifact


def predict(
    run: StudyRun,
    name: str,
    model: str,
    corpus: Corpus | None,
    task: TaskConfig,
    questions: "Callable[[], Sequence[Question]]",
    parents: Mapping[str, Artifact],
    first: FirstPassages | None = None,
) -> Artifact:
    """One stage: the predictions of a model, with the passages behind each, found anew or before."""
    config, checkpoint = run.study.models[model], run.result("model", model)

    def build(folder: Path) -> BuildResult:
        from rag.pipeline import answer_questions
        from rag.predictions import predict_to_folder
        from rag.retrieved import StoredRetriever

        rag, caveat = open_rag(run, model, checkpoint, corpus)
        asked = questions()
        if first:
            rag = replace(rag, n_docs=first.n_docs, retriever=StoredRetriever(first.retrieved.folder, asked))
        made = predict_to_folder(
            asked, lambda chunk: answer_questions(rag, task, chunk), folder, run.progress("chunks")
        )
        failed = sum(one.error is not None for one in made)
        counts = {"rows_in": len(asked), "rows_out": len(made), "rows_rejected": failed}
        return BuildResult(counts, {"caveat": caveat, "truncated_passages": sum(one.truncated for one in made)})

    return run.stage(
        "predictions",
        name,
        build,
        code=[
            "rag.pipeline",
            "rag.predictions",
            *(["rag.retrieved"] if first else []),
            "rag.training.checkpoint",
            "rag.tasks.table",
            *([corpus.code] if corpus else []),
        ],
        config={
            "task": task.model_dump(include=_OF_DECODING),
            "label_order": list(task.labels),  # the first of equals is given
            "search": search_identity(run, corpus) if corpus else None,
            "n_docs": first.n_docs if first else config.test_n_docs or config.n_docs,
            "generator": run.study.generator.model_dump(include={"layout", "max_source_tokens"}),
            "allowed": allowed_passages(run, model, corpus),
        },
        parents={
            "model": checkpoint,
            **parents,
            **(corpus.parents() if corpus else {}),
            **({"retrieved": first.retrieved} if first else {}),
        },
        versions=("torch", "transformers", "faiss-cpu"),
    )


def score(
    run: StudyRun, name: str, task: str, questions: Artifact, predictions: Artifact, dev: Artifact | None = None
) -> Artifact:
    """One stage: the metrics of some predictions, with intervals, and their values question by question.

    ``dev`` holds the predictions of the dev split, on which the temperature of a classification is fitted.
    """
    config = run.study.tasks[task]

    def build(folder: Path) -> BuildResult:
        from rag.evaluation.calibration import fit_on
        from rag.evaluation.score import score_task
        from rag.evaluation.score_files import write_scores
        from rag.predictions import read_predictions

        gold, made = read_later(questions)(), read_predictions(predictions.folder)
        fitted = fit_on(read_later(questions, "dev")(), read_predictions(dev.folder)) if dev else None
        temperature = fitted.temperature if fitted else None
        patterns = config.answers == "patterns"
        scores = score_task(config.reader, gold, made, run.study.seed, patterns, temperature)
        write_scores(folder, gold, made, scores, patterns, temperature)
        notes = scores.notes + (fitted.notes if fitted else [])
        facts = {"metrics": [metric._asdict() for metric in scores.metrics], "notes": notes}
        return BuildResult({"rows_in": len(made), "rows_out": len(scores.metrics)}, facts)

    return run.stage(
        "metrics",
        name,
        build,
        code=["rag.evaluation.score", "rag.evaluation.score_files", "rag.predictions", "rag.tasks.table"],
        config={"seed": run.study.seed, "answers": config.answers},
        parents={"questions": questions, "predictions": predictions, **({"dev": dev} if dev else {})},
    )
