"""A whole retriever in a few lines: texts as sums of random word vectors, compared one by one."""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from rag.records import Passage
from rag.retrieval.retriever import Retrieved
from rag.text import word_tokens

_DIM = 64


def encode(texts: Sequence[str], seed: int = 0) -> Float[np.ndarray, "texts dim"]:
    """Each text as the mean of its words' vectors; another seed is an encoder of another training."""
    return np.stack([_mean([_word(word, seed) for word in word_tokens(text)]) for text in texts])


@lru_cache(maxsize=1 << 16)
def _word(word: str, seed: int) -> Float[np.ndarray, "dim"]:
    return np.random.default_rng([seed, zlib.crc32(word.encode())]).standard_normal(_DIM)


def _mean(vectors: list[Float[np.ndarray, "dim"]]) -> Float[np.ndarray, "dim"]:
    total = np.sum(vectors, axis=0) if vectors else np.zeros(_DIM)
    return np.asarray(total / max(1.0, float(np.linalg.norm(total))))


class WordRetriever:
    """Passages with their vectors; only those that share a direction with the question are found at all."""

    def __init__(self, passages: Sequence[Passage], vectors: Float[np.ndarray, "n dim"], seed: int = 0) -> None:
        self.passages, self.vectors, self.seed = list(passages), vectors, seed

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> "WordRetriever":
        """A retriever whose vectors are those of its passages."""
        return cls(passages, encode([f"{passage.title}. {passage.text}" for passage in passages]))

    def retrieve(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        """The passages with the largest inner products above 0."""
        scores = encode(questions, self.seed) @ self.vectors.T
        rows = np.argsort(-scores, axis=1, kind="stable")[:, :n_docs]
        best = np.take_along_axis(scores, rows, axis=1)
        mask = best > 0
        found = [[self.passages[row] for row in own[kept]] for own, kept in zip(rows, mask, strict=True)]
        return Retrieved(rows, best, mask, found)
