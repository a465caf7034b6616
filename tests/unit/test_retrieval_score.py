"""Retrievers scored alone: what each metric counts, the questions that are left out, and what is refused."""

import math

import pytest

from rag.errors import DataError
from rag.evaluation.retrieval import (
    answer_in_passage_at_k,
    evidence_at_k,
    gold_title_at_k,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
    title_key,
)
from rag.evaluation.retrieval_score import ScoredPassage, score_retrieval
from rag.evaluation.scorer import Scores
from rag.evaluation.statistics import wilson_interval
from rag.records import Metric, Question

# Three passages of one page, one of another, the first page again.
PARIS = ["Paris", "Paris", "Paris", "Lyon", "Paris"]


def test_places_and_pages_are_counted_as_each_metric_says() -> None:
    assert precision_at_k([PARIS], [{"Paris"}], k=5) == 0.8
    assert recall_at_k([PARIS], [{"Paris"}], k=5) == 1.0
    assert precision_at_k([PARIS], [{"Paris"}], k=10) == 0.4  # places that were not filled are wrong
    assert r_precision([PARIS], [[{"Paris", "Lyon"}]]) == 1.0  # Lyon is the second page
    assert r_precision([PARIS], [[{"Paris", "Rome"}]]) == 0.5
    assert r_precision([PARIS], [[{"Rome"}, {"Paris"}]]) == 1.0  # the better of two evidence sets
    assert r_precision([[]], [[{"Rome"}]]) == 0.0


def test_evidence_is_whole_or_not_there() -> None:
    both = [[{"Paris", "Lyon"}, {"Rome"}]]
    assert [evidence_at_k([PARIS], both, k) for k in (1, 3, 4)] == [0, 0, 1]
    assert evidence_at_k([["Rome"]], both, 1) == 1
    assert [gold_title_at_k([PARIS], [{"Lyon"}], k) for k in (3, 4)] == [0, 1]


def test_answers_in_passages() -> None:
    passages = [["Rome is old.", "Lima is in Peru."], ["Built in 1907."]]
    assert [answer_in_passage_at_k(passages, [["peru"], ["x"]], k) for k in (1, 2)] == [0, 0.5]
    assert answer_in_passage_at_k(passages, [["^Lima"], ["19\\d\\d"]], 2, regex=True) == 1.0
    with pytest.raises(DataError, match="answers for each of 2 questions, got 1"):
        answer_in_passage_at_k(passages, [["peru"]], 1)


def test_gold_that_is_missing_is_an_error() -> None:
    for metric in (evidence_at_k, recall_at_k, precision_at_k, gold_title_at_k):
        with pytest.raises(DataError, match="k=0"):
            metric([PARIS], [[{"Paris"}]], 0)  # type: ignore[operator, arg-type]
        with pytest.raises(DataError, match="question 1 has no gold page"):
            metric([PARIS, PARIS], [[{"Paris"}], []], 1)  # type: ignore[operator, arg-type]
    with pytest.raises(DataError, match="question 0 has no gold page"):
        r_precision([PARIS], [[{"Paris"}, set()]])


def test_reciprocal_rank() -> None:
    assert [reciprocal_rank(rank) for rank in (0, 1, 4, None)] == [1, 0.5, 0.2, 0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Soul_Food_(film)", "Soul Food (film)", True),
        ("iPod", "IPod", True),
        ("Pe\u0301rou", "P\u00e9rou", True),
        (" Lima ", "Lima", True),
        ("ISO", "Iso", False),
        ("\u00df", "SS", False),
        ("", "", True),
    ],
)
def test_titles_are_compared_as_wikipedia_tells_pages_apart(one: str, other: str, same: bool) -> None:
    assert (title_key(one) == title_key(other)) is same


def _found(*passages: tuple[str, str]) -> list[ScoredPassage]:
    """(title, text) of passages, best first."""
    return [ScoredPassage(text, title, -float(rank)) for rank, (title, text) in enumerate(passages)]


def _metrics(scores: Scores) -> dict[str, Metric]:
    assert len({metric.name for metric in scores.metrics}) == len(scores.metrics)
    for metric in scores.metrics:
        values = [one.value for one in scores.per_question if one.metric == metric.name]
        assert metric.low <= metric.value <= metric.high
        assert len(values) == metric.n == metric.n_expected - metric.n_errors
        assert math.fsum(values) / metric.n == pytest.approx(metric.value)
    return {metric.name: metric for metric in scores.metrics}


OPEN = [
    Question("a", "open-qa", "capital of peru", ("Lima",)),
    Question("b", "open-qa", "capital of chile", ("Santiago",)),
    Question("c", "open-qa", "capital of spain", ("Madrid",)),
]
LISTS = {
    "c": _found(),
    "a": _found(("Chile", "Santiago is large."), ("Peru", "In Lima.")),
    "b": _found(("Chile", "Santiago is large."), ("Peru", "In Lima.")),
}


def test_open_questions_are_scored_by_the_answers_in_the_passages() -> None:
    scores = score_retrieval(OPEN, LISTS, [2, 1, 5], patterns=False, seed=0)
    metrics = _metrics(scores)
    assert {name: metric.value for name, metric in metrics.items()} == pytest.approx(
        {"answer_in_passage_at_1": 1 / 3, "answer_in_passage_at_2": 2 / 3, "answer_mrr": 0.5}
    )
    at_1 = metrics["answer_in_passage_at_1"]
    assert (at_1.n, at_1.n_expected, at_1.n_errors, at_1.unit) == (3, 3, 0, "fraction")
    assert (at_1.low, at_1.high) == wilson_interval(1, 3)
    assert at_1.signature == (
        "answer_in_passage_at_1|match:dpr-string|agg:any-passage-any-answer|n_docs:1|ci:wilson|v1"
    )
    assert metrics["answer_mrr"].signature.endswith("|n_docs:2|ci:bootstrap-1000|v1")
    assert scores.notes == [
        "1 of 3 questions got fewer than 2 passages",
        "at 5: left out, for no question got more than 2 passages",
    ]


