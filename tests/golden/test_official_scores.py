"""Our metrics against the numbers of the official scripts, on our own cases and on the scripts' own samples."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rag.evaluation.answers import exact_match, f1, label_accuracy
from rag.evaluation.generation import bleu_1, rouge_l, rouge_l_scores
from rag.evaluation.q_bleu import QBleuWeights, q_bleu_1_scores
from tests.support.shared_data import shared_data

_GOLDEN = json.loads(Path(__file__).with_name("official_scores.json").read_text(encoding="utf-8"))
_README_WEIGHTS = QBleuWeights(named_entities=0.6, question_type=0.2, relevant_words=0.1, answerability=0.7)


def test_bleu_and_rouge_of_our_cases_equal_the_official_scripts() -> None:
    golden = _GOLDEN["msmarco"]
    predictions = [case["prediction"] for case in golden["cases"]]
    references = [case["references"] for case in golden["cases"]]
    assert bleu_1(predictions, references) == pytest.approx(golden["bleu_1"], abs=1e-9)
    assert rouge_l(predictions, references) == pytest.approx(golden["rouge_l"], abs=1e-9)
    each = [case["rouge_l"] for case in golden["cases"]]
    assert rouge_l_scores(predictions, references) == pytest.approx(each, abs=1e-9)


def test_q_bleu_of_our_cases_equals_the_official_formula_over_stanford_tokens() -> None:
    cases = _GOLDEN["q_bleu_1"]["cases"]
    predictions, references = [c["prediction"] for c in cases], [[c["reference"]] for c in cases]
    readme = q_bleu_1_scores(predictions, references, _README_WEIGHTS)
    assert readme == pytest.approx([c["readme_weights"] for c in cases], abs=1e-6)
    squad = q_bleu_1_scores(predictions, references)
    assert squad == pytest.approx([c["squad_weights"] for c in cases], abs=1e-6)


def test_exact_match_and_f1_of_kilts_oracle() -> None:
    """KILT states em 2/3 and f1 0.8333 for these three guesses of its own test."""
    guesses = ["suicide", "a suicide", "suicide"]
    golds = ["suicide", "suicide", "it was suicide"]
    pairs = list(zip(guesses, golds, strict=True))
    assert sum(exact_match(guess, [gold]) for guess, gold in pairs) / 3 == pytest.approx(2 / 3)
    assert sum(f1(guess, [gold]) for guess, gold in pairs) / 3 == pytest.approx(0.8333, abs=5e-5)


def test_any_gold_counts_not_only_the_first() -> None:
    assert exact_match("Robert Edward Turner III", ["Ted Turner", "Robert Edward Turner III"])


def test_msmarco_sample_equals_the_scripts_readme() -> None:
    """bleu_1 8.520511E-03 and rouge_l 3.093306E-02, over the two queries that both files answer."""
    references = _answers(shared_data("msmarco", "eval", "sample_references.json"))
    candidates = _answers(shared_data("msmarco", "eval", "sample_candidates.json"))
    ids = [i for i in references if references[i] and candidates[i]]
    predictions = [candidates[i][0] for i in ids]
    golds = [references[i] for i in ids]
    assert len(ids) == 2
    assert bleu_1(predictions, golds) == pytest.approx(8.520511e-03, abs=5e-9)
    assert rouge_l(predictions, golds) == pytest.approx(3.093306e-02, abs=5e-8)


def test_msmarco_identical_answers_score_one() -> None:
    references = _answers(shared_data("msmarco", "eval", "same_answer_test_references.json"))
    candidates = _answers(shared_data("msmarco", "eval", "same_answer_test_candidates.json"))
    ids = [i for i in references if references[i]]
    assert bleu_1([candidates[i][0] for i in ids], [references[i] for i in ids]) == pytest.approx(1)
    assert rouge_l([candidates[i][0] for i in ids], [references[i] for i in ids]) == pytest.approx(1)


def test_msmarco_dev_set_is_near_the_scripts_own_test() -> None:
    """The script's test says 0.17634 and 0.12077 with the spaCy of 2016; with spaCy 3.8.18 it gives 0.17637, 0.12104.

    What is left against spaCy 3.8.18 is 23 of some 22,800 texts that our tokens cut differently.
    """
    references = _answers(shared_data("msmarco", "eval", "dev_as_references.json.gz"))
    candidates = _answers(shared_data("msmarco", "eval", "dev_first_sentence_as_candidates.json.gz"))
    ids = [i for i in references if references[i]]
    predictions, golds = [candidates[i][0] for i in ids], [references[i] for i in ids]
    assert len(ids) == 9754
    assert bleu_1(predictions, golds) == pytest.approx(0.1763668, abs=1e-5)
    assert rouge_l(predictions, golds) == pytest.approx(0.1210388, abs=1e-5)


def test_q_bleu_equals_the_897_scored_pairs() -> None:
    path = shared_data("qbleu", "golden_squad_qbleu.tsv")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[1:] if line]
    scores = q_bleu_1_scores([row[1] for row in rows], [[row[0]] for row in rows], _README_WEIGHTS)
    off = [row for row, score in zip(rows, scores, strict=True) if abs(score - float(row[4])) > 1e-4]
    assert len(rows) == 897
    assert off == []
    assert sum(scores) / len(scores) == pytest.approx(0.7628, abs=5e-5)


def test_fever_labels_as_the_official_scorer_counts_them() -> None:
    """Label accuracy of the scorer's first 200 published predictions, counted here the plain way."""
    predicted = _json_lines(shared_data("fever", "scorer_predictions.first200.jsonl"))
    gold = {row["id"]: row["label"] for row in _json_lines(shared_data("fever", "paper_dev.first600.jsonl"))}
    pairs = [(row["predicted_label"], gold[row["id"]]) for row in predicted if row["id"] in gold]
    assert len(pairs) == 200
    right = sum(1 for label, truth in pairs if label.upper() == truth.upper())
    assert label_accuracy([p for p, _ in pairs], [g for _, g in pairs]) == right / 200


def _answers(path: Path) -> dict[int, list[str]]:
    rows = _json_lines(path)
    return {row["query_id"]: [a for a in row["answers"] if a != "No Answer Present."] for row in rows}


def _json_lines(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode("utf-8").split("\n") if line.strip()]
