"""From questions and predictions to the metrics of a task, each with its n, its errors and a 95 % interval.

Joined by question id, never by position. A missing or failed prediction is an error that is counted and shown;
it is never scored as 0. An empty prediction is an answer, and wrong.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rag.errors import DataError
from rag.evaluation.answers import RegexMode, exact_match, f1, regex_match, same_label
from rag.evaluation.calibration import BINS, at_temperature, brier_scores, confidence_gaps, ece_of_sums, known_labels
from rag.evaluation.generation import bleu_1_counts, bleu_1_of_sums, rouge_l_scores, trigrams
from rag.evaluation.q_bleu import q_bleu_1_scores
from rag.evaluation.retrieval import answer_in_passage, first_rank_with_answer
from rag.evaluation.scorer import Scorer, Scores, Values, refuse_repeats
from rag.evaluation.statistics import Interval, bootstrap_interval, jackknife_interval
from rag.records import Prediction, Question, TaskName

NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
_PATTERN_RULES: dict[RegexMode, tuple[str, str]] = {
    "match": ("exact_match", "norm:nfd|match:regex-match"),
    "search": ("exact_match_search", "norm:nfd|match:regex-search"),
    "fullmatch": ("exact_match_fullmatch", "norm:squad-1|match:regex-fullmatch"),
}


class _Pair(NamedTuple):
    question: Question
    prediction: Prediction


def _values(name: str, values: Sequence[float], pairs: Sequence[_Pair], signature: str) -> Values:
    return Values(name, values, [pair.question.question_id for pair in pairs], signature)


def score_task(
    task: TaskName,
    questions: Sequence[Question],
    predictions: Sequence[Prediction],
    seed: int,
    patterns: bool = False,
    temperature: float | None = None,
) -> Scores:
    """The metrics of a task over all of its questions.

    open-qa: exact_match, f1, answer_in_passage, answer_in_cited_passage (the one with the largest posterior),
    correct_without_passage (share right of the questions whose passages hold no answer); with ``patterns`` the answers
    are regular expressions, exact_match is DrQA's match at the start, exact_match_search and exact_match_fullmatch are
    the other two public rules, and there is no f1. fever: label_accuracy over three labels, label_accuracy_2way over
    the claims whose gold label is not NOT ENOUGH INFO, and where the predictions have probabilities of all labels
    calibration_error and brier over the claims whose gold label is one of those, with a ``temperature``
    calibration_error_calibrated and brier_calibrated too.
    msmarco: bleu_1, rouge_l, distinct_trigram_ratio, without the unanswerable questions.
    jeopardy: bleu_1, q_bleu_1, distinct_trigram_ratio. Every metric has n + n_errors = n_expected.
    Raises DataError for a duplicate or unknown id, for no question, and for a question without the gold it needs.
    """
    scoreable = [q for q in questions if q.answers] if task == "msmarco" else list(questions)
    _check_gold(task, scoreable)
    pairs, notes = _join(questions, predictions, {q.question_id for q in scoreable})
    scorer = Scorer(len(scoreable) - len(pairs), seed)
    if len(scoreable) < len(questions):
        notes.append(f"{len(questions) - len(scoreable)} of {len(questions)} questions are unanswerable: not scored")
    options: dict[TaskName, dict[str, Any]] = {"open-qa": {"patterns": patterns}, "fever": {"temperature": temperature}}
    _TASKS[task](scorer, pairs, **options.get(task, {}))
    return Scores(scorer.metrics, scorer.per_question, notes + scorer.notes)


def _join(
    questions: Sequence[Question], predictions: Sequence[Prediction], scoreable: set[str]
) -> tuple[list[_Pair], list[str]]:
    """The scoreable questions with their usable predictions in the questions' order, and notes on the others."""
    by_id = {prediction.question_id: prediction for prediction in predictions}
    known = {question.question_id for question in questions}
    refuse_repeats("question", [question.question_id for question in questions])
    refuse_repeats("prediction", [prediction.question_id for prediction in predictions])
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


