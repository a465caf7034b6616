"""What every kind of index must do, whatever it compresses or skips."""

import tracemalloc
from pathlib import Path

import faiss
import numpy as np
import pytest

from rag.config import IndexConfig
from rag.errors import DataError
from rag.retrieval.index import PassageIndex, SearchResult
from rag.retrieval.index_build import build_index
from rag.retrieval.index_kinds import SearchOptions, index_bytes
from rag.retrieval.vector_table import VectorTable
from tests.support.indexes import every_kind, vectors_of


def same(one: SearchResult, other: SearchResult) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def by_hand(vectors: np.ndarray, question: np.ndarray, n: int) -> list[int]:
    """The rows of an exact search, equal vectors in order of rows."""
    scores = np.vecdot(question[None, :], vectors)
    return np.lexsort((np.arange(len(vectors)), -scores))[:n].tolist()


@every_kind
def test_every_vector_finds_itself_at_its_row(config: IndexConfig) -> None:
    vectors = vectors_of(900)
    found = build_index(vectors, config).search(vectors, n_docs=1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(900))
    assert found.mask.all()


@every_kind
def test_scores_are_exact_inner_products_best_first(config: IndexConfig) -> None:
    vectors, questions = vectors_of(600, normalised=False), vectors_of(20, seed=1, normalised=False)
    found = build_index(vectors, config).search(questions, n_docs=7)
    exact = np.einsum("bd,bnd->bn", questions.astype(np.float64), vectors[found.rows].astype(np.float64))
    np.testing.assert_allclose(found.scores, exact, rtol=1e-5, atol=1e-5)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert (found.rows.dtype, found.scores.dtype, found.mask.dtype) == (np.int64, np.float32, np.bool_)


@every_kind
def test_half_precision_shards_give_the_scores_of_their_own_numbers(config: IndexConfig) -> None:
    halves, questions = vectors_of(600).astype(np.float16), vectors_of(20, seed=1)
    floats = halves.astype(np.float32)
    assert same(
        build_index(np.split(halves, 6), config).search(questions, 7), build_index(floats, config).search(questions, 7)
    )


@every_kind
def test_shards_lose_no_row(config: IndexConfig) -> None:
    vectors = vectors_of(103)
    shards = [vectors[start : start + 3] for start in range(0, 150, 3)]  # 50 of them, the last 15 empty
    assert [len(shard) for shard in shards[33:36]] == [3, 1, 0]
    index = build_index(shards, config)
    assert (index.ntotal, len(shards)) == (103, 50)
    np.testing.assert_array_equal(index.search(vectors, 1).rows[:, 0], np.arange(103))


@every_kind
def test_rows_of_several_sources_count_on_from_one_to_the_next(config: IndexConfig) -> None:
    one, other = vectors_of(305), vectors_of(410, seed=2)
    index = build_index([one, other], config)
    np.testing.assert_array_equal(index.search(one, 1).rows[:, 0], np.arange(305))
    np.testing.assert_array_equal(index.search(other, 1).rows[:, 0], 305 + np.arange(410))


@every_kind
def test_the_metric_is_the_inner_product_and_not_the_distance(config: IndexConfig) -> None:
    vectors = vectors_of(40)
    vectors[20] = 10 * vectors[3]  # by distance, row 3 would be nearest to itself
    assert build_index(vectors, config).search(vectors[3:4], n_docs=1).rows.tolist() == [[20]]


@every_kind
def test_saved_and_loaded_finds_the_same(config: IndexConfig, tmp_path: Path) -> None:
    vectors, questions = vectors_of(900), vectors_of(20, seed=1)
    vectors[400:420] = vectors[7]
    index = build_index(vectors, config, encoder_fingerprint="e", row_ids_sha256="r")
    index.save(tmp_path / "index")
    again = PassageIndex.load(
        tmp_path / "index",
        vectors=VectorTable([vectors]),
        options=SearchOptions.of(config),
        dim=16,
        ntotal=900,
        encoder_fingerprint="e",
        row_ids_sha256="r",
    )
    assert again.info == index.info
    assert same(index.search(questions, 9), again.search(questions, 9))
    assert not list((tmp_path / "index").glob("*.tmp"))


@every_kind
def test_a_search_in_a_mapped_index_copies_no_more_than_its_candidates(config: IndexConfig, tmp_path: Path) -> None:
    vectors = vectors_of(4000, dim=256)
    build_index(vectors, config).save(tmp_path)
    options = SearchOptions(ef_search=64, nprobe=8, rerank=100)
    index = PassageIndex.load(tmp_path, vectors=VectorTable([vectors]), options=options, check_bytes=False)
    tracemalloc.start()
    try:
        index.search(vectors[:1], 10)
        assert tracemalloc.get_traced_memory()[1] < vectors.nbytes / 10
    finally:
        tracemalloc.stop()


@every_kind
def test_the_file_is_as_large_as_foretold(config: IndexConfig, tmp_path: Path) -> None:
    index = build_index(vectors_of(3000, dim=64), config)
    index.save(tmp_path)
    found = (tmp_path / "index.faiss").stat().st_size
    assert found == index.info.files["index.faiss"]["bytes"]
    assert index_bytes(index.info.kind, 3000, 64, config) == pytest.approx(found, rel=0.03)


