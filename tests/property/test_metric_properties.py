"""What holds for every text: bounds, orders, and which change can only help."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.evaluation.answers import exact_match, f1, normalize_answer
from rag.evaluation.english_tokens import english_tokens
from rag.evaluation.generation import bleu_1, distinct_trigram_ratio, q_bleu_1, rouge_l, trigrams
from rag.evaluation.ptb_tokens import ptb_tokens
from rag.evaluation.retrieval import (
    answer_in_passage,
    evidence_at_k,
    gold_title_at_k,
    precision_at_k,
    r_precision,
    recall_at_k,
    title_key,
)
from rag.evaluation.retrieval_score import ScoredPassage, score_retrieval
from rag.evaluation.score import score_task
from rag.evaluation.statistics import holm, paired_bootstrap, wilson_interval
from rag.records import Prediction, Question
from rag.text import word_tokens

quick = settings(max_examples=60, derandomize=True, deadline=None)

words = st.sampled_from(
    ["the", "a", "An", "Lima", "peru", "U.S.", "isn't", "café", "1,000", "-", "(", "“x”", "Who", "of", "ß", "İ", "Σ"]
)
phrases = st.lists(words, max_size=6).map(" ".join) | st.text(max_size=12)
answers = st.lists(phrases, min_size=1, max_size=4)


@quick
@given(phrases, answers)
def test_exact_match_is_at_most_f1_and_both_are_fractions(prediction: str, golds: list[str]) -> None:
    overlap = f1(prediction, golds)
    assert 0 <= exact_match(prediction, golds) <= overlap <= 1


@quick
@given(phrases, answers, phrases)
def test_another_answer_never_lowers_a_score(prediction: str, golds: list[str], more: str) -> None:
    assert exact_match(prediction, golds) <= exact_match(prediction, [*golds, more])
    assert f1(prediction, golds) <= f1(prediction, [*golds, more])
    assert answer_in_passage(prediction, golds) <= answer_in_passage(prediction, [*golds, more])
    assert rouge_l([prediction], [golds]) <= rouge_l([prediction], [[*golds, more]]) + 1e-12
    assert q_bleu_1([prediction], [golds]) <= q_bleu_1([prediction], [[*golds, more]])


@quick
@given(phrases, answers, st.integers(0, 99))
def test_order_of_the_answers_does_not_matter(prediction: str, golds: list[str], seed: int) -> None:
    shuffled = Random(seed).sample(golds, len(golds))
    assert exact_match(prediction, golds) == exact_match(prediction, shuffled)
    assert f1(prediction, golds) == f1(prediction, shuffled)
    assert bleu_1([prediction], [golds]) == bleu_1([prediction], [shuffled])
    assert rouge_l([prediction], [golds]) == rouge_l([prediction], [shuffled])


@quick
@given(phrases, phrases)
def test_identical_text_scores_one(text: str, other: str) -> None:
    assert exact_match(text, [other, text])
    assert f1(text, [other, text]) == 1
    if any(english_tokens(text)):
        assert bleu_1([text], [[text, other]]) == pytest.approx(1)
        assert rouge_l([text], [[text, other]]) == pytest.approx(1)
    if ptb_tokens(text):
        assert q_bleu_1([text], [[other, text]]) == pytest.approx(1)
    if word_tokens(text):
        assert answer_in_passage(f"before it {text} after it", [text])


@quick
@given(st.lists(st.tuples(phrases, answers), min_size=1, max_size=6), st.integers(0, 99))
def test_corpus_scores_are_fractions_whatever_the_order(pairs: list[tuple[str, list[str]]], seed: int) -> None:
    shuffled = Random(seed).sample(pairs, len(pairs))
    for metric in (bleu_1, rouge_l, q_bleu_1):
        value = metric([p for p, _ in pairs], [g for _, g in pairs])
        again = metric([p for p, _ in shuffled], [g for _, g in shuffled])
        assert 0 <= value <= 1 + 1e-9
        assert math.isclose(value, again, abs_tol=1e-12)


@quick
@given(st.lists(phrases, min_size=1, max_size=6))
def test_repeating_a_corpus_halves_its_distinct_trigrams(texts: list[str]) -> None:
    if any(trigrams(text) for text in texts):
        assert distinct_trigram_ratio(texts * 2) == pytest.approx(distinct_trigram_ratio(texts) / 2)


@quick
@given(phrases)
def test_normalising_twice_is_normalising_once_but_for_articles(text: str) -> None:
    once = normalize_answer(text)
    assert once == " ".join(once.split())
    assert exact_match(text.upper(), [text.upper()])


@quick
@given(st.text(max_size=30))
def test_tokens_lose_no_letter(text: str) -> None:
    assert "".join(english_tokens(text)) == "".join(word.lower() for word in _as_chunks(text))


def _as_chunks(text: str) -> list[str]:
    return text.split()


@quick
@given(st.lists(st.tuples(phrases, answers), min_size=1, max_size=8), st.integers(0, 99))
def test_score_task_joins_by_id_not_by_position(rows: list[tuple[str, list[str]]], seed: int) -> None:
    questions = [Question(str(i), "open-qa", "q", tuple(golds)) for i, (_, golds) in enumerate(rows)]
    predictions = [Prediction(str(i), text, -1.0, None, (), 0.0) for i, (text, _) in enumerate(rows)]
    shuffled = Random(seed).sample(predictions, len(predictions))
    assert score_task("open-qa", questions, predictions, seed=1) == score_task("open-qa", questions, shuffled, seed=1)


@quick
@given(st.integers(1, 5000), st.data())
def test_wilson_interval_holds_its_proportion(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    interval = wilson_interval(successes, n)
    assert 0 <= interval.low <= successes / n <= interval.high <= 1
    mirrored = wilson_interval(n - successes, n)
    assert math.isclose(interval.low, 1 - mirrored.high, abs_tol=1e-9)


@quick
@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    for p, q in zip(p_values, adjusted, strict=True):
        for p2, q2 in zip(p_values, adjusted, strict=True):
            assert p > p2 or q <= q2


@quick
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_paired_bootstrap_mirrors_when_the_systems_change_places(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    forward, backward = paired_bootstrap(a, b, seed=0, draws=200), paired_bootstrap(b, a, seed=0, draws=200)
    assert forward.difference == -backward.difference
    assert forward.p_value == backward.p_value
    assert math.isclose(forward.low, -backward.high, abs_tol=1e-12)


pages = st.sampled_from(["Lima", "Peru", "Oslo", "Rome", "Quito"])
ranking = st.lists(pages, max_size=7)
evidence_sets = st.lists(st.sets(pages, min_size=1, max_size=3), min_size=1, max_size=3)
judged = st.lists(st.tuples(ranking, evidence_sets), min_size=1, max_size=5)


@quick
@given(judged, st.integers(1, 8))
def test_page_metrics_agree_with_a_count_by_hand(rows: list[tuple[list[str], list[set[str]]]], k: int) -> None:
    found, sets = [own for own, _ in rows], [own for _, own in rows]
    gold = [set().union(*own) for own in sets]
    hits, shares, precisions, whole, best = 0, 0.0, 0.0, 0, 0.0
    for own, wanted, groups in zip(found, gold, sets, strict=True):
        seen: list[str] = []
        for place in range(min(k, len(own))):
            seen += [own[place]]
        hits += any(page in wanted for page in seen)
        shares += sum(page in seen for page in wanted) / len(wanted)
        precisions += sum(page in wanted for page in seen) / k
        whole += any(all(page in seen for page in group) for group in groups)
        best += max(_r_precision(own, group) for group in groups)
    counted = [hits, shares, precisions, whole, best]
    metrics = [
        gold_title_at_k(found, gold, k),
        recall_at_k(found, gold, k),
        precision_at_k(found, gold, k),
        evidence_at_k(found, sets, k),
        r_precision(found, sets),
    ]
    assert metrics == pytest.approx([one / len(rows) for one in counted])
    assert all(0 <= one <= 1 for one in metrics)


def _r_precision(found: list[str], wanted: set[str]) -> float:
    different = [page for place, page in enumerate(found) if page not in found[:place]]
    return sum(page in wanted for page in different[: len(wanted)]) / len(wanted)


@quick
@given(judged, st.integers(0, 99))
def test_more_passages_never_hide_a_page_and_questions_come_in_any_order(
    rows: list[tuple[list[str], list[set[str]]]], seed: int
) -> None:
    shuffled = Random(seed).sample(rows, len(rows))
    found, sets, gold, again, sets_again, gold_again = (
        [part(row) for row in order]
        for order in (rows, shuffled)
        for part in (lambda row: row[0], lambda row: row[1], lambda row: set().union(*row[1]))
    )
    for k in range(1, 8):
        for metric in (gold_title_at_k, recall_at_k):
            assert metric(found, gold, k) <= metric(found, gold, k + 1)
            assert math.isclose(metric(found, gold, k), metric(again, gold_again, k))
        assert evidence_at_k(found, sets, k) <= evidence_at_k(found, sets, k + 1)
        assert evidence_at_k(found, sets, k) <= gold_title_at_k(found, gold, k)
    assert math.isclose(r_precision(found, sets), r_precision(again, sets_again))


@quick
@given(st.text(max_size=12) | st.lists(words, max_size=3).map("_".join))
def test_a_title_has_one_key(title: str) -> None:
    key = title_key(title)
    assert title_key(key) == key
    assert title_key(title.replace(" ", "_")) == key


@quick
@given(st.lists(st.tuples(st.lists(phrases, max_size=4), answers), min_size=1, max_size=6), st.integers(0, 99))
def test_score_retrieval_joins_by_id_and_finds_more_with_more_passages(
    rows: list[tuple[list[str], list[str]]], seed: int
) -> None:
    questions = [Question(str(i), "open-qa", "q", tuple(golds)) for i, (_, golds) in enumerate(rows)]
    found = {str(i): [ScoredPassage(text, "T", -rank) for rank, text in enumerate(texts)]
             for i, (texts, _) in enumerate(rows)}  # fmt: skip
    shuffled = dict(Random(seed).sample(list(found.items()), len(found)))
    scores = score_retrieval(questions, found, [1, 2, 3, 4], patterns=False, seed=1)
    assert scores == score_retrieval(questions, shuffled, [1, 2, 3, 4], patterns=False, seed=1)
    at = [metric.value for metric in scores.metrics if "_at_" in metric.name]
    assert at == sorted(at)
    for k, value in enumerate(at, start=1):
        held = [any(answer_in_passage(text, golds) for text in texts[:k]) for texts, golds in rows]
        assert value == pytest.approx(sum(held) / len(rows))
