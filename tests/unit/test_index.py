"""The passage index: exact scores, ties, missing results, and every way in which a file can be the wrong one."""

import json
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest

from rag.config import IndexConfig
from rag.errors import DataError, IndexMismatchError, ResourceError
from rag.retrieval import index_file
from rag.retrieval.index import PassageIndex, build_index, recall_against_exact

FLAT = IndexConfig(kind="flat")
HNSW = IndexConfig(kind="hnsw", m=16, ef_construction=40, ef_search=32)
BOTH = pytest.mark.parametrize("config", [FLAT, HNSW], ids=["flat", "hnsw"])


def vectors_of(rows: int, dim: int = 16, seed: int = 0, normalised: bool = True) -> np.ndarray:
    """Random vectors in a few clusters."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(8, dim))
    vectors = centres[random.integers(0, 8, rows)] + 0.5 * random.normal(size=(rows, dim))
    if normalised:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@BOTH
def test_every_vector_finds_itself_at_its_row(config: IndexConfig) -> None:
    vectors = vectors_of(600)
    found = build_index(vectors, config).search(vectors, n_docs=1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(600))
    assert found.mask.all()


@BOTH
def test_scores_are_exact_inner_products_best_first(config: IndexConfig) -> None:
    vectors, questions = vectors_of(600, normalised=False), vectors_of(20, seed=1, normalised=False)
    found = build_index(vectors, config).search(questions, n_docs=7)
    exact = np.einsum("bd,bnd->bn", questions.astype(np.float64), vectors[found.rows].astype(np.float64))
    np.testing.assert_allclose(found.scores, exact, rtol=1e-5, atol=1e-5)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert (found.rows.dtype, found.scores.dtype, found.mask.dtype) == (np.int64, np.float32, np.bool_)


def test_flat_is_the_exact_search() -> None:
    vectors, questions = vectors_of(600), vectors_of(30, seed=1)
    found = build_index(vectors, FLAT).search(questions, n_docs=10)
    np.testing.assert_array_equal(found.rows, np.argsort(-(questions @ vectors.T), axis=1)[:, :10])


@BOTH
def test_the_metric_is_the_inner_product_and_not_the_distance(config: IndexConfig) -> None:
    vectors = np.array([[1, 0], [10, 0]], np.float32)  # by distance, [1, 0] would be nearest to itself
    assert build_index(vectors, config).search(vectors[:1], n_docs=1).rows.tolist() == [[1]]


@BOTH
def test_more_passages_than_there_are_is_masked_and_never_a_row(config: IndexConfig) -> None:
    found = build_index(vectors_of(3), config).search(vectors_of(2, seed=1), n_docs=5)
    assert found.mask.tolist() == [[True, True, True, False, False]] * 2
    assert sorted(found.rows[0, :3].tolist()) == [0, 1, 2]
    assert found.rows[:, 3:].tolist() == [[0, 0]] * 2
    assert np.isneginf(found.scores[:, 3:]).all()


def test_results_that_hnsw_does_not_find_are_masked() -> None:
    vectors = vectors_of(300)
    index = build_index(vectors, IndexConfig(kind="hnsw", m=2, ef_construction=2, ef_search=1))
    found = index.search(vectors[:50], n_docs=250)
    assert not found.mask.all()  # this graph is too thin to reach everything
    assert np.isneginf(found.scores[~found.mask]).all()
    for rows, mask in zip(found.rows, found.mask, strict=True):
        assert len(set(rows[mask].tolist())) == mask.sum()


def test_hnsw_looks_at_no_fewer_candidates_than_n_docs() -> None:
    index = build_index(vectors_of(600), IndexConfig(kind="hnsw", m=16, ef_construction=40, ef_search=1))
    assert index.search(vectors_of(5, seed=1), n_docs=100).mask.all()


@BOTH
def test_ties_come_in_order_of_rows(config: IndexConfig) -> None:
    vectors = vectors_of(200)
    vectors[[150, 20, 90]] = vectors[5]
    found = build_index(vectors, config).search(vectors[5:6], n_docs=4)
    assert found.rows.tolist() == [[5, 20, 90, 150]]
    assert len(set(found.scores[0].tolist())) == 1


@pytest.mark.parametrize("config", [FLAT, IndexConfig(kind="hnsw", m=32, ef_construction=200)], ids=["flat", "hnsw"])
def test_duplicates_up_to_the_links_of_a_node_do_not_hide_their_neighbours(config: IndexConfig) -> None:
    vectors = vectors_of(600)
    vectors[100:160] = vectors[100]  # 60; a node of the lowest level has 2 m = 64 links
    found = build_index(vectors, config).search(vectors[100:101], n_docs=100)
    assert set(range(100, 160)) <= set(found.rows[0].tolist())
    exact = np.sort(-(vectors[100] @ vectors.T))[:100]
    np.testing.assert_allclose(-found.scores[0], exact, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@BOTH
def test_a_vector_that_is_not_finite_is_refused_by_row(config: IndexConfig, value: float) -> None:
    vectors = vectors_of(50)
    vectors[31, 3] = value
    with pytest.raises(DataError, match="row 31 is not finite"):
        build_index([vectors[:20], vectors[20:]], config)


def test_a_question_that_is_not_finite_is_refused_by_row() -> None:
    questions = vectors_of(3, seed=1)
    questions[2, 0] = np.nan
    with pytest.raises(DataError, match="question row 2 "):
        build_index(vectors_of(20), FLAT).search(questions, n_docs=2)


def test_questions_of_another_dimension_are_refused() -> None:
    with pytest.raises(IndexMismatchError, match=r"\(2, 8\) for an index of 16 dimensions"):
        build_index(vectors_of(20), FLAT).search(vectors_of(2, dim=8), n_docs=2)


def test_no_passages_asked_for_is_refused() -> None:
    with pytest.raises(ValueError, match="n_docs is 0"):
        build_index(vectors_of(20), FLAT).search(vectors_of(2), n_docs=0)


def test_an_empty_corpus_and_mixed_dimensions_are_refused() -> None:
    with pytest.raises(DataError, match="no vectors to index"):
        build_index(np.empty((0, 16), np.float32), FLAT)
    with pytest.raises(IndexMismatchError, match=r"\[8, 16\]"):
        build_index([vectors_of(3), vectors_of(3, dim=8)], FLAT)


@BOTH
def test_an_index_is_the_same_bytes_with_any_number_of_threads(config: IndexConfig, tmp_path: Path) -> None:
    vectors, before = vectors_of(1500), faiss.omp_get_max_threads()
    hashes = []
    try:
        for threads in (1, 2, 2):
            faiss.omp_set_num_threads(threads)
            index = build_index(vectors, config)
            index.save(tmp_path / "index")
            hashes.append(index.info.file_sha256)
    finally:
        faiss.omp_set_num_threads(before)
    assert len(set(hashes)) == 1


@BOTH
def test_saved_and_loaded_finds_the_same(config: IndexConfig, tmp_path: Path) -> None:
    vectors, questions = vectors_of(600), vectors_of(20, seed=1)
    index = build_index(vectors, config, encoder_fingerprint="e", row_ids_sha256="r")
    index.save(tmp_path / "index")
    again = PassageIndex.load(tmp_path / "index", dim=16, ntotal=600, encoder_fingerprint="e", row_ids_sha256="r")
    assert again.info == index.info
    assert (again.ntotal, again.dim) == (600, 16)
    for one, other in zip(index.search(questions, 9), again.search(questions, 9), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == ["index.faiss", "index.json"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"dim": 17}, "has 16 dimensions, the encoder 17"),
        ({"ntotal": 49}, "holds 50 passages, the passages table 49"),
        ({"encoder_fingerprint": "other"}, "built by another encoder"),
        ({"row_ids_sha256": "other"}, "in another order"),
    ],
)
def test_an_index_of_something_else_is_refused(tmp_path: Path, wanted: dict[str, int | str], words: str) -> None:
    build_index(vectors_of(50), FLAT, encoder_fingerprint="e", row_ids_sha256="r").save(tmp_path)
    with pytest.raises(IndexMismatchError, match=words):
        PassageIndex.load(tmp_path, **wanted)  # type: ignore[arg-type]


def _cut(folder: Path) -> None:
    path = folder / "index.faiss"
    path.write_bytes(path.read_bytes()[:-10])


def _flip(folder: Path) -> None:
    path = folder / "index.faiss"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _lfs_pointer(folder: Path) -> None:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * "0" + "\nsize 12345\n"
    (folder / "index.faiss").write_text(text)


def _describe(folder: Path, **changes: int | str) -> None:
    path = folder / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _replace(folder: Path, index: faiss.Index) -> None:
    """Another FAISS index with a description that fits the file."""
    faiss.write_index(index, str(folder / "index.faiss"))
    _describe(folder, file_bytes=(folder / "index.faiss").stat().st_size)


def _by_distance(folder: Path) -> None:
    index = faiss.IndexFlatL2(16)
    index.add(vectors_of(50))
    _replace(folder, index)


def _one_short(folder: Path) -> None:
    index = faiss.IndexFlatIP(16)
    index.add(vectors_of(49))
    _replace(folder, index)


def _other_kind(folder: Path) -> None:
    index = faiss.IndexHNSWFlat(16, 4, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors_of(50))
    _replace(folder, index)


def _not_faiss(folder: Path) -> None:
    (folder / "index.faiss").write_bytes(bytes(1000))
    _describe(folder, file_bytes=1000)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut, "index.faiss is cut off: "),
        (_flip, "has changed since it was written"),
        (_lfs_pointer, "a Git LFS pointer of 130 bytes.*git lfs pull"),
        (_by_distance, "another metric than inner product"),
        (_one_short, "holds 49 vectors of 16 dimensions, index.json says 50 of 16"),
        (_other_kind, "says 'flat', the file holds a IndexHNSWFlat"),
        (_not_faiss, "cannot read"),
        (lambda folder: (folder / "index.json").unlink(), "no finished index"),
        (lambda folder: (folder / "index.json").write_text("{"), "index.json cannot be read"),
        (lambda folder: (folder / "index.faiss").unlink(), "index.faiss is missing"),
        (lambda folder: _describe(folder, metric="l2"), "another metric"),
        (lambda folder: _describe(folder, unknown=1), "index.json cannot be read"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_words(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    build_index(vectors_of(50), FLAT).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(IndexMismatchError, match=words):
        PassageIndex.load(tmp_path, check_bytes=damage is _flip)


def test_a_full_disk_is_noticed_before_anything_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(vectors_of(50), FLAT).save(tmp_path)
    old = (tmp_path / "index.faiss").read_bytes()
    usage = index_file.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(index_file.shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(ResourceError, match="100 bytes free, but the index needs"):
        build_index(vectors_of(60), FLAT).save(tmp_path)
    assert (tmp_path / "index.faiss").read_bytes() == old


def test_recall_of_exact_search_is_one() -> None:
    vectors, questions = vectors_of(600), vectors_of(40, seed=1)
    recall = recall_against_exact(build_index(vectors, FLAT), questions, vectors, k=10)
    assert recall.recall == 1
    assert recall.per_question.shape == (40,)


def test_recall_counts_what_an_approximate_index_misses() -> None:
    vectors, questions = vectors_of(3000), vectors_of(60, seed=1)
    index = build_index(vectors, IndexConfig(kind="hnsw", m=2, ef_construction=2, ef_search=1))
    recall = recall_against_exact(index, questions, vectors, k=10)
    exact = np.argsort(-(questions @ vectors.T), axis=1)[:, :10]
    found = index.search(questions, 10)
    by_hand = [
        len(set(e.tolist()) & set(f[m].tolist())) / 10 for e, f, m in zip(exact, found.rows, found.mask, strict=True)
    ]
    np.testing.assert_allclose(recall.per_question, by_hand)
    assert recall.recall < 1


def test_recall_takes_any_of_equal_passages_and_no_more_than_there_are() -> None:
    vectors = np.repeat(vectors_of(3), 10, axis=0)
    recall = recall_against_exact(build_index(vectors, HNSW), vectors_of(5, seed=1), vectors, k=5)
    assert recall.recall == 1
    assert recall_against_exact(build_index(vectors[:3], FLAT), vectors[:2], vectors[:3], k=50).recall == 1


def test_recall_against_other_vectors_is_refused() -> None:
    with pytest.raises(IndexMismatchError, match="19 vectors for an index of 20"):
        recall_against_exact(build_index(vectors_of(20), FLAT), vectors_of(2), vectors_of(19), k=5)
