"""The vectors of one source on disk, in the row order of its passages: shards that are mapped, never copied whole.

A folder holds ``vectors-00000.npy`` and so on (float16 or float32), ``text_sha1.npy`` (of each row's title and text)
and ``vectors.json``, written last: without it the folder is unfinished, whatever else lies in it.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Float, UInt8

from rag.errors import DataError
from rag.files import file_sha256, write_atomically
from rag.retrieval.encoder_card import EncoderCard
from rag.retrieval.vector_table import VectorTable

SHARD_ROWS = 4096
DIGEST_BYTES = 20  # of a sha1
DIGESTS = "text_sha1.npy"
_ABOUT = "vectors.json"


class VectorShard(NamedTuple):
    """What is known of one shard; enough to tell whether its file is still the one that was checked."""

    rows: int
    sha256: str  # of the file
    row_ids_sha256: str
    texts_sha256: str
    norm_min: float
    norm_max: float


@dataclass(frozen=True)
class VectorFile:
    """A finished folder of vectors and what is known of it."""

    folder: Path
    card: EncoderCard
    count: int
    dtype: str
    row_ids_sha256: str
    texts_sha256: str
    norm_min: float
    norm_max: float
    shards: tuple[VectorShard, ...]

    @classmethod
    def open(cls, folder: Path) -> "VectorFile":
        """The vectors of ``folder``; raises DataError if they are unfinished, cut off or not what vectors.json says."""
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            card = EncoderCard(**about.pop("card"))
            shards = tuple(VectorShard(**shard) for shard in about.pop("shards"))
            found = cls(folder=folder, card=card, shards=shards, **about)
        except FileNotFoundError as error:
            raise DataError(f"{folder} holds no finished vectors (no {_ABOUT}); encode the source again") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{folder / _ABOUT} cannot be read ({error}); encode the source again") from error
        found._check_shapes()
        return found

    def save(self) -> None:
        """Write ``vectors.json``, which makes the folder a finished one."""
        about = {**asdict(self), "shards": [shard._asdict() for shard in self.shards]}
        del about["folder"]
        write_atomically(self.folder / _ABOUT, (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self.card.dim

    @property
    def encoder_fingerprint(self) -> str:
        """Which encoder the vectors are by."""
        return self.card.fingerprint

    @cached_property
    def parts(self) -> list[Float[np.ndarray, "_ dim"]]:
        """The shards, memory-mapped and read-only, in the order of their rows."""
        return [map_array(shard_path(self.folder, number)) for number in range(len(self.shards))]

    @cached_property
    def table(self) -> VectorTable:
        """All vectors as one table, memory-mapped."""
        return vector_table([self])

    @cached_property
    def text_sha1(self) -> UInt8[np.ndarray, "count 20"]:
        """The sha1 of each row's title and text, memory-mapped."""
        return map_array(self.folder / DIGESTS)

    def is_sound(self, number: int) -> bool:
        """Whether the bytes of a shard are still those that were written; reads all of them."""
        path = shard_path(self.folder, number)
        return path.is_file() and file_sha256(path) == self.shards[number].sha256

    def _check_shapes(self) -> None:
        wanted = {shard_path(self.folder, n): (shard.rows, self.dim) for n, shard in enumerate(self.shards)}
        for (path, shape), part in zip(wanted.items(), self.parts, strict=True):
            if part.shape != shape or part.dtype != self.dtype:
                raise DataError(
                    f"{path} has shape {part.shape} of {part.dtype}, but {_ABOUT} says {shape} of {self.dtype}; "
                    "encode the source again"
                )
        rows = {_ABOUT: self.count, "the shards": len(self.table), DIGESTS: len(self.text_sha1)}
        if len(set(rows.values())) > 1:
            raise DataError(f"{self.folder} holds different numbers of rows ({rows}); encode the source again")


def vector_table(files: Iterable[VectorFile]) -> VectorTable:
    """The vectors of several sources, one after the other, as one table."""
    return VectorTable([part for file in files for part in file.parts])


def shard_path(folder: Path, number: int) -> Path:
    """Where a shard lies.

    >>> shard_path(Path("vectors"), 3).name
    'vectors-00003.npy'
    """
    return folder / f"vectors-{number:05d}.npy"


def hash_row_ids(ids: Iterable[Any]) -> str:
    """sha256 of ids in their order; of several sources it is the hash of their concatenation.

    >>> hash_row_ids(["a", "b"]) == hash_row_ids(["b", "a"])
    False
    """
    digest = hashlib.sha256()
    for row_id in ids:
        digest.update(row_id_lines([row_id]))
    return digest.hexdigest()


def row_id_lines(ids: Iterable[Any]) -> bytes:
    """The bytes that ``hash_row_ids`` is the hash of; those of several sources can be put one after the other."""
    return "".join(f"{row_id}\n" for row_id in ids).encode()


def hash_texts(digests: UInt8[np.ndarray, "rows 20"]) -> str:
    """sha256 over the hashes of texts in their order."""
    return hashlib.sha256(np.ascontiguousarray(digests).data).hexdigest()


def map_array(path: Path) -> np.ndarray:
    """An array file (.npy), memory-mapped and read-only; it holds no file open, so there may be thousands of them.

    numpy's own maps keep a file descriptor each, and a process may have 1,024 by default: less than the shards of
    21 million passages. Raises DataError where the file is missing, cut off or of another kind.
    """
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
        if fortran or dtype.hasobject:
            raise ValueError(f"an array of {dtype} that is not stored row by row")
        with pa.memory_map(str(path)) as mapped:
            array: np.ndarray = np.frombuffer(mapped.read_buffer(), dtype, offset=start).reshape(shape)
    except (OSError, ValueError) as error:  # Arrow's own errors are of these kinds
        raise DataError(f"{path} is missing or cut off ({error}); encode the source again") from error
    return array
