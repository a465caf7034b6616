"""Inner products that are the same number whatever else is computed with them.

A matrix product rounds in another way for another shape of the batch; scores that are stored and compared must not.
"""

import numpy as np
from jaxtyping import Float


def inner_products(
    questions: Float[np.ndarray, "batch dim"], vectors: Float[np.ndarray, "batch found dim"]
) -> Float[np.ndarray, "batch found"]:
    """Of each question with its own vectors, one pair at a time.

    >>> inner_products(np.array([[1, 2]], np.float32), np.ones((1, 3, 2), np.float32)).tolist()
    [[3.0, 3.0, 3.0]]
    """
    scores: np.ndarray = np.vecdot(questions[:, None, :], vectors)
    return scores
