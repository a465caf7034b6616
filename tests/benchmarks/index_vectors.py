"""Vectors for the index benchmark: clustered, with fixed seeds."""

import numpy as np
from jaxtyping import Float

_BLOCK = 50_000
_CLUSTER = 100  # vectors around a centre, on average
_SPREAD = 0.8  # length of what a vector has of its own, beside its centre of length 1
_DIRECTIONS, _SHARE = 64, 0.8  # and how many directions most of that lies in, as an encoder's principal components
_ASKED = 0.75  # length of what a question has beside the vector that it is near to


def clustered(
    rows: int, dim: int, questions: int, seed: int = 0
) -> tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, "questions dim"]]:
    """Unit vectors around rows / 100 Gaussian centres, and questions near some of the vectors.

    Two vectors of a cluster have a cosine of about 0.6, a question and its vector 0.8, any others about 0.
    """
    random = np.random.default_rng(seed)
    centres = _unit(random.standard_normal((max(8, rows // _CLUSTER), dim), np.float32))
    directions = random.standard_normal((_DIRECTIONS, dim), np.float32) / np.sqrt(_DIRECTIONS, dtype=np.float32)
    vectors = np.empty((rows, dim), np.float32)
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        along = random.standard_normal((count, _DIRECTIONS), np.float32) @ directions
        anywhere = random.standard_normal((count, dim), np.float32)
        own = np.sqrt(_SHARE / dim) * along + np.sqrt((1 - _SHARE) / dim) * anywhere
        vectors[start : start + count] = _unit(centres[random.integers(0, len(centres), count)] + _SPREAD * own)
    near = vectors[random.choice(rows, questions, replace=False)]
    return vectors, _unit(near + _ASKED / np.sqrt(dim) * random.standard_normal((questions, dim), np.float32))


def _unit(vectors: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    found: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found.astype(np.float32)
