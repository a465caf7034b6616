"""From questions and predictions to the metrics of a task, each with its n, its errors and a 95 % interval.

Joined by question id, never by position. A missing or failed prediction is an error that is counted and shown;
it is never scored as 0. An empty prediction is an answer, and wrong.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rag.errors import DataError
from rag.evaluation.answers import exact_match, f1, same_label
from rag.evaluation.generation import bleu_1_counts, bleu_1_of_sums, rouge_l_scores, trigrams
from rag.evaluation.q_bleu import q_bleu_1_scores
from rag.evaluation.retrieval import first_rank_with_answer
from rag.evaluation.statistics import Interval, bootstrap_interval, jackknife_interval, wilson_interval
from rag.records import Metric, Prediction, Question, TaskName

NOT_ENOUGH_INFO = "NOT ENOUGH INFO"


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


class _Pair(NamedTuple):
    question: Question
    prediction: Prediction


class _Values(NamedTuple):
    """A metric that is a mean over questions, before its interval."""

    name: str
    values: list[float]
    pairs: list[_Pair]
    signature: str


class _Scorer:
    """Collects the metrics of one task; knows how many questions ended as errors."""

    def __init__(self, n_errors: int, seed: int) -> None:
        self._n_errors = n_errors
        self.seed = seed
        self.metrics: list[Metric] = []
        self.per_question: list[QuestionScore] = []
        self.notes: list[str] = []

    def proportion(self, scored: _Values) -> None:
        """A share of questions, with Wilson's interval."""
        self._mean(scored, "wilson", lambda v: wilson_interval(round(sum(v)), len(v)))

    def mean(self, scored: _Values) -> None:
        """A mean of values between 0 and 1, with a bootstrap interval."""
        self._mean(scored, "bootstrap-1000", lambda v: bootstrap_interval(v, self.seed))

    def corpus(self, name: str, value: float, interval: Interval, n: int, signature: str) -> None:
        """A score of the whole corpus."""
        expected = n + self._n_errors
        self.metrics.append(
            Metric(name, value, interval.low, interval.high, n, expected, self._n_errors, "fraction", signature)
        )

    def _mean(self, scored: _Values, kind: str, interval: Callable[[list[float]], Interval]) -> None:
        if not scored.values:
            self.notes.append(f"{scored.name} is left out: there is no question to score it on")
            return
        value = sum(scored.values) / len(scored.values)
        signature = f"{scored.name}|{scored.signature}|ci:{kind}|v1"
        self.corpus(scored.name, value, interval(scored.values), len(scored.values), signature)
        self.per_question += [
            QuestionScore(pair.question.question_id, scored.name, one)
            for pair, one in zip(scored.pairs, scored.values, strict=True)
        ]


def score_task(task: TaskName, questions: Sequence[Question], predictions: Sequence[Prediction], seed: int) -> Scores:
    """The metrics of a task over all of its questions.

    open-qa: exact_match, f1, answer_in_passage, correct_without_passage (share right of the questions whose passages
    hold no answer). fever: label_accuracy over three labels, label_accuracy_2way over the claims whose gold label is
    not NOT ENOUGH INFO. msmarco: bleu_1, rouge_l, distinct_trigram_ratio, without the unanswerable questions.
    jeopardy: bleu_1, q_bleu_1, distinct_trigram_ratio. Every metric has n + n_errors = n_expected.
    Raises DataError for a duplicate or unknown id, for no question, and for a question without the gold it needs.
    """
    scoreable = [q for q in questions if q.answers] if task == "msmarco" else list(questions)
    _check_gold(task, scoreable)
    pairs, notes = _join(questions, predictions, {q.question_id for q in scoreable})
    scorer = _Scorer(len(scoreable) - len(pairs), seed)
    if len(scoreable) < len(questions):
        notes.append(f"{len(questions) - len(scoreable)} of {len(questions)} questions are unanswerable: not scored")
    _TASKS[task](scorer, pairs)
    return Scores(scorer.metrics, scorer.per_question, notes + scorer.notes)


def _join(
    questions: Sequence[Question], predictions: Sequence[Prediction], scoreable: set[str]
) -> tuple[list[_Pair], list[str]]:
    """The scoreable questions with their usable predictions in the questions' order, and notes on the others."""
    by_id = {prediction.question_id: prediction for prediction in predictions}
    known = {question.question_id for question in questions}
    _refuse_repeats("question", [question.question_id for question in questions])
    _refuse_repeats("prediction", [prediction.question_id for prediction in predictions])
    unknown = [question_id for question_id in by_id if question_id not in known]
    if unknown:
        raise DataError(f"{len(unknown)} predictions answer no question of this task, the first is {unknown[0]!r}")
    wanted = [question for question in questions if question.question_id in scoreable]
    found = [_Pair(question, by_id[question.question_id]) for question in wanted if question.question_id in by_id]
    usable = [pair for pair in found if pair.prediction.error is None]
    counts = {
        "have no prediction": len(wanted) - len(found),
        "failed": len(found) - len(usable),
        "got an empty prediction, which is scored": sum(not pair.prediction.text.strip() for pair in usable),
    }
    return usable, [f"{count} of {len(wanted)} questions {what}" for what, count in counts.items() if count]


def _refuse_repeats(what: str, ids: list[str]) -> None:
    if not ids and what == "question":
        raise DataError("there is no question to score; check the task file and its rejects")
    repeated = [question_id for question_id, count in Counter(ids).items() if count > 1]
    if repeated:
        raise DataError(f"{len(repeated)} ids have more than one {what}, the first is {repeated[0]!r}")


