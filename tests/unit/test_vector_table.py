"""Shards as one table: every row from its shard, in whatever precision it is stored."""

from pathlib import Path

import numpy as np
import pytest

from rag.errors import IndexMismatchError
from rag.retrieval.vector_table import VectorTable
from tests.support.indexes import vectors_of

CUTS = [[], [40], [0, 0, 3, 3, 50, 100], list(range(2, 150, 3))]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_rows_are_those_of_the_whole(dtype: type, cuts: list[int]) -> None:
    whole = vectors_of(100).astype(dtype)
    table = VectorTable(np.split(whole, cuts))
    wanted = whole.astype(np.float32)
    assert (len(table), table.dim) == (100, 16)
    for rows in (range(100), range(0), range(39, 41), range(99, 100), range(3, 52)):
        block = table.block(rows)
        assert block.dtype == np.float32
        np.testing.assert_array_equal(block, wanted[rows.start : rows.stop])
    some = np.random.default_rng(0).integers(0, 100, (7, 9))
    taken = table.take(some)
    assert taken.dtype == np.float32
    np.testing.assert_array_equal(taken, wanted[some])
    assert table.take(some[:0]).shape == (0, 9, 16)


def test_shards_of_either_precision_mix() -> None:
    one, other = vectors_of(5).astype(np.float16), vectors_of(4, seed=1)
    table, wanted = VectorTable([one, other]), np.concatenate([one.astype(np.float32), other])
    np.testing.assert_array_equal(table.block(range(9)), wanted)
    np.testing.assert_array_equal(table.take(np.arange(9)[::-1]), wanted[::-1])


def test_every_half_precision_number_is_read_as_itself() -> None:
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = bits[np.isfinite(bits)].reshape(-1, 8)
    table = VectorTable([halves])
    np.testing.assert_array_equal(table.take(np.arange(len(halves))), halves.astype(np.float32))


def test_mapped_shards_are_read_without_being_changed(tmp_path: Path) -> None:
    halves = vectors_of(20).astype(np.float16)
    np.save(tmp_path / "part.npy", halves)
    table = VectorTable([np.load(tmp_path / "part.npy", mmap_mode="r")] * 2)
    found = table.block(range(20, 40))
    found[:] = 0
    np.testing.assert_array_equal(table.take(np.arange(20, 40)), halves.astype(np.float32))


def test_what_is_a_table_one_array_or_several_is_a_table() -> None:
    vectors = vectors_of(6)
    table = VectorTable.of(vectors)
    assert VectorTable.of(table) is table
    assert len(VectorTable.of([vectors, vectors])) == 12


def test_shards_of_different_dimensions_are_refused() -> None:
    with pytest.raises(IndexMismatchError, match=r"\[8, 16\]"):
        VectorTable([vectors_of(3), vectors_of(3, dim=8)])
