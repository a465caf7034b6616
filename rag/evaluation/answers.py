"""Is this answer right: exact match, regular expressions, token F1 and label accuracy."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rag.errors import DataError
from rag.text import compile_pattern, decompose

RegexMode = Literal["match", "search", "fullmatch"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, the words a, an and the removed, white space collapsed.

    Source: the SQuAD evaluation script; DPR and KILT use the same.

    >>> normalize_answer("The Beatles' \\"White  Album\\"")
    'beatles white album'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str]) -> bool:
    """Whether the prediction equals any of the answers after normalisation; False where there is no answer.

    >>> exact_match("robert edward turner iii", ["Ted Turner", "Robert Edward Turner III"])
    True
    """
    normalized = normalize_answer(prediction)
    return any(normalize_answer(answer) == normalized for answer in answers)


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Largest F1 over the answers between bags of normalised words; 0 where nothing is shared.

    With c shared words (counted as often as both have them): P = c / predicted, R = c / gold, F1 = 2PR / (P + R).
    Where both are empty after normalisation ("The" and "a") the official scripts disagree; here they are equal, 1.

    >>> f1("suicide", ["it was suicide"])
    0.5
    """
    predicted = normalize_answer(prediction).split()
    return max((_bag_f1(predicted, normalize_answer(answer).split()) for answer in answers), default=0.0)


def _bag_f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2 * shared / (len(predicted) + len(gold))


def regex_match(prediction: str, patterns: Sequence[str], mode: RegexMode = "match") -> bool:
    """Whether any pattern matches the prediction, both in NFD, ignoring case, ``^`` and ``$`` at each line.

    Three public rules for CuratedTREC give three numbers: "match" (DrQA and DPR: at the start of the raw prediction),
    "search" (anywhere in it) and "fullmatch" (the whole of the normalised prediction).
    Raises DataError for a pattern that is not a regular expression.

    >>> regex_match("Long Island, N.Y.", ["Long\\\\s?Island"]), regex_match("on Long Island", ["Long Island"])
    (True, False)
    """
    text = normalize_answer(prediction) if mode == "fullmatch" else decompose(prediction)
    return any(getattr(compile_pattern(pattern), mode)(text) is not None for pattern in patterns)


def label_accuracy(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """Share of predicted labels equal to the gold label, ignoring case.

    Source: the label accuracy of the official FEVER scorer. Raises DataError if the two lengths differ or are 0.

    >>> label_accuracy(["supports", "REFUTES"], ["SUPPORTS", "NOT ENOUGH INFO"])
    0.5
    """
    if len(predictions) != len(labels) or not labels:
        raise DataError(f"label accuracy needs one label a prediction, got {len(predictions)} and {len(labels)}")
    right = sum(same_label(predicted, label) for predicted, label in zip(predictions, labels, strict=True))
    return right / len(labels)


def same_label(predicted: str, label: str) -> bool:
    """Whether two labels are the same, ignoring case."""
    return predicted.upper() == label.upper()


def unspellable_answers(answers: Iterable[str], can_spell: Callable[[str], bool]) -> list[str]:
    """The answers that a generator cannot write with its tokens, each once, in their order.

    >>> unspellable_answers(["Lima", "João", "João"], str.isascii)
    ['João']
    """
    return [answer for answer in dict.fromkeys(answers) if not can_spell(answer)]
