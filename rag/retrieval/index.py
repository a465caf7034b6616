"""The passage index: FAISS over inner products, exact (flat) or approximate (HNSW), bound to its passages and encoder.

``search`` returns row numbers of the passages table and exact inner products. What FAISS could not find is masked,
never a row. On disk an index is a folder: ``index.faiss`` and ``index.json``, which says what it must be.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from jaxtyping import Bool, Float, Int

from rag.config import IndexConfig
from rag.errors import DataError, IndexMismatchError
from rag.retrieval.index_file import IndexInfo, read_index, write_index
from rag.retrieval.vectors import VectorFile, hash_row_ids

# Rows added to the graph in one go. FAISS links a batch against the graph before it, the same with any number of
# threads; another size would give another (equally good) graph, so it is fixed.
_ADD_ROWS = 4096
# Candidates beyond n_docs, so that rounding inside FAISS and equal vectors cannot change who is among the n_docs.
_SPARE = 16
_SEARCH_ROWS = 1024
Batches = Iterable[range]


class SearchResult(NamedTuple):
    """The n_docs best rows of each question, best first; equal scores in order of rows."""

    rows: Int[np.ndarray, "batch n_docs"]  # 0 where the mask is False
    scores: Float[np.ndarray, "batch n_docs"]  # exact inner products; -inf where the mask is False
    mask: Bool[np.ndarray, "batch n_docs"]


class Recall(NamedTuple):
    """How much of the exact result an index finds."""

    k: int
    recall: float  # mean of ``per_question``
    per_question: Float[np.ndarray, " questions"]


class PassageIndex:
    """A FAISS index that knows its passages; made by ``build_index``, ``build_index_from_files`` or ``load``."""

    def __init__(self, index: Any, info: IndexInfo) -> None:
        self._index = index
        self.info = info

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self.info.dim

    @property
    def ntotal(self) -> int:
        """Number of passages."""
        return self.info.ntotal

    def search(self, question_vectors: Float[np.ndarray, "batch dim"], n_docs: int) -> SearchResult:
        """The ``n_docs`` passages with the largest inner products; fewer are masked, not invented.

        A question's result does not depend on the others in the batch. HNSW looks at ``ef_search`` candidates or at
        n_docs and some spare ones, whichever is more. Raises IndexMismatchError for vectors of another dimension,
        DataError naming a question whose vector is not finite, ValueError if n_docs < 1.
        """
        questions = np.ascontiguousarray(question_vectors, np.float32)
        self._check_questions(questions, n_docs)
        result = SearchResult(
            np.zeros((len(questions), n_docs), np.int64),
            np.full((len(questions), n_docs), -np.inf, np.float32),
            np.zeros((len(questions), n_docs), np.bool_),
        )
        found = min(n_docs, self.info.ntotal)
        for start in range(0, len(questions), _SEARCH_ROWS):
            block = slice(start, start + _SEARCH_ROWS)
            rows, scores = self._search_block(questions[block], n_docs)
            mask = np.isfinite(scores)
            result.rows[block, :found] = np.where(mask, rows, 0)[:, :found]
            result.scores[block, :found] = scores[:, :found]
            result.mask[block, :found] = mask[:, :found]
        return result

    def _search_block(
        self, questions: Float[np.ndarray, "batch dim"], n_docs: int
    ) -> tuple[Int[np.ndarray, "batch found"], Float[np.ndarray, "batch found"]]:
        candidates = min(n_docs + _SPARE, self.info.ntotal)
        _, rows = self._index.search(questions, candidates, params=self._search_parameters(candidates))
        # Scored again from the vectors: FAISS sums in another order for another batch size.
        vectors = self._index.reconstruct_batch(np.maximum(rows, 0).ravel()).reshape(*rows.shape, self.info.dim)
        scores = np.where(rows >= 0, _inner_products(questions, vectors), np.float32(-np.inf))
        order = np.lexsort((rows, -scores), axis=1)
        return np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)

    def _search_parameters(self, candidates: int) -> Any:
        if self.info.kind != "hnsw":
            return None
        return faiss.SearchParametersHNSW(efSearch=max(self.info.ef_search, candidates))  # type: ignore[attr-defined]

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

        Raises ResourceError before anything is written if the disk is too small.
        """
        self.info = write_index(self._index, self.info, folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        dim: int | None = None,
        ntotal: int | None = None,
        encoder_fingerprint: str | None = None,
        row_ids_sha256: str | None = None,
        check_bytes: bool = True,
    ) -> "PassageIndex":
        """The index of ``folder``, memory-mapped, after checking that it is the one that is wanted.

        Whatever is given must be equal to what the index was built with: its dimension, its number of passages, the
        encoder of its passages (``Encoder.passage_fingerprint``) and their order (``hash_row_ids``). ``check_bytes``
        reads the whole file once for its sha256. Raises IndexMismatchError with what differs and what to do.
        """
        wanted = {
            "dim": dim,
            "ntotal": ntotal,
            "encoder_fingerprint": encoder_fingerprint,
            "row_ids_sha256": row_ids_sha256,
        }
        return cls(*read_index(folder, wanted, check_bytes))


