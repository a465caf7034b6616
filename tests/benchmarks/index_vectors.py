"""Vectors for the index benchmark: clustered as those of real passages are, with fixed seeds."""

import numpy as np
from jaxtyping import Float

_BLOCK = 50_000
# Topics, their subjects, and groups of passages that say nearly the same: vectors a cluster, and the share of a
# vector's squared length that its cluster's centre has. What is left is the passage's own.
_LEVELS = ((10_000, 0.15), (500, 0.25), (25, 0.25))
_OWN = 0.35
_ASKED = 0.4  # of a question's squared length: the vector that it is near to
_DECAY = -0.3  # of the directions' lengths, so that two unrelated vectors have a cosine of 0 +- 0.08


def clustered(
    rows: int, dim: int, questions: int, seed: int = 0
) -> tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, "questions dim"]]:
    """Unit vectors in clusters of clusters of uneven sizes, and questions near some of the vectors.

    A question's inner products with its best, tenth, hundredth and thousandth passage are close to those of real
    questions and passages under all-MiniLM-L6-v2 (0.60, 0.47, 0.30, 0.15 of 20,183).
    """
    random = np.random.default_rng(seed)
    lengths = np.arange(1, dim + 1, dtype=np.float32) ** _DECAY
    directions = lengths[:, None] * random.standard_normal((dim, dim), np.float32)
    centres = np.zeros((1, dim), np.float32)
    for size, share in _LEVELS:
        count = max(8, rows // size)
        parents = _uneven(random, len(centres), count)
        centres = centres[parents] + np.sqrt(share) * _draw(random, count, directions)
    vectors = np.empty((rows, dim), np.float32)
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        own = np.sqrt(_OWN) * _draw(random, count, directions)
        vectors[start : start + count] = _unit(centres[_uneven(random, len(centres), count)] + own)
    near = vectors[random.choice(rows, questions, replace=False)]
    return vectors, _unit(np.sqrt(_ASKED) * near + np.sqrt(1 - _ASKED) * _draw(random, questions, directions))


def _draw(
    random: np.random.Generator, rows: int, directions: Float[np.ndarray, "dim dim"]
) -> Float[np.ndarray, "rows dim"]:
    return _unit(random.standard_normal((rows, len(directions)), np.float32) @ directions)


def _uneven(random: np.random.Generator, clusters: int, rows: int) -> np.ndarray:
    """A cluster for each row; the largest have several times as many as the smallest, the same at every call."""
    sizes = np.random.default_rng(clusters).lognormal(0, 0.5, clusters)
    found: np.ndarray = random.choice(clusters, rows, p=sizes / sizes.sum())
    return found


def _unit(vectors: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    found: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found.astype(np.float32)
