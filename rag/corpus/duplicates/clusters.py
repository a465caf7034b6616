"""Which passages that met in a band really are near duplicates, and the clusters that they form."""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from rag.corpus.duplicates.sketches import SHINGLE_WORDS, Rows, shingle_hashes

_CACHED_SETS = 4096  # of the hashes of shingles: about 30 MB
_NEIGHBOURS = 4  # of a passage in a group, at its beginning and before it: a big group is not compared all with all

T = TypeVar("T")


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """The sets of words in a row that the similarity of case-folded texts is defined by; short texts have none.

    >>> sorted(shingles("so it is at the end"))
    [('it', 'is', 'at', 'the', 'end'), ('so', 'it', 'is', 'at', 'the')]
    """
    words = text.split(" ")
    return frozenset(zip(*(words[first:] for first in range(SHINGLE_WORDS)), strict=False))


def jaccard(first: frozenset[T], second: frozenset[T], at_least: float = 0.0) -> float:
    """Size of the intersection over size of the union; 0 where it cannot reach ``at_least`` (or both are empty).

    >>> jaccard(shingles("a b c d e f"), shingles("a b c d e g"))
    0.3333333333333333
    """
    smaller, larger = sorted((len(first), len(second)))
    if smaller < at_least * larger or not smaller:
        return 0.0
    common = len(first & second)
    return common / (smaller + larger - common)


class BytesFile:
    """Byte strings by number, outside the memory: in a nameless file that is gone when its process is."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=f".{kind}-")  # noqa: SIM115 (close closes it)
        self._ends = array("q", [0])

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()

    def extend(self, strings: Iterable[bytes]) -> None:
        """Put strings behind the others."""
        for string in strings:
            self._file.write(string)
            self._ends.append(self._ends[-1] + len(string))
        self._file.flush()

    def __getitem__(self, number: int) -> bytes:
        start, end = self._ends[number], self._ends[number + 1]
        return os.pread(self._file.fileno(), end - start, start)


class Clusters:
    """Numbered texts, joined wherever two are similar enough."""

    def __init__(self, folder: Path, at_least: float) -> None:
        self._texts = BytesFile(folder, "texts")
        self._hashes = BytesFile(folder, "shingles")
        self._parents = array("i")
        self._similarities = array("f")
        self._at_least = at_least
        self._hash_set = lru_cache(_CACHED_SETS)(self._read_hash_set)

    def close(self) -> None:
        """Give the disk space back."""
        self._texts.close()
        self._hashes.close()

    def extend(self, texts: Sequence[str]) -> None:
        """More case-folded texts, each alone at first."""
        encoded = [text.encode() for text in texts]
        self._texts.extend(encoded)
        self._hashes.extend(shingle_hashes(encoded))
        self._parents.extend(range(len(self._parents), len(self._parents) + len(texts)))
        self._similarities.extend([0.0] * len(texts))

    def compare(self, group: Sequence[int]) -> None:
        """Compare the texts of a group, in ascending order, and join those that are near duplicates.

        Two that are of one cluster already are not compared, and no text is compared with more than 2 * _NEIGHBOURS,
        so that a group of a million costs no more for each than a small one.
        """
        if len({self.root(number) for number in group}) < 2:
            return  # most groups of all bands but the first
        for place, number in enumerate(group):
            for other in _partners(group, place):
                if self.root(number) != self.root(other):
                    self._join_if_similar(other, number)

    def root(self, number: int) -> int:
        """The first text of the cluster of this one."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def roots(self) -> Rows:
        """The first text of the cluster of each."""
        return np.fromiter(map(self.root, range(len(self._parents))), np.int32, len(self._parents))

    def similarities(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """For each text the largest similarity by which it was joined to another; 0 for one that stayed alone."""
        return np.array(self._similarities, np.float32)

    def _join_if_similar(self, first: int, second: int) -> None:
        similarity = self._similarity(first, second)
        if similarity < self._at_least:
            return
        low, high = sorted((self.root(first), self.root(second)))
        self._parents[high] = low
        for number in (first, second):
            self._similarities[number] = max(self._similarities[number], similarity)

    def _similarity(self, first: int, second: int) -> float:
        """Of the texts themselves; but the hashes of their shingles tell most pairs apart, at a third of the cost."""
        if jaccard(self._hash_set(first), self._hash_set(second), self._at_least) < self._at_least:
            return 0.0
        one, other = (shingles(self._texts[number].decode()) for number in (first, second))
        return jaccard(one, other, self._at_least)

    def _read_hash_set(self, number: int) -> frozenset[int]:
        return frozenset(np.frombuffer(self._hashes[number], np.uint32).tolist())


def _partners(group: Sequence[int], place: int) -> Iterator[int]:
    yield from group[: min(place, _NEIGHBOURS)]
    yield from group[max(_NEIGHBOURS, place - _NEIGHBOURS) : place]
