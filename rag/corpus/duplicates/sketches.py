"""Sketches of passages: a few bytes each that tell which passages may be near duplicates.

A passage is the set of its shingles, SHINGLE_WORDS words in a row. MinHash (Broder 1997): of two sets with Jaccard
similarity s, the smallest values of a random hash function agree with probability s. PERMUTATIONS such minima are cut
into bands of r; two passages meet if one band agrees, with probability 1 - (1 - s**r)**(PERMUTATIONS / r).

Everything is done for many passages at once with numpy. The hash of a shingle is that of its bytes as a polynomial
modulo 2**64, so one running sum over the bytes gives every shingle's hash as a difference of two of its values.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SHINGLE_WORDS = 5
PERMUTATIONS = 32
_MIN_RECALL = 0.98  # of pairs exactly as similar as asked for; more similar ones meet more surely
_CHUNK_BYTES = 1 << 16  # of text hashed at once: the arrays stay in the processor's cache
_PARTITION_ROWS = 1 << 20  # of sketches sorted at once: bounds the memory
_SPACE = 32
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)

Words = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]


class Sketches(NamedTuple):
    """Of some passages, one a column: ``digest`` of the text, and ``bands``, which are 0 where there is no shingle."""

    digest: Words  # [2, passages], of the whole text: 127 bits
    bands: Words  # [bands, passages]


def band_rows(jaccard: float) -> int:
    """How many minima make a band: as many as find nearly all pairs that are just similar enough.

    >>> band_rows(0.8), band_rows(0.5), band_rows(0.95)
    (4, 2, 8)
    """
    for rows in (8, 4, 2):
        if 1 - (1 - jaccard**rows) ** (PERMUTATIONS // rows) >= _MIN_RECALL:
            return rows
    return 1


def sketch(texts: Sequence[str], rows: int) -> Sketches:
    """The sketches of case-folded texts, with ``rows`` minima in a band; words are what single spaces separate.

    The same text has the same sketch on every machine and in every process.
    """
    encoded = [text.encode() for text in texts]
    digests = b"".join(hashlib.blake2b(text, digest_size=16).digest() for text in encoded)
    bands = np.zeros((PERMUTATIONS // rows, len(encoded)), np.uint64)
    for start, end in _chunks(encoded):
        bands[:, start:end] = _bands(encoded[start:end], rows)
    digest = np.frombuffer(digests, "<u8").astype(np.uint64).reshape(-1, 2).T
    digest[0] |= np.uint64(1)  # never 0, which means "nothing to compare"
    return Sketches(digest, bands)


def shingle_hashes(encoded: Sequence[bytes]) -> Iterator[bytes]:
    """The hashes of the shingles of each UTF-8 text, 4 bytes each, in this machine's byte order."""
    for start, end in _chunks(encoded):
        hashes, counts = _shingle_hashes(encoded[start:end])
        yield from (part.tobytes() for part in np.split(hashes, np.cumsum(counts)[:-1]))


