"""Retrieval metrics over real questions and passages, against a count that shares no code with them."""

import gzip
import json
import unicodedata
from collections.abc import Sequence

import pytest
import regex

from rag.evaluation.retrieval_score import ScoredPassage, score_retrieval
from rag.evaluation.scorer import Scores
from rag.records import Passage, Question
from tests.support.shared_data import shared_data
from tests.support.word_retriever import WordRetriever

_AT = (1, 5, 20, 100)


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    with gzip.open(shared_data("corpus", "wiki2019_mini", "psgs_w100.tsv.gz"), "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [Passage(f"w:{row}:0", title, text, row, 1) for row, (_, text, title) in enumerate(rows)]


@pytest.fixture(scope="module")
def questions() -> list[dict[str, list[str]]]:
    path = shared_data("corpus", "wiki2019_mini", "questions.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _words(text: str) -> list[str]:
    found = regex.finditer(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", unicodedata.normalize("NFD", text))
    return [word.group().lower() for word in found]


def _holds(passage: list[str], answers: Sequence[str], patterns: bool, text: str) -> bool:
    """DPR's two rules, word by word."""
    if patterns:
        return any(regex.search(answer, text, regex.IGNORECASE | regex.MULTILINE) for answer in answers)
    golds = [_words(answer) for answer in answers]
    return any(passage[at : at + len(gold)] == gold for gold in golds for at in range(len(passage) - len(gold) + 1))


@pytest.mark.parametrize("patterns", [False, True])
def test_answers_in_passages(passages: list[Passage], questions: list[dict[str, list[str]]], patterns: bool) -> None:
    chosen = [one for one in questions if (one["set"] == "curatedtrec-test") is patterns][:100]
    retriever = WordRetriever.of(passages)
    found = retriever.retrieve([str(one["question"]) for one in chosen], max(_AT))
    gold = [
        Question(str(row), "open-qa", "?", tuple(one["answers"]), tuple(one["titles"]))
        for row, one in enumerate(chosen)
    ]
    lists = {
        str(row): [ScoredPassage(p.text, p.title, float(s)) for p, s in zip(own, found.doc_scores[row], strict=False)]
        for row, own in enumerate(found.passages)
    }
    scores = score_retrieval(gold, lists, _AT, patterns, seed=0)
    tokens = {passage.passage_id: _words(passage.text) for passage in passages}
    held = [
        [_holds(tokens[p.passage_id], one["answers"], patterns, p.text) for p in own]
        for one, own in zip(chosen, found.passages, strict=True)
    ]
    pages = [[p.title in one["titles"] for p in own] for one, own in zip(chosen, found.passages, strict=True)]
    shares = [
        len({p.title for p in own[:20]} & set(one["titles"])) / len(set(one["titles"]))
        for one, own in zip(chosen, found.passages, strict=True)
    ]
    expected = {f"answer_in_passage_at_{k}": _share(held, k) for k in _AT}
    expected |= {f"gold_title_at_{k}": _share(pages, k) for k in (1, 10)}
    expected |= {"answer_mrr": _mrr(held), "title_mrr": _mrr(pages)}
    expected["recall_at_20"] = sum(shares) / len(shares)
    assert {name: value for name, value in _values(scores).items() if name in expected} == pytest.approx(expected)
    assert 0 < expected["answer_in_passage_at_1"] < expected["answer_in_passage_at_100"]


def _share(hits: list[list[bool]], k: int) -> float:
    return sum(any(own[:k]) for own in hits) / len(hits)


def _mrr(hits: list[list[bool]]) -> float:
    return sum(1 / (own.index(True) + 1) if any(own) else 0 for own in hits) / len(hits)


def _values(scores: Scores) -> dict[str, float]:
    return {metric.name: metric.value for metric in scores.metrics}
