"""Dense and sparse retrieval in one: inner product plus weighted BM25, over the best candidates of both.

Source: Karpukhin et al. 2020 (arXiv 2004.04906), section 5, where 1.1 times the inner product of DPR is added to BM25
and the union of two times 2000 passages is ranked anew.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from rag.config import HybridConfig
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.encoders import Encoder
from rag.retrieval.inner_products import inner_products
from rag.retrieval.results import SearchResult, best_rows
from rag.retrieval.retriever import DenseRetriever, Retrieved, require_equal_counts, with_passages


class HybridRetriever:
    """A dense retriever and a BM25 index of the same passages.

    doc_score = <q(x), d(z)> + bm25_weight * BM25(x, z), both exact for every candidate, whichever of the two found
    it; BM25 is 0 for a passage without a word of the question. Raises IndexMismatchError where their counts differ.
    """

    def __init__(self, dense: DenseRetriever, bm25: Bm25Index, config: HybridConfig) -> None:
        require_equal_counts(index=dense.index.ntotal, bm25=bm25.ntotal)
        self._dense = dense
        self._bm25 = bm25
        self._config = config

    @property
    def encoder(self) -> Encoder:
        """The question encoder of the dense part."""
        return self._dense.encoder

    def retrieve(
        self, questions: Sequence[str], n_docs: int, question_vectors: Float[np.ndarray, "batch dim"] | None = None
    ) -> Retrieved:
        """The n_docs passages with the largest sum of both scores, among the candidates of either."""
        vectors = self.encoder.encode_questions(questions) if question_vectors is None else question_vectors
        wanted = max(self._config.candidates, n_docs)
        dense, sparse = self._dense.index.search(vectors, wanted), self._bm25.search(questions, wanted)
        result, bm25_part = SearchResult.empty(len(questions), n_docs), np.zeros((len(questions), n_docs), np.float32)
        for place, question in enumerate(questions):
            rows = np.union1d(dense.rows[place][dense.mask[place]], sparse.rows[place][sparse.mask[place]])
            weighted = self._bm25.scores(question, rows) * np.float32(self._config.bm25_weight)
            scores = inner_products(vectors[place, None], self.vectors(rows)[None])[0] + weighted
            best = best_rows(rows, scores, n_docs)
            result.rows[place, : len(best)] = rows[best]
            result.scores[place, : len(best)] = scores[best]
            result.mask[place, : len(best)] = True
            bm25_part[place, : len(best)] = weighted[best]
        found = with_passages(result, self._dense.passages)
        return found._replace(sparse_scores=bm25_part[:, : found.rows.shape[1]])

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """As the dense part does."""
        return self._dense.finds(questions)

    def vectors(self, rows: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        """The exact passage vectors of ``rows``, in float32."""
        return self._dense.vectors(rows)