def build_index(
    vectors: Float[np.ndarray, "passages dim"] | Sequence[Float[np.ndarray, "_ dim"]],
    config: IndexConfig,
    encoder_fingerprint: str = "",
    row_ids_sha256: str = "",
    progress: Callable[[Batches], Batches] = iter,
) -> PassageIndex:
    """An index of one array of vectors or of several, one after the other; ``progress`` sees batches of rows go by.

    The same vectors give the same index, byte for byte, with any number of threads. Arrays may be memory-mapped;
    besides the index only one batch lies in memory. Raises DataError naming the first row that is not finite.

    >>> index = build_index(np.eye(3, dtype=np.float32), IndexConfig(kind="flat"))
    >>> index.search(np.array([[1, 2, 3]], np.float32), n_docs=2).rows.tolist()
    [[2, 1]]
    """
    parts = [vectors] if isinstance(vectors, np.ndarray) else list(vectors)
    info = _describe(parts, config, encoder_fingerprint, row_ids_sha256)
    index = _empty_index(info)
    for batch in progress(_cut(info.ntotal)):
        rows = _gather(parts, batch)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            row = batch.start + int(np.argmin(finite))
            raise DataError(f"the vector of row {row} is not finite; encode its source again")
        index.add(rows)
    return PassageIndex(index, info)


def build_index_from_files(
    files: Sequence[VectorFile],
    passage_ids: Iterable[Any],
    config: IndexConfig,
    progress: Callable[[Batches], Batches] = iter,
) -> PassageIndex:
    """The index of several sources, in the order of ``files``, which must be the order of ``passage_ids``.

    Raises IndexMismatchError if a file's rows are not the passages at its place, or if encoders differ.
    """
    encoders = {file.encoder_fingerprint for file in files}
    if len(encoders) != 1:
        raise IndexMismatchError(f"vectors of {len(encoders)} encoders cannot share an index; encode all with one")
    ids = [str(passage_id) for passage_id in passage_ids]
    if len(ids) != sum(file.count for file in files):
        raise IndexMismatchError(f"{len(ids)} passages for {sum(file.count for file in files)} vectors; encode again")
    start = 0
    for file in files:
        if hash_row_ids(ids[start : start + file.count]) != file.row_ids_sha256:
            raise IndexMismatchError(
                f"{file.folder}: its vectors are not those of passages {start} to {start + file.count - 1}, or in "
                "another order; encode the source again, or give the sources in their order"
            )
        start += file.count
    return build_index([file.vectors for file in files], config, encoders.pop(), hash_row_ids(ids), progress)


