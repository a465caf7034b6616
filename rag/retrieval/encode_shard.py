"""One shard of vectors, encoded and checked by whichever process gets it: in this one, beside it, or elsewhere.

A shard needs nothing from the others. Its task says where passages and encoder are opened, so that only a few row
numbers travel; what a process has opened, it keeps for its next shards.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int, UInt8

from rag.errors import DataError, IndexMismatchError
from rag.files import file_sha256, write_atomically
from rag.retrieval.encoder_card import EncoderCard
from rag.retrieval.encoders import ComputedPrecision, Encoder
from rag.retrieval.reuse import KnownRows
from rag.retrieval.vectors import DIGEST_BYTES, VectorFile, VectorShard, hash_row_ids, hash_texts, shard_path

_SHA1 = re.compile("[0-9a-f]{40}")
_UNIT_NORM = (0.99, 1.01)  # of a normalised vector: half precision and bfloat16 stay well within
Batches = Iterable[Sequence[int]]


class PassageKeys(NamedTuple):
    """What tells passages and their texts apart, row by row."""

    ids: Sequence[str]
    text_sha1: Sequence[str]  # of title + "\n" + text, 40 hexadecimal digits


class SourcePassages(NamedTuple):
    """All that encoding needs of passages, row by row."""

    ids: Sequence[str]
    text_sha1: Sequence[str]
    titles: Sequence[str]
    texts: Sequence[str]


class SourceRows(Protocol):
    """The passages of a source, read some rows at a time: all their texts need not fit into memory."""

    def __len__(self) -> int:
        """How many there are."""

    def keys(self, rows: range) -> PassageKeys:
        """Ids and hashes of rows that lie one after the other."""

    def rows(self, rows: range) -> SourcePassages:
        """The passages of rows that lie one after the other."""


@dataclass(frozen=True)
class ShardJob:
    """What all shards of a source have in common.

    ``open_source`` and ``load_encoder`` are called in the process that encodes, once for all calls that are equal: a
    frozen dataclass with ``__call__`` can be compared after it has travelled to another process, a lambda cannot.
    """

    out: Path
    open_source: Callable[[], SourceRows]
    load_encoder: Callable[[], Encoder]
    card: EncoderCard
    dtype: str  # of the stored vectors: float16 or float32

    @property
    def precision(self) -> ComputedPrecision:
        """The arithmetic that all shards are encoded in."""
        return "bfloat16" if self.card.precision == "bfloat16" else "float32"


class ShardTask(NamedTuple):
    """One shard to be made."""

    job: ShardJob
    number: int
    rows: range
    row_ids_sha256: str
    texts_sha256: str
    known: tuple[KnownRows, ...] = ()  # rows that are copied


class ShardRecord(NamedTuple):
    """A shard that was made, and where its rows came from."""

    number: int
    shard: VectorShard
    encoded: int
    reused: int
    repeated: int


def encode_shard(task: ShardTask, progress: Callable[[Batches], Batches] = iter) -> ShardRecord:
    """Make, check and publish one shard; ``progress`` sees the encoder's batches go by.

    Raises DataError naming the passage whose vector is not finite, too large for float16, zero, or not of length 1
    though the encoder normalises; and IndexMismatchError where the passages or the encoder that this process opens are
    not those of the task.
    """
    passages = open_source(task.job.open_source).rows(task.rows)
    digests = text_digests(passages)
    if (hash_row_ids(passages.ids), hash_texts(digests)) != (task.row_ids_sha256, task.texts_sha256):
        raise IndexMismatchError(
            f"the passages {passages.ids[0]} to {passages.ids[-1]} are not those that encoding began with; "
            "let every machine read the same workspace, and ingest nothing into it meanwhile"
        )
    vectors = np.empty((len(digests), task.job.card.dim), task.job.dtype)
    missing = _copy_known(vectors, task.known)
    _, first, text_of_row = np.unique(digests[missing].view("S20")[:, 0], return_index=True, return_inverse=True)
    new = missing[np.sort(first)]
    vectors[new] = _encode(task.job, passages, new, progress)
    vectors[missing] = vectors[missing[first[text_of_row]]]
    norms = _checked_norms(vectors, passages.ids, task.job.card.normalize)
    shard = _publish(task, vectors, norms)
    return ShardRecord(task.number, shard, len(new), len(digests) - len(missing), len(missing) - len(new))


def finished_shard(task: ShardTask, known: VectorShard | None = None) -> VectorShard | None:
    """The shard as an earlier call left it, if each byte of it is what that call wrote for just this task.

    ``known`` is what a finished folder says of it; without it the shard's own record is read.
    """
    shard = known or _read_record(task)
    if shard is None or (shard.row_ids_sha256, shard.texts_sha256) != (task.row_ids_sha256, task.texts_sha256):
        return None
    path = shard_path(task.job.out, task.number)
    return shard if path.is_file() and file_sha256(path) == shard.sha256 else None


def record_path(folder: Path, number: int) -> Path:
    """Where a shard's record lies until all are done."""
    return folder / f".vectors-{number:05d}.json"


