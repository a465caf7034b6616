"""What encoding and indexing will take, from the number of passages and from what a sample took on this machine.

Bytes follow from the formats and hold to a few per cent. Seconds are those of a sample, carried on by the law of the
work: encoding and exact search are linear; an HNSW insert looks at more and more of a growing graph; inverted lists
compare every vector with every list.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from rag.config import EncoderConfig, IndexConfig, IndexKind
from rag.records import StageEstimate
from rag.retrieval.index_kinds import (
    KINDS,
    LIST_PASSES,
    LIST_SAMPLE,
    SAMPLE_ROWS,
    build_bytes,
    can_update,
    index_bytes,
    resolve_kind,
    resolve_options,
)

Storage = Literal["float16", "float32"]

_DIGEST_BYTES = 20  # of a passage's text, beside its vector
_ITEM_BYTES: dict[Storage, int] = {"float16": 2, "float32": 4}
_CONTENT_BYTES = 16  # a vector's hash
_BM25_BYTES = 600_000_000  # of memory: the writer's buffer, and the process
_FADING = 0.22  # of the exponent of HNSW inserts; measured from 4,000 to 160,000 vectors, real and made, m 16 to 128
_ROW_BYTES = 30  # where the vector of a passage is known from, beside the encoders
_SMALLER: dict[IndexKind, tuple[IndexKind, ...]] = {  # what takes less, the least lossy first
    "flat": ("hnsw-sq8", "ivf-sq8", "ivf-rabitq"),
    "hnsw": ("hnsw-sq8", "hnsw-pq", "ivf-rabitq"),
    "hnsw-sq8": ("hnsw-pq", "ivf-rabitq"),
    "hnsw-pq": ("ivf-rabitq",),
    "ivf-flat": ("ivf-sq8", "ivf-rabitq"),
    "ivf-sq8": ("ivf-rabitq",),
    "ivf-pq": ("ivf-rabitq",),
    "ivf-rabitq": (),
}


class EncodingRate(NamedTuple):
    """What encoding took on a sample of real passages."""

    passages_per_second: float | None  # of all processes together; None: not measured
    memory_bytes: int  # of all processes together
    is_like: bool = False  # of a model of the encoder's size, not of the encoder itself


class Bm25Rate(NamedTuple):
    """What a BM25 index of a sample of real passages took."""

    passages_per_second: float
    bytes_per_passage: float


class BuildSample(NamedTuple):
    """One small index and how long it took."""

    rows: int
    seconds: float  # of the passes over its vectors
    learning_seconds: float = 0.0  # of what is learned between them from a sample: code books, number ranges
    nlist: int = 0  # of inverted lists


class Work(NamedTuple):
    """What of a study is still to be encoded and indexed, and the bytes that its other stages will write."""

    dim: int
    vectors: Mapping[str, int]  # source -> passages
    indexes: Mapping[str, int]  # corpus -> passages
    other_disk_bytes: int = 0


def vectors_bytes(n: int, dim: int, storage: Storage) -> int:
    """Bytes on disk of the vectors of ``n`` passages.

    >>> vectors_bytes(21_015_324, 768, "float16")
    32699844144
    """
    return n * (dim * _ITEM_BYTES[storage] + _DIGEST_BYTES)


def estimate_vectors(n: int, dim: int, storage: Storage, rate: EncodingRate) -> StageEstimate:
    """Encoding the ``n`` passages of one source."""
    seconds = n / rate.passages_per_second if rate.passages_per_second else None
    return StageEstimate("vectors", n, rate.memory_bytes + n * _ROW_BYTES, vectors_bytes(n, dim, storage), seconds)


def estimate_index(
    n: int, dim: int, config: IndexConfig, kind: IndexKind, samples: Sequence[BuildSample]
) -> StageEstimate:
    """Building the index of ``n`` passages from their stored vectors; no samples: its time is not known."""
    seconds = build_seconds(kind, n, dim, config, samples) if samples else None
    return StageEstimate("index", n, build_bytes(kind, n, dim, config), index_disk_bytes(kind, n, dim, config), seconds)


def index_disk_bytes(kind: IndexKind, n: int, dim: int, config: IndexConfig) -> int:
    """Bytes on disk of an index; of one that can change in place, with the hashes that tell vectors apart."""
    return index_bytes(kind, n, dim, config) + (n * _CONTENT_BYTES if can_update(kind) else 0)


def estimate_recall(
    n: int, dim: int, config: IndexConfig, kind: IndexKind, products_per_second: float | None
) -> StageEstimate:
    """Exact search for the sampled questions, beside the index; the rate is of inner products of ``dim`` numbers."""
    seconds = n * config.recall_questions / products_per_second if products_per_second else None
    return StageEstimate("recall", n, index_bytes(kind, n, dim, config), 0, seconds)


def estimate_bm25(n: int, rate: Bm25Rate) -> StageEstimate:
    """A BM25 index of ``n`` passages; merging its segments takes the disk a second time while it is built.

    >>> estimate_bm25(1000, Bm25Rate(500.0, 400.0))
    StageEstimate(stage='bm25', rows=1000, memory_bytes=600000000, disk_bytes=800000, seconds=2.0)
    """
    return StageEstimate("bm25", n, _BM25_BYTES, round(2 * n * rate.bytes_per_passage), n / rate.passages_per_second)


def build_seconds(kind: IndexKind, n: int, dim: int, config: IndexConfig, samples: Sequence[BuildSample]) -> float:
    """Seconds to build an index of ``n`` vectors, from small builds of the same kind (those of ``sample_builds``)."""
    last = samples[-1]
    learning = last.learning_seconds * min(n, SAMPLE_ROWS) / min(last.rows, SAMPLE_ROWS)
    look = KINDS[kind].look
    if look == "graph":
        return learning + insert_seconds(n, samples)
    if look == "lists":
        return learning + list_seconds(n, resolve_options(kind, n, dim, config).nlist, samples)
    return n * last.seconds / last.rows


def sample_builds(kind: IndexKind) -> tuple[tuple[int, int], ...]:
    """Rows and nlist of the small builds from which ``build_seconds`` can tell what a large one takes.

    Of a graph over codes more rows, or the codes would stay in the processor's cache, as those of a large one do not.

    >>> sample_builds("hnsw")[-2:], sample_builds("hnsw-sq8")[-2:]
    (((4096, 0), (8192, 0)), ((8192, 0), (16384, 0)))
    """
    if KINDS[kind].look == "lists":
        return ((8192, 8), (8192, 128), (8192, 1024))
    first = 2048 if KINDS[kind].store == "vectors" else 4096
    return ((first, 0), (2 * first, 0), (4 * first, 0))


def list_seconds(n: int, nlist: int, samples: Sequence[BuildSample]) -> float:
    """Seconds to learn ``nlist`` lists and to fill them with ``n`` vectors, from three builds.

    Every vector is read, stored, and compared with every list; so is, in each pass, each of the 64 vectors a list that
    the lists are learned from. What reading, storing and a comparison take follows from builds with few vectors to
    learn from, with many, and with many lists.
    """
    measured = np.array([_list_work(sample.rows, sample.nlist) for sample in samples])
    costs = np.linalg.lstsq(measured, np.array([sample.seconds for sample in samples]), rcond=None)[0]
    return float(_list_work(n, nlist) @ np.maximum(costs, 0))


def _list_work(n: int, nlist: int) -> Float[np.ndarray, "3"]:
    """Vectors stored, vectors learned from, and comparisons."""
    learned = LIST_PASSES * min(n, LIST_SAMPLE * nlist)
    return np.array([n, learned, (n + learned) * nlist], np.float64)


def insert_seconds(n: int, samples: Sequence[BuildSample]) -> float:
    """Seconds of ``n`` HNSW inserts, from builds of two sizes or more.

    An insert looks at the neighbours of its candidates. In a small graph most of them have been looked at already, in
    a large one hardly any, so that at first the seconds grow faster than n, as n^(1 + x), and x falls with the size:

        seconds(n) = T * (n / N) * exp(x / q * (1 - (n / N)^-q))

    with T for the largest build, of N vectors, x the exponent there, from each build against the next, and q = 0.22.

    >>> samples = [BuildSample(4000, 1.0), BuildSample(8000, 2.5)]
    >>> [round(insert_seconds(n, samples), 1) for n in (8000, 80_000)]
    [2.5, 42.9]
    """
    last = samples[-1]
    excess = fmean(_excess(first, second, last.rows) for first, second in pairwise(samples))
    times = n / last.rows
    return last.seconds * times * exp(excess / _FADING * (1 - times**-_FADING))


def _excess(first: BuildSample, second: BuildSample, at: int) -> float:
    """By how much the exponent is above 1 at a size, as it is between two builds."""
    exponent = log(second.seconds / first.seconds) / log(second.rows / first.rows)
    between = (first.rows * second.rows) ** 0.5
    return float(max(exponent - 1, 0.0) * (at / between) ** -_FADING)


def find_problem(
    work: Work, encoder: EncoderConfig, index: IndexConfig, memory_bytes: int, free_disk_bytes: int
) -> str | None:
    """Why the index of a corpus, or all files together, do not fit, with the cheapest change that does.

    None where they fit. Storage gives way before the kind of index, and the least lossy kind comes first.
    """
    for corpus, n in work.indexes.items():
        problem = _memory_problem(corpus, n, work.dim, index, memory_bytes)
        if problem:
            return problem
    needed = disk_bytes(work, encoder.storage, index, memory_bytes)
    if needed <= free_disk_bytes:
        return None
    found = f"the study needs {_gigabytes(needed)} of disk and {_gigabytes(free_disk_bytes)} are free"
    for storage, smaller, words in _less_disk(work, encoder, index, memory_bytes):
        changed = disk_bytes(work, storage, smaller, memory_bytes)
        if changed <= free_disk_bytes:
            return f"{found}; {words} takes {_gigabytes(changed)}"
    return f"{found}; free some, or set OPENBOOK_WORKSPACE to a larger disk"


def disk_bytes(work: Work, storage: Storage, index: IndexConfig, memory_bytes: int) -> int:
    """Bytes that a study still writes: vectors once a source, an index for every corpus, and the rest."""
    vectors = sum(vectors_bytes(n, work.dim, storage) for n in work.vectors.values())
    kinds = {n: resolve_kind(index, n, work.dim, memory_bytes) for n in work.indexes.values()}
    indexes = sum(index_disk_bytes(kinds[n], n, work.dim, index) for n in work.indexes.values())
    return work.other_disk_bytes + vectors + indexes


def _less_disk(
    work: Work, encoder: EncoderConfig, index: IndexConfig, memory_bytes: int
) -> Iterator[tuple[Storage, IndexConfig, str]]:
    """Changes that take less disk, the mildest first, each with the words that ask for it."""
    halved = "--set encoder.storage=float16" if encoder.storage == "float32" and work.vectors else ""
    if halved:
        yield "float16", index, halved
    largest = max(work.indexes.values(), default=0)
    kind = resolve_kind(index, largest, work.dim, memory_bytes)
    for smaller in _SMALLER[kind] if largest else ():
        changed = index.model_copy(update={"kind": smaller})
        storage: Storage = "float16" if halved else encoder.storage
        yield storage, changed, f"{halved} --set index.kind={smaller}".strip()


def _memory_problem(corpus: str, n: int, dim: int, index: IndexConfig, limit: int) -> str | None:
    kind = resolve_kind(index, n, dim, limit)
    needed = build_bytes(kind, n, dim, index)
    if needed <= limit:
        return None
    option = f" with m = {index.m}" if kind.startswith("hnsw") else ""
    found = (
        f"corpora.{corpus}: index.kind = {kind}{option} takes {_memory(kind, n, dim, index)} for {n:,} passages, and "
        f"{_gigabytes(limit)} may be used"
    )
    for smaller in _SMALLER[kind]:
        if build_bytes(smaller, n, dim, index) <= limit:
            return f"{found}; --set index.kind={smaller} takes {_memory(smaller, n, dim, index)}"
    return f"{found}; no kind of index fits, and ivf-rabitq takes least: index fewer passages"


def _memory(kind: IndexKind, n: int, dim: int, index: IndexConfig) -> str:
    built = _gigabytes(build_bytes(kind, n, dim, index))
    return f"{_gigabytes(index_bytes(kind, n, dim, index))} of memory ({built} while it is built)"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