@every_kind
def test_ties_come_in_order_of_rows(config: IndexConfig) -> None:
    vectors = vectors_of(400)
    vectors[[150, 20, 90]] = vectors[5]
    found = build_index(vectors, config).search(vectors[5:6], n_docs=4)
    assert found.rows.tolist() == [[5, 20, 90, 150]]
    assert len(set(found.scores[0].tolist())) == 1


@every_kind
def test_other_vectors_with_the_score_of_a_repeated_one_come_in_order_of_rows(config: IndexConfig) -> None:
    vectors = np.zeros((60, 8), np.float32)
    vectors[np.arange(60), np.arange(60) % 7] = 1  # seven vectors, each nine times or eight
    vectors[:, 7] = 2  # and the same score for all
    found = build_index(vectors, config).search(np.eye(8, dtype=np.float32)[7:], n_docs=25)
    assert found.rows.tolist() == [list(range(25))]


@every_kind
def test_hundreds_of_duplicates_hide_nobody(config: IndexConfig) -> None:
    vectors = vectors_of(900)
    vectors[np.arange(100, 700, 2)] = vectors[100]  # 300
    vectors[np.arange(101, 701, 2)] = vectors[101]
    index = build_index(vectors, config)
    assert index.info.units == 302
    for row, n_docs in ((100, 305), (101, 305), (50, 310), (100, 20)):
        found = index.search(vectors[row : row + 1], n_docs)
        scores = np.sort(vectors[row] @ vectors.T)[::-1][:n_docs]
        assert found.mask.all()
        assert len(set(found.rows[0].tolist())) == n_docs
        np.testing.assert_allclose(found.scores[0], scores, atol=1e-5)
    own = index.search(vectors[100:101], 300).rows[0].tolist()
    assert own == list(range(100, 700, 2))


@every_kind
def test_equal_numbers_are_equal_vectors_however_they_are_stored(config: IndexConfig) -> None:
    vectors = vectors_of(300).astype(np.float16).astype(np.float32)
    vectors[7, 3] = 0.0
    doubles = vectors[[7, 8]]
    doubles[0, 3] = -0.0
    index = build_index([vectors, doubles.astype(np.float16)], config)
    assert index.info.units == 300
    assert index.search(vectors[[7, 8]], 2).rows.tolist() == [[7, 300], [8, 301]]


@every_kind
def test_more_passages_than_there_are_is_masked_and_never_a_row(config: IndexConfig) -> None:
    found = build_index(vectors_of(3), config).search(vectors_of(2, seed=1), n_docs=5)
    assert found.mask.tolist() == [[True, True, True, False, False]] * 2
    assert sorted(found.rows[0, :3].tolist()) == [0, 1, 2]
    assert found.rows[~found.mask].tolist() == [0] * int((~found.mask).sum())
    assert np.isneginf(found.scores[~found.mask]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@every_kind
def test_a_vector_that_is_not_finite_is_refused_by_row(config: IndexConfig, value: float) -> None:
    vectors = vectors_of(50)
    vectors[31, 3] = value
    with pytest.raises(DataError, match="row 31 is not finite"):
        build_index([vectors[:20], vectors[20:]], config)


@every_kind
def test_a_question_that_is_not_finite_is_refused_by_row(config: IndexConfig) -> None:
    questions = vectors_of(3, seed=1)
    questions[2, 0] = np.nan
    with pytest.raises(DataError, match="question row 2 "):
        build_index(vectors_of(20), config).search(questions, n_docs=2)


@every_kind
def test_an_index_is_the_same_bytes_with_any_number_of_threads(config: IndexConfig, tmp_path: Path) -> None:
    vectors, before = vectors_of(2500, dim=32), faiss.omp_get_max_threads()
    hashes = []
    try:
        for threads in (1, 2, 2):
            faiss.omp_set_num_threads(threads)
            index = build_index(vectors, config)
            index.save(tmp_path / "index")
            hashes.append({name: facts["sha256"] for name, facts in index.info.files.items()})
    finally:
        faiss.omp_set_num_threads(before)
    assert hashes[0] == hashes[1] == hashes[2]


@every_kind
def test_a_result_does_not_depend_on_the_batch(config: IndexConfig) -> None:
    vectors, questions = vectors_of(2000, dim=48), vectors_of(700, dim=48, seed=1)
    index = build_index(vectors, config)
    together = index.search(questions, 10)
    for row in (0, 350, 699):
        alone = index.search(questions[row : row + 1], 10)
        assert same(alone, SearchResult(*(part[row : row + 1] for part in together)))


@every_kind
def test_most_of_the_exact_result_is_found(config: IndexConfig) -> None:
    vectors, questions = vectors_of(2000), vectors_of(100, seed=1)
    found = build_index(vectors, config).search(questions, 10)
    exact = [set(by_hand(vectors, question, 10)) for question in questions]
    share = np.mean([len(set(rows.tolist()) & wanted) / 10 for rows, wanted in zip(found.rows, exact, strict=True)])
    assert share >= (1 if config.kind == "flat" else 0.9)
