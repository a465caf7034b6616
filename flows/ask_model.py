"""One question at a time, with the models and indexes that a study has made."""

from typing import TYPE_CHECKING

from flows.artifacts import Artifact
from flows.corpora import Corpus, open_question_encoder, open_rag, open_retriever
from flows.study_run import StudyRun, open_run
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.records import Passage, Prediction

_SHOWN_PASSAGES = 5


def find_passages(study: str, question: str, index: str | None) -> "list[tuple[float, Passage]]":
    """The best passages of an index for a question, with their scores."""
    run = open_run(study)
    corpus = _corpus(run, index or list(run.study.corpora)[-1])
    vectors = open_question_encoder(run).encode_questions([question])
    found = open_retriever(corpus).search(vectors, _SHOWN_PASSAGES)
    return list(zip(found.doc_scores[0].tolist(), found.passages[0], strict=False))


def answer(study: str, question: str, index: str | None, model: str | None) -> "Prediction":
    """The answer of a trained model, with its passages."""
    from rag.config import TaskConfig
    from rag.pipeline import answer_questions
    from rag.records import Question

    run = open_run(study)
    models = [name for name, config in run.study.models.items() if config.corpus]
    name = model or next(iter(models), "")
    if name not in models:
        raise ConfigError(f"--model {name!r}: {study} has the RAG models {', '.join(models) or '(none)'}")
    corpus = _corpus(run, index or str(run.study.models[name].corpus))
    rag = open_rag(run, name, _newest(run, "model", name), corpus)
    tasks = [task for task in run.study.tasks.values() if task.reader == "open-qa"]
    task = tasks[0] if tasks else TaskConfig(reader="open-qa", test="-")
    return next(iter(answer_questions(rag, task, [Question("asked", "open-qa", question, ())])))


def _corpus(run: StudyRun, name: str) -> Corpus:
    if name not in run.study.corpora:
        known = ", ".join(run.study.corpora)
        raise ConfigError(f"--index {name!r}: {run.study.name} has the corpora {known}")
    index = _newest(run, "index", f"{name}-{run.study.index.kind}")
    parents = {artifact.fingerprint: artifact for artifact in run.artifacts.artifacts()}
    made_from = [parents[parent.fingerprint] for parent in index.manifest.parents.values()]
    by_stage = {
        stage: {part.name: part for part in made_from if part.stage == stage} for stage in ("passages", "vectors")
    }
    sources = run.study.corpora[name]
    return Corpus(
        name,
        tuple(by_stage["passages"][source] for source in sources),
        tuple(by_stage["vectors"][source] for source in sources),
        index,
    )


def _newest(run: StudyRun, stage: str, name: str) -> Artifact:
    found = [one for one in run.artifacts.artifacts() if (one.stage, one.name) == (stage, name)]
    if not found:
        raise ConfigError(f"{run.study.name} has no {stage} {name} yet; run openbook run {run.reference} first")
    return max(found, key=lambda artifact: artifact.manifest.created_at)
