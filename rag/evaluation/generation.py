"""How close is a generated text to its references, and how varied: BLEU-1, ROUGE-L, distinct tri-grams.

Q-BLEU-1, for generated questions, is ``rag.evaluation.q_bleu`` and is exported here too.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rag.errors import DataError
from rag.evaluation.english_tokens import english_tokens
from rag.evaluation.q_bleu import q_bleu_1

__all__ = [
    "bleu_1",
    "bleu_1_counts",
    "bleu_1_of_sums",
    "distinct_trigram_ratio",
    "q_bleu_1",
    "rouge_l",
    "rouge_l_scores",
    "trigrams",
]

_ROUGE_BETA = 1.2


def bleu_1(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU-1 in 0..1 as the MS MARCO script computes it.

    Clipped unigram matches / predicted tokens, times exp(1 - r/c) where the predictions (c tokens) are shorter than
    the references (r tokens, for each question the reference whose length is closest).
    Raises DataError if the lengths differ, there is no prediction, or one has no reference.

    >>> round(bleu_1(["The cat sat."], [["The cat sat on the mat."]]), 4)
    0.4724
    """
    counts = bleu_1_counts(predictions, references)
    return float(bleu_1_of_sums(counts.sum(axis=0, keepdims=True), len(counts))[0])


def bleu_1_counts(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Float[np.ndarray, "questions 3"]:
    """For each question the clipped matches, the predicted tokens and the closest reference's tokens."""
    _require_pairs(predictions, references)
    rows = [_bleu_1_row(prediction, golds) for prediction, golds in zip(predictions, references, strict=True)]
    return np.array(rows, dtype=np.float64)


def _bleu_1_row(prediction: str, references: Sequence[str]) -> tuple[int, int, int]:
    predicted = [token for token in english_tokens(prediction) if token]
    golds = [[token for token in english_tokens(reference) if token] for reference in references]
    allowed: Counter[str] = Counter()
    for gold in golds:
        allowed |= Counter(gold)
    matches = (Counter(predicted) & allowed).total()
    closest = min((abs(len(gold) - len(predicted)), len(gold)) for gold in golds)[1]
    return matches, len(predicted), closest


def bleu_1_of_sums(sums: Float[np.ndarray, "draws 3"], _n: int = 0) -> Float[np.ndarray, "draws"]:
    """BLEU-1 of each row of summed counts; the two tiny numbers are the official script's guard against 0 / 0."""
    matches, predicted, expected = sums[:, 0], sums[:, 1], sums[:, 2]
    ratio = (predicted + 1e-15) / (expected + 1e-9)
    # Without any prediction the ratio is about 0 and the penalty underflows to the 0 it should be.
    with np.errstate(over="ignore", under="ignore"):
        penalty = np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)
    return np.asarray((matches + 1e-15) / (predicted + 1e-9) * penalty)


def rouge_l(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean ROUGE-L in 0..1 as the MS MARCO script computes it; raises DataError as ``bleu_1`` does.

    For each question (1 + b^2) P R / (R + b^2 P) with b = 1.2, where P and R are the longest common subsequence
    relative to the prediction and to the reference, each the largest over the references on its own.

    >>> round(rouge_l(["the cat sat"], [["the dog sat", "a cat"]]), 4)
    0.6667
    """
    return math.fsum(rouge_l_scores(predictions, references)) / len(predictions)


def rouge_l_scores(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """The ROUGE-L of each question."""
    _require_pairs(predictions, references)
    return [_rouge_l_row(prediction, golds) for prediction, golds in zip(predictions, references, strict=True)]


def _rouge_l_row(prediction: str, references: Sequence[str]) -> float:
    predicted = english_tokens(prediction)
    precision = recall = 0.0
    for gold in map(english_tokens, references):
        common = longest_common_subsequence(predicted, gold)
        precision = max(precision, common / len(predicted))
        recall = max(recall, common / len(gold))
    if not precision or not recall:
        return 0.0
    beta = _ROUGE_BETA**2
    return (1 + beta) * precision * recall / (recall + beta * precision)


def longest_common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, by bits: one integer holds a whole row of the usual table.

    Source: Hyyrö 2004, "Bit-parallel LCS-length computation revisited".

    >>> longest_common_subsequence("abcde", "xbyd")
    2
    """
    places: dict[str, int] = {}
    for place, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(a)) - 1
    row = full
    for token in b:
        matches = row & places.get(token, 0)
        row = (row + matches | row - matches) & full
    return len(a) - row.bit_count()


def distinct_trigram_ratio(texts: Sequence[str]) -> float:
    """Different tri-grams / all tri-grams over the whole corpus, of white-space tokens as they are written.

    The paper (section 4.5) states neither tokens nor pooling, so compare only numbers of this definition.
    Raises DataError where no text has three words.

    >>> distinct_trigram_ratio(["this city is the capital of france", "this city is the capital of peru"])
    0.6
    """
    found = [gram for text in texts for gram in trigrams(text)]
    if not found:
        raise DataError(f"none of {len(texts)} texts has three words; the share of distinct tri-grams is undefined")
    return len(set(found)) / len(found)


def trigrams(text: str) -> list[tuple[str, ...]]:
    """Every three consecutive words of the text."""
    words = text.split()
    return list(zip(words, words[1:], words[2:], strict=False))


def _require_pairs(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(predictions) != len(references) or not predictions:
        raise DataError(f"each prediction needs its references: got {len(predictions)} and {len(references)}")
    empty = next((row for row, golds in enumerate(references) if not golds), None)
    if empty is not None:
        raise DataError(f"prediction {empty} has no reference; leave out unanswerable questions and count them")
