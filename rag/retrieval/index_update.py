"""An index of a new snapshot from that of an earlier one: what both hold is kept, the rest is taken out or put in.

Vectors are matched by their content, for a passage's row and id say little about its text. A flat or inverted-list
index then finds what a new one would: lists keep their centroids, and hold each its vectors in order of rows.
"""

from typing import Any, NamedTuple

import faiss
import numpy as np
from jaxtyping import Int, UInt8, UInt64

from rag.errors import ConfigError, IndexMismatchError
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_build import Origin, Progress, describe
from rag.retrieval.index_kinds import KINDS, BuildOptions, can_update, empty_index
from rag.retrieval.index_train import copy_training
from rag.retrieval.index_units import Units, cut, find_units
from rag.retrieval.vector_table import Vectors, VectorTable


class IndexChange(NamedTuple):
    """How many passages an update touched: kept + added are those of the new snapshot, kept by their vectors."""

    kept: int
    added: int
    removed: int


def update_index(
    previous: PassageIndex, vectors: Vectors, origin: Origin | None = None, progress: Progress = iter
) -> tuple[PassageIndex, IndexChange]:
    """The index of ``vectors`` with what ``previous`` has learned and encoded; ``previous`` is left as it is.

    Equal to putting all vectors into inverted lists with the centroids of ``previous``, byte for byte; a flat index
    is equal to a new one. ``match_files`` gives vectors and origin of several sources. ``progress`` sees blocks of
    rows go by. Raises ConfigError for graphs, which must be built again, and IndexMismatchError where the vectors are
    of another encoder.
    """
    table, kind = VectorTable.of(vectors), previous.info.kind
    origin = origin or Origin()
    _check(previous, table, origin)
    units = find_units(table, progress)
    old = _match(units.contents, previous.units.contents)
    options = BuildOptions(**previous.info.options)
    index = empty_index(kind, table.dim, options)
    if KINDS[kind].look == "all":
        index.codes.resize(4 * table.dim * len(units))
        index.codes.resize(0)
        for block in progress(units.blocks()):
            index.add(units.read(table, block))
    else:
        copy_training(previous.index, index, kind)
        _move_lists(previous, index, units, table, old, progress)
    info = describe(kind, table, units, options, origin)
    return PassageIndex(index, info, units, table, previous.options), _change(previous.units, units, old)


def _check(previous: PassageIndex, table: VectorTable, origin: Origin) -> None:
    kind, known = previous.info.kind, previous.info.encoder_fingerprint
    if not can_update(kind):
        raise ConfigError(
            f"an {kind} index cannot be updated, for nothing can be taken out of its graph; build it again, or set "
            "index.kind to flat or one of the ivf kinds"
        )
    if len(previous.units.contents) != len(previous.units):
        raise IndexMismatchError("the earlier index has no contents.npy to match vectors by; build the index again")
    if table.dim != previous.dim or origin.encoder_fingerprint != known:
        raise IndexMismatchError(
            f"the earlier index holds vectors of {previous.dim} dimensions by encoder {known or '(not known)'}, the "
            f"new ones have {table.dim}, by {origin.encoder_fingerprint or '(not known)'}; build the index again"
        )


def _match(new: UInt64[np.ndarray, "new 2"], old: UInt64[np.ndarray, "old 2"]) -> Int[np.ndarray, " new"]:
    """For each of the new units the old one with its content; -1 where there is none."""
    order = np.lexsort((old[:, 1], old[:, 0]))
    at = np.searchsorted(old[:, 0], new[:, 0], sorter=order)
    found = order[np.minimum(at, len(order) - 1)]
    # Of two old units with one first half (one in 10^5 corpora of 21 million has such) the second counts as new.
    return np.where((old[found] == new).all(axis=1), found, -1)


def _move_lists(
    previous: PassageIndex,
    index: Any,
    units: Units,
    table: VectorTable,
    old: Int[np.ndarray, " units"],
    progress: Progress,
) -> None:
    """Fill the lists of ``index``: kept codes under their new numbers, and those of added vectors."""
    added = np.flatnonzero(old < 0)
    lists, codes = _encode(index, units, table, added, progress)
    by_list = np.argsort(lists, kind="stable")
    ends = np.cumsum(np.bincount(lists, minlength=index.nlist))
    new = np.full(len(previous.units), -1, np.int64)
    new[old[old >= 0]] = np.flatnonzero(old >= 0)
    for number, end in enumerate(ends.tolist()):
        here = by_list[ends[number - 1] if number else 0 : end]
        old_ids, old_codes = _list(previous.index, number)
        ids = np.concatenate([new[old_ids], added[here]])
        all_codes = np.concatenate([old_codes, codes[here]])
        order = np.argsort(ids)[np.count_nonzero(ids < 0) :]
        ids, all_codes = ids[order], all_codes[order]
        index.invlists.add_entries(number, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(all_codes))
    index.ntotal = len(units)


def _encode(
    index: Any, units: Units, table: VectorTable, added: Int[np.ndarray, " added"], progress: Progress
) -> tuple[Int[np.ndarray, " added"], UInt8[np.ndarray, "added code_bytes"]]:
    lists = np.empty(len(added), np.int64)
    codes = np.empty((len(added), index.code_size), np.uint8)
    for block in progress(cut(len(added))):
        part = slice(block.start, block.stop)
        vectors = table.take(units.first_rows(added[part]))
        lists[part] = index.quantizer.search(vectors, 1)[1][:, 0]
        arrays = (vectors, lists[part], codes[part])
        index.encode_vectors(len(vectors), *(faiss.swig_ptr(array) for array in arrays))
    return lists, codes


def _list(index: Any, number: int) -> tuple[Int[np.ndarray, " ids"], UInt8[np.ndarray, "ids code_bytes"]]:
    """What an inverted list holds, without a copy."""
    size = index.invlists.list_size(number)
    if not size:
        return np.empty(0, np.int64), np.empty((0, index.code_size), np.uint8)
    ids: np.ndarray = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
    codes: np.ndarray = faiss.rev_swig_ptr(index.invlists.get_codes(number), size * index.code_size)
    return ids, codes.reshape(size, index.code_size)


def _change(before: Units, after: Units, old: Int[np.ndarray, " units"]) -> IndexChange:
    kept = int(after.sizes()[old >= 0].sum())
    removed = before.ntotal - int(before.sizes()[old[old >= 0]].sum())
    return IndexChange(kept, after.ntotal - kept, removed)
