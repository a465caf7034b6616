"""score_task: joined by id, errors counted and never scored, a metric for every question that can be scored."""

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag.errors import DataError
from rag.evaluation.generation import bleu_1, distinct_trigram_ratio, rouge_l
from rag.evaluation.q_bleu import q_bleu_1
from rag.evaluation.score import score_task
from rag.evaluation.score_files import PER_QUESTION_FILE, write_scores
from rag.evaluation.scorer import Scores
from rag.evaluation.statistics import wilson_interval
from rag.records import Metric, Prediction, Question, RetrievedPassage, TaskName


def _question(question_id: str, *answers: str, task: TaskName = "open-qa") -> Question:
    return Question(question_id, task, f"question {question_id}", answers)


def _prediction(question_id: str, text: str, *passages: str, error: str | None = None) -> Prediction:
    retrieved = tuple(
        RetrievedPassage(question_id, rank, f"w:{rank}:0", "Title", passage, 1.0, 0.5, 0.5)
        for rank, passage in enumerate(passages)
    )
    return Prediction(question_id, text, -1.0, None, retrieved, 0.1, error)


def _metrics(scores: Scores) -> dict[str, Metric]:
    assert len({metric.name for metric in scores.metrics}) == len(scores.metrics)
    return {metric.name: metric for metric in scores.metrics}


QUESTIONS = [_question("a", "Lima"), _question("b", "Ted Turner", "Robert Turner"), _question("c", "1907")]
QUESTIONS += [_question("d", "x"), _question("e", "y")]
PREDICTIONS = [
    _prediction("c", "in 1907", "Nothing here.", "Built in 1900."),
    _prediction("b", "Robert Turner", "He is old.", "She too."),
    _prediction("a", "the Lima", "Quito", "Lima is the capital."),
    _prediction("d", "", error="out of memory"),
]


def test_open_qa() -> None:
    scores = score_task("open-qa", QUESTIONS, PREDICTIONS, seed=0)
    metrics = _metrics(scores)
    of_passages = ["answer_in_passage", "answer_in_cited_passage", "correct_without_passage"]
    assert list(metrics) == ["exact_match", "f1", *of_passages]
    em = metrics["exact_match"]
    assert (em.value, em.n, em.n_expected, em.n_errors, em.unit) == (2 / 3, 3, 5, 2, "fraction")
    assert (em.low, em.high) == wilson_interval(2, 3)
    assert em.signature == "exact_match|norm:squad-1|agg:max-over-answers|ci:wilson|v1"
    assert metrics["f1"].value == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert metrics["answer_in_passage"].value == pytest.approx(1 / 3)
    assert "n_docs:2" in metrics["answer_in_passage"].signature
    without = metrics["correct_without_passage"]  # of b and c, whose passages hold no answer, b is right
    assert (without.value, without.n, without.n_errors) == (0.5, 2, 2)
    assert scores.notes == ["1 of 5 questions have no prediction", "1 of 5 questions failed"]


def test_the_cited_passage_is_judged_apart_from_the_others() -> None:
    made = [_prediction("a", "Lima", "Quito", "Lima is the capital."), _prediction("b", "x", "Ted Turner", "Lima")]
    predictions = [made[0]._replace(cited_passage_id="w:1:0"), made[1]._replace(cited_passage_id="w:1:0")]
    metrics = _metrics(score_task("open-qa", QUESTIONS[:2], predictions, seed=0))
    assert metrics["answer_in_passage"].value == 1
    cited = metrics["answer_in_cited_passage"]
    assert (cited.value, cited.n) == (0.5, 2)
    assert cited.signature == "answer_in_cited_passage|match:dpr-string|of:largest-posterior|n_docs:2|ci:wilson|v1"