def text_digests(keys: PassageKeys | SourcePassages) -> UInt8[np.ndarray, "rows 20"]:
    """The hashes of the texts as bytes. Raises DataError for columns of different lengths and for what is no sha1.

    >>> text_digests(PassageKeys(["a"], ["00ff" * 10]))[0, :3].tolist()
    [0, 255, 0]
    """
    sizes = {name: len(column) for name, column in keys._asdict().items()}
    if len(set(sizes.values())) != 1:
        raise DataError(f"the columns of the passages differ in length ({sizes}); read them from one table")
    bad = next((row for row, sha1 in enumerate(keys.text_sha1) if not _SHA1.fullmatch(sha1)), None)
    if bad is not None:
        raise DataError(f"passage {keys.ids[bad]} has text_sha1 {keys.text_sha1[bad]!r}, not 40 hexadecimal digits")
    return np.frombuffer(bytes.fromhex("".join(keys.text_sha1)), np.uint8).reshape(-1, DIGEST_BYTES)


@lru_cache(maxsize=1)
def open_source(opener: Callable[[], SourceRows]) -> SourceRows:
    """The passages, opened once by this process."""
    return opener()


@lru_cache(maxsize=1)
def load_encoder(loader: Callable[[], Encoder]) -> tuple[Encoder, EncoderCard]:
    """The encoder, loaded once by this process, and its card, for which all weights are hashed."""
    encoder = loader()
    return encoder, encoder.passage_card()


def close_all() -> None:
    """Forget what this process has opened and loaded."""
    open_source.cache_clear()
    load_encoder.cache_clear()


@lru_cache(maxsize=4)
def _open_known(folder: Path) -> VectorFile:
    return VectorFile.open(folder)


def _copy_known(vectors: Float[np.ndarray, "rows dim"], known: Sequence[KnownRows]) -> Int[np.ndarray, " missing"]:
    """Copy the rows that other folders hold; the rows still missing, in order."""
    missing = np.ones(len(vectors), np.bool_)
    for part in known:
        vectors[part.to] = _open_known(part.folder).table.take(part.rows)
        missing[part.to] = False
    return np.flatnonzero(missing)


def _encode(
    job: ShardJob, passages: SourcePassages, rows: Int[np.ndarray, " new"], progress: Callable[[Batches], Batches]
) -> Float[np.ndarray, "new dim"]:
    if not len(rows):
        return np.empty((0, job.card.dim), job.dtype)
    encoder, card = load_encoder(job.load_encoder)
    if card.fingerprint != job.card.fingerprint:
        raise IndexMismatchError(
            f"a process would encode by {card.name}, but the others do by {job.card.name}; give all the same encoder"
        )
    ids = [passages.ids[row] for row in rows]
    titles, texts = [passages.titles[row] for row in rows], [passages.texts[row] for row in rows]
    try:
        vectors = encoder.at(job.precision).encode_passages(titles, texts, progress)
    except DataError as error:
        where = f"passage {ids[error.row]}" if error.row is not None else f"among {ids[0]} to {ids[-1]}"
        raise DataError(f"{where}: {error}") from error
    return _stored(vectors, ids, job.dtype)


def _stored(vectors: Float[np.ndarray, "new dim"], ids: Sequence[str], dtype: str) -> Float[np.ndarray, "new dim"]:
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    finite = np.isfinite(stored).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"the vector of passage {ids[row]} holds {np.abs(vectors[row]).max():,.0f}, and {dtype} ends at "
            f'{np.finfo(dtype).max:,.0f}; set encoder.storage = "float32"'
        )
    return stored


def _checked_norms(
    vectors: Float[np.ndarray, "rows dim"], ids: Sequence[str], is_normalised: bool
) -> Float[np.ndarray, " rows"]:
    norms: np.ndarray = np.linalg.norm(vectors.astype(np.float32), axis=1)
    low, high = _UNIT_NORM if is_normalised else (np.finfo(np.float32).tiny, np.finfo(np.float32).max)
    sound = (norms >= low) & (norms <= high)  # false for what is not finite
    if not sound.all():
        row = int(np.argmin(sound))
        wanted = "1, for the encoder normalises" if is_normalised else "finite and above 0"
        raise DataError(
            f"the vector of passage {ids[row]} has norm {norms[row]}, which should be {wanted}; the encoder, or a "
            "vector that was copied, is broken: look at the encoder's weights, and encode without other vectors at hand"
        )
    return norms


def _publish(task: ShardTask, vectors: Float[np.ndarray, "rows dim"], norms: Float[np.ndarray, " rows"]) -> VectorShard:
    """Write the shard, then its record."""
    file = io.BytesIO()
    np.save(file, vectors)
    content = file.getvalue()
    shard = VectorShard(
        rows=len(vectors),
        sha256=hashlib.sha256(content).hexdigest(),
        row_ids_sha256=task.row_ids_sha256,
        texts_sha256=task.texts_sha256,
        norm_min=float(norms.min()),
        norm_max=float(norms.max()),
    )
    write_atomically(shard_path(task.job.out, task.number), content)
    record = {"shard": shard._asdict(), "made": _made(task.job)}
    write_atomically(record_path(task.job.out, task.number), json.dumps(record).encode())
    return shard


def _read_record(task: ShardTask) -> VectorShard | None:
    try:
        record = json.loads(record_path(task.job.out, task.number).read_bytes())
        return VectorShard(**record["shard"]) if record["made"] == _made(task.job) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none yet, or cut off by a crash: the shard is made again


def _made(job: ShardJob) -> list[str]:
    return [job.card.fingerprint, job.card.precision, job.dtype]