def _check_gold(task: TaskName, questions: Sequence[Question]) -> None:
    for question in questions:
        if question.task != task:
            raise DataError(f"question {question.question_id!r} belongs to {question.task}, not to {task}")
        if not question.answers or (task == "fever" and len(question.answers) != 1):
            raise DataError(
                f"question {question.question_id!r} has {len(question.answers)} gold answers; "
                f"{task} needs {'exactly one label' if task == 'fever' else 'at least one'}"
            )


def _score_open_qa(scorer: Scorer, pairs: list[_Pair], patterns: bool) -> None:
    right, rule = _score_patterns(scorer, pairs) if patterns else _score_strings(scorer, pairs)
    n_docs = max((len(pair.prediction.retrieved) for pair in pairs), default=0)
    if not n_docs:
        scorer.notes.append("no passage was retrieved: metrics of the passages are left out")
        return
    held = [_passages_hold_answer(pair, patterns) for pair in pairs]
    match = f"match:{'regex-search' if patterns else 'dpr-string'}"
    found = f"{match}|agg:any-passage-any-answer|n_docs:{n_docs}"
    scorer.proportion(_values("answer_in_passage", [float(hit) for hit in held], pairs, found))
    cited = [float(_cited_holds_answer(pair, patterns)) for pair in pairs]
    scorer.proportion(_values("answer_in_cited_passage", cited, pairs, f"{match}|of:largest-posterior|n_docs:{n_docs}"))
    without = [(pair, one) for pair, one, hit in zip(pairs, right, held, strict=True) if not hit]
    rule = f"{rule}|of:no-passage-holds-an-answer|{match}|n_docs:{n_docs}"
    values = [one for _, one in without]
    scorer.proportion(_values("correct_without_passage", values, [pair for pair, _ in without], rule))


def _score_strings(scorer: Scorer, pairs: list[_Pair]) -> tuple[list[float], str]:
    """Which predictions are right, and by which rule."""
    right = [float(exact_match(pair.prediction.text, pair.question.answers)) for pair in pairs]
    overlap = [f1(pair.prediction.text, pair.question.answers) for pair in pairs]
    scorer.proportion(_values("exact_match", right, pairs, "norm:squad-1|agg:max-over-answers"))
    scorer.mean(_values("f1", overlap, pairs, "norm:squad-1|agg:max-over-answers"))
    return right, "norm:squad-1"


def _score_patterns(scorer: Scorer, pairs: list[_Pair]) -> tuple[list[float], str]:
    """The same for answers that are patterns; the two rules that others use are metrics of their own."""
    right = {mode: _matched(pairs, mode) for mode in _PATTERN_RULES}
    for mode, (name, rule) in _PATTERN_RULES.items():
        scorer.proportion(_values(name, right[mode], pairs, f"{rule}|agg:max-over-answers"))
    return right["match"], _PATTERN_RULES["match"][1]


def _matched(pairs: list[_Pair], mode: RegexMode) -> list[float]:
    return [float(regex_match(pair.prediction.text, pair.question.answers, mode)) for pair in pairs]


def _passages_hold_answer(pair: _Pair, patterns: bool) -> bool:
    texts = (passage.text for passage in pair.prediction.retrieved)
    return first_rank_with_answer(texts, pair.question.answers, patterns) is not None


def _cited_holds_answer(pair: _Pair, patterns: bool) -> bool:
    made = pair.prediction
    cited = (passage.text for passage in made.retrieved if passage.passage_id == made.cited_passage_id)
    return any(answer_in_passage(text, pair.question.answers, patterns) for text in cited)