def test_open_qa_with_answers_that_are_patterns(tmp_path: Path) -> None:
    questions = [_question("a", "20,?320 f(ee|oo)t"), _question("b", "Franco|Vichy"), _question("c", "(the )?Thaw")]
    predictions = [
        _prediction("a", "20,320 feet high", "It is 20320 feet high."),
        _prediction("b", "General Franco", "Nobody."),
        _prediction("c", "the Thaw", "Nothing."),
    ]
    scores = score_task("open-qa", questions, predictions, seed=0, patterns=True)
    values = {name: metric.value for name, metric in _metrics(scores).items()}
    assert values == {
        "exact_match": pytest.approx(2 / 3),
        "exact_match_search": 1,
        "exact_match_fullmatch": pytest.approx(1 / 3),
        "answer_in_passage": pytest.approx(1 / 3),
        "answer_in_cited_passage": 0,  # none is cited
        "correct_without_passage": 0.5,
    }
    signatures = {metric.name: metric.signature for metric in scores.metrics}
    assert "norm:nfd|match:regex-match" in signatures["exact_match"]
    assert "match:regex-search" in signatures["answer_in_passage"]
    write_scores(tmp_path, questions, predictions, scores, patterns=True)
    rows = pq.read_table(tmp_path / PER_QUESTION_FILE).to_pylist()
    assert [(row["normalised"], row["score"], row["has_answer"]) for row in rows] == [
        ("20,320 feet high", 1, [True]),
        ("General Franco", 0, [False]),
        ("the Thaw", 1, [False]),
    ]
    as_texts = _metrics(score_task("open-qa", questions, predictions, seed=0))
    assert as_texts["answer_in_passage"].value == 0


def test_per_question_values_are_the_metric() -> None:
    scores = score_task("open-qa", QUESTIONS, PREDICTIONS, seed=0)
    right = {row.question_id: row.value for row in scores.per_question if row.metric == "exact_match"}
    assert right == {"a": 1.0, "b": 1.0, "c": 0.0}
    for metric in scores.metrics:
        values = [row.value for row in scores.per_question if row.metric == metric.name]
        assert len(values) == metric.n
        assert math.fsum(values) / metric.n == pytest.approx(metric.value)


def test_scored_and_failed_are_together_what_was_expected() -> None:
    for metric in score_task("open-qa", QUESTIONS, PREDICTIONS, seed=0).metrics:
        assert metric.n + metric.n_errors in (metric.n_expected, len(QUESTIONS))
        assert metric.low <= metric.value <= metric.high


def test_a_metric_without_a_question_is_left_out_with_a_note() -> None:
    scores = score_task("open-qa", [_question("a", "Lima")], [_prediction("a", "Lima", "In Lima.")], seed=0)
    assert "correct_without_passage" not in _metrics(scores)
    assert scores.notes == ["correct_without_passage is left out: there is no question to score it on"]


def test_without_passages_there_are_no_passage_metrics() -> None:
    scores = score_task("open-qa", [_question("a", "Lima")], [_prediction("a", "Lima")], seed=0)
    assert list(_metrics(scores)) == ["exact_match", "f1"]
    assert scores.notes == ["no passage was retrieved: metrics of the passages are left out"]


def test_an_empty_prediction_is_wrong_and_counted() -> None:
    scores = score_task("open-qa", QUESTIONS[:2], [_prediction("a", " "), _prediction("b", "Ted Turner")], seed=0)
    assert _metrics(scores)["exact_match"].value == 0.5
    assert scores.notes[0] == "1 of 2 questions got an empty prediction, which is scored"


@pytest.mark.parametrize("task", ["open-qa", "fever", "msmarco", "jeopardy"])
def test_nothing_predicted_gives_no_number(task: TaskName) -> None:
    scores = score_task(task, [_question("a", "SUPPORTS", task=task)], [], seed=0)
    assert scores.metrics == []
    assert scores.notes[0] == "1 of 1 questions have no prediction"
    assert len(scores.notes) > 1


def test_duplicate_and_unknown_ids_are_errors() -> None:
    with pytest.raises(DataError, match="1 ids have more than one prediction, the first is 'a'"):
        score_task("open-qa", QUESTIONS, [_prediction("a", "x"), _prediction("a", "y")], seed=0)
    with pytest.raises(DataError, match="answer no question of this task, the first is 'z'"):
        score_task("open-qa", QUESTIONS, [_prediction("z", "x")], seed=0)
    with pytest.raises(DataError, match="more than one question, the first is 'a'"):
        score_task("open-qa", [*QUESTIONS, QUESTIONS[0]], [], seed=0)
    with pytest.raises(DataError, match="no question to score"):
        score_task("open-qa", [], [], seed=0)


