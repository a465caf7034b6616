"""The passage index: FAISS finds candidates by inner product, exact or approximate, and their scores are exact.

``search`` returns row numbers of the passages table and exact inner products, whatever the kind. What FAISS could not
find is masked, never a row. On disk an index is a folder, see ``index_file``.
"""

from pathlib import Path
from typing import Any, TypedDict, Unpack

import faiss
import numpy as np
from jaxtyping import Float, Int

from rag.errors import DataError, IndexMismatchError
from rag.retrieval.index_file import IndexInfo, read_index, write_index
from rag.retrieval.index_kinds import KINDS, SearchOptions, candidates, needs_vectors, search_parameters
from rag.retrieval.index_units import Units, hash_vectors
from rag.retrieval.inner_products import inner_products
from rag.retrieval.results import SearchResult
from rag.retrieval.vector_table import VectorTable
from rag.retrieval_config import SPARE

_SEARCH_ROWS = 1024  # questions that FAISS gets at once
_SPOT_CHECKS = 64  # vectors of a loaded index that are compared: milliseconds, and a foreign table has hardly any
_RERANK_BYTES = 1 << 23  # of candidates' vectors that are read at once: more than that does not stay in the cache


class Wanted(TypedDict, total=False):
    """What an index must have been built with; what is left out or None may be anything."""

    dim: int | None
    ntotal: int | None  # passages
    encoder_fingerprint: str | None  # of the encoder of the passages
    row_ids_sha256: str | None  # ``hash_row_ids`` of the passages in their order


