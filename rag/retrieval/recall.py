"""What an index finds of an exact search: recall at k, question by question.

The exact search is a matrix product over blocks of the stored vectors and knows nothing of FAISS, so that it can say
what any index loses; 21 million vectors pass through it in blocks of a few megabytes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rag.errors import IndexMismatchError
from rag.retrieval.index import PassageIndex
from rag.retrieval.inner_products import inner_products
from rag.retrieval.results import SearchResult
from rag.retrieval.vector_table import Vectors, VectorTable
from rag.retrieval_config import SPARE

RECALL_AT = (1, 5, 10, 20, 50, 100)
_BLOCK_ROWS = 8192
_QUESTION_ROWS = 128  # questions that meet a block together: 4 MB of scores
_STRIDE = 2_654_435_761  # spreads seeds that are small numbers
Blocks = Iterable[range]


class Recall(NamedTuple):
    """How much of the exact result an index finds."""

    k: int
    recall: float  # mean of ``per_question``
    per_question: Float[np.ndarray, " questions"]


def exact_search(
    question_vectors: Float[np.ndarray, "questions dim"],
    vectors: Vectors,
    k: int,
    progress: Callable[[Blocks], Blocks] = iter,
) -> SearchResult:
    """The k largest inner products of each question with all ``vectors``; ``progress`` sees blocks of rows go by.

    Scores are computed as ``PassageIndex.search`` computes them, bit by bit; equal ones come in order of rows (where
    more than 16 passages beyond the k-th have its score, any of them may take the last places). Where there are
    fewer than k vectors the rest is masked. Memory: some blocks, and k candidates a question. Raises ValueError if
    k < 1 and IndexMismatchError if the dimensions differ.

    >>> exact_search(np.array([[1, 2, 3]], np.float32), np.eye(3, dtype=np.float32), k=2).rows.tolist()
    [[2, 1]]
    """
    table, questions = VectorTable.of(vectors), np.ascontiguousarray(question_vectors, np.float32)
    if k < 1:
        raise ValueError(f"k is {k}; ask for at least one passage")
    if questions.ndim != 2 or questions.shape[1] != table.dim:
        raise IndexMismatchError(f"questions of shape {questions.shape} for vectors of {table.dim} dimensions")
    # Spare ones, for the matrix product rounds in another way than the scores that decide in the end.
    parts = [_Candidates(questions[start : start + _QUESTION_ROWS], k + SPARE) for start in _starts(len(questions))]
    for block in progress(_blocks(len(table))):
        found = table.block(block)
        for part in parts:
            part.see(found, block.start)
    result = SearchResult.empty(len(questions), k)
    for start, part in zip(_starts(len(questions)), parts, strict=True):
        piece = slice(start, start + _QUESTION_ROWS)
        part.rank(table, SearchResult(*(column[piece] for column in result)))
    return result


class _Candidates:
    """The best rows so far of a few questions, by the matrix product."""

    def __init__(self, questions: Float[np.ndarray, "questions dim"], keep: int) -> None:
        self._questions = questions
        self._rows: np.ndarray = np.empty((len(questions), 0), np.int64)
        self._keep = keep
        self._scores: np.ndarray = np.empty((len(questions), 0), np.float32)
        self._least = np.full((len(questions), 1), -np.inf, np.float32)  # below it nothing can be among the best

    def see(self, vectors: Float[np.ndarray, "rows dim"], start: int) -> None:
        scores = self._questions @ vectors.T
        # After the first blocks hardly any row is good enough for any question, and sorting costs nothing.
        good = np.flatnonzero((scores >= self._least).any(axis=0))
        rows = np.broadcast_to(start + good, (len(scores), len(good)))
        self._scores = np.concatenate([self._scores, scores[:, good]], axis=1)
        self._rows = np.concatenate([self._rows, rows], axis=1)
        if self._rows.shape[1] > self._keep:
            best = np.argpartition(-self._scores, self._keep - 1, axis=1)[:, : self._keep]
            self._scores = np.take_along_axis(self._scores, best, axis=1)
            self._rows = np.take_along_axis(self._rows, best, axis=1)
            self._least = self._scores.min(axis=1, keepdims=True)

    def rank(self, table: VectorTable, result: SearchResult) -> None:
        """Fill ``result`` with the best of them by exact score."""
        scores = inner_products(self._questions, table.take(self._rows))
        order = np.lexsort((self._rows, -scores), axis=1)[:, : result.rows.shape[1]]
        found = slice(order.shape[1])
        result.rows[:, found] = np.take_along_axis(self._rows, order, 1)
        result.scores[:, found] = np.take_along_axis(scores, order, 1)
        result.mask[:, found] = True


def recalls(
    index: PassageIndex,
    question_vectors: Float[np.ndarray, "questions dim"],
    exact: SearchResult,
    ks: Sequence[int] = RECALL_AT,
) -> list[Recall]:
    """recall@k of ``index`` for each of ``ks``, each from a search for k passages.

    A study asks for n_docs passages, and an approximate index looks further the more it is asked for: the first ten
    of a search for a hundred would flatter it. ``exact`` is the ``exact_search`` of the same questions, for at least
    the largest of ``ks``; ValueError otherwise.
    """
    return [recall_of(index.search(question_vectors, k), exact, k) for k in ks]


def recall_of(found: SearchResult, exact: SearchResult, k: int) -> Recall:
    """recall@k of what a search for k passages found.

    The share of the k results whose inner product reaches the exact k-th best: of equal passages any will do. With
    fewer than k passages in all, the share of those.
    """
    if exact.rows.shape[1] < k:
        raise ValueError(f"recall at {k} needs an exact search for {k}, this one has {exact.rows.shape[1]}")
    wanted = int(exact.mask[:, :k].sum(axis=1).min()) if len(exact.mask) else 0
    if not wanted:
        raise ValueError("recall needs at least one question and one passage")
    least = exact.scores[:, wanted - 1 : wanted]
    hits = (found.mask & (found.scores >= least)).sum(axis=1)
    per_question = np.minimum(hits, wanted) / wanted
    return Recall(k, float(per_question.mean()), per_question)


def recall_against_exact(
    index: PassageIndex, question_vectors: Float[np.ndarray, "questions dim"], vectors: Vectors, k: int
) -> Recall:
    """recall@k of ``index`` against an exact search over the ``vectors`` it was built from.

    Raises IndexMismatchError if the counts differ.
    """
    table = VectorTable.of(vectors)
    if len(table) != index.ntotal:
        raise IndexMismatchError(f"{len(table)} vectors for an index of {index.ntotal} passages")
    return recalls(index, question_vectors, exact_search(question_vectors, table, k), (k,))[0]


def sample_rows(n: int, wanted: int, seed: int) -> list[int]:
    """Exactly ``min(n, wanted)`` of ``n`` rows, evenly spread, so that each part of a joined list has its share.

    ``seed`` moves the first one.

    >>> sample_rows(10, 4, seed=0), sample_rows(10, 4, seed=7), sample_rows(3, 4, seed=0)
    ([0, 2, 5, 7], [1, 4, 6, 9], [0, 1, 2])
    """
    count = min(n, wanted)
    return [(row * n + seed * _STRIDE % n) // count for row in range(count)]


def _starts(rows: int) -> range:
    return range(0, rows, _QUESTION_ROWS)


def _blocks(rows: int) -> list[range]:
    return [range(start, min(start + _BLOCK_ROWS, rows)) for start in range(0, rows, _BLOCK_ROWS)]
