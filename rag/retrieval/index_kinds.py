"""Everything that differs from one kind of index to another: its FAISS class, options, bytes, and whether it fits.

A kind is a way to look (all rows, a graph, inverted lists) over a way to store (vectors, 8-bit numbers, product
quantisation, one bit a dimension). Compressed stores only choose candidates, which are scored again from the vectors.
"""

from math import isqrt
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from rag.config import IndexConfig, IndexKind
from rag.errors import ConfigError
from rag.retrieval_config import SPARE

ADD_ROWS = 4096  # rows that are read, hashed, encoded or linked in one go; the graph depends on it, so it is fixed
SAMPLE_ROWS = 16_384  # rows that number ranges and code books are learned from
LIST_PASSES, LIST_SAMPLE = 16, 64  # over vectors that lists are learned from, and how many for a list, anew each time
_ROWS_PER_LIST = 160  # at least; with 1-bit codes the lists' centroids then stay under a sixth of the index
_LISTS_PER_ROOT = 6
_BUILD_SHARE = 1.25
_COPIES = 2  # of a block of rows: as read, and as numbers; one more where several threads compare them
_COMPARED = 1024  # centroids that FAISS compares a block with at once
_LEARNING = 20  # bytes of a number of a centroid while lists are learned: centroids, sums, and what a block adds


class _Kind(NamedTuple):
    look: Literal["all", "graph", "lists"]
    store: Literal["vectors", "sq8", "pq", "rabitq"]
    faiss_class: str


KINDS: dict[IndexKind, _Kind] = {
    "flat": _Kind("all", "vectors", "IndexFlatIP"),
    "hnsw": _Kind("graph", "vectors", "IndexHNSWFlat"),
    "hnsw-sq8": _Kind("graph", "sq8", "IndexHNSWSQ"),
    "hnsw-pq": _Kind("graph", "pq", "IndexHNSWPQ"),
    "ivf-flat": _Kind("lists", "vectors", "IndexIVFFlat"),
    "ivf-sq8": _Kind("lists", "sq8", "IndexIVFScalarQuantizer"),
    "ivf-pq": _Kind("lists", "pq", "IndexIVFPQ"),
    "ivf-rabitq": _Kind("lists", "rabitq", "IndexIVFRaBitQ"),
}


class SearchOptions(NamedTuple):
    """What decides how far a search looks; a kind heeds its own."""

    ef_search: int = 128
    nprobe: int = 64
    rerank: int = 200

    @classmethod
    def of(cls, config: IndexConfig) -> "SearchOptions":
        """The options of a study."""
        return cls(config.ef_search, config.nprobe, config.rerank)


class BuildOptions(NamedTuple):
    """What decides a built index, with numbers for what the configuration leaves open; 0 where a kind has no such."""

    m: int = 0
    ef_construction: int = 0
    nlist: int = 0
    pq_bytes: int = 0


def resolve_options(kind: IndexKind, n: int, dim: int, config: IndexConfig) -> BuildOptions:
    """The options of an index of ``n`` vectors; raises ConfigError where ``pq_bytes`` does not divide ``dim``.

    Inverted lists: 6 sqrt(n), and no fewer than 160 vectors in each.

    >>> resolve_options("ivf-rabitq", 1_000_000, 384, IndexConfig()).nlist
    6000
    """
    look, store, _ = KINDS[kind]
    graph, lists, pq = look == "graph", look == "lists", store == "pq"
    return BuildOptions(
        config.m if graph else 0,
        config.ef_construction if graph else 0,
        _lists(n, config) if lists else 0,
        _pq_bytes(dim, config) if pq else 0,
    )


