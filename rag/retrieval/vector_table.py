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
        self._dtype = np.float16 if parts and all(part.dtype == np.float16 for part in parts) else np.float32

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
        found = np.empty((len(rows), self.dim), self._dtype)
        if not len(rows):
            return _floats(found)
        first, last = (int(np.searchsorted(self._starts, row, side="right")) - 1 for row in (rows[0], rows[-1]))
        for part, start in zip(self._parts[first : last + 1], self._starts[first : last + 1].tolist(), strict=True):
            low, high = max(rows.start - start, 0), min(rows.stop - start, len(part))
            found[start + low - rows.start : start + high - rows.start] = part[low:high]
        return _floats(found)

    def take(self, rows: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape dim"]:
        """Rows in any order, each from its shard."""
        flat = rows.reshape(-1)
        if len(self._parts) == 1:
            return _floats(self._parts[0].take(flat, axis=0)).reshape(*rows.shape, self.dim)
        found = np.empty((len(flat), self.dim), self._dtype)
        part_of = np.searchsorted(self._starts, flat, side="right") - 1
        # Row by row: candidates of a question lie in about as many shards, and grouping them costs more.
        places = zip(part_of.tolist(), (flat - self._starts[part_of]).tolist(), strict=True)
        for at, (part, row) in enumerate(places):
            found[at] = self._parts[part][row]
        return _floats(found).reshape(*rows.shape, self.dim)


def _floats(rows: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    if rows.dtype != np.float16:
        return rows.astype(np.float32, copy=False)
    import torch  # three times as fast as numpy at this, and as exact; only here, for importing it takes seconds

    floats = np.empty(rows.shape, np.float32)  # numpy's memory: torch's own does not always go back to the system
    torch.from_numpy(floats).copy_(torch.from_numpy(rows))
    return floats
