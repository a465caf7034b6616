"""Vectors that other finished folders of the same encoder hold already, found by the hashes of texts.

Over all of a source this keeps some 30 bytes a row, and a sorted copy of one folder's hashes at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, UInt8, UInt64

from rag.errors import DataError
from rag.retrieval.encoder_card import EncoderCard
from rag.retrieval.vectors import DIGESTS, VectorFile, hash_texts


class KnownRows(NamedTuple):
    """Rows of one shard that are copied from one folder."""

    folder: Path
    to: Int[np.ndarray, " copied"]  # rows of the shard
    rows: Int[np.ndarray, " copied"]  # of the folder


class KnownVectors:
    """For every row of a source, which folder holds its vector and where."""

    def __init__(self, count: int) -> None:
        self._folders: list[Path] = []
        self._folder_of = np.full(count, -1, np.int16)
        self._row_in = np.zeros(count, np.int64)

    def of(self, rows: range) -> tuple[KnownRows, ...]:
        """What is known of the rows of one shard."""
        folder_of, row_in = self._folder_of[rows.start : rows.stop], self._row_in[rows.start : rows.stop]
        places = ((number, np.flatnonzero(folder_of == number)) for number in np.unique(folder_of) if number >= 0)
        return tuple(KnownRows(self._folders[number], to, row_in[to]) for number, to in places)

    def count(self, rows: range) -> int:
        """How many of these rows are known."""
        return int((self._folder_of[rows.start : rows.stop] >= 0).sum())

    def add(self, file: VectorFile, digests: UInt8[np.ndarray, "count 20"], wanted: Sequence[range]) -> list[int]:
        """Note what a folder holds of rows that were not known; the numbers of its shards that are damaged.

        Damaged shards are left out.
        """
        theirs = _prefixes(file.text_sha1)
        order = np.argsort(theirs, kind="stable")
        theirs = theirs[order]
        shards = _SoundShards(file)
        for rows in wanted:
            unknown = rows.start + np.flatnonzero(self._folder_of[rows.start : rows.stop] < 0)
            place = np.searchsorted(theirs, _prefixes(digests[unknown]))
            found = order[np.minimum(place, len(order) - 1)]
            same = (file.text_sha1[found] == digests[unknown]).all(axis=1)
            same[same] = shards.are_sound(found[same])
            self._folder_of[unknown[same]] = len(self._folders)
            self._row_in[unknown[same]] = found[same]
        self._folders.append(file.folder)
        return shards.damaged


def known_vectors(
    folders: Sequence[Path],
    like: tuple[EncoderCard, str],
    digests: UInt8[np.ndarray, "count 20"],
    wanted: Sequence[range],
    notify: Callable[[str], object],
) -> KnownVectors:
    """Where the texts of the rows ``wanted`` are known from, in folders whose card and dtype are ``like``.

    The first folder that holds a text counts. A folder or shard that is damaged is left out, and ``notify`` is told.
    """
    known = KnownVectors(len(digests))
    for file in _open_sound(folders, like, notify):
        damaged = known.add(file, digests, wanted)
        if damaged:
            notify(f"{file.folder}: {len(damaged)} of its shards are damaged and not re-used (first {damaged[0]})")
    return known


def _open_sound(
    folders: Sequence[Path], like: tuple[EncoderCard, str], notify: Callable[[str], object]
) -> Iterator[VectorFile]:
    card, dtype = like
    for folder in folders:
        try:
            file = VectorFile.open(folder)
        except DataError as error:
            notify(f"vectors that are not re-used: {error}")
            continue
        theirs = (file.card.fingerprint, file.card.precision, file.dtype)
        if theirs != (card.fingerprint, card.precision, dtype):
            continue
        if hash_texts(file.text_sha1) != file.texts_sha256:  # a row would be found by the text of another
            notify(f"vectors that are not re-used: {folder / DIGESTS} is damaged or of another folder")
            continue
        yield file


class _SoundShards:
    """Which shards of a file still hold the bytes that were written; each is read once."""

    def __init__(self, file: VectorFile) -> None:
        self._file = file
        self._ends = np.cumsum([shard.rows for shard in file.shards])
        self._sound: dict[int, bool] = {}

    def are_sound(self, rows: Int[np.ndarray, " rows"]) -> Bool[np.ndarray, " rows"]:
        shard_of = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(shard_of):
            if number not in self._sound:
                self._sound[number] = self._file.is_sound(int(number))
        return np.array([self._sound[number] for number in shard_of], np.bool_)

    @property
    def damaged(self) -> list[int]:
        return sorted(int(number) for number, sound in self._sound.items() if not sound)


def _prefixes(digests: UInt8[np.ndarray, "rows 20"]) -> UInt64[np.ndarray, " rows"]:
    """The first eight bytes of each hash: enough to look up by, and compared in full afterwards."""
    return np.ascontiguousarray(digests[:, :8]).view(np.uint64)[:, 0]
