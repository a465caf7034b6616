"""One question at a time, with the models and indexes that a study has made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, get_args

from flows.corpora import Corpus, find_corpus, open_retriever
from flows.open_models import open_rag
from flows.study_run import StudyRun, open_run
from rag.config import RetrieverKind
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.config import TaskConfig
    from rag.records import Passage, Prediction
    from rag.retrieval.retriever import Retriever


class FoundPassage(NamedTuple):
    """A passage as a search found it."""

    doc_score: float
    passage: "Passage"
    url: str  # of the revision that it was cut from; "" where the source has no such address


@dataclass(frozen=True)
class Search:
    """A search over a corpus that a study has indexed, with everything loaded."""

    corpus: str
    retriever: RetrieverKind
    found_by: "Retriever"
    bases: Mapping[str, str]  # of each source, where its revisions have their addresses

    def __call__(self, question: str, n_docs: int) -> list[FoundPassage]:
        """The best passages of a question, best first."""
        from rag.corpus.ingest.ledger import revision_url

        found = self.found_by.retrieve([question], n_docs)
        return [
            FoundPassage(score, passage, revision_url(self._base(passage), passage.revision_id))
            for score, passage in zip(found.doc_scores[0].tolist(), found.passages[0], strict=False)
        ]

    def _base(self, passage: "Passage") -> str:
        return self.bases[passage.passage_id.partition(":")[0]]


def open_search(study: str, index: str | None, retriever: str, overrides: tuple[str, ...] = ()) -> Search:
    """Load what a search needs. Raises ConfigError where the study has no such corpus or retriever."""
    run = open_run(study, overrides)
    corpus = _corpus(run, index or next(reversed(run.study.corpora), ""), _retriever_kind(retriever))
    search = Search(corpus.name, corpus.retriever, open_retriever(run, corpus), _bases(corpus))
    search("warm up", 1)  # the first search of a process pays for what is mapped and loaded late
    return search


class Asked(NamedTuple):
    """A question with the answer of a trained model."""

    question: str
    prediction: "Prediction"
    model: str
    corpus: str
    urls: Mapping[str, str]  # of each passage, by its id, the revision that it was cut from
    caveat: str | None = None  # what is wrong, and allowed, or not known about the passages that it answers from


@dataclass(frozen=True)
class Choice:
    """Which model answers a question, over which index, and how; None is what the study says."""

    model: str | None = None
    index: str | None = None
    n_docs: int | None = None  # passages
    candidates: int = 1  # answers to look for


def answer(study: str, question: str, choice: Choice, overrides: tuple[str, ...] = ()) -> Asked:
    """The answer of a trained model, with its passages. Raises ConfigError where the study has no such model."""
    from rag.pipeline import answer_questions
    from rag.records import Question

    run = open_run(study, overrides)
    models = [name for name, config in run.study.models.items() if config.corpus]
    name = choice.model or next(iter(models), "")
    if name not in models:
        raise ConfigError(f"--model {name!r}: {study} has the RAG models {', '.join(models) or '(none)'}")
    corpus = _corpus(run, choice.index or str(run.study.models[name].corpus), run.study.models[name].retriever)
    rag, caveat = open_rag(run, name, run.result("model", name), corpus)
    rag = replace(rag, n_docs=choice.n_docs or rag.n_docs)
    assert rag.retriever, "a model with a corpus has one"
    task = ask_as([run.study.tasks[task] for task in run.study.models[name].tasks], choice.candidates)
    made = next(iter(answer_questions(rag, task, [Question("asked", task.reader, question, ())])))
    found = Search(corpus.name, corpus.retriever, rag.retriever, _bases(corpus))(question, rag.n_docs)
    return Asked(question, made, name, corpus.name, {one.passage.passage_id: one.url for one in found}, caveat)


def ask_as(tasks: "Sequence[TaskConfig]", candidates: int) -> "TaskConfig":
    """As which of its own tasks a model is asked: question answering before writing, and that before labels.

    It looks for so many answers; asking for one changes nothing, and labels are all shown anyway.
    """
    task = min(tasks, key=lambda task: (task.reader != "open-qa", bool(task.labels)))  # the first of equals
    if task.labels:
        return task
    width = "samples" if task.decoding == "sample" else "num_beams"
    return task.model_copy(update={width: max(getattr(task, width), candidates)})


def _bases(corpus: Corpus) -> dict[str, str]:
    return {part.name: part.facts["site"].get("base", "") for part in corpus.passages}


def _retriever_kind(name: str) -> RetrieverKind:
    known: tuple[RetrieverKind, ...] = get_args(RetrieverKind)
    if name not in known:
        raise ConfigError(f"--retriever {name!r}: use one of {', '.join(known)}")
    return known[known.index(name)]


def _corpus(run: StudyRun, name: str, retriever: RetrieverKind) -> Corpus:
    if name not in run.study.corpora:
        known = ", ".join(run.study.corpora) or "(none: name one under [corpora])"
        raise ConfigError(f"--index {name!r}: {run.study.name} has the corpora {known}")
    return find_corpus(run, name, retriever)
