"""Exact match, F1, patterns, labels, and answers in passages, case by case."""

import pytest

from rag.errors import DataError
from rag.evaluation.answers import exact_match, f1, label_accuracy, normalize_answer, regex_match
from rag.evaluation.retrieval import answer_coverage, answer_in_passage, first_rank_with_answer, recall_at_k
from rag.text import word_tokens


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The  Quick\tBrown\n", "quick brown"),
        ("U.S.A.", "usa"),
        ("an apple, a day: the end", "apple day end"),
        ("theatre another", "theatre another"),
        ("the-end", "theend"),  # punctuation goes first, so no article is left to see
        ("“Zoë”", "“zoë”"),  # only ASCII punctuation goes
        ("a", ""),
        ("", ""),
        ("a.b.c", "abc"),
        ("I'm", "im"),
    ],
)
def test_normalize_answer(text: str, normalized: str) -> None:
    assert normalize_answer(text) == normalized


@pytest.mark.parametrize(
    ("prediction", "answers", "right"),
    [
        ("robert edward turner iii", ["Ted Turner", "Robert Edward Turner III"], True),
        ("The Beatles", ["Beatles"], True),
        ("Beatles band", ["Beatles"], False),
        ("", ["Beatles"], False),
        ("1,000", ["1000"], True),
        ("Zoe", ["Zoë"], False),
        ("Beyonce\u0301", ["Beyoncé"], False),  # the official rule does not compose characters
        ("anything", [], False),
    ],
)
def test_exact_match(prediction: str, answers: list[str], right: bool) -> None:
    assert exact_match(prediction, answers) is right


def test_f1_counts_repeated_words_as_often_as_both_have_them() -> None:
    assert f1("blue blue green", ["blue blue blue red"]) == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert f1("Paris", ["London", "Paris France"]) == pytest.approx(2 / 3)
    assert f1("nothing", ["else"]) == 0
    assert f1("", ["else"]) == 0
    assert f1("x", []) == 0


def test_the_three_regex_rules_differ() -> None:
    pattern = ["Long\\s+Island|Rhode"]
    assert regex_match("long  island sound", pattern)
    assert not regex_match("on Long Island", pattern)
    assert regex_match("on Long Island", pattern, mode="search")
    assert not regex_match("long island sound", pattern, mode="fullmatch")
    assert regex_match("the Long Island!", ["long island"], mode="fullmatch")


def test_regex_match_sees_composed_and_decomposed_letters_as_one() -> None:
    assert regex_match("Zu\u0308rich", ["Z\u00fcrich"])


def test_a_broken_pattern_is_an_error_that_shows_it() -> None:
    with pytest.raises(DataError, match=r"'\(unclosed' is no regular expression"):
        regex_match("x", ["(unclosed"])


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("P\\\u00e9tain", "Marshal Pe\u0301tain", True),  # a needless backslash, as in CuratedTREC
        ("Sn\\\u011b\\\u017eka", "Sn\u011b\u017eka", True),
        ("K\\\u00f6sen", "Kosen", False),
        ("a\\\\\u00e9", "a\\\u00e9", True),  # the backslash itself is escaped, and stays
        ("\\d+\\.", "12.", True),
    ],
)
def test_a_backslash_before_a_letter_with_an_accent_means_the_letter(pattern: str, text: str, found: bool) -> None:
    assert regex_match(text, [pattern], mode="search") is found


@pytest.mark.parametrize("pattern", ["[a", "a**", "(?P<x", "a{99999999999}", "(" * 5000 + ")" * 5000])
def test_what_cannot_compile_is_a_data_error(pattern: str) -> None:
    with pytest.raises(DataError, match="is no regular expression"):
        regex_match("a", [pattern])


def test_label_accuracy() -> None:
    assert label_accuracy(["SUPPORTS", "refutes", "REFUTES"], ["supports", "REFUTES", "NOT ENOUGH INFO"]) == 2 / 3
    with pytest.raises(DataError, match="got 1 and 2"):
        label_accuracy(["SUPPORTS"], ["SUPPORTS", "REFUTES"])
    with pytest.raises(DataError, match="got 0 and 0"):
        label_accuracy([], [])


def test_word_tokens_are_those_of_dpr() -> None:
    assert word_tokens("Café-bar №5, O'Neil's") == ["cafe\u0301", "-", "bar", "№", "5", ",", "o", "'", "neil", "'", "s"]
    assert word_tokens("snake_case\u200b \x07") == ["snake", "_", "case"]


@pytest.mark.parametrize(
    ("passage", "answers", "held"),
    [
        ("Lima is the capital of Peru.", ["lima"], True),
        ("The climate is mild.", ["lima"], False),  # a part of a word is not the word
        ("In 1907, New  York grew.", ["new york"], True),
        ("New, York", ["New York"], False),  # punctuation counts as a word
        ("Beyonce\u0301 sang", ["BEYONCÉ"], True),
        ("It cost $5.", ["$5"], True),
        ("Anything at all", [""], False),
        ("Anything at all", [" \u200b"], False),
        ("", ["x"], False),
        ("born in Honolulu", ["Chicago", "Honolulu"], True),
    ],
)
def test_answer_in_passage(passage: str, answers: list[str], held: bool) -> None:
    assert answer_in_passage(passage, answers) is held


def test_answer_patterns_are_searched_in_the_passage() -> None:
    assert answer_in_passage("He was born\nin 1942.", ["^in\\s19\\d\\d"], regex=True)
    assert not answer_in_passage("He was born in 1842.", ["19\\d\\d"], regex=True)


def test_first_rank_with_answer() -> None:
    assert first_rank_with_answer(["x", "y Lima", "Lima"], ["lima"]) == 1
    assert first_rank_with_answer(["x", "in 1942"], ["19\\d\\d"], regex=True) == 1
    assert first_rank_with_answer(["x"], ["lima"]) is None
    assert first_rank_with_answer([], ["lima"]) is None


def test_answer_coverage_looks_through_all_texts() -> None:
    assert answer_coverage([["Lima"], ["Quito"], ["Bonn", "Rome"]], ["Rome is old.", "In Lima."]) == [True, False, True]


def test_recall_at_k() -> None:
    retrieved = [["Paris", "Paris", "Paris", "Lyon", "Paris"]]
    assert recall_at_k(retrieved, [{"Paris"}], k=5) == 1.0
    assert recall_at_k(retrieved, [["Lyon", "Paris"]], k=3) == 0.5
    with pytest.raises(DataError, match="question 0 has no gold page"):
        recall_at_k(retrieved, [set()], k=5)
    with pytest.raises(DataError, match="k=0"):
        recall_at_k(retrieved, [{"Paris"}], k=0)