def test_questions_without_their_gold_are_errors() -> None:
    with pytest.raises(DataError, match="'a' has 0 gold answers; open-qa needs at least one"):
        score_task("open-qa", [_question("a")], [], seed=0)
    with pytest.raises(DataError, match="'a' has 2 gold answers; fever needs exactly one label"):
        score_task("fever", [_question("a", "SUPPORTS", "REFUTES", task="fever")], [], seed=0)
    with pytest.raises(DataError, match="belongs to fever, not to open-qa"):
        score_task("open-qa", [_question("a", "SUPPORTS", task="fever")], [], seed=0)


def test_fever_three_and_two_way() -> None:
    labels = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO", "SUPPORTS"]
    questions = [_question(str(i), label, task="fever") for i, label in enumerate(labels)]
    guesses = ["supports", "NOT ENOUGH INFO", "NOT ENOUGH INFO", "REFUTES"]
    scores = score_task("fever", questions, [_prediction(str(i), guess) for i, guess in enumerate(guesses)], seed=0)
    metrics = _metrics(scores)
    assert metrics["label_accuracy"].value == 0.5
    assert (metrics["label_accuracy_2way"].value, metrics["label_accuracy_2way"].n) == (1 / 3, 3)
    assert "gold-nei:removed" in metrics["label_accuracy_2way"].signature


def test_msmarco_leaves_out_the_unanswerable_and_counts_them() -> None:
    golds = [("Pound is the currency of Scotland.", "The pound."), (), ("Lima is in Peru.",)]
    questions = [_question(str(i), *gold, task="msmarco") for i, gold in enumerate(golds)]
    texts = ["The currency is the pound.", "Whatever this is, it counts for nothing.", "Lima is in Peru."]
    scores = score_task("msmarco", questions, [_prediction(str(i), text) for i, text in enumerate(texts)], seed=0)
    metrics = _metrics(scores)
    kept, references = [texts[0], texts[2]], [golds[0], golds[2]]
    assert metrics["bleu_1"].value == pytest.approx(bleu_1(kept, references))
    assert metrics["rouge_l"].value == pytest.approx(rouge_l(kept, references))
    assert metrics["distinct_trigram_ratio"].value == distinct_trigram_ratio(kept)
    assert {metric.n_expected for metric in scores.metrics} == {2}
    assert scores.notes == ["1 of 3 questions are unanswerable: not scored"]


def test_jeopardy() -> None:
    clues = ["This state has the most counties", "This poem by Dante has three parts", "It is the capital of Peru"]
    questions = [_question(str(i), clue, task="jeopardy") for i, clue in enumerate(clues)]
    texts = ["This state has many counties", "This poem has three parts", "This state has the most people"]
    scores = score_task("jeopardy", questions, [_prediction(str(i), text) for i, text in enumerate(texts)], seed=0)
    metrics = _metrics(scores)
    references = [[clue] for clue in clues]
    assert metrics["bleu_1"].value == pytest.approx(bleu_1(texts, references))
    assert metrics["q_bleu_1"].value == pytest.approx(q_bleu_1(texts, references))
    for metric in scores.metrics:
        assert 0 <= metric.low <= metric.value <= metric.high <= 1 + 1e-9
    assert metrics["bleu_1"].low < metrics["bleu_1"].high
    assert {row.metric for row in scores.per_question} == {"q_bleu_1"}


def test_the_same_seed_gives_the_same_intervals() -> None:
    first, again, other = (score_task("open-qa", QUESTIONS, PREDICTIONS, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.per_question == other.per_question


def test_distinct_trigram_interval_is_around_its_value() -> None:
    texts = [f"the capital of country {i % 7} is city {i} by the sea" for i in range(60)]
    questions = [_question(str(i), "x y z", task="jeopardy") for i in range(60)]
    scores = score_task("jeopardy", questions, [_prediction(str(i), text) for i, text in enumerate(texts)], seed=0)
    ratio = _metrics(scores)["distinct_trigram_ratio"]
    assert ratio.low < ratio.value < ratio.high
    one = score_task("jeopardy", questions[:1], [_prediction("0", texts[0])], seed=0)
    assert (_metrics(one)["distinct_trigram_ratio"].low, _metrics(one)["distinct_trigram_ratio"].high) == (0, 1)