class PassageIndex:
    """A FAISS index that knows its passages; made by ``build_index``, ``update_index`` or ``load``.

    ``vectors`` are those it was built from: kinds that do not hold them themselves score candidates with them.
    """

    def __init__(
        self, index: Any, info: IndexInfo, units: Units, vectors: VectorTable | None, options: SearchOptions
    ) -> None:
        self.index = index
        self.info = info
        self.units = units
        self.options = options
        self._vectors: VectorTable | _StoredVectors | None = (
            _checked(vectors, info) if needs_vectors(info.kind) else _StoredVectors(index)
        )
        self._centroids = _StoredVectors(index.quantizer) if KINDS[info.kind].look == "lists" else None

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self.info.dim

    @property
    def ntotal(self) -> int:
        """Number of passages."""
        return self.info.ntotal

    def search(
        self,
        question_vectors: Float[np.ndarray, "batch dim"],
        n_docs: int,
        options: SearchOptions | None = None,
    ) -> SearchResult:
        """The ``n_docs`` passages with the largest inner products; fewer are masked, not invented.

        ``options`` are the index's own where none are given; a graph looks at no fewer than n_docs and some spare
        candidates. A question's result does not depend on the others in the batch. Raises IndexMismatchError for
        vectors of another dimension, DataError naming a question whose vector is not finite, ValueError if
        n_docs < 1.
        """
        questions = np.ascontiguousarray(question_vectors, np.float32)
        self._check_questions(questions, n_docs)
        result = SearchResult.empty(len(questions), n_docs)
        step = -(-len(questions) // max(1, -(-len(questions) // _SEARCH_ROWS)))  # equal blocks: no small one at the end
        for start in range(0, len(questions), step or 1):
            block = slice(start, start + step)
            self._search_block(questions[block], SearchResult(*(part[block] for part in result)), options)
        return result

    def _search_block(
        self, questions: Float[np.ndarray, "batch dim"], result: SearchResult, options: SearchOptions | None
    ) -> None:
        """Fill ``result``, in pieces whose candidates' vectors fit the processor's cache."""
        n_docs, options = result.rows.shape[1], options or self.options
        wanted = min(candidates(self.info.kind, n_docs, options), self.info.units)
        found = self._candidates(questions, wanted, options)
        step = max(1, _RERANK_BYTES // (4 * self.info.dim * wanted))
        for start in range(0, len(questions), step):
            piece = slice(start, start + step)
            rows, scores = self._rank(questions[piece], found[piece], n_docs)
            mask, width = np.isfinite(scores), rows.shape[1]
            result.rows[piece, :width] = np.where(mask, rows, 0)
            result.scores[piece, :width] = scores
            result.mask[piece, :width] = mask

    def _candidates(
        self, questions: Float[np.ndarray, "batch dim"], wanted: int, options: SearchOptions
    ) -> Int[np.ndarray, "batch wanted"]:
        """Units that FAISS finds, -1 where it finds no more.

        Where all are wanted a graph is not asked: it may lead nowhere near some. Lists are, for ``nprobe`` says how
        many of them a search may look at.
        """
        if wanted >= self.info.units and self._centroids is None:
            return np.broadcast_to(np.arange(self.info.units), (len(questions), self.info.units))
        # From so many questions on FAISS compares them with all vectors, or all centroids, by a matrix product. Its
        # own choice is some 300, and 200 questions then take 12 times as long.
        faiss.cvar.distance_compute_blas_threshold = 20
        parameters = search_parameters(self.info.kind, wanted, options)
        if self._centroids is None:
            units: np.ndarray = self.index.search(questions, wanted, params=parameters)[1]
            return units
        lists, scores = self._nearest_lists(questions, min(options.nprobe, self.index.nlist))
        distances, units = np.empty((len(questions), wanted), np.float32), np.empty((len(questions), wanted), np.int64)
        parameters.nprobe = lists.shape[1]
        arrays = [faiss.swig_ptr(array) for array in (lists, scores, distances, units)]
        self.index.search_preassigned_c(len(questions), faiss.swig_ptr(questions), wanted, *arrays, False, parameters)
        return units

    def _nearest_lists(
        self, questions: Float[np.ndarray, "batch dim"], nprobe: int
    ) -> tuple[Int[np.ndarray, "batch nprobe"], Float[np.ndarray, "batch nprobe"]]:
        """The lists to look at. Scored again, for FAISS' sums, and so the last list, depend on the batch."""
        _, lists = self.index.quantizer.search(questions, min(nprobe + SPARE, self.index.nlist))
        assert self._centroids is not None
        scores = inner_products(questions, self._centroids.take(lists))
        order = np.lexsort((lists, -scores), axis=1)[:, :nprobe]
        return np.take_along_axis(lists, order, 1), np.take_along_axis(scores, order, 1)

    def _rank(
        self, questions: Float[np.ndarray, "batch dim"], units: Int[np.ndarray, "batch wanted"], n_docs: int
    ) -> tuple[Int[np.ndarray, "batch found"], Float[np.ndarray, "batch found"]]:
        """Rows and exact scores, best first; -inf where there is none."""
        found = np.maximum(units, 0)
        rows = self.units.first_rows(found)
        if self._vectors is None:
            raise IndexMismatchError(f"an {self.info.kind} index scores with the passage vectors; load it with them")
        scores = inner_products(questions, self._vectors.take(rows if needs_vectors(self.info.kind) else found))
        scores[units < 0] = -np.inf
        order = np.lexsort((rows, -scores), axis=1)[:, :n_docs]
        rows, scores, found = (np.take_along_axis(part, order, 1) for part in (rows, scores, found))
        return self.units.spread(found, rows, scores, n_docs) if self.units.repeats.size else (rows, scores)

    def _check_questions(self, questions: Float[np.ndarray, "batch dim"], n_docs: int) -> None:
        if n_docs < 1:
            raise ValueError(f"n_docs is {n_docs}; ask for at least one passage")
        if questions.ndim != 2 or questions.shape[1] != self.info.dim:
            raise IndexMismatchError(
                f"question vectors of shape {questions.shape} for an index of {self.info.dim} dimensions; "
                "use the question encoder that belongs to the encoder of this index"
            )
        finite = np.isfinite(questions).all(axis=1)
        if not finite.all():
            raise DataError(f"the vector of question row {int(np.argmin(finite))} is not finite; check the encoder")

    def save(self, folder: Path) -> None:
        """Write the index into ``folder``: temporary files, synced, renamed, index.json last.

        Raises ResourceError if the disk is too small; what was there is left as it is.
        """
        self.info = write_index(self.index, self.units, self.info, folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        vectors: VectorTable | None = None,
        options: SearchOptions = SearchOptions(),  # noqa: B008  (a tuple)
        check_bytes: bool = True,
        **wanted: Unpack[Wanted],
    ) -> "PassageIndex":
        """The index of ``folder``, memory-mapped, after checking that it is the one that is wanted.

        ``vectors`` are the passage vectors it was built from, which a search needs; flat and hnsw hold them themselves,
        and an update needs none; some are compared with what the index knows of them. ``check_bytes`` reads the files
        once for their sha256. Raises IndexMismatchError with what differs and what to do.
        """
        index, units, info = read_index(folder, wanted, check_bytes)
        if vectors is not None:
            _spot_check(index, info, units, vectors)
        return cls(index, info, units, vectors, options)


def _checked(vectors: VectorTable | None, info: IndexInfo) -> VectorTable | None:
    if vectors is not None and (len(vectors), vectors.dim) != (info.ntotal, info.dim):
        raise IndexMismatchError(
            f"{len(vectors)} vectors of {vectors.dim} dimensions for an index of {info.ntotal} of {info.dim}; give it "
            "the vectors that it was built from"
        )
    return vectors


def _spot_check(index: Any, info: IndexInfo, units: Units, vectors: VectorTable) -> None:
    """Units from all over the index against the table; graphs over codes do not tell, nor lists without contents."""
    _checked(vectors, info)
    picked = np.unique(np.linspace(0, len(units) - 1, _SPOT_CHECKS).astype(np.int64))
    given = vectors.take(units.first_rows(picked))
    if not needs_vectors(info.kind):
        same = bool((_StoredVectors(index).take(picked) == given).all())
    else:
        same = not len(units.contents) or bool((units.contents[picked] == hash_vectors(given)).all())
    if not same:
        raise IndexMismatchError(
            "the vectors are not those the index was built from; give it those, or build the index again"
        )


class _StoredVectors:
    """The vectors inside a flat index, or in the graph's own flat storage, by unit.

    Taken as bytes: in a mapped file they begin anywhere, and of floats that do numpy first makes a copy, of them all.
    """

    def __init__(self, index: Any) -> None:
        flat: Any = faiss.downcast_index(index.storage if hasattr(index, "storage") else index)
        self._bytes = faiss.rev_swig_ptr(flat.codes.data(), flat.ntotal * flat.code_size).reshape(flat.ntotal, -1)

    def take(self, units: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        found: np.ndarray = self._bytes.take(units.reshape(-1), axis=0).view(np.float32)
        return found.reshape(*units.shape, -1)
