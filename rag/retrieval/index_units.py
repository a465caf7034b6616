"""Equal vectors as one: which rows of a corpus repeat an earlier one, and what each distinct vector is.

An index holds each distinct vector once, as a unit, in the order of their first rows. Hundreds of copies of a passage
then take one candidate's place and not hundreds, and every one of them is found where one is.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, UInt64

from rag.errors import DataError
from rag.retrieval.index_kinds import ADD_ROWS
from rag.retrieval.vector_table import VectorTable

Batches = Iterable[range]
NO_CONTENTS: UInt64[np.ndarray, "0 2"] = np.empty((0, 2), np.uint64)


class Units:
    """The distinct vectors of ``ntotal`` rows.

    ``repeats`` has a column (row, unit) for each row that repeats an earlier one, in order of rows. ``contents`` has
    16 bytes of hash for each unit: equal for equal numbers, stored with 16 bits or 32, and 0.0 being -0.0;
    it is empty where an index that cannot be updated was loaded.
    """

    def __init__(
        self,
        ntotal: int,
        repeats: Int[np.ndarray, "2 repeats"],
        contents: UInt64[np.ndarray, "units 2"],
    ) -> None:
        self.ntotal = ntotal
        self.repeats = repeats
        self.contents = contents

    def __len__(self) -> int:
        return self.ntotal - int(self.repeats.shape[1])

    def first_rows(self, units: Int[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        """The first row of each unit.

        >>> Units(5, np.array([[1, 3], [0, 1]]), NO_CONTENTS).first_rows(np.arange(3)).tolist()
        [0, 2, 4]
        """
        if not self.repeats.shape[1]:
            return units
        found: np.ndarray = units + np.searchsorted(self._firsts_before, units, side="right")
        return found

    def sizes(self) -> Int[np.ndarray, " units"]:
        """How many rows each unit stands for."""
        found: np.ndarray = 1 + np.bincount(self.repeats[1], minlength=len(self))
        return found

    def spread(
        self,
        units: Int[np.ndarray, "batch found"],
        rows: Int[np.ndarray, "batch found"],
        scores: Float[np.ndarray, "batch found"],
        n_docs: int,
    ) -> tuple[Int[np.ndarray, "batch spread"], Float[np.ndarray, "batch spread"]]:
        """The n_docs best rows of each question where units, best first, stand for all their rows.

        ``rows`` are the units' first rows. Equal scores come in order of rows.
        """
        starts = np.searchsorted(self._repeated, units)
        counts = np.searchsorted(self._repeated, units, "right") - starts
        counts = np.where(np.isneginf(scores), 0, np.minimum(counts, n_docs - 1))
        width = min(n_docs, int((counts.sum(axis=1) + units.shape[1]).max(initial=0)))
        spread_rows, spread_scores = np.zeros((len(units), width), np.int64), np.full((len(units), width), -np.inf)
        spread_scores = spread_scores.astype(np.float32)
        spread_rows[:, : units.shape[1]], spread_scores[:, : units.shape[1]] = rows, scores
        for question in np.flatnonzero(counts.any(axis=1)):
            count = counts[question]
            at = np.repeat(starts[question] - np.cumsum(count) + count, count) + np.arange(count.sum())
            all_rows = np.concatenate([rows[question], self.repeats[0][self._by_unit[at]]])
            all_scores = np.concatenate([scores[question], np.repeat(scores[question], count)])
            order = np.lexsort((all_rows, -all_scores))[:width]
            spread_rows[question, : len(order)] = all_rows[order]
            spread_scores[question, : len(order)] = all_scores[order]
        return spread_rows, spread_scores

    def blocks(self) -> list[range]:
        """All units, cut into blocks that are handled in one go."""
        return [range(start, min(start + ADD_ROWS, len(self))) for start in range(0, len(self), ADD_ROWS)]

    def read(self, table: VectorTable, units: range) -> Float[np.ndarray, "units dim"]:
        """The vectors of units that lie one after the other."""
        if not self.repeats.shape[1]:
            return table.block(units)
        rows = self.first_rows(np.arange(units.start, units.stop))
        span = range(int(rows[0]), int(rows[-1]) + 1)
        return table.block(span)[rows - span.start] if len(span) <= 4 * len(rows) else table.take(rows)

    @cached_property
    def _firsts_before(self) -> Int[np.ndarray, " repeats"]:
        """For each repeating row, how many units begin before it."""
        found: np.ndarray = self.repeats[0] - np.arange(self.repeats.shape[1])
        return found

    @cached_property
    def _by_unit(self) -> Int[np.ndarray, " repeats"]:
        return np.argsort(self.repeats[1], kind="stable")

    @cached_property
    def _repeated(self) -> Int[np.ndarray, " repeats"]:
        """The unit of each repeating row, sorted."""
        found: np.ndarray = self.repeats[1][self._by_unit]
        return found


def find_units(table: VectorTable, progress: Callable[[Batches], Batches] = iter) -> Units:
    """The units of a table, by a hash of each row's numbers; ``progress`` sees blocks of rows go by.

    Raises DataError naming the first row that is not finite.
    """
    contents = _on_disk(len(table))
    for block in progress(cut(len(table))):
        rows = table.block(block)
        _require_finite(rows, block.start)
        contents[block.start : block.stop] = hash_vectors(rows)
    order = np.lexsort((contents[:, 1], contents[:, 0]))  # stable: equal vectors in order of rows
    same = np.ones(len(order) - 1, np.bool_)
    for half in contents.T:  # one after the other: they take as much memory as the codes of a small index
        ordered = half[order]
        same &= ordered[1:] == ordered[:-1]
    if not same.any():
        return Units(len(table), np.empty((2, 0), np.int64), contents)
    starts = np.concatenate([[True], ~same])
    first = order[starts][np.cumsum(starts) - 1]  # of the group of each row in ``order``
    rows, firsts = order[~starts], first[~starts]
    by_row = np.argsort(rows)
    rows, firsts = rows[by_row], firsts[by_row]
    repeats = np.stack([rows, firsts - np.searchsorted(rows, firsts)])
    return Units(len(table), repeats, _without(contents, rows))


def _on_disk(rows: int) -> UInt64[np.ndarray, "rows 2"]:
    """Room for hashes outside the memory: they would be a quarter of a 1-bit index. The file goes with the array."""
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, np.uint64, "w+", shape=(max(rows, 1), 2)))[:rows]


def _without(
    contents: UInt64[np.ndarray, "rows 2"], rows: Int[np.ndarray, " repeats"]
) -> UInt64[np.ndarray, "units 2"]:
    """The hashes of all other rows, moved together in place."""
    end = 0
    for block in cut(len(contents)):
        here = rows[slice(*np.searchsorted(rows, (block.start, block.stop)))] - block.start
        kept = np.delete(contents[block.start : block.stop], here, axis=0)
        contents[end : end + len(kept)] = kept
        end += len(kept)
    return contents[:end]


def cut(rows: int) -> list[range]:
    """``rows`` rows in blocks that are handled in one go."""
    return [range(start, min(start + ADD_ROWS, rows)) for start in range(0, rows, ADD_ROWS)]


def _require_finite(rows: Float[np.ndarray, "rows dim"], start: int) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise DataError(f"the vector of row {start + int(np.argmin(finite))} is not finite; encode its source again")


def hash_vectors(rows: Float[np.ndarray, "rows dim"]) -> UInt64[np.ndarray, "rows 2"]:
    """Of each row's numbers; changes -0.0 to 0.0 in place, for copies of blocks would scatter over the memory."""
    rows += 0.0
    content, size = rows.astype("<f4", copy=False).data.cast("B"), rows.shape[1] * 4
    digests = [hashlib.blake2b(content[at : at + size], digest_size=16).digest() for at in range(0, len(content), size)]
    return np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
