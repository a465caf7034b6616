"""The passage index: what single kinds promise, and that it is not taken for another one."""

from pathlib import Path

import faiss
import numpy as np
import pytest

from rag.config import IndexConfig, IndexKind
from rag.errors import ConfigError, DataError, IndexMismatchError
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_build import build_index
from rag.retrieval.index_kinds import (
    KINDS,
    SearchOptions,
    build_bytes,
    build_options,
    index_bytes,
    resolve_kind,
    resolve_options,
    search_options,
)
from rag.retrieval.vector_table import VectorTable
from tests.support.indexes import CONFIGS, every_kind, vectors_of

FLAT, HNSW = CONFIGS["flat"], CONFIGS["hnsw"]


def test_flat_is_the_exact_search() -> None:
    vectors, questions = vectors_of(600), vectors_of(30, seed=1)
    found = build_index(vectors, FLAT).search(questions, n_docs=10)
    np.testing.assert_array_equal(found.rows, np.argsort(-(questions @ vectors.T), axis=1)[:, :10])


def test_results_that_hnsw_does_not_find_are_masked() -> None:
    vectors = vectors_of(300)
    index = build_index(vectors, IndexConfig(kind="hnsw", m=2, ef_construction=2, ef_search=1))
    found = index.search(vectors[:50], n_docs=250)
    assert not found.mask.all()  # this graph is too thin to reach everything
    assert np.isneginf(found.scores[~found.mask]).all()
    for rows, mask in zip(found.rows, found.mask, strict=True):
        assert len(set(rows[mask].tolist())) == mask.sum()


def test_where_all_are_wanted_even_a_thin_graph_leaves_out_none() -> None:
    vectors = vectors_of(60)
    index = build_index(vectors, IndexConfig(kind="hnsw", m=2, ef_construction=2, ef_search=1))
    found = index.search(vectors, n_docs=60)
    assert found.mask.all()
    np.testing.assert_array_equal(found.rows, np.argsort(-(vectors @ vectors.T), axis=1))


def test_results_in_lists_that_are_not_looked_at_are_masked() -> None:
    vectors = vectors_of(300)
    index = build_index(vectors, CONFIGS["ivf-flat"])
    one, all_of_them = (index.search(vectors[:20], 250, SearchOptions(nprobe=lists)) for lists in (1, 8))
    assert all_of_them.mask.all()
    assert not one.mask.all()
    assert (one.rows[~one.mask] == 0).all()
    np.testing.assert_array_equal(one.rows[:, 0], np.arange(20))


def test_hnsw_looks_at_no_fewer_candidates_than_n_docs() -> None:
    index = build_index(vectors_of(600), IndexConfig(kind="hnsw", m=16, ef_construction=40, ef_search=1))
    assert index.search(vectors_of(5, seed=1), n_docs=100).mask.all()


def test_options_of_a_search_go_before_those_of_the_index() -> None:
    vectors, questions = vectors_of(3000), vectors_of(100, seed=1)
    index = build_index(vectors, CONFIGS["ivf-rabitq"].model_copy(update={"nlist": 32, "nprobe": 2}))
    exact = np.sort(-(questions @ vectors.T), axis=1)[:, :10]
    few, many = (index.search(questions, 10, options) for options in (None, SearchOptions(nprobe=32, rerank=3000)))
    assert index.options == SearchOptions(128, 2, 300)
    assert np.abs(-many.scores - exact).max() < 1e-5
    assert np.abs(-few.scores - exact).max() > 1e-3


def test_questions_of_another_dimension_and_no_passages_asked_for_are_refused() -> None:
    with pytest.raises(ValueError, match="n_docs is 0"):
        build_index(vectors_of(20), FLAT).search(vectors_of(2), n_docs=0)
    with pytest.raises(IndexMismatchError, match=r"\(2, 8\) for an index of 16 dimensions"):
        build_index(vectors_of(20), FLAT).search(vectors_of(2, dim=8), n_docs=2)


def test_no_questions_give_no_results() -> None:
    assert build_index(vectors_of(20), FLAT).search(np.empty((0, 16), np.float32), n_docs=2).rows.shape == (0, 2)


def test_an_empty_corpus_and_mixed_dimensions_are_refused() -> None:
    with pytest.raises(DataError, match="no vectors to index"):
        build_index(np.empty((0, 16), np.float32), FLAT)
    with pytest.raises(IndexMismatchError, match=r"\[8, 16\]"):
        build_index([vectors_of(3), vectors_of(3, dim=8)], FLAT)


def test_a_kind_that_is_still_to_be_chosen_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"index\.kind = auto"):
        build_index(vectors_of(20), IndexConfig(kind="auto"))
    assert build_index(vectors_of(20), IndexConfig(kind="auto"), kind="flat").info.kind == "flat"


def test_code_books_that_do_not_fit_the_vectors_are_refused() -> None:
    with pytest.raises(ConfigError, match="pq_bytes = 5 does not divide 16 dimensions; 4 does"):
        build_index(vectors_of(300), IndexConfig(kind="ivf-pq", pq_bytes=5))


