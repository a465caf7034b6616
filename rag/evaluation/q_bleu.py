"""Q-BLEU-1: is a generated question answerable, and does it read like the reference.

Source: Nema and Khapra 2018, "Towards a Better Metric for Evaluating Question Generation Systems", and their script.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rag.errors import DataError
from rag.evaluation.ptb_tokens import ptb_tokens


class QBleuWeights(NamedTuple):
    """How much each part counts; what the first three leave of 1 is the weight of the function words."""

    named_entities: float = 0.41
    question_type: float = 0.20
    relevant_words: float = 0.36
    answerability: float = 0.66  # against plain BLEU-1


SQUAD_WEIGHTS = QBleuWeights()

_FUNCTION_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between both
    but by can did do does doing don down during each few for from further had has have having he her here hers
    herself him himself his i if in into is it its itself just me more most my myself no nor not now of off on
    once only or other our ours ourselves out over own s same she should so some such t than that the their theirs
    them themselves then there these they this those through to too under until up very was we were while will
    with you your yours yourself yourselves
    """.split()  # noqa: SIM905
)
_QUESTION_WORDS = frozenset(
    "what which why who whom whose where when how What Which Why Who Whom Whose Where When How".split()  # noqa: SIM905
)


def q_bleu_1(
    predictions: Sequence[str], references: Sequence[Sequence[str]], weights: QBleuWeights = SQUAD_WEIGHTS
) -> float:
    """Mean Q-BLEU-1 in 0..1, by default with the weights tuned on SQuAD; the best reference of each counts.

    d (w_re RE + w_ner NER + w_qt QT + (1 - sum w) SW) + (1 - d) BLEU-1. Each part is the harmonic mean of the
    sentence BLEU-1 in both directions over words of one kind: relevant words, capitalised words, the question's type,
    function words; 1 where both have none.
    Raises DataError if the lengths differ, there is no prediction, or one has no reference.

    >>> weights = QBleuWeights(named_entities=0.6, question_type=0.2, relevant_words=0.1, answerability=0.7)
    >>> round(q_bleu_1(["Is this a great question?"], [["Is this a good question?"]], weights), 3)
    0.905
    """
    scores = q_bleu_1_scores(predictions, references, weights)
    return math.fsum(scores) / len(scores)


def q_bleu_1_scores(
    predictions: Sequence[str], references: Sequence[Sequence[str]], weights: QBleuWeights = SQUAD_WEIGHTS
) -> list[float]:
    """The Q-BLEU-1 of each question."""
    if len(predictions) != len(references) or not predictions or not all(references):
        raise DataError(f"each of {len(predictions)} predictions needs a reference: got {sum(map(bool, references))}")
    parts = (_Parts.of(prediction) for prediction in predictions)
    return [
        max(_score(predicted, _Parts.of(reference), weights) for reference in golds)
        for predicted, golds in zip(parts, references, strict=True)
    ]


class _Parts(NamedTuple):
    """The tokens of a question by the kind of word."""

    relevant: list[str]
    entities: list[str]
    kind: list[str]
    function: list[str]
    everything: list[str]

    @classmethod
    def of(cls, question: str) -> "_Parts":
        words = question.split()
        kind = _question_type(words)
        after_first = words[1:] if words and words[0].lower() in _QUESTION_WORDS else words
        relevant, entities, kind_words, function, everything = (
            ptb_tokens(" ".join(group))
            for group in (
                [w for w in words if w not in kind and not w[0].isupper() and w not in _FUNCTION_WORDS],
                [w for w in after_first if w[0].isupper()],
                kind,
                [w.lower() for w in words if w.lower() in _FUNCTION_WORDS],
                words,
            )
        )
        return cls(relevant, entities, kind_words, function, everything)


def _question_type(words: list[str]) -> list[str]:
    """The question words, and after what or which the word that says what is asked for."""
    kind: list[str] = []
    for place, word in enumerate(words):
        if word in _QUESTION_WORDS:
            kind += words[place : place + 2] if word.lower() in ("what", "which") else [word]
    return kind


def _score(predicted: _Parts, gold: _Parts, weights: QBleuWeights) -> float:
    function_weight = 1 - weights.relevant_words - weights.named_entities - weights.question_type
    answerability = (
        weights.relevant_words * _both_ways(predicted.relevant, gold.relevant)
        + weights.named_entities * _both_ways(predicted.entities, gold.entities)
        + weights.question_type * _both_ways(predicted.kind, gold.kind)
        + function_weight * _both_ways(predicted.function, gold.function)
    )
    fluency = _sentence_bleu_1(predicted.everything, gold.everything)
    return weights.answerability * answerability + (1 - weights.answerability) * fluency


def _both_ways(predicted: list[str], gold: list[str]) -> float:
    if not predicted and not gold:
        return 1.0
    forward, backward = _sentence_bleu_1(predicted, gold), _sentence_bleu_1(gold, predicted)
    return 2 * forward * backward / (forward + backward) if forward + backward else 0.0


def _sentence_bleu_1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return 0.0
    precision = (Counter(predicted) & Counter(gold)).total() / len(predicted)
    return precision * min(1.0, math.exp(1 - len(gold) / len(predicted)))
