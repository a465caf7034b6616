"""The vectors of one source on disk, in the row order of its passages, encoded in shards that survive a kill.

A folder holds ``vectors.npy`` (float32, memory-mappable), ``text_sha1.npy`` (of each row's title and text) and
``vectors.json``, written last: without it the folder is unfinished, whatever else lies in it.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from rag.errors import DataError, ResourceError
from rag.files import publish
from rag.retrieval.encoders import Encoder

SHARD_ROWS = 256
_COPY_ROWS = 65_536
Shards = Iterable[range]


class SourcePassages(NamedTuple):
    """The columns of a passages table that encoding needs, row by row."""

    ids: Sequence[str]
    titles: Sequence[str]
    texts: Sequence[str]
    text_sha1: Sequence[str]  # of title + "\n" + text, 40 hexadecimal digits


class VectorReport(NamedTuple):
    """Where the rows of a vector file came from; the four counts add up to its rows."""

    encoded: int  # by this call
    resumed: int  # by an earlier call with the same folder that did not finish
    reused: int  # copied from another vector file of the same encoder
    repeated: int  # the same title and text as an earlier row


@dataclass(frozen=True)
class VectorFile:
    """A finished folder of vectors and what is known of it."""

    folder: Path
    encoder_fingerprint: str
    dim: int
    count: int
    row_ids_sha256: str
    texts_sha256: str
    norm_min: float
    norm_max: float
    dtype: str

    @classmethod
    def open(cls, folder: Path) -> "VectorFile":
        """The vectors of ``folder``; raises DataError if they are unfinished, cut off or not what vectors.json says."""
        try:
            known = json.loads((folder / "vectors.json").read_text(encoding="utf-8"))
            found = cls(folder=folder, **known)
        except FileNotFoundError as error:
            raise DataError(f"{folder} holds no finished vectors (no vectors.json); encode the source again") from error
        except (ValueError, TypeError) as error:
            raise DataError(f"{folder}/vectors.json cannot be read ({error}); encode the source again") from error
        if found.vectors.shape != (found.count, found.dim) or len(found.text_sha1) != found.count:
            raise DataError(
                f"{folder}: vectors.npy has shape {found.vectors.shape}, but vectors.json says "
                f"({found.count}, {found.dim}); encode the source again"
            )
        return found

    @property
    def vectors(self) -> Float[np.ndarray, "count dim"]:
        """The vectors, memory-mapped and read-only."""
        return _map(self.folder / "vectors.npy")

    @property
    def text_sha1(self) -> Shaped[np.ndarray, " count"]:
        """The hash of each row's title and text, as 40 ASCII bytes."""
        return _map(self.folder / "text_sha1.npy")


def hash_row_ids(ids: Iterable[Any]) -> str:
    """sha256 of ids in their order; of several sources it is the hash of their concatenation.

    >>> hash_row_ids(["a", "b"]) == hash_row_ids(["b", "a"])
    False
    """
    digest = hashlib.sha256()
    for row_id in ids:
        digest.update(f"{row_id}\n".encode())
    return digest.hexdigest()


def encode_source(
    passages: SourcePassages,
    encoder: Encoder,
    out: Path,
    reuse: Sequence[VectorFile] = (),
    progress: Callable[[Shards], Shards] = iter,
) -> VectorReport:
    """Write the vectors of ``passages`` into folder ``out``; ``progress`` sees shards of at most 256 rows go by.

    Texts that ``reuse`` holds for the same encoder are copied (equal to a new encoding within 1e-5), equal texts are
    encoded once, and shards that a killed call left in ``out`` are kept. A finished folder of the same passages and
    encoder is left as it is. Raises DataError if the columns cannot be right or a vector is not finite, and
    ResourceError if the disk is too small.
    """
    _check_columns(passages)
    fingerprint = encoder.passage_fingerprint
    keys = np.array(passages.text_sha1, dtype="S40")
    identity = {
        "encoder_fingerprint": fingerprint,
        "row_ids_sha256": hash_row_ids(passages.ids),
        "texts_sha256": hashlib.sha256(keys.tobytes()).hexdigest(),
    }
    if _is_finished(out, identity):
        return VectorReport(0, 0, reused=len(keys), repeated=0)
    (out / "shards").mkdir(parents=True, exist_ok=True)
    _check_space(out, 2 * len(keys) * encoder.dim * 4)  # the shards and the whole

    vectors = np.lib.format.open_memmap(out / "vectors.npy.tmp", "w+", np.float32, (len(keys), encoder.dim))
    _, first, text_of_row = np.unique(keys, return_index=True, return_inverse=True)
    missing = _copy_known(vectors, keys, first, [file for file in reuse if file.encoder_fingerprint == fingerprint])
    encoded = _encode_missing(vectors, passages, missing, encoder, out / "shards", progress)
    repeated = np.flatnonzero(first[text_of_row] != np.arange(len(keys)))
    vectors[repeated] = vectors[first[text_of_row][repeated]]
    low, high = _norm_range(vectors, passages.ids)
    vectors.flush()
    del vectors
    with (out / "text_sha1.npy.tmp").open("wb") as file:
        np.save(file, keys)
    about = {**identity, "dim": encoder.dim, "count": len(keys), "dtype": "float32", "norm_min": low, "norm_max": high}
    (out / "vectors.json.tmp").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for name in ("vectors.npy", "text_sha1.npy", "vectors.json"):
        publish(out / f"{name}.tmp", out / name)
    shutil.rmtree(out / "shards")
    return VectorReport(encoded, len(missing) - encoded, reused=len(first) - len(missing), repeated=len(repeated))


