"""What must hold for any vectors: shards, batches and the number of passages asked for never change a result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.config import IndexConfig
from rag.retrieval.index import build_index, recall_against_exact

FLAT = IndexConfig(kind="flat")
HNSW = IndexConfig(kind="hnsw", m=8, ef_construction=40, ef_search=40)
few = settings(max_examples=25, deadline=None, derandomize=True)
both = pytest.mark.parametrize("config", [FLAT, HNSW], ids=["flat", "hnsw"])


@st.composite
def corpora(draw: st.DrawFn) -> np.ndarray:
    """Up to 60 vectors of small whole numbers, so that ties and duplicates are common and sums are exact."""
    rows, seed = draw(st.integers(1, 60)), draw(st.integers(0, 10_000))
    return np.random.default_rng(seed).integers(-2, 3, (rows, 4)).astype(np.float32)


@given(vectors=corpora(), n_docs=st.integers(1, 70))
@few
def test_flat_equals_a_sort_by_score_and_row(vectors: np.ndarray, n_docs: int) -> None:
    found = build_index(vectors, FLAT).search(vectors, n_docs)
    scores = vectors @ vectors.T
    wanted = np.lexsort((np.broadcast_to(np.arange(len(vectors)), scores.shape), -scores), axis=1)[:, :n_docs]
    kept = min(n_docs, len(vectors))
    np.testing.assert_array_equal(found.scores[:, :kept], np.take_along_axis(scores, wanted, 1))
    if len(vectors) <= n_docs + 16:  # beyond that, which of equal passages come in at the edge is FAISS' choice
        np.testing.assert_array_equal(found.rows[:, :kept], wanted)
    np.testing.assert_array_equal(found.mask, np.broadcast_to(np.arange(n_docs) < kept, found.mask.shape))


@both
@given(vectors=corpora(), cuts=st.lists(st.integers(0, 60), max_size=4))
@few
def test_shards_do_not_matter(config: IndexConfig, vectors: np.ndarray, cuts: list[int]) -> None:
    shards = np.split(vectors, sorted(min(cut, len(vectors)) for cut in cuts))  # some of them empty
    whole, parts = build_index(vectors, config), build_index(shards, config)
    assert parts.ntotal == len(vectors)
    for one, other in zip(whole.search(vectors, 5), parts.search(vectors, 5), strict=True):
        np.testing.assert_array_equal(one, other)


@both
@given(seed=st.integers(0, 10_000), batch=st.integers(1, 40))
@few
def test_neighbours_in_the_batch_do_not_matter(config: IndexConfig, seed: int, batch: int) -> None:
    random = np.random.default_rng(seed)
    vectors, questions = (random.normal(size=(rows, 24)).astype(np.float32) for rows in (300, batch))
    index = build_index(vectors, config)
    together = index.search(questions, 7)
    for row in {0, batch // 2, batch - 1}:
        alone = index.search(questions[row : row + 1], 7)
        np.testing.assert_array_equal(alone.rows[0], together.rows[row])
        np.testing.assert_array_equal(alone.scores[0], together.scores[row])


@both
@given(vectors=corpora(), k=st.integers(1, 70))
@few
def test_recall_lies_between_0_and_1_and_is_1_for_flat(config: IndexConfig, vectors: np.ndarray, k: int) -> None:
    recall = recall_against_exact(build_index(vectors, config), vectors, vectors, k)
    assert ((recall.per_question >= 0) & (recall.per_question <= 1)).all()
    if config is FLAT:
        assert recall.recall == 1
