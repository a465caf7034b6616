"""Index and passages as one: question vectors in, the n_docs passages of each question out."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int

from rag.errors import IndexMismatchError
from rag.records import Passage
from rag.retrieval.index import PassageIndex


class PassageRows(Protocol):
    """Passages by row number, in the order of the index."""

    def __len__(self) -> int: ...

    def rows(self, rows: Sequence[int]) -> list[Passage]: ...


class Retrieved(NamedTuple):
    """The passages of a batch of questions; where ``mask`` is False the index had no more to give."""

    rows: Int[np.ndarray, "batch n_docs"]
    doc_scores: Float[np.ndarray, "batch n_docs"]
    mask: Bool[np.ndarray, "batch n_docs"]
    passages: list[list[Passage]]  # of each question those that were found, best first

    def pairs(self) -> list[list[tuple[str, str]]]:
        """(title, text) of the passages, as the generator's input needs them."""
        return [[(passage.title, passage.text) for passage in found] for found in self.passages]


class Retriever:
    """One passage index with the passages it was built from.

    Raises IndexMismatchError where their counts differ.
    """

    def __init__(self, index: PassageIndex, passages: PassageRows, vectors: Sequence[Float[np.ndarray, "n dim"]]):
        counts = {"index": index.ntotal, "passages": len(passages), "vectors": sum(len(part) for part in vectors)}
        if len(set(counts.values())) > 1:
            raise IndexMismatchError(f"index, passages and vectors are not of one corpus: {counts}; build them again")
        self._index = index
        self._passages = passages
        self._vectors = list(vectors)
        self._starts = np.cumsum([0, *(len(part) for part in vectors)])

    def search(self, question_vectors: Float[np.ndarray, "batch dim"], n_docs: int) -> Retrieved:
        """The n_docs passages with the largest inner product, for every question.

        Where the whole batch got fewer (a small corpus), n_docs is what the best served question got.
        """
        found = self._index.search(question_vectors, n_docs)
        kept = [rows[mask].tolist() for rows, mask in zip(found.rows, found.mask, strict=True)]
        texts = iter(self._passages.rows([row for rows in kept for row in rows]))
        width = max((len(rows) for rows in kept), default=0)
        passages = [[next(texts) for _ in rows] for rows in kept]
        return Retrieved(found.rows[:, :width], found.scores[:, :width], found.mask[:, :width], passages)

    def vectors(self, rows: Int[np.ndarray, "batch n_docs"]) -> Float[np.ndarray, "batch n_docs dim"]:
        """The exact passage vectors of ``rows``: what the doc_scores in training are inner products with."""
        flat = rows.reshape(-1)
        source = np.searchsorted(self._starts, flat, side="right") - 1
        picked = [self._vectors[part][row - self._starts[part]] for part, row in zip(source, flat, strict=True)]
        return np.stack(picked).astype(np.float32).reshape(*rows.shape, -1)
