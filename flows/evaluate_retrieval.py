"""Score retrievers alone, with the untrained question encoder, before any model is trained."""

from collections.abc import Mapping
from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, encoder_identity, find_corpus, find_questions, open_retriever, search_identity
from flows.recording import record_retrieval
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import StudyConfig

_SCORED = ("open-qa", "fever")  # the others have neither answers that stand in a passage nor gold pages


@flow(name="evaluate-retrieval", flow_run_name=run_name("evaluate retrieval: {study} {corpus}"))
def evaluate_retrieval(study: str, corpus: str, overrides: tuple[str, ...] = ()) -> None:
    """The study's retrievers on every task that one of its models answers with this corpus."""
    with study_run(study, overrides) as run:
        questions = find_questions(run, scored_tasks(run.study, corpus))
        for kind in run.study.retrieval.retrievers if questions else ():
            found = find_corpus(run, corpus, kind)
            retrieved = retrieve(run, found, questions)
            record_retrieval(run, corpus, kind, score(run, questions, retrieved))


def scored_tasks(study: StudyConfig, corpus: str) -> list[str]:
    """The tasks whose questions a retriever can be scored on; in a study without any model each corpus has them all."""
    asked = {task for model in study.models.values() if model.corpus == corpus for task in model.tasks}
    return [
        name for name, task in study.tasks.items() if task.reader in _SCORED and (name in asked or not study.models)
    ]


def retrieve(run: StudyRun, corpus: Corpus, questions: Mapping[str, Artifact]) -> Artifact:
    """One stage: the first passages of every test question of these tasks."""
    n_docs = max(run.study.retrieval.at)

    def build(folder: Path) -> BuildResult:
        from rag.retrieved import RETRIEVED_FILE, retrieve_to_file
        from rag.tasks.table import read_questions

        asked = {task: read_questions(part.file("questions.parquet"), "test") for task, part in questions.items()}
        path, progress = folder / RETRIEVED_FILE, run.progress("batches")
        rows = retrieve_to_file(open_retriever(run, corpus), asked, n_docs, path, progress)
        return BuildResult({"rows_in": sum(map(len, asked.values())), "rows_out": rows})

    return run.stage(
        "retrieved",
        f"{corpus.name}-{corpus.retriever}",
        build,
        code=["rag.retrieved", "rag.tasks.table", corpus.code],
        config={
            "n_docs": n_docs,
            "search": search_identity(run, corpus),
            "encoder": None if corpus.retriever == "bm25" else encoder_identity(run, "question"),
        },
        parents={**_by_role(questions), **corpus.parents()},
        versions=("torch", "transformers", "faiss-cpu"),
    )


def score(run: StudyRun, questions: Mapping[str, Artifact], retrieved: Artifact) -> Artifact:
    """One stage: the metrics of what was found, task by task, with their values question by question."""
    patterns = [task for task in questions if run.study.tasks[task].answers == "patterns"]
    at, seed = sorted(set(run.study.retrieval.at)), run.study.seed

    def build(folder: Path) -> BuildResult:
        from rag.evaluation.score_files import write_per_metric
        from rag.retrieved import RETRIEVED_FILE, score_file
        from rag.tasks.table import read_questions

        facts, rows = {}, 0
        for task, part in questions.items():
            gold = read_questions(part.file("questions.parquet"), "test")
            scores = score_file(retrieved.file(RETRIEVED_FILE), task, gold, at, task in patterns, seed)
            (folder / task).mkdir(exist_ok=True)
            write_per_metric(folder / task, scores.per_question)
            facts[task] = {"metrics": [metric._asdict() for metric in scores.metrics], "notes": scores.notes}
            rows += len(scores.metrics)
        return BuildResult({"rows_in": retrieved.counts["rows_out"], "rows_out": rows}, {"tasks": facts})

    return run.stage(
        "retrieval-metrics",
        retrieved.name,
        build,
        code=["rag.retrieved", "rag.evaluation.score_files", "rag.tasks.table"],
        config={"at": at, "patterns": patterns, "seed": seed},
        parents={**_by_role(questions), "retrieved": retrieved},
    )


def _by_role(questions: Mapping[str, Artifact]) -> dict[str, Artifact]:
    return {f"questions:{task}": part for task, part in questions.items()}
