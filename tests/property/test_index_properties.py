"""What must hold for any vectors: shards, batches and the number of passages asked for never change a result."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.config import IndexConfig
from rag.retrieval.index_build import build_index
from rag.retrieval.index_update import update_index
from tests.support.indexes import CONFIGS, every_kind, kinds_to_update

few = settings(max_examples=12, deadline=None, derandomize=True)


@st.composite
def corpora(draw: st.DrawFn) -> np.ndarray:
    """Up to 60 vectors of small whole numbers, some more than once, so that ties are common and sums are exact."""
    rows, seed = draw(st.integers(1, 60)), draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    return random.integers(-2, 3, (rows, 8))[random.integers(0, rows, rows)].astype(np.float32)


@given(vectors=corpora(), n_docs=st.integers(1, 70))
@few
def test_flat_equals_a_sort_by_score_and_row(vectors: np.ndarray, n_docs: int) -> None:
    found = build_index(vectors, CONFIGS["flat"]).search(vectors, n_docs)
    scores = vectors @ vectors.T
    wanted = np.lexsort((np.broadcast_to(np.arange(len(vectors)), scores.shape), -scores), axis=1)[:, :n_docs]
    kept = min(n_docs, len(vectors))
    np.testing.assert_array_equal(found.scores[:, :kept], np.take_along_axis(scores, wanted, 1))
    if len(np.unique(vectors, axis=0)) <= n_docs + 16:  # beyond that, who of equal scores comes in is FAISS' choice
        np.testing.assert_array_equal(found.rows[:, :kept], wanted)
    np.testing.assert_array_equal(found.mask, np.broadcast_to(np.arange(n_docs) < kept, found.mask.shape))


@every_kind
@given(vectors=corpora(), cuts=st.lists(st.integers(0, 60), max_size=4))
@few
def test_shards_do_not_matter(config: IndexConfig, vectors: np.ndarray, cuts: list[int]) -> None:
    shards = np.split(vectors, sorted(min(cut, len(vectors)) for cut in cuts))  # some of them empty
    whole, parts = build_index(vectors, config), build_index(shards, config)
    assert parts.ntotal == len(vectors)
    for one, other in zip(whole.search(vectors, 5), parts.search(vectors, 5), strict=True):
        np.testing.assert_array_equal(one, other)


@every_kind
@given(vectors=corpora(), n_docs=st.integers(1, 70))
@few
def test_rows_are_found_once_with_their_own_scores(config: IndexConfig, vectors: np.ndarray, n_docs: int) -> None:
    found = build_index(vectors, config).search(vectors, n_docs)
    for question, rows, scores, mask in zip(vectors, *found, strict=True):
        assert len(set(rows[mask].tolist())) == mask.sum() <= len(vectors)
        np.testing.assert_array_equal(scores[mask], vectors[rows[mask]] @ question)
        assert (np.lexsort((rows[mask], -scores[mask])) == np.arange(mask.sum())).all()


@every_kind
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


@kinds_to_update
@given(old=corpora(), new=corpora())
@few
def test_an_update_knows_the_new_rows_and_no_others(config: IndexConfig, old: np.ndarray, new: np.ndarray) -> None:
    updated, change = update_index(build_index(old, config), new)
    found, shared = updated.search(new, len(new)), {row.tobytes() for row in old} & {row.tobytes() for row in new}
    assert found.mask.all()
    assert (np.sort(found.rows, axis=1) == np.arange(len(new))).all()
    assert change.kept == sum(row.tobytes() in shared for row in new) == len(new) - change.added
    assert change.removed == sum(row.tobytes() not in shared for row in old)
