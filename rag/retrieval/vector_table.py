"""The passage vectors of a corpus as one table, row by row in the order of its passages, without copying them.

Its parts are the shards on disk, memory-mapped, so that a table of 21 million rows takes no memory of its own and
several processes share what they read.
"""

from collections.abc import Sequence
from typing import Union

import numpy as np
from jaxtyping import Float, Int

from rag.errors import IndexMismatchError

Vectors = Union["VectorTable", Float[np.ndarray, "rows dim"], Sequence[Float[np.ndarray, "_ dim"]]]


class VectorTable:
    """Several arrays of vectors (float16 or float32, in memory or mapped) one after the other; read as float32.

    >>> table = VectorTable([np.eye(2, dtype=np.float16), np.ones((1, 2), np.float32)])
    >>> len(table), table.take(np.array([2, 0])).tolist()
    (3, [[1.0, 1.0], [1.0, 0.0]])
    """

    def __init__(self, parts: Sequence[Float[np.ndarray, "_ dim"]]) -> None:
        dims = {part.shape[1] for part in parts}
        if len(dims) > 1:
            raise IndexMismatchError(
                f"vectors of different dimensions {sorted(dims)}; encode all sources with one encoder"
            )
        self.dim: int = dims.pop() if dims else 0
        self._parts = [np.asarray(part) for part in parts]  # plain arrays: a memmap is slow to index
        self._starts = np.cumsum([0, *(len(part) for part in parts)])

    @classmethod
    def of(cls, vectors: Vectors) -> "VectorTable":
        """A table of what may be one already, one array, or several."""
        if isinstance(vectors, VectorTable):
            return vectors
        return cls([vectors] if isinstance(vectors, np.ndarray) else list(vectors))

    def __len__(self) -> int:
        return int(self._starts[-1])

    def block(self, rows: range) -> Float[np.ndarray, "rows dim"]:
        """Rows that lie one after the other, as a contiguous copy."""
        found = np.empty((len(rows), self.dim), np.float32)
        first = int(np.searchsorted(self._starts, rows.start, side="right")) - 1
        for part, start in zip(self._parts[first:], self._starts[first:], strict=False):
            low, high = max(rows.start - start, 0), min(rows.stop - start, len(part))
            if high <= low:
                if start >= rows.stop:
                    break
                continue
            found[start + low - rows.start : start + high - rows.start] = part[low:high]
        return found

    def take(self, rows: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        """Rows in any order, each from its shard."""
        flat = rows.reshape(-1)
        found = np.empty((len(flat), self.dim), np.float32)
        if len(self._parts) == 1:
            found[:] = self._parts[0][flat]
            return found.reshape(*rows.shape, self.dim)
        part_of = np.searchsorted(self._starts, flat, side="right") - 1
        order = np.argsort(part_of, kind="stable")
        parts, firsts = np.unique(part_of[order], return_index=True)
        for part, at in zip(parts, np.split(order, firsts[1:]), strict=True):
            found[at] = self._parts[part][flat[at] - self._starts[part]]
        return found.reshape(*rows.shape, self.dim)
