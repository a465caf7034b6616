"""The names of metrics for people, and the order in which tables show them."""

_LABELS = {
    "exact_match": "exact match",
    "regex_match": "regex match",
    "f1": "F1",
    "bleu_1": "BLEU-1",
    "rouge_l": "ROUGE-L",
    "q_bleu_1": "Q-BLEU-1",
    "label_accuracy": "label accuracy",
    "label_accuracy_2way": "label accuracy, 2-way",
    "calibration_error": "calibration error",
    "calibration_error_calibrated": "calibration error, calibrated",
    "brier": "Brier score",
    "brier_calibrated": "Brier score, calibrated",
    "answer_in_passage": "answer in a passage",
    "answer_in_cited_passage": "answer in the cited passage",
    "correct_without_passage": "right where no passage holds the answer",
    "distinct_trigram_ratio": "distinct tri-grams",
}
METRIC_ORDER = {name: place for place, name in enumerate(_LABELS)}


def metric_label(name: str) -> str:
    """A metric's name for people.

    >>> metric_label("answer_in_passage_at_10"), metric_label("bleu_1")
    ('answer in passage at 10', 'BLEU-1')
    """
    return _LABELS.get(name, name.replace("_", " "))
