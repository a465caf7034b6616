"""BLEU-1, ROUGE-L, Q-BLEU-1, tri-grams and the two tokenizers under them, against numbers worked by hand."""

import math
import random

import pytest

from rag.errors import DataError
from rag.evaluation.english_tokens import english_tokens
from rag.evaluation.generation import (
    bleu_1,
    distinct_trigram_ratio,
    longest_common_subsequence,
    q_bleu_1,
    rouge_l,
    rouge_l_scores,
)
from rag.evaluation.ptb_tokens import ptb_tokens
from rag.evaluation.q_bleu import QBleuWeights


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't stop.", ["do", "n't", "stop", "."]),
        ("The U.S. (and Mr. Smith's dog)!", ["the", "u.s.", "(", "and", "mr.", "smith", "'s", "dog", ")", "!"]),
        ("10km at 9am, 21%", ["10", "km", "at", "9", "am", ",", "21", "%"]),
        ("well-known and/or new", ["well", "-", "known", "and/or", "new"]),
        ("one.Two three,four", ["one", ".", "two", "three", ",", "four"]),
        ("see www.example.org/page now", ["see", "www.example.org/page", "now"]),
        ("a  b\nc", ["a", "", "b", "", "c"]),
        ("", [""]),
        ("wait... what", ["wait", "...", "what"]),
        ("cannot", ["can", "not"]),
        ("they’re", ["they", "’re"]),
        ("$1,234.50", ["$", "1,234.50"]),
    ],
)
def test_english_tokens(text: str, tokens: list[str]) -> None:
    assert english_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Isn't it Dr. Who's?", ["is", "n't", "it", "dr.", "who", "'s"]),
        ("The U.S. has co-teachers & V&A.", ["the", "u.s.", "has", "co-teachers", "&", "v&a"]),
        ('In 1,000 (or 5.5) ways: "yes"', ["in", "1,000", "-lrb-", "or", "5.5", "-rrb-", "ways", "yes"]),
        ("He cannot go -- ever...", ["he", "can", "not", "go", "ever"]),
        ("", []),
        ("?!", ["?!"]),
        ("J. Smith's 10km", ["j.", "smith", "'s", "10km"]),
    ],
)
def test_ptb_tokens(text: str, tokens: list[str]) -> None:
    assert ptb_tokens(text) == tokens


def test_bleu_1_clips_repeated_words_and_takes_the_closest_length() -> None:
    # 2 of 3 tokens are allowed, the closest reference has 3 tokens: no penalty.
    assert bleu_1(["the the the"], [["the cat the", "a much longer text than that"]]) == pytest.approx(2 / 3)
    # 2 tokens against 4: all right, penalty exp(1 - 4/2).
    assert bleu_1(["the cat"], [["the cat sat down"]]) == pytest.approx(math.exp(-1))
    # Of two references equally far away the shorter counts.
    assert bleu_1(["a b"], [["a b c", "a"]]) == pytest.approx(1.0)


def test_bleu_1_is_of_the_corpus_not_a_mean() -> None:
    assert bleu_1(["a b c d", "x"], [["a b c d"], ["y"]]) == pytest.approx(4 / 5)


def test_bleu_1_of_empty_predictions_is_zero() -> None:
    assert bleu_1([""], [["some words"]]) == 0.0
    assert bleu_1(["", "some words"], [["a"], ["some words"]]) == pytest.approx(math.exp(1 - 3 / 2))


def test_rouge_l_takes_precision_and_recall_from_different_references() -> None:
    # Precision 2/2 from the second, recall 1/1 from the first.
    assert rouge_l(["a b"], [["b", "a x b y"]]) == pytest.approx(1.0)
    precision, recall = 2 / 3, 2 / 4
    beta = 1.2**2
    expected = (1 + beta) * precision * recall / (recall + beta * precision)
    assert rouge_l(["a b c"], [["a b x y"]]) == pytest.approx(expected)
    assert rouge_l([""], [["a b"]]) == 0.0
    assert rouge_l_scores(["a", "b"], [["a"], ["a"]]) == [1.0, 0.0]


def test_longest_common_subsequence_equals_the_table() -> None:
    rng = random.Random(3)
    for _ in range(200):
        a = rng.choices("abcd", k=rng.randint(0, 12))
        b = rng.choices("abcd", k=rng.randint(0, 12))
        assert longest_common_subsequence(a, b) == _table_lcs(a, b)


def _table_lcs(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_q_bleu_1_of_the_published_example() -> None:
    weights = QBleuWeights(named_entities=0.6, question_type=0.2, relevant_words=0.1, answerability=0.7)
    # "good" against "great" loses the relevant word, and one fluent token of five: 0.7 * 0.9 + 0.3 * 4/5, and the
    # first word "Is" is a capitalised one of both.
    assert q_bleu_1(["Is this a great question?"], [["Is this a good question?"]], weights) == pytest.approx(
        0.7 * (0.1 * 0.5 + 0.6 + 0.2 + 0.1) + 0.3 * 0.8
    )


def test_q_bleu_1_takes_the_best_reference() -> None:
    one = q_bleu_1(["Who wrote Emma?"], [["What is tea?"]])
    both = q_bleu_1(["Who wrote Emma?"], [["What is tea?", "Who wrote Emma?"]])
    assert one < both
    assert both == pytest.approx(1.0)


def test_q_bleu_1_of_an_empty_prediction() -> None:
    assert q_bleu_1([""], [["Who wrote Emma?"]]) == pytest.approx(0.66 * 0.03)  # no function word on either side


def test_distinct_trigram_ratio_of_the_worked_example() -> None:
    texts = ["this city is the capital of france", "this city is the capital of peru"]
    assert distinct_trigram_ratio(texts) == 0.6
    assert distinct_trigram_ratio(["a b c", "", "too short"]) == 1.0
    with pytest.raises(DataError, match="none of 2 texts has three words"):
        distinct_trigram_ratio(["one two", ""])


@pytest.mark.parametrize("metric", [bleu_1, rouge_l, q_bleu_1])
def test_misaligned_or_missing_references_are_errors(metric: object) -> None:
    assert callable(metric)
    for predictions, references in ((["a"], []), ([], []), (["a"], [[]]), (["a", "b"], [["a"]])):
        with pytest.raises(DataError):
            metric(predictions, references)
