"""Hybrid retrieval against the sum of two full matrices of scores."""

import random
from pathlib import Path

import numpy as np
import pytest

from rag.config import Bm25Config, HybridConfig, IndexConfig
from rag.errors import IndexMismatchError
from rag.records import Passage
from rag.retrieval.bm25_index import build_bm25
from rag.retrieval.hybrid import HybridRetriever
from rag.retrieval.index_build import build_index
from rag.retrieval.retriever import DenseRetriever, TrainableRetriever
from tests.support.tiny_encoders import WORDS, tiny_encoder
from tests.support.tiny_rag import Rows

QUESTIONS = ["the capital of peru", "who is the king", "zzz", "river paris lima what"]
COUNT = 120


class Parts:
    """A hybrid retriever and what it is made of; some passages are equal."""

    def __init__(self, folder: Path, **options: float) -> None:
        rng = random.Random(5)
        texts = [" ".join(rng.choices(WORDS[:12], k=rng.randint(2, 20))) for _ in range(COUNT - 20)]
        self.passages = Rows(
            Passage(f"w:{number}:0", "", text, number, number) for number, text in enumerate(texts + texts[:20])
        )
        self.encoder = tiny_encoder(folder / "encoder", score_scale=5.0)
        self.vectors = self.encoder.encode_passages([""] * COUNT, [one.text for one in self.passages])
        self.vectors[COUNT - 20 :] = self.vectors[:20]
        index = build_index(self.vectors, IndexConfig(kind="flat"))
        self.dense = DenseRetriever(self.encoder, index, self.passages, self.vectors)
        self.bm25 = build_bm25(folder / "bm25", self.passages, Bm25Config())
        self.hybrid = HybridRetriever(self.dense, self.bm25, HybridConfig.model_validate(options))

    def full_scores(self, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """The weighted BM25 of all passages, and its sum with their inner products."""
        sparse = np.stack([self.bm25.scores(question, np.arange(COUNT)) for question in QUESTIONS])
        return weight * sparse, self.encoder.encode_questions(QUESTIONS) @ self.vectors.T + weight * sparse


@pytest.mark.parametrize("candidates", [30, 200])
def test_the_best_sums_are_found_in_order_of_rows(tmp_path: Path, candidates: int) -> None:
    parts = Parts(tmp_path, bm25_weight=0.9, candidates=candidates)
    sparse, full = parts.full_scores(0.9)
    found = parts.hybrid.retrieve(QUESTIONS, n_docs=10)
    assert found.mask.all()
    assert found.sparse_scores is not None
    for place in range(len(QUESTIONS)):
        rows = found.rows[place]
        np.testing.assert_allclose(found.doc_scores[place], -np.sort(-full[place])[:10], rtol=1e-5)
        np.testing.assert_allclose(found.doc_scores[place], full[place][rows], rtol=1e-5)
        np.testing.assert_allclose(found.sparse_scores[place], sparse[place][rows], rtol=1e-6)
        pairs = list(zip(-found.doc_scores[place], rows.tolist(), strict=True))
        assert pairs == sorted(pairs)
        assert [one.page_id for one in found.passages[place]] == rows.tolist()


def test_every_candidate_has_both_scores_whoever_found_it(tmp_path: Path) -> None:
    """One candidate of either retriever: they differ, and each is scored by both."""
    parts = Parts(tmp_path, candidates=1)
    dense, sparse = parts.dense.retrieve(QUESTIONS[:1], 1), parts.bm25.search(QUESTIONS[:1], 1)
    assert dense.rows[0, 0] != sparse.rows[0, 0]
    _, full = parts.full_scores(HybridConfig().bm25_weight)
    wide = parts.hybrid.retrieve(QUESTIONS[:1], n_docs=10)  # n_docs is more than the candidates asked for
    np.testing.assert_allclose(wide.doc_scores[0], full[0][wide.rows[0]], rtol=1e-5)
    assert wide.mask.all()


def test_without_weight_or_words_it_is_the_dense_retriever(tmp_path: Path) -> None:
    parts = Parts(tmp_path, bm25_weight=0)
    dense, hybrid = parts.dense.retrieve(QUESTIONS, 7), parts.hybrid.retrieve(QUESTIONS, 7)
    np.testing.assert_array_equal(hybrid.rows, dense.rows)
    np.testing.assert_array_equal(hybrid.doc_scores, dense.doc_scores)
    weighted = HybridRetriever(parts.dense, parts.bm25, HybridConfig()).retrieve(["zzz"], 7)
    np.testing.assert_array_equal(weighted.rows[0], dense.rows[QUESTIONS.index("zzz")])


def test_vectors_that_are_at_hand_are_taken(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    assert isinstance(parts.hybrid, TrainableRetriever)
    vectors = parts.hybrid.encoder.encode_questions(QUESTIONS[::-1])
    given, own = parts.hybrid.retrieve(QUESTIONS[::-1], 5, vectors), parts.hybrid.retrieve(QUESTIONS, 5)
    np.testing.assert_array_equal(given.rows[::-1], own.rows)
    np.testing.assert_array_equal(parts.hybrid.vectors(own.rows), parts.vectors[own.rows])


def test_indexes_of_other_corpora_are_refused(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    other = build_bm25(tmp_path / "other", Rows(parts.passages[:5]), Bm25Config())
    with pytest.raises(IndexMismatchError, match="'index': 120, 'bm25': 5"):
        HybridRetriever(parts.dense, other, HybridConfig())