def _chunks(encoded: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    start = size = 0
    for place, text in enumerate(encoded):
        if size and size + len(text) > _CHUNK_BYTES:
            yield start, place
            start, size = place, 0
        size += len(text) + 1
    if size:
        yield start, len(encoded)


def _bands(encoded: Sequence[bytes], rows: int) -> Words:
    shingles, counts = _shingle_hashes(encoded)
    some = counts > 0
    bands = np.zeros((PERMUTATIONS // rows, len(encoded)), np.uint64)
    if some.any():
        firsts = np.cumsum(counts) - counts
        bands[:, some] = _band_keys(_minima(shingles, firsts[some]), rows)
    return bands


def _shingle_hashes(encoded: Sequence[bytes]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The hash of every shingle of every text, in order, and how many each text has."""
    data = np.frombuffer(b" ".join(encoded) + b" ", np.uint8)
    ends = np.flatnonzero(data == _SPACE)  # of words, of all texts in one row
    starts = np.concatenate([[0], ends[:-1] + 1])
    last = np.searchsorted(ends, np.cumsum([len(text) + 1 for text in encoded]) - 1)  # word of each text
    words = np.diff(last, prepend=-1)
    sums = np.zeros(len(data) + 1, np.uint64)
    np.multiply(data, _powers(len(data), _BASE), out=sums[1:], dtype=np.uint64)
    np.cumsum(sums, out=sums)
    lows, highs = starts[: 1 - SHINGLE_WORDS], ends[SHINGLE_WORDS - 1 :]
    hashes = (sums[highs] - sums[lows]) * _powers(len(data), pow(_BASE, -1, 1 << 64))[lows]
    hashes = (_mixed(hashes) >> _HALF).astype(np.uint32)
    # A shingle that would reach into the next text starts in the last words of its own.
    within = np.arange(len(hashes)) + SHINGLE_WORDS - 1 <= np.repeat(last, words)[: len(hashes)]
    return hashes[within], np.maximum(words - SHINGLE_WORDS + 1, 0)


_power_tables: dict[int, Words] = {}


def _powers(count: int, base: int) -> Words:
    """base**0, base**1, ... modulo 2**64; kept, for every chunk needs the same."""
    table = _power_tables.get(base)
    if table is None or len(table) < count:
        table = np.full(max(count, 2 * _CHUNK_BYTES), base, np.uint64)
        table[0] = 1
        _power_tables[base] = table = np.multiply.accumulate(table)
    return table[:count]


def _mixed(values: Words) -> Words:
    values = values ^ (values >> _HALF)
    values *= _MIX
    return values


def _permutations() -> npt.NDArray[np.uint32]:
    """Odd factors and summands of the hash functions, from a counter: no generator's version can change them."""
    seeds = np.arange(1, 2 * PERMUTATIONS + 1, dtype=np.uint64) * np.uint64(_BASE)
    drawn = (_mixed(_mixed(seeds)) >> _HALF).astype(np.uint32).reshape(2, PERMUTATIONS)
    drawn[0] |= np.uint32(1)
    return drawn


_FACTORS, _SUMMANDS = _permutations()


def _minima(shingles: npt.NDArray[np.uint32], firsts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    minima = np.empty((PERMUTATIONS, len(firsts)), np.uint32)
    permuted = np.empty_like(shingles)
    for number in range(PERMUTATIONS):
        np.multiply(shingles, _FACTORS[number], out=permuted)
        np.add(permuted, _SUMMANDS[number], out=permuted)
        np.minimum.reduceat(permuted, firsts, out=minima[number])
    return minima


def _band_keys(minima: npt.NDArray[np.uint32], rows: int) -> Words:
    bands = minima.reshape(PERMUTATIONS // rows, rows, -1)
    keys = np.zeros((len(bands), bands.shape[2]), np.uint64)
    for row in range(rows):
        keys = _mixed(keys ^ bands[:, row])
    keys ^= keys >> _HALF
    return np.maximum(keys, np.uint64(1))  # 0 is kept for "no shingle"


class Groups(NamedTuple):
    """Groups of two or more rows, each in ascending order; group g begins at ``starts[g]`` of ``rows``."""

    rows: Rows
    starts: npt.NDArray[np.int64]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each group has."""
        return np.diff(self.starts, append=len(self.rows))


class SketchFile:
    """The sketches of a whole corpus, column by column, in a nameless file that is gone when its process is."""

    def __init__(self, folder: Path, passages: int, bands: int) -> None:
        self.bands = bands
        self._passages = passages
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".sketches-")  # noqa: SIM115 (close closes it)

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()

    def write(self, first: int, sketches: Sketches) -> None:
        """Put down the sketches of the passages from row ``first`` on."""
        for column, values in enumerate([*sketches.digest, *sketches.bands]):
            self._file.seek((column * self._passages + first) * 8)
            self._file.write(np.ascontiguousarray(values).data)

    def equal_texts(self) -> Iterator[Groups]:
        """Groups of rows with the same digest."""
        return self._equal([0, 1], np.ones(self._passages, np.bool_))

    def equal_bands(self, band: int, chosen: npt.NDArray[np.bool_]) -> Iterator[Groups]:
        """Groups of ``chosen`` rows that agree in this band."""
        return self._equal([2 + band], chosen)

    def _equal(self, columns: list[int], chosen: npt.NDArray[np.bool_]) -> Iterator[Groups]:
        """One part of the key space after the other, so that only one has to be in memory."""
        bits = max(0, -(-self._passages // _PARTITION_ROWS) - 1).bit_length()
        for part in range(1 << bits):
            parts = [
                self._part(columns, chosen, first, bits, part) for first in range(0, self._passages, _PARTITION_ROWS)
            ]
            if parts:
                yield _groups(
                    np.concatenate([keys for keys, _ in parts], axis=1), np.concatenate([rows for _, rows in parts])
                )

    def _part(
        self, columns: list[int], chosen: npt.NDArray[np.bool_], first: int, bits: int, part: int
    ) -> tuple[Words, Rows]:
        keys = np.stack([self._read(column, first) for column in columns])
        wanted = (keys[0] != 0) & chosen[first : first + keys.shape[1]]
        if bits:
            wanted &= keys[0] >> np.uint64(64 - bits) == part
        places = np.flatnonzero(wanted)
        return keys[:, places], (places + first).astype(np.int32)

    def _read(self, column: int, first: int) -> Words:
        self._file.seek((column * self._passages + first) * 8)
        return np.frombuffer(self._file.read(min(_PARTITION_ROWS, self._passages - first) * 8), np.uint64)


def _groups(keys: Words, rows: Rows) -> Groups:
    """The rows whose keys are all equal.

    Sorting whole numbers is many times cheaper than sorting by index, so the place goes into the low bits of the
    first key; the few that still agree are then compared in full.
    """
    places = _agreeing(keys[0])
    order = places[np.lexsort((places, *keys[:, places]))]
    found = keys[:, order]
    new = np.append(True, (found[:, 1:] != found[:, :-1]).any(axis=0))[: len(order)]
    alone = new & np.append(new, True)[1:]
    return Groups(rows[order[~alone]], np.flatnonzero(new[~alone]))


def _agreeing(key: Words) -> npt.NDArray[np.int64]:
    """The places whose key, less its lowest bits, is not the only one of its value."""
    low = (np.uint64(1) << np.uint64(len(key).bit_length())) - np.uint64(1)
    packed = np.sort((key & ~low) | np.arange(len(key), dtype=np.uint64))
    same = (packed[1:] ^ packed[:-1]) <= low
    agreeing = (np.append(same, False) | np.append(False, same))[: len(packed)]
    return np.asarray(packed[agreeing] & low, np.int64)
