"""Questions in, the n_docs passages of each out: the one protocol of dense, sparse and hybrid retrieval.

``DenseRetriever`` is the paper's: a question encoder with the passage index. ``bm25`` and ``hybrid`` hold the others.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from rag.errors import IndexMismatchError
from rag.records import Passage
from rag.retrieval.encoders import Encoder
from rag.retrieval.index import PassageIndex
from rag.retrieval.results import PassageRows, SearchResult
from rag.retrieval.vector_table import Vectors, VectorTable


class Retrieved(NamedTuple):
    """The passages of a batch of questions; where ``mask`` is False the index had no more to give."""

    rows: Int[np.ndarray, "batch n_docs"]
    doc_scores: Float[np.ndarray, "batch n_docs"]
    mask: Bool[np.ndarray, "batch n_docs"]
    passages: list[list[Passage]]  # of each question those that were found, best first
    # What of the doc_scores is no inner product and so has no gradient; None where they are nothing but that.
    sparse_scores: Float[np.ndarray, "batch n_docs"] | None = None

    def pairs(self) -> list[list[tuple[str, str]]]:
        """(title, text) of the passages, as the generator's input needs them."""
        return [[(passage.title, passage.text) for passage in found] for found in self.passages]


class Retriever(Protocol):
    """Finds passages for questions."""

    def retrieve(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        """The n_docs passages of the largest doc_score, for every question.

        Where the whole batch got fewer (a small corpus), n_docs is what the best served question got.
        """
        ...

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """Whether ``retrieve`` has any passage for a question."""
        ...


@runtime_checkable
class TrainableRetriever(Protocol):
    """A retriever whose question encoder can be trained: doc_scores are inner products, plus what does not move."""

    @property
    def encoder(self) -> Encoder: ...

    def retrieve(
        self, questions: Sequence[str], n_docs: int, question_vectors: Float[np.ndarray, "batch dim"] | None = None
    ) -> Retrieved:
        """As ``Retriever.retrieve``, with the questions' vectors where they are at hand."""
        ...

    def vectors(self, rows: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        """The exact passage vectors of ``rows``: what the doc_scores in training are inner products with."""
        ...


class DenseRetriever:
    """A question encoder, a passage index, and the passages and vectors that the index was built from.

    Raises IndexMismatchError where their counts differ.
    """

    def __init__(self, encoder: Encoder, index: PassageIndex, passages: PassageRows, vectors: Vectors) -> None:
        self.encoder = encoder
        self.index = index
        self.passages = passages
        self.table = VectorTable.of(vectors)
        require_equal_counts(index=index.ntotal, passages=len(passages), vectors=len(self.table))

    def retrieve(
        self, questions: Sequence[str], n_docs: int, question_vectors: Float[np.ndarray, "batch dim"] | None = None
    ) -> Retrieved:
        """The n_docs passages with the largest inner product, for every question."""
        vectors = self.encoder.encode_questions(questions) if question_vectors is None else question_vectors
        return self.search(vectors, n_docs)

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """Every question has an inner product with every passage."""
        return [self.index.ntotal > 0] * len(questions)

    def search(self, question_vectors: Float[np.ndarray, "batch dim"], n_docs: int) -> Retrieved:
        """``retrieve`` for questions that are vectors already."""
        return with_passages(self.index.search(question_vectors, n_docs), self.passages)

    def vectors(self, rows: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        """The exact passage vectors of ``rows``, in float32."""
        return self.table.take(rows)


def require_equal_counts(**counts: int) -> None:
    """Raises IndexMismatchError where parts that belong to one corpus have different numbers of passages."""
    if len(set(counts.values())) > 1:
        parts = ", ".join(counts)
        raise IndexMismatchError(f"{parts} are not of one corpus: {counts}; build them again from the same passages")


def with_passages(found: SearchResult, passages: PassageRows) -> Retrieved:
    """What a search found, with the passages' texts, no wider than the best served question needs."""
    kept = [rows[mask].tolist() for rows, mask in zip(found.rows, found.mask, strict=True)]
    texts = iter(passages.rows([row for rows in kept for row in rows]))
    width = max((len(rows) for rows in kept), default=0)
    taken = [[next(texts) for _ in rows] for rows in kept]
    return Retrieved(found.rows[:, :width], found.scores[:, :width], found.mask[:, :width], taken)
