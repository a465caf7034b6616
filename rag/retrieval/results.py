"""What a search takes and gives, whichever index does it: passages by row number, and rows with scores."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int

from rag.records import Passage


class PassageRows(Protocol):
    """Passages by row number, in the order of the index."""

    def __len__(self) -> int: ...

    def rows(self, rows: Sequence[int]) -> list[Passage]: ...


class SearchResult(NamedTuple):
    """The n_docs best rows of each question, best first; equal scores in order of rows."""

    rows: Int[np.ndarray, "batch n_docs"]  # 0 where the mask is False
    scores: Float[np.ndarray, "batch n_docs"]  # of the index's kind, float32; -inf where the mask is False
    mask: Bool[np.ndarray, "batch n_docs"]

    @classmethod
    def empty(cls, batch: int, n_docs: int) -> "SearchResult":
        """Nothing found yet, to be filled in.

        >>> SearchResult.empty(1, 2).mask.tolist()
        [[False, False]]
        """
        shape = (batch, n_docs)
        return cls(np.zeros(shape, np.int64), np.full(shape, -np.inf, np.float32), np.zeros(shape, np.bool_))


def best_rows(
    rows: Int[np.ndarray, " found"], scores: Float[np.ndarray, " found"], n_docs: int
) -> Int[np.ndarray, " best"]:
    """Places of the n_docs largest scores, best first; equal scores in order of rows.

    >>> best_rows(np.array([7, 3, 5]), np.array([1.0, 1.0, 2.0]), n_docs=2).tolist()
    [2, 1]
    """
    order: np.ndarray = np.lexsort((rows, -scores))[:n_docs]
    return order