def _score_fever(scorer: Scorer, pairs: list[_Pair], temperature: float | None) -> None:
    right = [float(same_label(pair.prediction.text, pair.question.answers[0])) for pair in pairs]
    scorer.proportion(_values("label_accuracy", right, pairs, "labels:3|match:upper"))
    two_way = [
        (pair, one)
        for pair, one in zip(pairs, right, strict=True)
        if not same_label(pair.question.answers[0], NOT_ENOUGH_INFO)
    ]
    rule = "labels:2|gold-nei:removed|predicted-nei:wrong|match:upper"
    values = [one for _, one in two_way]
    scorer.proportion(_values("label_accuracy_2way", values, [pair for pair, _ in two_way], rule))
    if pairs and all(pair.prediction.label_probs for pair in pairs):
        _score_calibration(scorer, pairs, temperature)


def _score_calibration(scorer: Scorer, pairs: list[_Pair], temperature: float | None) -> None:
    """As the model gives its probabilities and, where a temperature was fitted, at that."""
    probs, gold, question_ids = known_labels(pairs)
    n = len(question_ids)
    if n < len(pairs):
        scorer.notes.append(
            f"calibration is scored on {n} of {len(pairs)} claims: the gold label of the others is none of the scored"
        )
    if not n:
        return
    for ending, at in (("", 1.0), ("_calibrated", temperature)):
        if at is None:
            continue
        shown = at_temperature(probs, at) if at != 1 else probs
        rule = f"labels:{probs.shape[1]}|temperature:{at:.6g}"
        gaps = confidence_gaps(shown, gold)
        value = float(ece_of_sums(gaps.sum(axis=0, keepdims=True), n)[0])
        interval = bootstrap_interval(gaps, scorer.seed, ece_of_sums)
        name, bins = f"calibration_error{ending}", f"bins:{BINS}-equal-width|conf:largest"
        scorer.corpus(name, value, interval, n, f"{name}|{rule}|{bins}|ci:bootstrap-1000|v1")
        scorer.mean(Values(f"brier{ending}", brier_scores(shown, gold).tolist(), question_ids, f"{rule}|halved"))


def _score_msmarco(scorer: Scorer, pairs: list[_Pair]) -> None:
    _score_bleu(scorer, pairs)
    if pairs:
        scores = rouge_l_scores(*_texts(pairs))
        scorer.mean(_values("rouge_l", scores, pairs, "tok:english-1|beta:1.2|agg:max-precision-max-recall"))
    _score_variety(scorer, pairs)


def _score_jeopardy(scorer: Scorer, pairs: list[_Pair]) -> None:
    _score_bleu(scorer, pairs)
    if pairs:
        scores = q_bleu_1_scores(*_texts(pairs))
        rule = "tok:ptb-1|weights:ner.41-qt.20-re.36-d.66|agg:max-over-references"
        scorer.mean(_values("q_bleu_1", scores, pairs, rule))
    _score_variety(scorer, pairs)


def _texts(pairs: list[_Pair]) -> tuple[list[str], list[tuple[str, ...]]]:
    return [pair.prediction.text for pair in pairs], [pair.question.answers for pair in pairs]


def _score_bleu(scorer: Scorer, pairs: list[_Pair]) -> None:
    if not pairs:
        scorer.notes.append("texts are not scored: there is no prediction to score")
        return
    counts = bleu_1_counts(*_texts(pairs))
    value = float(bleu_1_of_sums(counts.sum(axis=0, keepdims=True), len(pairs))[0])
    interval = bootstrap_interval(counts, scorer.seed, bleu_1_of_sums)
    scorer.corpus("bleu_1", value, interval, len(pairs), "bleu_1|tok:english-1|len:closest|ci:bootstrap-1000|v1")


def _score_variety(scorer: Scorer, pairs: list[_Pair]) -> None:
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


_TASKS: dict[TaskName, Callable[..., None]] = {
    "open-qa": _score_open_qa,
    "fever": _score_fever,
    "msmarco": _score_msmarco,
    "jeopardy": _score_jeopardy,
}