def test_a_graph_over_code_books_is_linked_by_inner_product() -> None:
    vectors, questions = vectors_of(3000, dim=32), vectors_of(50, dim=32, seed=1)
    config = CONFIGS["hnsw-pq"].model_copy(update={"rerank": 30, "pq_bytes": 16})
    found = build_index(vectors, config).search(questions, 10)
    exact = np.sort(questions @ vectors.T, axis=1)[:, -10:]
    assert (found.scores >= exact[:, :1] - 1e-6).mean() > 0.9  # 0.69 where FAISS takes distances for inner products


def test_lists_grow_with_the_corpus() -> None:
    lists = [resolve_options("ivf-rabitq", n, 384, IndexConfig()).nlist for n in (1, 1000, 20_183, 10**6, 21_015_324)]
    assert lists == [1, 6, 126, 6000, 27_504]
    assert resolve_options("ivf-rabitq", 5, 384, IndexConfig(nlist=100)).nlist == 5


@every_kind
def test_the_options_of_a_kind_are_those_that_change_it(config: IndexConfig) -> None:
    built, searched = build_options(config.kind, config), search_options(config.kind, config)
    assert set(built) <= {"m", "ef_construction", "nlist", "pq_bytes"}
    assert set(searched) <= {"ef_search", "nprobe", "rerank"}
    info = build_index(vectors_of(300), config).info
    assert dict(info.options) == {**built, **({"pq_bytes": 8} if "pq" in config.kind else {})}


def test_the_bytes_of_the_whole_collection_are_those_that_are_known() -> None:
    n, dim = 21_015_324, 768
    gigabytes = {
        ("flat", 128): 64.6, ("hnsw", 128): 86.3, ("hnsw-sq8", 128): 37.9, ("hnsw", 32): 70.2, ("ivf-rabitq", 128): 2.4
    }  # fmt: skip
    for (kind, m), known in gigabytes.items():
        assert index_bytes(kind, n, dim, IndexConfig(m=m)) / 1e9 == pytest.approx(known, rel=0.02)
        assert index_bytes(kind, n, dim, IndexConfig(m=m)) < build_bytes(kind, n, dim, IndexConfig(m=m))
    flat = 4 * 384
    assert index_bytes("ivf-rabitq", 20_183, 384, IndexConfig()) <= flat * 20_183 / 20
    assert index_bytes("ivf-rabitq", 10**6, 384, IndexConfig()) <= flat * 10**6 / 20


def test_the_kind_is_the_one_that_fits() -> None:
    n, dim, config = 10**6, 384, IndexConfig(m=32)
    needed = build_bytes("hnsw", n, dim, config)
    assert resolve_kind(config, n, dim, needed) == "hnsw"
    assert resolve_kind(config, n, dim, needed - 1) == "ivf-rabitq"
    assert resolve_kind(IndexConfig(kind="flat"), n, dim, 0) == "flat"


def test_candidates_are_scored_with_the_vectors_of_the_corpus_only(tmp_path: Path) -> None:
    vectors = vectors_of(300)
    build_index(vectors, CONFIGS["ivf-rabitq"]).save(tmp_path)
    with pytest.raises(IndexMismatchError, match="299 vectors of 16 dimensions for an index of 300 of 16"):
        PassageIndex.load(tmp_path, vectors=VectorTable([vectors[1:]]))
    with pytest.raises(IndexMismatchError, match="ivf-rabitq index scores with the passage vectors; load it with them"):
        PassageIndex.load(tmp_path).search(vectors[:1], 1)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf-flat", "ivf-sq8", "ivf-pq", "ivf-rabitq"])
def test_the_vectors_of_another_corpus_are_refused(tmp_path: Path, kind: IndexKind) -> None:
    vectors = vectors_of(300)
    vectors[[7, 250]] = vectors[[3, 4]]  # rows and units are two things
    build_index(vectors, CONFIGS[kind]).save(tmp_path)
    PassageIndex.load(tmp_path, vectors=VectorTable([vectors[:100], vectors[100:]]))
    for foreign in (vectors_of(300, seed=1), np.roll(vectors, 1, axis=0)):
        with pytest.raises(IndexMismatchError, match="not those the index was built from"):
            PassageIndex.load(tmp_path, vectors=VectorTable([foreign]))


def test_a_loaded_index_is_mapped_and_not_read(tmp_path: Path) -> None:
    vectors = vectors_of(300)
    for kind, config in CONFIGS.items():
        build_index(vectors, config).save(tmp_path / kind)
        index = PassageIndex.load(tmp_path / kind, check_bytes=False).index
        if KINDS[kind].look == "lists":
            assert not faiss.downcast_InvertedLists(index.invlists).codes.at(0).is_owned
        else:
            storage = faiss.downcast_index(index.storage) if KINDS[kind].look == "graph" else index
            assert not storage.codes.is_owned
        if KINDS[kind].look == "graph":
            assert not index.hnsw.neighbors.is_owned


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