def _check_columns(passages: SourcePassages) -> None:
    sizes = {name: len(column) for name, column in passages._asdict().items()}
    if len(set(sizes.values())) != 1:
        raise DataError(f"the columns of the passages differ in length ({sizes}); read them from one table")
    if not sizes["ids"]:
        raise DataError("the source holds no passages; look at what ingest rejected or left out")
    if len(set(passages.ids)) != len(passages.ids):
        double = next(row_id for row_id, times in Counter(passages.ids).items() if times > 1)
        raise DataError(f"passage id {double!r} occurs more than once; ids must tell passages apart")
    bad = next((row for row, sha1 in enumerate(passages.text_sha1) if len(sha1) != 40), None)
    if bad is not None:
        raise DataError(f"passage {passages.ids[bad]} has text_sha1 {passages.text_sha1[bad]!r}, not 40 digits")


def _is_finished(out: Path, identity: dict[str, str]) -> bool:
    if not (out / "vectors.json").is_file():
        return False
    try:
        found = VectorFile.open(out)
    except DataError:
        return False  # damaged: encoded again, from what other files and shards still hold
    return all(getattr(found, key) == value for key, value in identity.items())


def _check_space(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise ResourceError(f"{folder} has {free:,} bytes free, but the vectors need {needed_bytes:,}; make room")


def _copy_known(
    vectors: Float[np.ndarray, "count dim"],
    keys: Shaped[np.ndarray, " count"],
    first: Int[np.ndarray, " texts"],
    known: Sequence[VectorFile],
) -> Int[np.ndarray, " missing"]:
    """Copy what ``known`` holds into the rows ``first``; the rows still missing, in order."""
    missing = np.sort(first)
    for file in known:
        theirs = np.asarray(file.text_sha1)
        order = np.argsort(theirs, kind="stable")
        at = np.searchsorted(theirs, keys[missing], sorter=order)
        source = order[np.minimum(at, len(order) - 1)]
        hit = theirs[source] == keys[missing]
        for start in range(0, int(hit.sum()), _COPY_ROWS):
            block = slice(start, start + _COPY_ROWS)
            vectors[missing[hit][block]] = file.vectors[source[hit][block]]
        missing = missing[~hit]
    return missing


def _encode_missing(
    vectors: Float[np.ndarray, "count dim"],
    passages: SourcePassages,
    missing: Int[np.ndarray, " missing"],
    encoder: Encoder,
    folder: Path,
    progress: Callable[[Shards], Shards],
) -> int:
    """Fill the rows ``missing`` shard by shard, each from its file or, written at once, anew; how many were anew."""
    fingerprint, encoded = encoder.passage_fingerprint, 0
    shards = [range(start, min(start + SHARD_ROWS, len(missing))) for start in range(0, len(missing), SHARD_ROWS)]
    for shard in progress(shards):
        rows = missing[shard.start : shard.stop]
        name = _shard_name(fingerprint, [passages.text_sha1[row] for row in rows])
        path = folder / f"{name}.npy"
        found = _read_shard(path, (len(rows), encoder.dim))
        if found is None:
            found = _encode_rows(passages, rows, encoder)
            with path.with_suffix(".tmp").open("wb") as file:
                np.save(file, found)
            publish(path.with_suffix(".tmp"), path)
            encoded += len(rows)
        vectors[rows] = found
    return encoded


def _encode_rows(
    passages: SourcePassages, rows: Int[np.ndarray, " rows"], encoder: Encoder
) -> Float[np.ndarray, "rows dim"]:
    try:
        return encoder.encode_passages([passages.titles[row] for row in rows], [passages.texts[row] for row in rows])
    except DataError as error:  # which counts rows from the start of the shard
        raise DataError(f"among {passages.ids[rows[0]]} to {passages.ids[rows[-1]]}: {error}") from error


def _shard_name(fingerprint: str, text_sha1: Sequence[str]) -> str:
    """A name by content, so that a shard of other texts or weights is never taken for this one."""
    return hashlib.sha256("\n".join([fingerprint, *text_sha1]).encode()).hexdigest()


def _read_shard(path: Path, shape: tuple[int, int]) -> Float[np.ndarray, "rows dim"] | None:
    """A shard of an earlier call; None if there is none or it cannot be used."""
    try:
        shard: np.ndarray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return shard if shard.shape == shape and shard.dtype == np.float32 else None


def _norm_range(vectors: Float[np.ndarray, "count dim"], ids: Sequence[str]) -> tuple[float, float]:
    low, high = np.inf, 0.0
    for start in range(0, len(vectors), _COPY_ROWS):
        norms = np.linalg.norm(vectors[start : start + _COPY_ROWS], axis=1)
        if not np.isfinite(norms).all():
            row = start + int(np.argmin(np.isfinite(norms)))
            raise DataError(f"the vector of passage {ids[row]} (row {row}) is not finite; encode without reuse")
        low, high = min(low, float(norms.min())), max(high, float(norms.max()))
    return low, high


def _map(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is missing or cut off ({error}); encode the source again") from error
    return array