def _lists(n: int, config: IndexConfig) -> int:
    if config.nlist is not None:
        return max(1, min(config.nlist, n))
    return max(1, min(_LISTS_PER_ROOT * isqrt(n), n // _ROWS_PER_LIST))


def _pq_bytes(dim: int, config: IndexConfig) -> int:
    if config.pq_bytes is None:
        return next(size for size in range(max(1, dim // 8), 0, -1) if dim % size == 0)
    if dim % config.pq_bytes:
        near = next(size for size in range(min(config.pq_bytes, dim), 0, -1) if dim % size == 0)
        raise ConfigError(f"index.pq_bytes = {config.pq_bytes} does not divide {dim} dimensions; {near} does")
    return config.pq_bytes


def build_options(kind: IndexKind, config: IndexConfig) -> dict[str, int]:
    """The keys of the configuration that decide the built index of this kind; 0 stands for "by size".

    >>> build_options("ivf-rabitq", IndexConfig()), build_options("hnsw", IndexConfig(m=32))
    ({'nlist': 0}, {'m': 32, 'ef_construction': 200})
    """
    look, store, _ = KINDS[kind]
    names = {"all": (), "graph": ("m", "ef_construction"), "lists": ("nlist",)}[look]
    return _values(config, (*names, *(("pq_bytes",) if store == "pq" else ())))


def search_options(kind: IndexKind, config: IndexConfig) -> dict[str, int]:
    """The keys of the configuration that decide a search of this kind.

    >>> search_options("ivf-rabitq", IndexConfig())
    {'nprobe': 64, 'rerank': 200}
    """
    look, store, _ = KINDS[kind]
    names = {"all": (), "graph": ("ef_search",), "lists": ("nprobe",)}[look]
    return _values(config, (*names, *(("rerank",) if store != "vectors" else ())))


def _values(config: BaseModel, names: tuple[str, ...]) -> dict[str, int]:
    return {name: getattr(config, name) or 0 for name in names}


def needs_vectors(kind: IndexKind) -> bool:
    """Whether candidates are scored from the passage vectors: the index itself cannot give them by row."""
    look, store, _ = KINDS[kind]
    return look == "lists" or store != "vectors"


def can_update(kind: IndexKind) -> bool:
    """Whether passages can be taken out; a graph has to be built anew, for its links lead through them."""
    return KINDS[kind].look != "graph"


def candidates(kind: IndexKind, n_docs: int, options: SearchOptions) -> int:
    """How many rows FAISS is asked for."""
    wanted = n_docs + SPARE
    return wanted if KINDS[kind].store == "vectors" else max(wanted, options.rerank)


def code_bytes(kind: IndexKind, dim: int, options: BuildOptions) -> int:
    """Bytes that a vector itself takes. 1-bit codes come with two numbers: the residual's norm, and a factor for it."""
    return {"vectors": 4 * dim, "sq8": dim, "pq": options.pq_bytes, "rabitq": (dim + 7) // 8 + 8}[KINDS[kind].store]


def index_bytes(kind: IndexKind, n: int, dim: int, config: IndexConfig) -> int:
    """Memory of an index of ``n`` vectors when it is searched, which is the size of its file.

    n x (code + 8 M + about 4 + 12) for graphs, n x (code + 8) + nlist x 4 dim for inverted lists. Passage vectors that
    are mapped for re-ranking are not counted, and of equal vectors each is.

    >>> round(index_bytes("ivf-rabitq", 21_015_324, 768, IndexConfig()) / 1e9, 2)
    2.44
    """
    return file_bytes(kind, n, dim, resolve_options(kind, n, dim, config))


def file_bytes(kind: IndexKind, n: int, dim: int, options: BuildOptions) -> int:
    """The size of an index of ``n`` distinct vectors that was built with these options."""
    look, store, _ = KINDS[kind]
    rows, learned = code_bytes(kind, dim, options), {"sq8": 8 * dim, "pq": 4 * 256 * dim}.get(store, 0)
    if look == "graph":
        rows += 8 * options.m + 4 * options.m // (options.m - 1) + 12  # links of level 0 and above, their places
    if look == "lists":
        rows += 8  # its number
        learned += options.nlist * (4 * dim + 8)
    return n * rows + learned


def build_bytes(kind: IndexKind, n: int, dim: int, config: IndexConfig) -> int:
    """Peak memory while it is built: 1.25 x the index, or what is learned from before anything is put in.

    Vectors are read through in blocks and never counted.
    """
    look, store, _ = KINDS[kind]
    nlist, pq_bytes = resolve_options(kind, n, dim, config)[2:]
    rows, row_bytes = min(n, ADD_ROWS), 4 * dim
    books = 4 * 256 * 256 * pq_bytes  # FAISS' table between all centroids
    times = 2 if look == "lists" else 1  # lists hold residuals beside what they learn from
    sample = times * row_bytes * min(n, SAMPLE_ROWS) if store in ("sq8", "pq") else 0
    lists = _LEARNING * dim * (nlist + min(nlist, rows)) + 4 * rows * min(nlist, _COMPARED)
    learned = max(sample + books, lists) + (1 + times * _COPIES) * row_bytes * rows
    filled = int(_BUILD_SHARE * index_bytes(kind, n, dim, config)) + books + _COPIES * row_bytes * rows
    return max(learned, filled)


def resolve_kind(config: IndexConfig, n: int, dim: int, memory_bytes: int) -> IndexKind:
    """The kind that ``auto`` stands for: HNSW where it can be built in this memory, else 1-bit codes.

    >>> [resolve_kind(IndexConfig(), 21_015_324, 768, memory * 10**9) for memory in (16, 256)]
    ['ivf-rabitq', 'hnsw']
    """
    if config.kind != "auto":
        return config.kind
    return "hnsw" if build_bytes("hnsw", n, dim, config) <= memory_bytes else "ivf-rabitq"


def empty_index(kind: IndexKind, dim: int, options: BuildOptions) -> Any:
    """A FAISS index by inner product with nothing learned and nothing in it."""
    import faiss  # not above: a plan reads the other functions, and FAISS takes most of a second to load

    look, store, name = KINDS[kind]
    metric, sq8 = faiss.METRIC_INNER_PRODUCT, faiss.ScalarQuantizer.QT_8bit
    stored: tuple[Any, ...] = {"vectors": (), "sq8": (sq8,), "pq": (options.pq_bytes, 8), "rabitq": ()}[store]
    make: Any = getattr(faiss, name)
    if look == "all":
        return make(dim)
    if look == "lists":
        quantizer: Any = faiss.IndexFlatIP(dim)
        index = make(quantizer, dim, options.nlist, *stored, metric)
        quantizer.this.disown()
        index.own_fields = True
        return index
    if store == "pq":
        index = make(dim, options.pq_bytes, options.m, 8, metric)
    else:
        index = make(dim, *stored, options.m, metric)
    index.hnsw.efConstruction = options.ef_construction
    return index


def search_parameters(kind: IndexKind, wanted: int, options: SearchOptions) -> Any:
    """FAISS' parameters of a search for ``wanted`` candidates; a graph is never left with fewer than those."""
    import faiss

    look, store, _ = KINDS[kind]
    if look == "graph":
        return faiss.SearchParametersHNSW(efSearch=max(options.ef_search, wanted))  # type: ignore[attr-defined]
    if look == "all":
        return None
    if store != "rabitq":
        return faiss.SearchParametersIVF()
    parameters: Any = faiss.IVFRaBitQSearchParameters()
    parameters.qb = 4  # bits a dimension of the question: 8 find no more, and with none a search takes 50 times as long
    return parameters
