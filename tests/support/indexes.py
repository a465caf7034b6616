"""Every kind of index at the size of a test: a new kind is one line here."""

import numpy as np
import pytest

from rag.config import IndexConfig, IndexKind
from rag.retrieval.index_kinds import KINDS, can_update

CONFIGS: dict[IndexKind, IndexConfig] = {
    "flat": IndexConfig(kind="flat"),
    "hnsw": IndexConfig(kind="hnsw", m=16, ef_construction=80, ef_search=64),
    "hnsw-sq8": IndexConfig(kind="hnsw-sq8", m=16, ef_construction=80, ef_search=64, rerank=100),
    "hnsw-pq": IndexConfig(kind="hnsw-pq", m=16, ef_construction=80, ef_search=64, pq_bytes=8, rerank=200),
    "ivf-flat": IndexConfig(kind="ivf-flat", nlist=8, nprobe=8),
    "ivf-sq8": IndexConfig(kind="ivf-sq8", nlist=8, nprobe=8, rerank=100),
    "ivf-pq": IndexConfig(kind="ivf-pq", nlist=8, nprobe=8, pq_bytes=8, rerank=200),
    "ivf-rabitq": IndexConfig(kind="ivf-rabitq", nlist=8, nprobe=8, rerank=300),
}
assert CONFIGS.keys() == KINDS.keys()

every_kind = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
kinds_to_update = pytest.mark.parametrize(
    "config", [c for k, c in CONFIGS.items() if can_update(k)], ids=lambda c: c.kind
)
kinds_to_rebuild = pytest.mark.parametrize(
    "config", [c for k, c in CONFIGS.items() if not can_update(k)], ids=lambda c: c.kind
)


def vectors_of(rows: int, dim: int = 16, seed: int = 0, normalised: bool = True) -> np.ndarray:
    """Random vectors in a few clusters."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(8, dim))
    vectors = centres[random.integers(0, 8, rows)] + 0.5 * random.normal(size=(rows, dim))
    if normalised:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)
