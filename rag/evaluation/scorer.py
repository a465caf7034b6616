"""What scoring of predictions and of retrieval share: metrics with counts and intervals, and the values behind."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rag.errors import DataError
from rag.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from rag.records import Metric


class QuestionScore(NamedTuple):
    """One question's value of a metric that is averaged over questions; what paired tests compare."""

    question_id: str
    metric: str
    value: float


class Scores(NamedTuple):
    """The metrics of one task, the values behind them, and what a reader has to know about the counts."""

    metrics: list[Metric]
    per_question: list[QuestionScore]
    notes: list[str]


class Values(NamedTuple):
    """A metric that is a mean over questions, before its interval."""

    name: str
    values: Sequence[float]
    question_ids: Sequence[str]
    signature: str


class Scorer:
    """Collects the metrics of one task; knows how many questions ended as errors."""

    def __init__(self, n_errors: int, seed: int) -> None:
        self._n_errors = n_errors
        self.seed = seed
        self.metrics: list[Metric] = []
        self.per_question: list[QuestionScore] = []
        self.notes: list[str] = []

    def proportion(self, scored: Values) -> None:
        """A share of questions, with Wilson's interval."""
        self._mean(scored, "wilson", lambda v: wilson_interval(round(sum(v)), len(v)))

    def mean(self, scored: Values) -> None:
        """A mean of values between 0 and 1, with a bootstrap interval."""
        self._mean(scored, "bootstrap-1000", lambda v: bootstrap_interval(v, self.seed))

    def corpus(self, name: str, value: float, interval: Interval, n: int, signature: str) -> None:
        """A score of the whole corpus."""
        expected = n + self._n_errors
        self.metrics.append(
            Metric(name, value, interval.low, interval.high, n, expected, self._n_errors, "fraction", signature)
        )

    def _mean(self, scored: Values, kind: str, interval: Callable[[Sequence[float]], Interval]) -> None:
        if not scored.values:
            self.notes.append(f"{scored.name} is left out: there is no question to score it on")
            return
        value = sum(scored.values) / len(scored.values)
        signature = f"{scored.name}|{scored.signature}|ci:{kind}|v1"
        self.corpus(scored.name, value, interval(scored.values), len(scored.values), signature)
        self.per_question += [
            QuestionScore(question_id, scored.name, one)
            for question_id, one in zip(scored.question_ids, scored.values, strict=True)
        ]


def refuse_repeats(what: str, ids: Sequence[str]) -> None:
    """Raise DataError where an id stands twice, or where there is no question at all."""
    if not ids and what == "question":
        raise DataError("there is no question to score; check the task file and its rejects")
    repeated = [question_id for question_id, count in Counter(ids).items() if count > 1]
    if repeated:
        raise DataError(f"{len(repeated)} ids have more than one {what}, the first is {repeated[0]!r}")
