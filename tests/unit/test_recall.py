"""Recall against an exact search that knows nothing of FAISS, other search settings, and what to advise."""

import tracemalloc
from itertools import product

import faiss
import numpy as np
import pytest

from rag.config import IndexConfig, IndexKind
from rag.errors import IndexMismatchError
from rag.retrieval import recall as recall_module
from rag.retrieval import recall_sweep
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_build import build_index
from rag.retrieval.recall import (
    RECALL_AT,
    Recall,
    exact_search,
    recall_against_exact,
    recall_of,
    recalls,
    sample_rows,
)
from rag.retrieval.recall_sweep import SweepPoint, advice, advise, sweep
from rag.retrieval.vector_table import VectorTable

FLAT = IndexConfig(kind="flat")
THIN = IndexConfig(kind="hnsw", m=2, ef_construction=2, ef_search=1)


def vectors_of(rows: int, dim: int = 16, seed: int = 0) -> np.ndarray:
    """Random vectors of length 1 in a few clusters."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(8, dim))
    vectors = centres[random.integers(0, 8, rows)] + 0.5 * random.normal(size=(rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return vectors_of(2000)


@pytest.fixture(scope="module")
def questions() -> np.ndarray:
    return vectors_of(40, seed=1)


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_module, "_BLOCK_ROWS", 70)
    monkeypatch.setattr(recall_module, "_QUESTION_ROWS", 9)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("k", [1, 10, 100])
def test_the_exact_search_is_a_sort_of_all_inner_products(vectors: np.ndarray, questions: np.ndarray, k: int) -> None:
    found = exact_search(questions, [vectors[:1234], vectors[1234:]], k)
    scores = questions.astype(np.float64) @ vectors.T.astype(np.float64)
    order = np.argsort(-scores, axis=1)[:, :k]
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_allclose(found.scores, np.take_along_axis(scores, order, 1), rtol=1e-5)
    assert found.mask.all()


@pytest.mark.usefixtures("_small_blocks")
def test_the_exact_search_gives_the_very_numbers_of_a_flat_index(vectors: np.ndarray, questions: np.ndarray) -> None:
    stored = vectors.astype(np.float16)
    ours, theirs = exact_search(questions, stored, 20), build_index(stored, FLAT).search(questions, 20)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("_small_blocks")
def test_equal_passages_of_several_blocks_come_in_order_of_rows(vectors: np.ndarray) -> None:
    repeated = vectors[:500].copy()
    repeated[[450, 20, 310, 77]] = 3 * repeated[5]
    found = exact_search(repeated[5:6], repeated, 4)
    assert found.rows.tolist() == [[20, 77, 310, 450]]
    assert len(set(found.scores[0].tolist())) == 1


@pytest.mark.usefixtures("_small_blocks")
def test_hundreds_of_equal_passages_leave_the_scores_exact(vectors: np.ndarray) -> None:
    repeated = vectors[:900].copy()
    repeated[100:500] = 3 * repeated[5]
    scores = exact_search(repeated[5:6], repeated, 410).scores[0]
    np.testing.assert_allclose(scores, -np.sort(-(repeated @ repeated[5]))[:410], rtol=1e-5)
    assert len(set(scores[:400].tolist())) == 1


def test_more_than_there_are_is_masked(vectors: np.ndarray) -> None:
    found = exact_search(vectors[:2], vectors[:3], 5)
    assert found.mask.tolist() == [[True, True, True, False, False]] * 2
    assert np.isneginf(found.scores[:, 3:]).all()
    assert (found.rows[:, 3:] == 0).all()


def test_the_exact_search_takes_the_memory_of_a_few_blocks() -> None:
    table = VectorTable([np.zeros((10_000, 64), np.float16)] * 40)
    asked = np.ones((10, 64), np.float32)
    exact_search(asked, table, 5)
    tracemalloc.start()
    exact_search(asked, table, 5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(table) * table.dim * 4 / 8


def test_an_exact_search_that_cannot_be_is_refused(vectors: np.ndarray) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        exact_search(vectors[:2], vectors, 0)
    with pytest.raises(IndexMismatchError, match=r"\(2, 8\) for vectors of 16 dimensions"):
        exact_search(vectors[:2, :8], vectors, 1)


def test_recall_of_a_flat_index_is_one_for_every_k(vectors: np.ndarray, questions: np.ndarray) -> None:
    found = recalls(build_index(vectors, FLAT), questions, exact_search(questions, vectors, 100))
    assert [(one.k, one.recall) for one in found] == [(k, 1.0) for k in RECALL_AT]


def test_recall_counts_what_an_approximate_index_misses(vectors: np.ndarray, questions: np.ndarray) -> None:
    index = build_index(vectors, THIN)
    exact = np.argsort(-(questions @ vectors.T), axis=1)
    for one in recalls(index, questions, exact_search(questions, vectors, 50), (1, 5, 50)):
        found = index.search(questions, one.k)
        by_hand = [
            len(set(best[: one.k].tolist()) & set(rows[mask].tolist())) / one.k
            for best, rows, mask in zip(exact, found.rows, found.mask, strict=True)
        ]
        np.testing.assert_allclose(one.per_question, by_hand)
        assert one.recall == pytest.approx(np.mean(by_hand))
        assert one.recall < 1


def test_recall_at_k_is_that_of_a_search_for_k_and_not_of_a_longer_one(
    vectors: np.ndarray, questions: np.ndarray
) -> None:
    index, exact = build_index(vectors, THIN), exact_search(questions, vectors, 300)
    longer = index.search(questions, 300)
    flattered = recall_of(longer._replace(**{name: getattr(longer, name)[:, :5] for name in longer._fields}), exact, 5)
    assert recalls(index, questions, exact, (5,))[0].recall < flattered.recall


def test_any_of_equal_passages_will_do_and_no_more_than_there_are(vectors: np.ndarray) -> None:
    repeated = np.repeat(vectors[:3], 10, axis=0)
    index = build_index(repeated, IndexConfig(kind="hnsw", m=16))
    assert recall_against_exact(index, vectors[100:105], repeated, k=5).recall == 1
    assert recall_against_exact(build_index(vectors[:3], FLAT), vectors[:2], vectors[:3], k=50).recall == 1


def test_recall_against_something_else_is_refused(vectors: np.ndarray) -> None:
    index = build_index(vectors[:20], FLAT)
    with pytest.raises(IndexMismatchError, match="19 vectors for an index of 20"):
        recall_against_exact(index, vectors[:2], vectors[:19], k=5)
    with pytest.raises(ValueError, match="recall at 6 needs an exact search for 6, this one has 5"):
        recalls(index, vectors[:2], exact_search(vectors[:2], vectors[:20], 5), (5, 6))
    with pytest.raises(ValueError, match="at least one question"):
        recalls(index, vectors[:0], exact_search(vectors[:0], vectors[:20], 5), (5,))


def test_a_sample_is_exactly_as_large_as_wanted_and_spread_evenly() -> None:
    for n, wanted, seed in product((0, 1, 7, 200, 3610), (1, 7, 199, 200, 1500), (0, 3, 12345)):
        rows = sample_rows(n, wanted, seed)
        assert len(rows) == min(n, wanted)
        assert rows == sorted(set(rows))
        assert set(rows) <= set(range(n))
        gaps = np.diff(rows)
        assert not len(gaps) or gaps.max() - gaps.min() <= 1
    assert sample_rows(3610, 200, seed=0) != sample_rows(3610, 200, seed=1)


# The settings that each kind heeds, and a study's value of them that is too small for all neighbours.
_KINDS: dict[IndexKind, dict[str, int]] = {
    "flat": {},
    "hnsw": {"ef_search": 32},
    "hnsw-sq8": {"ef_search": 32, "rerank": 40},
    "hnsw-pq": {"ef_search": 32, "rerank": 40},
    "ivf-flat": {"nprobe": 1},
    "ivf-sq8": {"nprobe": 1, "rerank": 40},
    "ivf-pq": {"nprobe": 1, "rerank": 40},
    "ivf-rabitq": {"nprobe": 1, "rerank": 40},
}


def _swept(kind: IndexKind, vectors: np.ndarray, questions: np.ndarray) -> list[SweepPoint]:
    config = IndexConfig.model_validate({"kind": kind, "m": 4, "ef_construction": 20, "nlist": 12, **_KINDS[kind]})
    return sweep(build_index(vectors, config), questions, exact_search(questions, vectors, 10), 10)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_sweep_turns_what_the_kind_heeds_and_marks_the_studys_own(
    kind: IndexKind, vectors: np.ndarray, questions: np.ndarray
) -> None:
    points = _swept(kind, vectors, questions)
    assert [point.options for point in points if point.configured] == [_KINDS[kind]]
    assert {name for point in points for name in point.options} == set(_KINDS[kind])
    settings = [tuple(point.options.values()) for point in points]
    assert len(set(settings)) == len(settings)
    assert all(point.single_seconds > 0 and point.batched_seconds > 0 and point.index_bytes > 0 for point in points)
    own = next(point for point in points if point.configured)
    if _KINDS[kind]:
        assert max(point.recall.recall for point in points) > own.recall.recall
    else:
        assert own.recall.recall == 1
    assert max(point.options.get("nprobe", 0) for point in points) <= 12


def test_a_sweep_finds_the_same_each_time_and_leaves_the_threads_alone(
    vectors: np.ndarray, questions: np.ndarray
) -> None:
    threads = faiss.omp_get_max_threads()
    first, again = (_swept("hnsw-pq", vectors, questions) for _ in range(2))
    assert faiss.omp_get_max_threads() == threads
    assert [(point.options, point.recall.recall) for point in first] == [
        (point.options, point.recall.recall) for point in again
    ]


def test_a_sweep_stops_where_recall_is_about_one(vectors: np.ndarray, questions: np.ndarray) -> None:
    config = IndexConfig(kind="hnsw", m=16, ef_construction=80, ef_search=64)
    index = build_index(vectors, config)
    points = sweep(index, questions, exact_search(questions, vectors, 10), 10)
    assert points[-1].recall.recall >= 0.999
    assert all(point.recall.recall < 0.999 for point in points[:-1] if point.options["ef_search"] >= 64)


def test_a_bar_beyond_the_usual_end_is_looked_for(
    vectors: np.ndarray, questions: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_sweep, "_ENOUGH", 0.7)
    index = build_index(vectors, IndexConfig(kind="ivf-flat", nlist=12, nprobe=1))
    exact = exact_search(questions, vectors, 10)
    usual, whole = sweep(index, questions, exact, 10, bar=0.5), sweep(index, questions, exact, 10, bar=1.0)
    assert 0.7 <= usual[-1].recall.recall < 1
    assert advice(usual, 1.0) is None
    assert advice(whole, 1.0) is not None


def test_what_the_advice_says_reaches_the_bar(vectors: np.ndarray, questions: np.ndarray) -> None:
    config = IndexConfig(kind="ivf-rabitq", nlist=12, nprobe=1, rerank=40)
    index, exact = build_index(vectors, config), exact_search(questions, vectors, 10)
    own = recalls(index, questions, exact, (10,))[0].recall
    found = advice(sweep(index, questions, exact, 10), bar=0.95)
    assert own < 0.95
    assert found is not None
    better = PassageIndex(
        index.index, index.info, index.units, VectorTable.of(vectors), index.options._replace(**found.options)
    )
    assert recalls(better, questions, exact, (10,))[0].recall == found.recall.recall >= 0.95


def _point(recall: float, seconds: float, configured: bool = False, **options: int) -> SweepPoint:
    return SweepPoint(options, configured, Recall(10, recall, np.array([recall])), seconds, seconds, 1000)


_POINTS = [
    _point(0.91, 0.1, configured=True, nprobe=32, rerank=200),
    _point(0.93, 0.2, nprobe=64, rerank=200),
    _point(0.98, 0.4, nprobe=128, rerank=400),
    _point(0.968, 0.3, nprobe=128, rerank=200),
]


def test_the_advice_is_the_fastest_that_reaches_the_bar() -> None:
    assert advice(_POINTS, 0.95) is _POINTS[3]
    assert advice(_POINTS, 0.97) is _POINTS[2]
    assert advice(_POINTS, 0.99) is None


def test_the_advice_names_what_to_change_and_what_is_now() -> None:
    assert advise(_POINTS, 0.95, "ivf-rabitq") == "index.nprobe = 128 reaches 0.968 (now 32: 0.910)"
    both = advise(_POINTS, 0.97, "ivf-rabitq")
    assert both == "index.nprobe = 128 and index.rerank = 400 reaches 0.980 (now 32 and 200: 0.910)"


def test_where_no_search_setting_reaches_the_bar_another_index_is_advised() -> None:
    said = advise(_POINTS, 0.99, "ivf-rabitq")
    assert said.startswith("no search setting that was tried reaches it (the most, 0.980, with index.nprobe = 128 and ")
    assert 'index.nlist, or index.kind to "hnsw" or to "flat"' in said
    graph = advise([_point(0.8, 0.1, configured=True, ef_search=128)], 0.95, "hnsw")
    assert 'index.m or index.ef_construction, or index.kind to "ivf-rabitq"' in graph
