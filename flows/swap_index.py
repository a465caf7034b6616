"""The index swap: one trained model, two indexes, and the answers of two dates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, find_corpus, open_passages
from flows.evaluate_model import predict
from flows.open_models import open_generator
from flows.recording import record_swap
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import SwapConfig, TaskConfig

if TYPE_CHECKING:
    from rag.evaluation.swap import SwapQuestion


@flow(name="swap-index", flow_run_name=run_name("swap index: {study}"))
def swap_index(study: str, overrides: tuple[str, ...] = ()) -> None:
    """Ask who holds each office that changed hands, with either index; nothing where the study has no swap."""
    with study_run(study, overrides) as run:
        config = run.study.swap
        if config is None:
            return
        retriever = run.study.models[config.model].retriever
        asked = {name: find_corpus(run, name, retriever) for name in (config.before_corpus, config.after_corpus)}
        predictions = {name: ask(run, config, corpus) for name, corpus in asked.items()}
        scored = score_answers(run, config, asked, predictions)
        record_swap(run, config.model, scored)


def _questions(run: StudyRun, config: SwapConfig) -> "list[SwapQuestion]":
    from rag.evaluation.swap import swap_questions

    return swap_questions(run.path(config.facts), config)


def _identity(run: StudyRun, config: SwapConfig) -> dict[str, object]:
    dates = {"before": config.before_date.isoformat(), "after": config.after_date.isoformat()}
    dates |= {"before_corpus": config.before_corpus, "after_corpus": config.after_corpus}
    return {"facts": run.file_identity(config.facts), "template": config.template, **dates}


def ask(run: StudyRun, config: SwapConfig, corpus: Corpus) -> Artifact:
    """The model's answers with one index; greedy, as in question answering."""
    task = _answering(run, config)
    questions = run.stage(
        "swap-questions",
        "all",
        lambda folder: _write_questions(run, config, folder),
        code=["rag.evaluation.swap", "rag.tasks.table"],
        config=_identity(run, config),
    )
    name = f"{config.model}.swap-{corpus.name}"

    def asked() -> Sequence[object]:
        return [one.question for one in _questions(run, config)]

    return predict(run, name, config.model, corpus, task, asked, {"questions": questions})  # type: ignore[arg-type]


def _answering(run: StudyRun, config: SwapConfig) -> TaskConfig:
    """How offices are asked for: as the model's own question-answering task."""
    tasks = [run.study.tasks[name] for name in run.study.models[config.model].tasks]
    return next((task for task in tasks if task.reader == "open-qa"), tasks[0])


def _write_questions(run: StudyRun, config: SwapConfig, folder: Path) -> BuildResult:
    from rag.tasks.table import write_questions

    questions = [one.question for one in _questions(run, config)]
    write_questions(folder / "questions.parquet", {"test": questions})
    return BuildResult({"rows_out": len(questions)})


def score_answers(
    run: StudyRun,
    config: SwapConfig,
    corpora: Mapping[str, Corpus],
    predictions: Mapping[str, Artifact],
) -> Artifact:
    """One stage: each answer against the holders of both dates, and what neither index nor generator can give."""
    checkpoint = run.result("model", config.model)

    def build(folder: Path) -> BuildResult:  # noqa: ARG001  (its result is all in the manifest)
        from rag.evaluation.retrieval import answer_coverage
        from rag.evaluation.swap import score_swap
        from rag.predictions import read_predictions

        questions = _questions(run, config)
        answers = [names for one in questions for names in (one.before, one.after)]
        spells = open_generator(checkpoint.folder / "generator").tokenizer.spells
        rows = []
        for name, corpus in corpora.items():
            passages = open_passages(corpus)
            texts = (passage.text for passage in passages.rows(range(len(passages))))
            holds = dict(zip(answers, answer_coverage(answers, texts), strict=True))
            made = read_predictions(predictions[name].folder)
            dates = (config.before_corpus, config.after_corpus)
            rows += score_swap(questions, made, dates, name, holds, spells)
        return BuildResult({"rows_in": len(questions), "rows_out": len(rows)}, {"answers": [r._asdict() for r in rows]})

    parents = {f"predictions:{name}": artifact for name, artifact in predictions.items()}
    for corpus in corpora.values():
        parents |= corpus.parents()
    return run.stage(
        "swap",
        config.model,
        build,
        code=["rag.evaluation.swap", "rag.evaluation.retrieval", "rag.modeling.tokenizer", "rag.predictions"],
        config=_identity(run, config),
        parents={"model": checkpoint, **parents},
    )
