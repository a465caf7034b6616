"""What the later stages need of a corpus and its models, from the artifacts that hold them.

``Corpus`` names the artifacts; the ``open_`` functions load them, inside builds only, so that a study whose
results are all there loads no model.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from flows.artifacts import Artifact
from flows.paths import resolve_model
from flows.study_run import StudyRun
from rag.config import IndexKind, RetrieverKind, StudyConfig
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.corpus.passages import PassageTable
    from rag.retrieval.bm25_index import Bm25Index
    from rag.retrieval.encoders import Encoder
    from rag.retrieval.index import PassageIndex
    from rag.retrieval.retriever import DenseRetriever, Retriever
    from rag.retrieval.vectors import VectorFile


@dataclass(frozen=True)
class Corpus:
    """The passages of a corpus with what its retriever searches them by; sources in the study's order."""

    name: str
    retriever: RetrieverKind
    passages: tuple[Artifact, ...]
    vectors: tuple[Artifact, ...]  # none for bm25
    index: Artifact | None  # None for bm25
    bm25: Artifact | None  # None for dense

    @property
    def code(self) -> str:
        """The module that searches it, for the stages whose result depends on that."""
        return {"dense": "rag.retrieval.retriever", "bm25": "rag.retrieval.bm25", "hybrid": "rag.retrieval.hybrid"}[
            self.retriever
        ]

    def parents(self) -> dict[str, Artifact]:
        """The artifacts by role, for the lineage of whatever is made with this corpus."""
        parts = {f"{part.stage}:{part.name}": part for part in (*self.passages, *self.vectors)}
        whole = {"index": self.index, "bm25": self.bm25}
        return parts | {f"{stage}:{self.name}": part for stage, part in whole.items() if part}


def find_corpus(run: StudyRun, name: str, retriever: RetrieverKind = "dense") -> Corpus:
    """A corpus of the study with what its stages made; raises ConfigError where they have not run."""
    sources = run.study.corpora[name]
    dense, sparse = retriever != "bm25", retriever != "dense"
    return Corpus(
        name,
        retriever,
        tuple(run.result("passages", source) for source in sources),
        tuple(run.result("vectors", source) for source in sources) if dense else (),
        run.result("index", name) if dense else None,
        run.result("bm25", name) if sparse else None,
    )


def retrievers_of(study: StudyConfig) -> set[RetrieverKind]:
    """The retrievers that a study asks for: by its models, or to be scored alone."""
    return {model.retriever for model in study.models.values() if model.corpus} | {*study.retrieval.retrievers}


def followed_corpus(study: StudyConfig, name: str) -> str | None:
    """The corpus whose snapshots this one's are the next of: the same sources, some by their ``previous``."""
    before = [study.sources[source].previous or source for source in study.corpora[name]]
    earlier = takewhile(lambda other: other != name, study.corpora)
    return next((other for other in earlier if [*study.corpora[other]] == before), None)


def search_identity(run: StudyRun, corpus: Corpus) -> dict[str, object]:
    """What decides a search beside the artifacts: the knobs of its kind of index, weights, scales."""
    from rag.retrieval.index_kinds import search_options

    identity: dict[str, object] = {"retriever": corpus.retriever}
    if corpus.index:
        identity["index"] = search_options(index_kind(corpus), run.study.index)
    if corpus.retriever == "bm25":
        identity["bm25"] = {"score_scale": run.study.bm25.score_scale}
    if corpus.retriever == "hybrid":
        identity["hybrid"] = run.study.hybrid.model_dump()
    return identity


def index_kind(corpus: Corpus) -> IndexKind:
    """Of which kind the corpus's index was built."""
    assert corpus.index, "asked only where there is one"
    kind: IndexKind = corpus.index.facts["kind"]
    return kind


def own_corpus(run: StudyRun, model: str) -> Corpus | None:
    """The corpus that a model is trained and tested with; None for a closed-book one.

    Raises ConfigError where the model's sweep asks for more passages than there are: known before any training.
    """
    config = run.study.models[model]
    corpus = find_corpus(run, config.corpus, config.retriever) if config.corpus else None
    if corpus and config.sweep_n_docs:
        require_rows(f"models.{model}.sweep_n_docs", max(config.sweep_n_docs), corpus)
    return corpus


def require_rows(key: str, n_docs: int, corpus: Corpus) -> None:
    """Refuse to call a result that of ``n_docs`` passages where the corpus has fewer; raises ConfigError."""
    rows = sum(part.counts["rows_out"] for part in corpus.passages)
    if n_docs > rows:
        raise ConfigError(
            f"{key} asks for {n_docs} passages and the corpus {corpus.name!r} has {rows}; ask for {rows} or fewer"
        )


def find_questions(run: StudyRun, tasks: Iterable[str]) -> dict[str, Artifact]:
    """The questions of some tasks, by name."""
    return {task: run.result("questions", task) for task in tasks}


def open_passages(corpus: Corpus) -> "PassageTable":
    """The passages of all sources, one after the other."""
    from rag.corpus.passages import PassageTable

    return PassageTable.load([part.folder for part in corpus.passages])


def open_retriever(run: StudyRun, corpus: Corpus, encoder: "Encoder | None" = None) -> "Retriever":
    """What finds passages of the corpus, after checking that its parts belong together.

    Dense search is by ``encoder``, or by the question encoder as it was before any training here.
    """
    from rag.retrieval.bm25 import Bm25Retriever
    from rag.retrieval.hybrid import HybridRetriever

    passages = open_passages(corpus)
    row_ids = _row_ids_hash(passages)
    bm25 = _open_bm25(run, corpus, row_ids) if corpus.bm25 else None
    if corpus.retriever == "bm25":
        assert bm25, "the corpus was found for this retriever"
        return Bm25Retriever(bm25, passages, run.study.bm25.score_scale)
    dense = _open_dense(run, corpus, passages, row_ids, encoder or open_question_encoder(run))
    return HybridRetriever(dense, bm25, run.study.hybrid) if bm25 else dense


