"""Answer every test question with a trained model, and score the answers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, open_rag, own_corpus, search_identity
from flows.recording import record_evaluation
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import TaskConfig

if TYPE_CHECKING:
    from rag.records import Question

# Of a task, what decides the answers.
_OF_DECODING = {"prefix", "labels", "num_beams", "max_new_tokens", "sequence_decoding"}


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

    def test_questions() -> "list[Question]":
        from rag.tasks.table import read_questions

        return read_questions(questions.file("questions.parquet"), "test")

    name, parents = f"{model}.{task}", {"questions": questions}
    predictions = predict(run, name, model, corpus, run.study.tasks[task], test_questions, parents)
    metrics = score(run, name, task, questions, predictions)
    names = {"model": model, "task": task, "corpus": corpus.name if corpus else ""}
    record_evaluation(run, names, predictions, metrics)


def predict(
    run: StudyRun,
    name: str,
    model: str,
    corpus: Corpus | None,
    task: TaskConfig,
    questions: "Callable[[], Sequence[Question]]",
    parents: Mapping[str, Artifact],
) -> Artifact:
    """One stage: the predictions of a model, with the passages behind each."""
    config, checkpoint = run.study.models[model], run.result("model", model)

    def build(folder: Path) -> BuildResult:
        from rag.pipeline import answer_questions
        from rag.predictions import predict_to_folder

        rag = open_rag(run, model, checkpoint, corpus)
        asked = questions()
        made = predict_to_folder(
            asked, lambda chunk: answer_questions(rag, task, chunk), folder, run.progress("chunks")
        )
        failed = sum(one.error is not None for one in made)
        return BuildResult({"rows_in": len(asked), "rows_out": len(made), "rows_rejected": failed})

    return run.stage(
        "predictions",
        name,
        build,
        code=[
            "rag.pipeline",
            "rag.predictions",
            "rag.training.checkpoint",
            "rag.tasks.table",
            *([corpus.code] if corpus else []),
        ],
        config={
            "task": task.model_dump(include=_OF_DECODING),
            "search": search_identity(run, corpus) if corpus else None,
            "n_docs": config.test_n_docs or config.n_docs,
            "generator": run.study.generator.model_dump(include={"layout", "max_source_tokens"}),
        },
        parents={"model": checkpoint, **parents, **(corpus.parents() if corpus else {})},
        versions=("torch", "transformers", "faiss-cpu"),
    )


def score(run: StudyRun, name: str, task: str, questions: Artifact, predictions: Artifact) -> Artifact:
    """One stage: the metrics of some predictions, with intervals, and their values question by question."""
    config = run.study.tasks[task]

    def build(folder: Path) -> BuildResult:
        from rag.evaluation.score import score_task
        from rag.evaluation.score_files import write_scores
        from rag.predictions import read_predictions
        from rag.tasks.table import read_questions

        gold = read_questions(questions.file("questions.parquet"), "test")
        made = read_predictions(predictions.folder)
        patterns = config.answers == "patterns"
        scores = score_task(config.reader, gold, made, run.study.seed, patterns)
        write_scores(folder, gold, made, scores, patterns)
        facts = {"metrics": [metric._asdict() for metric in scores.metrics], "notes": scores.notes}
        return BuildResult({"rows_in": len(made), "rows_out": len(scores.metrics)}, facts)

    return run.stage(
        "metrics",
        name,
        build,
        code=["rag.evaluation.score", "rag.evaluation.score_files", "rag.predictions", "rag.tasks.table"],
        config={"seed": run.study.seed, "answers": config.answers},
        parents={"questions": questions, "predictions": predictions},
    )