def _check_gold(task: TaskName, questions: Sequence[Question]) -> None:
    for question in questions:
        if question.task != task:
            raise DataError(f"question {question.question_id!r} belongs to {question.task}, not to {task}")
        if not question.answers or (task == "fever" and len(question.answers) != 1):
            raise DataError(
                f"question {question.question_id!r} has {len(question.answers)} gold answers; "
                f"{task} needs {'exactly one label' if task == 'fever' else 'at least one'}"
            )


def _score_open_qa(scorer: _Scorer, pairs: list[_Pair]) -> None:
    right = [float(exact_match(pair.prediction.text, pair.question.answers)) for pair in pairs]
    overlap = [f1(pair.prediction.text, pair.question.answers) for pair in pairs]
    scorer.proportion(_Values("exact_match", right, pairs, "norm:squad-1|agg:max-over-answers"))
    scorer.mean(_Values("f1", overlap, pairs, "norm:squad-1|agg:max-over-answers"))
    n_docs = max((len(pair.prediction.retrieved) for pair in pairs), default=0)
    if not n_docs:
        scorer.notes.append("no passage was retrieved: metrics of the passages are left out")
        return
    held = [_passages_hold_answer(pair) for pair in pairs]
    rule = f"match:dpr-string|agg:any-passage-any-answer|n_docs:{n_docs}"
    scorer.proportion(_Values("answer_in_passage", [float(hit) for hit in held], pairs, rule))
    without = [(pair, one) for pair, one, hit in zip(pairs, right, held, strict=True) if not hit]
    rule = f"norm:squad-1|of:no-passage-holds-an-answer|match:dpr-string|n_docs:{n_docs}"
    values = [one for _, one in without]
    scorer.proportion(_Values("correct_without_passage", values, [pair for pair, _ in without], rule))


def _passages_hold_answer(pair: _Pair) -> bool:
    texts = (passage.text for passage in pair.prediction.retrieved)
    return first_rank_with_answer(texts, pair.question.answers) is not None


def _score_fever(scorer: _Scorer, pairs: list[_Pair]) -> None:
    right = [float(same_label(pair.prediction.text, pair.question.answers[0])) for pair in pairs]
    scorer.proportion(_Values("label_accuracy", right, pairs, "labels:3|match:upper"))
    two_way = [
        (pair, one)
        for pair, one in zip(pairs, right, strict=True)
        if not same_label(pair.question.answers[0], NOT_ENOUGH_INFO)
    ]
    rule = "labels:2|gold-nei:removed|predicted-nei:wrong|match:upper"
    values = [one for _, one in two_way]
    scorer.proportion(_Values("label_accuracy_2way", values, [pair for pair, _ in two_way], rule))


def _score_msmarco(scorer: _Scorer, pairs: list[_Pair]) -> None:
    _score_bleu(scorer, pairs)
    if pairs:
        scores = rouge_l_scores(*_texts(pairs))
        scorer.mean(_Values("rouge_l", scores, pairs, "tok:english-1|beta:1.2|agg:max-precision-max-recall"))
    _score_variety(scorer, pairs)


def _score_jeopardy(scorer: _Scorer, pairs: list[_Pair]) -> None:
    _score_bleu(scorer, pairs)
    if pairs:
        scores = q_bleu_1_scores(*_texts(pairs))
        rule = "tok:ptb-1|weights:ner.41-qt.20-re.36-d.66|agg:max-over-references"
        scorer.mean(_Values("q_bleu_1", scores, pairs, rule))
    _score_variety(scorer, pairs)


def _texts(pairs: list[_Pair]) -> tuple[list[str], list[tuple[str, ...]]]:
    return [pair.prediction.text for pair in pairs], [pair.question.answers for pair in pairs]


def _score_bleu(scorer: _Scorer, pairs: list[_Pair]) -> None:
    if not pairs:
        scorer.notes.append("texts are not scored: there is no prediction to score")
        return
    counts = bleu_1_counts(*_texts(pairs))
    value = float(bleu_1_of_sums(counts.sum(axis=0, keepdims=True), len(pairs))[0])
    interval = bootstrap_interval(counts, scorer.seed, bleu_1_of_sums)
    scorer.corpus("bleu_1", value, interval, len(pairs), "bleu_1|tok:english-1|len:closest|ci:bootstrap-1000|v1")


def _score_variety(scorer: _Scorer, pairs: list[_Pair]) -> None:
    """Distinct tri-grams, with a jackknife: a bootstrap repeats questions, and a repeated text is never distinct."""
    grams = [trigrams(pair.prediction.text) for pair in pairs]
    total = sum(map(len, grams))
    if not total:
        scorer.notes.append("distinct_trigram_ratio is left out: no prediction has three words")
        return
    holders = Counter(gram for one in grams for gram in set(one))
    lost = np.array([sum(holders[gram] == 1 for gram in set(one)) for one in grams])
    rest = total - np.array([len(one) for one in grams])
    interval = Interval(0.0, 1.0)  # where one text has all the tri-grams, nothing is known of the others
    if (rest > 0).all():
        interval = jackknife_interval(len(holders) / total, (len(holders) - lost) / rest)
    signature = "distinct_trigram_ratio|tok:whitespace|pool:corpus|ci:jackknife|v1"
    scorer.corpus("distinct_trigram_ratio", len(holders) / total, interval, len(pairs), signature)


_TASKS: dict[TaskName, Callable[[_Scorer, list[_Pair]], None]] = {
    "open-qa": _score_open_qa,
    "fever": _score_fever,
    "msmarco": _score_msmarco,
    "jeopardy": _score_jeopardy,
}