def _open_dense(
    run: StudyRun, corpus: Corpus, passages: "PassageTable", row_ids: str, encoder: "Encoder"
) -> "DenseRetriever":
    from rag.retrieval.encoder_card import require_pair
    from rag.retrieval.retriever import DenseRetriever
    from rag.retrieval.vectors import vector_table

    files = vector_files(corpus)
    require_pair(encoder.question_card(), files[0].card, run.study.encoder.allow_mismatch)
    index = open_index(run, corpus, row_ids)
    return DenseRetriever(encoder, index, passages, vector_table(files))


def open_index(run: StudyRun, corpus: Corpus, row_ids: str | None = None) -> "PassageIndex":
    """The index of the corpus, mapped, with the vectors that it ranks by, in the order of its passages."""
    from rag.retrieval.index import PassageIndex
    from rag.retrieval.index_kinds import SearchOptions
    from rag.retrieval.vectors import vector_table

    assert corpus.index, "asked only where there is one"
    files = vector_files(corpus)
    return PassageIndex.load(
        corpus.index.folder,
        vectors=vector_table(files),
        options=SearchOptions.of(run.study.index),
        encoder_fingerprint=files[0].encoder_fingerprint,
        row_ids_sha256=row_ids or row_ids_hash(corpus),
        check_bytes=False,
    )


def _open_bm25(run: StudyRun, corpus: Corpus, row_ids: str) -> "Bm25Index":
    from rag.retrieval.bm25_index import Bm25Index

    assert corpus.bm25, "asked only where there is one"
    return Bm25Index.open(corpus.bm25.folder, run.study.bm25, row_ids_sha256=row_ids)


def vector_files(corpus: Corpus) -> "list[VectorFile]":
    """The vectors of the corpus's sources."""
    from rag.retrieval.vectors import VectorFile

    return [VectorFile.open(part.folder) for part in corpus.vectors]


def passage_ids(passages: "PassageTable") -> "Iterator[str]":
    """The ids of all passages in the order of their rows."""
    for chunk in passages.passage_ids.chunks:
        yield from chunk.to_pylist()


def row_ids_hash(corpus: Corpus) -> str:
    """Which passages the corpus holds: sha256 of their ids in order."""
    return _row_ids_hash(open_passages(corpus))


def _row_ids_hash(passages: "PassageTable") -> str:
    from rag.retrieval.vectors import hash_row_ids

    return hash_row_ids(passage_ids(passages))


def passage_fingerprint(corpus: Corpus) -> str | None:
    """Which context encoder the corpus was encoded with; None where it is searched by words alone."""
    return vector_files(corpus)[0].encoder_fingerprint if corpus.vectors else None


def model_path(run: StudyRun, text: str) -> Path:
    """The folder of a model that the study names."""
    demo = run.demo_world.folder if text.startswith("demo:") else None
    return resolve_model(text, study_folder=run.folder, demo=demo)


def require_models(run: StudyRun) -> None:
    """Find every pretrained model that the study names, now and not after hours of reading and encoding.

    Raises ConfigError for one that is nowhere, and whatever fetching one ends with.
    """
    study = run.study
    fresh = [model for model in study.models.values() if not (model.checkpoint or model.init_from)]
    named = [study.generator.path] if fresh else []
    named += [model.checkpoint for model in study.models.values() if model.checkpoint]
    if study.corpora and retrievers_of(study) - {"bm25"}:
        named += [study.encoder.path, study.encoder.passage_path]
    for name in named:
        if not name.startswith("demo:"):
            model_path(run, name)


def require_encoders(run: StudyRun) -> None:
    """Refuse question and passage encoders that do not belong together; raises IndexMismatchError."""
    from rag.retrieval.encoder_card import require_pair

    config = run.study.encoder
    if config.passage_path != config.path:
        questions, passages = open_question_encoder(run).question_card(), open_context_encoder(run).passage_card()
        require_pair(questions, passages, config.allow_mismatch)


def open_context_encoder(run: StudyRun) -> "Encoder":
    """The frozen encoder of the passages."""
    from rag.retrieval.encoders import Encoder

    name = run.study.encoder.passage_path
    return Encoder.load(model_path(run, name), run.study.encoder, encoder_id=name)


def encoder_identity(run: StudyRun, side: str) -> dict[str, object]:
    """What decides the vectors of one side: ``question`` or ``passage``."""
    config = run.study.encoder
    path = config.path if side == "question" else config.passage_path
    own = {
        "question": ("question_prefix", "max_question_tokens", "score_scale"),
        "passage": ("passage_prefix", "max_passage_tokens", "precision", "storage"),
    }[side]
    options = {name: getattr(config, name) for name in ("pooling", "normalize", *own)}
    return {**options, "weights": run.hashes.sha256(model_path(run, path))}


def open_question_encoder(run: StudyRun, folder: Path | None = None, encoder_id: str = "") -> "Encoder":
    """The question encoder as it was before any training here, or as a training left it in ``folder``.

    ``encoder_id`` is what the one in the folder came from, where that is not the study's own encoder.
    """
    from rag.retrieval.encoders import Encoder

    config = run.study.encoder
    return Encoder.load(folder or model_path(run, config.path), config, encoder_id=encoder_id or config.path)
