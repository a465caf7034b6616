"""Vectors for the index benchmark: clustered as embeddings are, with fixed seeds."""

import numpy as np
from jaxtyping import Float

_BLOCK = 50_000
_RANK = 64  # directions that most of the spread around a centre lies in, as embeddings' principal components do
_WIDE, _NARROW, _ASKED = 0.72, 0.36, 0.75  # lengths: of that spread, of what is left, of a question from its vector


def clustered(
    rows: int, dim: int, questions: int, seed: int = 0
) -> tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, "questions dim"]]:
    """Unit vectors around rows / 100 centres of uneven sizes, and questions near some of the vectors.

    Two of a cluster have a cosine of about 0.6, a question and its vector 0.8, any others about 0.
    """
    random = np.random.default_rng(seed)
    centres = _unit(random.normal(size=(max(8, rows // 100), dim)))
    directions = random.normal(size=(_RANK, dim)).astype(np.float32) / np.sqrt(_RANK * dim, dtype=np.float32)
    sizes = random.pareto(2, len(centres)) + 0.2
    vectors = np.empty((rows, dim), np.float32)
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        own = centres[random.choice(len(centres), count, p=sizes / sizes.sum())]
        wide = random.standard_normal((count, _RANK), np.float32) @ directions
        narrow = random.standard_normal((count, dim), np.float32) / np.sqrt(dim, dtype=np.float32)
        vectors[start : start + count] = _unit(own + _WIDE * wide + _NARROW * narrow)
    near = vectors[random.choice(rows, questions, replace=False)]
    asked = near + _ASKED * random.normal(size=near.shape) / np.sqrt(dim)
    return vectors, _unit(asked).astype(np.float32)


def _unit(vectors: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    found: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found.astype(np.float32)
