"""What an index learns before anything is put in: centroids of inverted lists, number ranges, code books.

All of it from fixed samples, so that the same vectors give the same index. Centroids are learned by passes over the
stored vectors and not from a copy in memory, for a sample of 21 million would be as large as a whole 1-bit index.
"""

from collections.abc import Callable, Iterable
from typing import Any

import faiss
import numpy as np
from jaxtyping import Float, Int

from rag.config import IndexKind
from rag.retrieval.index_kinds import KINDS, LIST_PASSES, LIST_SAMPLE, SAMPLE_ROWS, BuildOptions
from rag.retrieval.index_units import Units, cut
from rag.retrieval.vector_table import VectorTable

_SPLIT = 1 / 1024  # how far apart the halves of a divided list begin
_BOOK = 256  # centroids of a product quantiser
Batches = Iterable[range]


def train(
    index: Any,
    kind: IndexKind,
    options: BuildOptions,
    units: Units,
    table: VectorTable,
    progress: Callable[[Batches], Batches],
) -> None:
    """Teach an empty index of this kind; ``progress`` sees blocks of the sample go by, once a pass."""
    look, store, _ = KINDS[kind]
    if look == "lists":
        index.quantizer.add(learn_centroids(units, table, options.nlist, progress))
    if store == "pq":
        _pq(index, kind).cp.min_points_per_centroid = 1  # or a small corpus has FAISS print a warning
    if look == "lists" or store != "vectors":
        index.train(_sample(units, table, SAMPLE_ROWS if store in ("sq8", "pq") else 1, store == "pq"))
    if kind == "hnsw-pq":
        _set_symmetric_table(_pq(index, kind))


def copy_training(source: Any, target: Any, kind: IndexKind) -> None:
    """Have an empty inverted-list index know what another one has learned."""
    target.quantizer.add(source.quantizer.reconstruct_n(0, source.nlist))
    store = KINDS[kind].store
    if store == "sq8":
        faiss.copy_array_to_vector(faiss.vector_to_array(source.sq.trained), target.sq.trained)
    if store == "pq":
        faiss.copy_array_to_vector(faiss.vector_to_array(source.pq.centroids), target.pq.centroids)
    target.is_trained = True


def learn_centroids(
    units: Units, table: VectorTable, nlist: int, progress: Callable[[Batches], Batches] = iter
) -> Float[np.ndarray, "nlist dim"]:
    """Centroids of ``nlist`` lists by spherical k-means; a list that stays empty takes over half of the fullest one.

    Every pass goes over other vectors, 64 a list: small clusters that one sample misses are in the next.
    """
    random = np.random.default_rng(0)
    centroids = _normalised(table.take(units.first_rows(_spread(len(units), nlist, random))).astype(np.float64))
    sums, counts = np.empty(centroids.shape), np.empty(nlist, np.int64)
    for _ in range(LIST_PASSES):
        rows = units.first_rows(_spread(len(units), LIST_SAMPLE * nlist, random))
        sums[:], counts[:] = 0, 0
        quantizer: Any = faiss.IndexFlatIP(table.dim)
        quantizer.add(centroids)
        for block in progress(cut(len(rows))):
            vectors = table.take(rows[block.start : block.stop])
            _add_up(vectors, quantizer.search(vectors, 1)[1][:, 0], sums, counts)
        del quantizer
        _divide(sums, counts)
        centroids = _normalised(sums)
    return centroids


def _add_up(
    vectors: Float[np.ndarray, "rows dim"],
    lists: Int[np.ndarray, " rows"],
    sums: Float[np.ndarray, "nlist dim"],
    counts: Int[np.ndarray, " nlist"],
) -> None:
    order = np.argsort(lists, kind="stable")
    seen, starts, times = np.unique(lists[order], return_index=True, return_counts=True)
    sums[seen] += np.add.reduceat(vectors[order], starts, axis=0)
    counts[seen] += times


def _divide(sums: Float[np.ndarray, "nlist dim"], counts: Int[np.ndarray, " nlist"]) -> None:
    """Replace the sums of empty lists by the sum of the fullest list, bent one way and it the other.

    There are no fewer vectors than lists, so where one is empty another has two.
    """
    bend = np.where(np.arange(sums.shape[1]) % 2, 1 + _SPLIT, 1 - _SPLIT)
    for empty in np.flatnonzero(counts == 0):
        fullest = int(counts.argmax())
        counts[empty] = counts[fullest] // 2
        counts[fullest] -= counts[empty]
        sums[empty], sums[fullest] = sums[fullest] * bend, sums[fullest] / bend


def _normalised(sums: Float[np.ndarray, "nlist dim"]) -> Float[np.ndarray, "nlist dim"]:
    """Unit vectors in float32; the sums themselves are divided, for a copy of them all would be the peak of a build."""
    norms = np.sqrt(np.vecdot(sums, sums))[:, None]
    sums /= np.where(norms > 0, norms, 1)
    return sums.astype(np.float32)


def _spread(n: int, wanted: int, random: np.random.Generator) -> Int[np.ndarray, " sample"]:
    """``wanted`` of n places (or all of them), in order, one from each of as many equal stretches.

    >>> _spread(10, 20, np.random.default_rng(0)).tolist() == list(range(10))
    True
    """
    size = min(n, wanted)
    edges = np.arange(size + 1) * n // size
    return random.integers(edges[:-1], edges[1:])


def _sample(units: Units, table: VectorTable, wanted: int, for_books: bool) -> Float[np.ndarray, "sample dim"]:
    places = _spread(len(units), wanted, np.random.default_rng(0))
    if for_books and len(places) < _BOOK:  # FAISS wants no fewer points than centroids
        places = np.resize(places, _BOOK)
    return table.take(units.first_rows(places))


def _pq(index: Any, kind: IndexKind) -> Any:
    holder: Any = index if KINDS[kind].look == "lists" else faiss.downcast_index(index.storage)
    return holder.pq


def _set_symmetric_table(pq: Any) -> None:
    """Give FAISS inner products between centroids where it links a graph.

    It computes squared distances whatever the metric, and takes them for inner products: the graph would link what is
    far apart (recall@10 0.32 where it is 0.98 with this).
    """
    books = faiss.vector_to_array(pq.centroids).reshape(pq.M, pq.ksub, pq.dsub)
    products = np.einsum("mid,mjd->mij", books, books)
    faiss.copy_array_to_vector(np.ascontiguousarray(products, np.float32).ravel(), pq.sdc_table)