def recall_against_exact(
    index: PassageIndex,
    question_vectors: Float[np.ndarray, "questions dim"],
    vectors: Float[np.ndarray, "passages dim"] | Sequence[Float[np.ndarray, "_ dim"]],
    k: int,
) -> Recall:
    """recall@k of ``index`` against an exact search over the ``vectors`` it was built from, question by question.

    The share of the k results whose inner product reaches the exact k-th best: of equal passages any will do. With
    fewer than k passages in all, the share of those. Raises IndexMismatchError if the counts differ.
    """
    parts = [vectors] if isinstance(vectors, np.ndarray) else list(vectors)
    if sum(len(part) for part in parts) != index.ntotal:
        raise IndexMismatchError(f"{sum(len(part) for part in parts)} vectors for an index of {index.ntotal} passages")
    questions = np.ascontiguousarray(question_vectors, np.float32)
    wanted = min(k, index.ntotal)
    exact = _exact_scores(questions, parts, wanted)
    found = index.search(questions, k)
    hits = (found.mask & (found.scores >= exact[:, -1:])).sum(axis=1)
    per_question = np.minimum(hits, wanted) / wanted
    return Recall(k, float(per_question.mean()), per_question)


def _exact_scores(
    questions: Float[np.ndarray, "questions dim"], parts: Sequence[Float[np.ndarray, "_ dim"]], k: int
) -> Float[np.ndarray, "questions k"]:
    """The k largest inner products of each question, computed as ``PassageIndex.search`` computes them."""
    best = np.full((len(questions), 0), -np.inf, np.float32)
    for batch in _cut(sum(len(part) for part in parts)):
        vectors = _gather(parts, batch)
        keep = min(k + _SPARE, len(vectors))
        rows = np.argpartition(questions @ vectors.T, len(vectors) - keep, axis=1)[:, len(vectors) - keep :]
        best = np.concatenate([best, _inner_products(questions, vectors[rows])], axis=1)
        best = -np.sort(-best, axis=1)[:, :k]
    return best


def _inner_products(
    questions: Float[np.ndarray, "batch dim"], vectors: Float[np.ndarray, "batch found dim"]
) -> Float[np.ndarray, "batch found"]:
    """Row by row, so that a result never depends on the shape of the batch (as a matrix product's rounding does)."""
    scores: np.ndarray = np.einsum("bd,bnd->bn", questions, vectors)
    return scores


def _describe(
    parts: Sequence[Float[np.ndarray, "_ dim"]], config: IndexConfig, encoder_fingerprint: str, row_ids_sha256: str
) -> IndexInfo:
    dims = {part.shape[1] for part in parts}
    if len(dims) > 1:
        raise IndexMismatchError(f"vectors of different dimensions {sorted(dims)}; encode all sources with one encoder")
    ntotal = sum(len(part) for part in parts)
    if not ntotal:
        raise DataError("no vectors to index; the corpus has no passages")
    hnsw = config.kind == "hnsw"
    return IndexInfo(
        kind=config.kind,
        metric="inner_product",
        dim=dims.pop(),
        ntotal=ntotal,
        m=config.m if hnsw else 0,
        ef_construction=config.ef_construction if hnsw else 0,
        ef_search=config.ef_search if hnsw else 0,
        encoder_fingerprint=encoder_fingerprint,
        row_ids_sha256=row_ids_sha256,
    )


def _empty_index(info: IndexInfo) -> Any:
    index: Any
    storage: Any
    if info.kind == "flat":
        index = storage = faiss.IndexFlatIP(info.dim)
    else:
        index = faiss.IndexHNSWFlat(info.dim, info.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = info.ef_construction
        storage = faiss.downcast_index(index.storage)
    # Grown to its final size and emptied again: the memory stays, and no add has to move what is there already.
    storage.codes.resize(4 * info.dim * info.ntotal)
    storage.codes.resize(0)
    return index


def _cut(rows: int) -> list[range]:
    return [range(start, min(start + _ADD_ROWS, rows)) for start in range(0, rows, _ADD_ROWS)]


def _gather(parts: Sequence[Float[np.ndarray, "_ dim"]], rows: range) -> Float[np.ndarray, "rows dim"]:
    """The rows of the concatenation of ``parts``, without concatenating them."""
    pieces, start = [], 0
    for part in parts:
        low, high = max(rows.start - start, 0), min(rows.stop - start, len(part))
        if low < high:
            pieces.append(np.asarray(part[low:high], np.float32))
        start += len(part)
    return np.ascontiguousarray(np.concatenate(pieces))
