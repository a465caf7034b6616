"""How far the probabilities of labels can be believed: calibration error, Brier score, and a temperature that mends.

Sources: Guo et al. 2017 (arXiv 1706.04599) for temperature and expected calibration error, Brier 1950 for the score.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from rag.errors import DataError
from rag.evaluation.answers import same_label
from rag.records import LabelProb, Prediction, Question

BINS = 15
_LEAST, _MOST = 0.05, 20.0  # where all are right, ever lower temperatures would be better
_FLOOR = 1e-30  # of a probability that underflowed, so that its logarithm is a number

Probs = Float[np.ndarray, "claims labels"]


def at_temperature(probs: Probs, temperature: float) -> Probs:
    """p ** (1 / temperature), normalised; the most probable label stays the most probable.

    >>> at_temperature(np.array([[0.8, 0.2]]), 2.0).round(3).tolist()
    [[0.667, 0.333]]
    """
    scaled: np.ndarray = np.exp(log_softmax(np.log(np.maximum(probs, _FLOOR)) / temperature, axis=1))
    return scaled


def mean_nll(probs: Probs, gold: Int[np.ndarray, " claims"]) -> float:
    """-log p(gold label), averaged over claims (nats)."""
    return float(-np.log(np.maximum(probs[np.arange(len(gold)), gold], _FLOOR)).mean())


def fit_temperature(probs: Probs, gold: Int[np.ndarray, " claims"]) -> float:
    """The temperature, from 0.05 to 20, at which the gold labels are most likely. Above 1: the model was too sure.

    The likelihood has one peak in 1 / temperature, for log-softmax is concave in it. Raises DataError without a claim.

    >>> sure = np.array([[0.99, 0.01]] * 4)  # and right in three of four
    >>> t = fit_temperature(sure, np.array([0, 0, 0, 1]))
    >>> at_temperature(sure, t)[0].round(3).tolist()
    [0.75, 0.25]
    """
    if not len(gold):
        raise DataError("there is no claim to fit a temperature on; give the task a dev split or leave calibrate out")
    found = minimize_scalar(
        lambda log_t: mean_nll(at_temperature(probs, float(np.exp(log_t))), gold),
        bounds=(np.log(_LEAST), np.log(_MOST)),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(np.exp(found.x))


class Known(NamedTuple):
    """The claims whose gold label is among those that were scored: only of these is its probability known."""

    probs: Probs
    gold: Int[np.ndarray, " claims"]  # places of the gold labels
    question_ids: list[str]


def known_labels(pairs: Iterable[tuple[Question, Prediction]]) -> Known:
    """What calibration looks at. A model of two labels knows nothing of a third; that its answer is wrong is counted
    in label accuracy."""
    found = [(*pair, place) for pair in pairs if (place := _gold_place(*pair)) is not None]
    rows = [[prob for _, prob in made.label_probs] for _, made, _ in found]
    probs = np.array(rows, dtype=np.float64).reshape(len(found), -1 if found else 0)
    gold = np.array([place for _, _, place in found], dtype=np.int64)
    return Known(probs, gold, [question.question_id for question, _, _ in found])


def _gold_place(question: Question, made: Prediction) -> int | None:
    places = (place for place, (label, _) in enumerate(made.label_probs) if same_label(label, question.answers[0]))
    return next(places, None)


class Fitted(NamedTuple):
    """A temperature with the counts behind it."""

    temperature: float
    n: int
    left_out: int  # claims whose gold label is none of the scored ones

    @property
    def notes(self) -> list[str]:
        """What a reader has to know about the counts.

        >>> Fitted(1.5, n=8, left_out=2).notes
        ['the temperature is fitted on 8 of 10 claims: the gold label of 2 is none of the scored ones']
        """
        why = f"the gold label of {self.left_out} is none of the scored ones"
        total = self.n + self.left_out
        return [f"the temperature is fitted on {self.n} of {total} claims: {why}"] if self.left_out else []


def fit_on(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Fitted:
    """``fit_temperature`` on the answered claims of a split, joined by id; failed ones have no probabilities.

    Claims whose gold label was not scored are left out. Raises DataError where no claim is left.
    """
    made = {one.question_id: one for one in predictions if one.label_probs}
    pairs = [(one, made[one.question_id]) for one in questions if one.question_id in made]
    known = known_labels(pairs)
    n = len(known.question_ids)
    return Fitted(fit_temperature(known.probs, known.gold), n, len(pairs) - n)


def calibrated(label_probs: Sequence[LabelProb], temperature: float) -> list[LabelProb]:
    """The labels of one prediction with their probabilities at another temperature."""
    probs = at_temperature(np.array([[prob for _, prob in label_probs]]), temperature)[0].tolist()
    return [LabelProb(label, prob) for (label, _), prob in zip(label_probs, probs, strict=True)]


def brier_scores(probs: Probs, gold: Int[np.ndarray, " claims"]) -> Float[np.ndarray, " claims"]:
    """Half the squared distance of the probabilities from the truth, one a claim: 0 for sure and right, 1 for wrong.

    1/2 sum_l (p_l - [l = gold])^2. Brier's own score is twice as large.

    >>> brier_scores(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])).tolist()
    [1.0, 0.25]
    """
    truth = np.eye(probs.shape[1])[gold]
    scores: np.ndarray = 0.5 * ((probs - truth) ** 2).sum(axis=1)
    return scores


def confidence_gaps(
    probs: Probs, gold: Int[np.ndarray, " claims"], bins: int = BINS
) -> Float[np.ndarray, "claims bins"]:
    """Largest probability minus whether that label is right, in the column of the bin it falls in; 0 elsewhere.

    Sums of these over claims are all that ``ece_of_sums`` needs. Bins are of equal width and hold their upper end.
    """
    confidence = probs.max(axis=1)
    right = probs.argmax(axis=1) == gold
    columns = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.zeros((len(probs), bins))
    gaps[np.arange(len(probs)), columns] = confidence - right
    return gaps


def ece_of_sums(sums: Float[np.ndarray, "draws bins"], n: int) -> Float[np.ndarray, " draws"]:
    """Expected calibration error: |mean confidence - accuracy| of each bin, weighted by its claims.

    >>> gaps = confidence_gaps(np.array([[0.8, 0.2]] * 5), np.array([0, 0, 0, 0, 1]))
    >>> ece_of_sums(gaps.sum(axis=0, keepdims=True), 5).round(12).tolist()
    [0.0]
    """
    errors: np.ndarray = np.abs(sums).sum(axis=1) / n
    return errors
