"""The same questions with more and fewer passages: one retrieval of the most, of which fewer are the first rows."""

from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, own_corpus, search_identity
from flows.evaluate_model import FirstPassages, predict, read_later, score
from flows.open_models import open_rag
from flows.recording import record_sweep
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name


@flow(name="sweep-n-docs", flow_run_name=run_name("sweep n_docs: {study} {model}"))
def sweep_n_docs(study: str, model: str, overrides: tuple[str, ...] = ()) -> None:
    """Predictions and metrics of the model for every n_docs of its sweep; nothing where it has none."""
    with study_run(study, overrides) as run:
        corpus = own_corpus(run, model)
        if corpus is None or not run.study.models[model].sweep_n_docs:
            return
        for task in run.study.models[model].tasks:
            sweep_task(run, model, task, corpus)


def sweep_task(run: StudyRun, model: str, task: str, corpus: Corpus) -> None:
    """Retrieve once; then predict, score and record for every n_docs."""
    config, questions = run.study.models[model], run.result("questions", task)
    retrieved = retrieve_most(run, model, task, corpus, questions)
    swept = {}
    for n_docs in sorted(set(config.sweep_n_docs)):
        name, first = f"{model}.{task}.{n_docs}", FirstPassages(n_docs, retrieved)
        asked = read_later(questions)
        parents = {"questions": questions}
        predictions = predict(run, name, model, corpus, run.study.tasks[task], asked, parents, first)
        swept[n_docs] = predictions, score(run, name, task, questions, predictions)
    record_sweep(run, {"model": model, "task": task, "corpus": corpus.name}, swept)


def retrieve_most(run: StudyRun, model: str, task: str, corpus: Corpus, questions: Artifact) -> Artifact:
    """One stage: as many passages of every test question as the largest n_docs of the sweep, by the trained model."""
    checkpoint, n_docs = run.result("model", model), max(run.study.models[model].sweep_n_docs)

    def build(folder: Path) -> BuildResult:
        from rag.retrieved import RETRIEVED_FILE, retrieve_to_file

        retriever = open_rag(run, model, checkpoint, corpus).rag.retriever
        assert retriever, "a model with a corpus has one"
        asked = {task: read_later(questions)()}
        rows = retrieve_to_file(retriever, asked, n_docs, folder / RETRIEVED_FILE, run.progress("batches"))
        return BuildResult({"rows_in": len(asked[task]), "rows_out": rows})

    return run.stage(
        "swept-passages",
        f"{model}.{task}",
        build,
        code=["rag.retrieved", "rag.tasks.table", "rag.training.checkpoint", corpus.code],
        config={"n_docs": n_docs, "task": task, "search": search_identity(run, corpus)},
        parents={"model": checkpoint, "questions": questions, **corpus.parents()},
        versions=("torch", "transformers", "faiss-cpu"),
    )