def test_answers_that_are_patterns() -> None:
    questions = [Question("a", "open-qa", "q", ("^in\\s",)), Question("b", "open-qa", "q", ("Li.a",))]
    found = {name: LISTS[name] for name in "ab"}
    metrics = _metrics(score_retrieval(questions, found, [1, 2], patterns=True, seed=0))
    assert [metrics[f"answer_in_passage_at_{k}"].value for k in (1, 2)] == [0, 1]
    assert "match:regex-search" in metrics["answer_in_passage_at_1"].signature
    assert _metrics(score_retrieval(questions, found, [2], patterns=False, seed=0))["answer_mrr"].value == 0


def test_a_question_that_was_not_asked_is_an_error_and_no_miss() -> None:
    scores = score_retrieval(OPEN, {"a": LISTS["a"]}, [1], patterns=False, seed=0)
    metric = _metrics(scores)["answer_in_passage_at_1"]
    assert (metric.value, metric.n, metric.n_expected, metric.n_errors) == (0, 1, 3, 2)
    assert scores.notes == ["2 of 3 questions have no list of passages"]


CLAIMS = [
    Question("1", "fever", "claim", ("SUPPORTS",), ("Lima", "Peru"), (("Lima", "Peru"), ("Peru",))),
    Question("2", "fever", "claim", ("REFUTES",), ("iPod_nano", "Apple"), (("iPod_nano", "Apple"),)),
    Question("3", "fever", "claim", ("NOT ENOUGH INFO",)),
]
PAGES = {
    "1": _found(("Chile", "x"), ("Peru", "x"), ("Peru", "y")),
    "2": _found(("IPod nano", "x"), ("Quito", "x"), ("Rome", "x")),
    "3": _found(("Lima", "x"), ("Rome", "x"), ("Oslo", "x")),
}


def test_claims_are_scored_by_their_gold_pages() -> None:
    scores = score_retrieval(CLAIMS, PAGES, [1, 3], patterns=False, seed=0)
    assert {name: metric.value for name, metric in _metrics(scores).items()} == {
        "gold_title_at_1": 0.5,
        "evidence_at_1": 0,
        "recall_at_1": 0.25,
        "evidence_at_3": 0.5,
        "recall_at_3": 0.5,
        "r_precision": 0.5,  # of {Lima, Peru} one of the first two pages, of {iPod nano, Apple} too
        "title_mrr": 0.75,
    }
    assert {metric.n for metric in scores.metrics} == {2}
    assert scores.notes == [
        "1 of 3 questions name no gold page: metrics of pages leave them out",
        "at 10: left out, for no question got more than 3 passages",
    ]


def test_pages_of_a_question_without_sets_are_one_set() -> None:
    question = Question("q", "open-qa", "q", ("Lima",), ("Peru", "Lima"))
    found = {"q": _found(("Peru", "Lima"), ("Oslo", "x"), ("Lima", "x"))}
    metrics = _metrics(score_retrieval([question], found, [2, 3], patterns=False, seed=0))
    assert [metrics[f"evidence_at_{k}"].value for k in (2, 3)] == [0, 1]
    assert metrics["answer_in_passage_at_2"].value == 1
    assert metrics["r_precision"].value == 0.5


def test_without_gold_or_passages_there_is_no_number() -> None:
    scores = score_retrieval(CLAIMS[2:], {"3": PAGES["3"]}, [1], patterns=False, seed=0)
    assert scores == Scores([], [], ["1 of 1 questions name no gold page: metrics of pages leave them out"])
    scores = score_retrieval(OPEN[:1], {"a": []}, [1], patterns=False, seed=0)
    assert scores == Scores([], [], ["no passage was retrieved: there is nothing to score"])


def test_a_ranking_that_is_not_sorted_is_refused() -> None:
    backwards = {"a": LISTS["a"][::-1]}
    with pytest.raises(DataError, match="question 'a' are not sorted by score"):
        score_retrieval(OPEN, backwards, [1], patterns=False, seed=0)
    undefined = {"a": [ScoredPassage("x", "y", math.nan), ScoredPassage("x", "y", 0.0)]}
    with pytest.raises(DataError, match="not sorted"):
        score_retrieval(OPEN, undefined, [1], patterns=False, seed=0)
    ties = {"a": [ScoredPassage("x", "y", 0.0), ScoredPassage("Lima", "y", 0.0)]}
    assert _metrics(score_retrieval(OPEN, ties, [2], patterns=False, seed=0))["answer_mrr"].value == 0.5


def test_ids_and_ranks_that_cannot_be_are_refused() -> None:
    with pytest.raises(DataError, match="passages of 1 ids answer no question, the first is 'z'"):
        score_retrieval(OPEN, {"z": []}, [1], patterns=False, seed=0)
    with pytest.raises(DataError, match="more than one question, the first is 'a'"):
        score_retrieval([*OPEN, OPEN[0]], LISTS, [1], patterns=False, seed=0)
    with pytest.raises(DataError, match="no question to score"):
        score_retrieval([], {}, [1], patterns=False, seed=0)
    with pytest.raises(DataError, match="metrics at 0, 1: give ranks of 1 and more"):
        score_retrieval(OPEN, LISTS, [0, 1], patterns=False, seed=0)
