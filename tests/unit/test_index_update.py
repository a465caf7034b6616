"""An index of a new snapshot is what putting all its vectors into the earlier one's lists would give."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from rag.config import IndexConfig
from rag.errors import ConfigError, DataError, IndexMismatchError
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_build import Origin, build_index
from rag.retrieval.index_update import IndexChange, update_index
from rag.retrieval.vector_table import VectorTable
from tests.support.indexes import CONFIGS, kinds_to_rebuild, kinds_to_update, vectors_of


def snapshots() -> tuple[np.ndarray, np.ndarray]:
    """Two of 600 and 650 rows: 500 vectors of the first in another order, and 150 new ones among them."""
    old = vectors_of(600)
    new = np.concatenate([old[100:], vectors_of(150, seed=3)])
    return old, new[np.random.default_rng(1).permutation(len(new))]


def lists_of(index: Any) -> list[tuple[list[int], bytes]]:
    """Ids and codes of every inverted list."""
    lists = faiss.downcast_InvertedLists(index.invlists)
    return [
        (
            faiss.rev_swig_ptr(lists.get_ids(number), lists.list_size(number)).tolist(),
            faiss.rev_swig_ptr(lists.get_codes(number), lists.list_size(number) * index.code_size).tobytes(),
        )
        for number in range(index.nlist)
        if lists.list_size(number)
    ]


@kinds_to_update
def test_an_update_is_all_vectors_in_the_same_trained_index(config: IndexConfig) -> None:
    old, new = snapshots()
    previous = build_index(old, config)
    updated, change = update_index(previous, new)
    assert change == IndexChange(kept=500, added=150, removed=100)
    if config.kind == "flat":
        again = build_index(new, config)
        np.testing.assert_array_equal(updated.index.reconstruct_n(0, 650), again.index.reconstruct_n(0, 650))
    else:
        again = faiss.clone_index(previous.index)
        again.reset()
        again.add(new)
        assert lists_of(updated.index) == lists_of(again)


@kinds_to_update
def test_an_updated_index_finds_the_rows_of_the_new_snapshot(config: IndexConfig, tmp_path: Path) -> None:
    old, new = snapshots()
    build_index(old, config, encoder_fingerprint="e").save(tmp_path / "old")
    previous = PassageIndex.load(tmp_path / "old")  # without vectors: those of the old snapshot may be gone
    updated, _ = update_index(previous, np.split(new, 5), Origin("e", "ids"))
    updated.save(tmp_path / "new")
    again = PassageIndex.load(
        tmp_path / "new", vectors=VectorTable([new]), ntotal=650, encoder_fingerprint="e", row_ids_sha256="ids"
    )
    for index in (updated, again):
        np.testing.assert_array_equal(index.search(new, 1).rows[:, 0], np.arange(650))
        assert (index.search(old[:100], 1).scores[:, 0] < 1 - 1e-6).all()  # removed
    assert PassageIndex.load(tmp_path / "old").ntotal == 600


@kinds_to_update
def test_updates_follow_one_another_and_repeated_rows_count_each(config: IndexConfig) -> None:
    first = vectors_of(400)
    second = np.concatenate([first[:300], first[:50], vectors_of(20, seed=5)])  # 50 rows repeat others
    third = np.concatenate([second[200:], first[350:]])
    index = build_index(first, config)
    changes = []
    for vectors in (second, third, third):
        index, change = update_index(index, vectors)
        changes.append(change)
        np.testing.assert_allclose(index.search(vectors, 1).scores[:, 0], 1, atol=1e-5)
        assert index.search(vectors[:1], 400).mask.sum() == len(vectors)
    assert changes == [IndexChange(350, 20, 100), IndexChange(170, 50, 150), IndexChange(220, 0, 0)]
    assert index.info.units == 220


@kinds_to_update
def test_everything_may_be_replaced(config: IndexConfig) -> None:
    new = vectors_of(330, seed=9)
    updated, change = update_index(build_index(vectors_of(300), config), new)
    assert change == IndexChange(0, 330, 300)
    np.testing.assert_array_equal(updated.search(new, 1).rows[:, 0], np.arange(330))


@kinds_to_rebuild
def test_a_graph_must_be_built_again(config: IndexConfig) -> None:
    with pytest.raises(ConfigError, match=f"{config.kind} index cannot be updated.*build it again"):
        update_index(build_index(vectors_of(300), config), vectors_of(300))


def test_vectors_of_another_encoder_are_refused() -> None:
    index = build_index(vectors_of(50), CONFIGS["flat"], encoder_fingerprint="e")
    with pytest.raises(IndexMismatchError, match="by encoder e, the new ones have 16, by f"):
        update_index(index, vectors_of(50), Origin("f"))
    with pytest.raises(IndexMismatchError, match="of 16 dimensions by encoder e, the new ones have 8"):
        update_index(index, vectors_of(50, dim=8), Origin("e"))


def test_vectors_that_are_not_finite_are_refused_by_row() -> None:
    vectors = vectors_of(50)
    vectors[31, 2] = np.nan
    with pytest.raises(DataError, match="row 31 is not finite"):
        update_index(build_index(vectors_of(50), CONFIGS["flat"]), vectors)
