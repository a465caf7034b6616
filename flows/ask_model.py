"""One question at a time, with the models and indexes that a study has made."""

from typing import TYPE_CHECKING, NamedTuple

from flows.corpora import Corpus, find_corpus, open_question_encoder, open_rag, open_retriever
from flows.study_run import StudyRun, open_run
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.records import Passage, Prediction

_SHOWN_PASSAGES = 5


class FoundPassage(NamedTuple):
    """A passage as a search found it."""

    doc_score: float
    passage: "Passage"
    url: str  # of the revision that it was cut from; "" where the source has no such address


def find_passages(study: str, question: str, index: str | None) -> list[FoundPassage]:
    """The best passages of an index for a question, with their scores and where they are from."""
    from rag.corpus.ingest.ledger import revision_url

    run = open_run(study)
    corpus = _corpus(run, index or next(reversed(run.study.corpora), ""))
    vectors = open_question_encoder(run).encode_questions([question])
    found = open_retriever(corpus).search(vectors, _SHOWN_PASSAGES)
    bases = {part.name: part.facts["site"].get("base", "") for part in corpus.passages}
    return [
        FoundPassage(score, passage, revision_url(bases[passage.passage_id.partition(":")[0]], passage.revision_id))
        for score, passage in zip(found.doc_scores[0].tolist(), found.passages[0], strict=False)
    ]


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
    rag = open_rag(run, name, run.result("model", name), corpus)
    tasks = [task for task in run.study.tasks.values() if task.reader == "open-qa"]
    task = tasks[0] if tasks else TaskConfig(reader="open-qa", test="-")
    return next(iter(answer_questions(rag, task, [Question("asked", "open-qa", question, ())])))


def _corpus(run: StudyRun, name: str) -> Corpus:
    if name not in run.study.corpora:
        known = ", ".join(run.study.corpora) or "(none: name one under [corpora])"
        raise ConfigError(f"--index {name!r}: {run.study.name} has the corpora {known}")
    return find_corpus(run, name)
