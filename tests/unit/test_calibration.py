"""Probabilities of labels: what the scores count, and the temperature that makes them believable."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rag.config import TaskConfig
from rag.errors import DataError
from rag.evaluation.calibration import (
    at_temperature,
    brier_scores,
    confidence_gaps,
    ece_of_sums,
    fit_on,
    fit_temperature,
    mean_nll,
)
from rag.evaluation.score import score_task
from rag.evaluation.score_files import PER_QUESTION_FILE, write_scores
from rag.records import LabelProb, Prediction, Question

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def _claims(n: int, sharpness: float) -> tuple[list[Question], list[Prediction]]:
    """Claims whose labels follow probabilities p, and a model that gives p ** sharpness, normalised."""
    chance = np.random.default_rng(5)
    true = chance.dirichlet([1.0, 1.0, 1.0], size=n)
    gold = [chance.choice(3, p=row) for row in true]
    given = at_temperature(true, 1 / sharpness)
    questions = [Question(str(number), "fever", "claim", (LABELS[label],)) for number, label in enumerate(gold)]
    made = [_prediction(str(number), row.tolist()) for number, row in enumerate(given)]
    return questions, made


def _prediction(question_id: str, probs: list[float]) -> Prediction:
    best = max(range(3), key=probs.__getitem__)
    label_probs = tuple(map(LabelProb, LABELS, probs))
    return Prediction(question_id, LABELS[best], math.log(probs[best]), None, (), 0.1, label_probs=label_probs)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_a_model_that_is_too_sure_or_not_sure_enough(sharpness: float) -> None:
    questions, made = _claims(4000, sharpness)
    assert fit_on(questions, made).temperature == pytest.approx(sharpness, rel=0.1)


def test_the_temperature_is_where_the_likelihood_is_largest() -> None:
    chance = np.random.default_rng(1)
    probs = chance.dirichlet([1, 1, 1], size=50)
    gold = np.array([chance.choice(3, p=row) for row in probs])
    best = fit_temperature(probs, gold)
    fitted = mean_nll(at_temperature(probs, best), gold)
    for other in np.geomspace(0.05, 20, 400):
        assert fitted <= mean_nll(at_temperature(probs, float(other)), gold) + 1e-9


def test_scores_equal_their_definitions_claim_by_claim() -> None:
    chance = np.random.default_rng(2)
    probs, gold = chance.dirichlet([1, 1, 1], size=200), chance.integers(0, 3, size=200)
    brier = [
        sum((p - (label == own)) ** 2 for label, p in enumerate(row)) / 2 for row, own in zip(probs, gold, strict=True)
    ]
    assert brier_scores(probs, gold).tolist() == pytest.approx(brier)
    error = 0.0
    for low in range(15):
        inside = [i for i in range(200) if low / 15 < probs[i].max() <= (low + 1) / 15]
        if inside:
            confidence = sum(probs[i].max() for i in inside) / len(inside)
            accuracy = sum(probs[i].argmax() == gold[i] for i in inside) / len(inside)
            error += len(inside) / 200 * abs(confidence - accuracy)
    gaps = confidence_gaps(probs, gold)
    assert ece_of_sums(gaps.sum(axis=0, keepdims=True), 200)[0] == pytest.approx(error)


def test_metrics_before_and_after_and_the_probabilities_on_disk(tmp_path: Path) -> None:
    dev, test = _claims(1500, 3.0), _claims(600, 3.0)
    temperature = fit_on(*dev).temperature
    scores = score_task("fever", *test, seed=0, temperature=temperature)
    found = {metric.name: metric for metric in scores.metrics}
    assert found["calibration_error"].value > 0.15 > 0.05 > found["calibration_error_calibrated"].value
    assert found["brier"].value > found["brier_calibrated"].value
    assert "temperature:1|" in found["brier"].signature
    assert f"temperature:{temperature:.6g}|" in found["brier_calibrated"].signature
    for metric in found.values():
        assert (metric.n, metric.n_expected) == (600, 600) or metric.name == "label_accuracy_2way"
        assert metric.low <= metric.value or metric.name.startswith("calibration")
    write_scores(tmp_path, *test, scores, temperature=temperature)
    for row, one in zip(pq.read_table(tmp_path / PER_QUESTION_FILE).to_pylist(), test[1], strict=True):
        probs = {part["label"]: part["prob"] for part in row["calibrated_probs"]}
        assert sum(probs.values()) == pytest.approx(1)
        assert max(probs, key=lambda label: probs[label]) == one.text


def test_without_a_temperature_there_is_no_second_reading() -> None:
    names = [metric.name for metric in score_task("fever", *_claims(20, 1.0), seed=0).metrics]
    assert names == ["label_accuracy", "label_accuracy_2way", "calibration_error", "brier"]


def test_failed_claims_and_labels_that_the_model_does_not_know_are_left_out_of_the_fit() -> None:
    questions, made = _claims(300, 2.0)
    failed = [Prediction("0", "", -math.inf, None, (), 0.1, "too long"), *made[1:]]
    alone = fit_on(questions[1:], made[1:])
    assert fit_on(questions, failed) == alone
    foreign = [questions[0]._replace(answers=("DISPUTED",)), *questions[1:]]
    assert fit_on(foreign, made) == alone._replace(left_out=1)
    assert (alone.n, alone.notes) == (299, [])
    for none in ([], [questions[0]._replace(answers=("DISPUTED",))]):
        with pytest.raises(DataError, match="no claim to fit"):
            fit_on(none, made)


def test_a_model_of_two_labels_is_calibrated_on_the_claims_it_knows_the_label_of() -> None:
    two = (LabelProb("SUPPORTS", 0.9), LabelProb("REFUTES", 0.1))
    gold = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO", "SUPPORTS")
    questions = [Question(str(number), "fever", "c", (label,)) for number, label in enumerate(gold)]
    made = [Prediction(one.question_id, "SUPPORTS", -0.1, None, (), 0.0, label_probs=two) for one in questions]
    scores = score_task("fever", questions, made, seed=0)
    known = score_task("fever", [questions[i] for i in (0, 1, 3)], [made[i] for i in (0, 1, 3)], seed=0)
    found, expected = ({metric.name: metric for metric in one.metrics} for one in (scores, known))
    assert (found["label_accuracy"].value, found["label_accuracy"].n) == (0.5, 4)
    for name in ("calibration_error", "brier"):
        assert found[name] == expected[name]
        assert found[name].n == 3
    assert [one.question_id for one in scores.per_question if one.metric == "brier"] == ["0", "1", "3"]
    assert any("calibration is scored on 3 of 4 claims" in note for note in scores.notes)
    unknown = score_task("fever", questions[2:3], made[2:3], seed=0)
    assert [metric.name for metric in unknown.metrics] == ["label_accuracy"]


def test_calibration_needs_a_dev_split() -> None:
    labels = {"SUPPORTS": "a", "REFUTES": "b"}
    assert TaskConfig(reader="fever", test="t", dev="d", labels=labels, calibrate=True).calibrate
    with pytest.raises(ValueError, match="give labels and dev"):
        TaskConfig(reader="fever", test="t", labels=labels, calibrate=True)
