"""The main path on tiny models: from questions to predictions with evidence, on disk and back."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag.config import TaskConfig
from rag.errors import DataError
from rag.pipeline import answer_questions
from rag.predictions import predict_to_folder, read_predictions
from rag.records import Prediction, Question
from tests.support.tiny_rag import tiny_rag

QA = TaskConfig(reader="open-qa", test="t", max_new_tokens=4)
FEVER = TaskConfig(reader="fever", test="t", labels={"SUPPORTS": "a", "REFUTES": "b"})
QUESTIONS = [
    Question(f"q{number}", "open-qa", text, ("x",))
    for number, text in enumerate(["the capital of peru", "who is the king", "what is the capital of france"])
]


@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
@pytest.mark.parametrize("task", [QA, FEVER, QA.model_copy(update={"num_beams": 2, "sequence_decoding": "fast"})])
@pytest.mark.parametrize("family", ["rag-token", "rag-sequence"])
def test_every_prediction_has_its_evidence(tmp_path: Path, family: str, task: TaskConfig, retriever: str) -> None:
    rag = tiny_rag(tmp_path, family, retriever=retriever)  # type: ignore[arg-type]
    predictions = list(answer_questions(rag, task, QUESTIONS))
    assert [one.question_id for one in predictions] == ["q0", "q1", "q2"]
    for one in predictions:
        assert one.error is None
        assert one.logprob <= 1e-6
        assert len(one.retrieved) == 2
        assert sum(passage.prior for passage in one.retrieved) == pytest.approx(1, abs=1e-5)
        assert sum(passage.posterior for passage in one.retrieved) == pytest.approx(1, abs=1e-5)
        assert one.retrieved[0].doc_score >= one.retrieved[1].doc_score
        best = max(one.retrieved, key=lambda passage: passage.posterior)
        assert one.cited_passage_id == best.passage_id
    if task.labels:
        assert {one.text for one in predictions} <= {"SUPPORTS", "REFUTES"}


def test_answers_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    rag = tiny_rag(tmp_path, "rag-token")
    together, alone = (list(answer_questions(rag, QA, QUESTIONS, batch_size=size)) for size in (3, 1))
    assert [one.text for one in together] == [one.text for one in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


def test_more_passages_than_the_index_has_are_masked(tmp_path: Path) -> None:
    one = next(iter(answer_questions(tiny_rag(tmp_path, "rag-sequence", n_docs=5), QA, QUESTIONS)))
    assert len(one.retrieved) == 3
    assert sum(passage.prior for passage in one.retrieved) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence"])
def test_the_scores_of_bm25_are_the_logits_of_the_prior(tmp_path: Path, family: str) -> None:
    """A question gets as many passages as share a word with it, and one that shares none has no answer."""
    rag = tiny_rag(tmp_path, family, n_docs=3, retriever="bm25")  # type: ignore[arg-type]
    questions = [*QUESTIONS, Question("q3", "open-qa", "is it the", ("x",))]
    *answered, none = answer_questions(rag, QA, questions)
    assert [len(one.retrieved) for one in answered] == [2, 1, 2]
    for one in answered:
        odds = [math.exp(passage.doc_score - one.retrieved[0].doc_score) for passage in one.retrieved]
        expected = [odd / sum(odds) for odd in odds]
        assert [passage.prior for passage in one.retrieved] == pytest.approx(expected, rel=1e-5)
    assert answered[0].retrieved[0].title == "lima"
    assert (none.text, none.retrieved) == ("", ())
    assert "no passage" in str(none.error)
    assert [one.error for one in answer_questions(rag, QA, questions[3:])] == [none.error]


def test_closed_book_cites_nothing(tmp_path: Path) -> None:
    one = next(iter(answer_questions(tiny_rag(tmp_path, "closed-book"), QA, QUESTIONS)))
    assert (one.cited_passage_id, one.retrieved) == (None, ())


def test_a_question_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    long = Question("long", "open-qa", "a " * 50, ("x",))
    predictions = list(answer_questions(tiny_rag(tmp_path, "rag-token"), QA, [QUESTIONS[0], long, QUESTIONS[1]]))
    assert [one.error is None for one in predictions] == [True, False, True]
    assert "max_source_tokens" in str(predictions[1].error)
    assert (predictions[1].text, predictions[1].logprob) == ("", -math.inf)


def test_predictions_survive_a_stop_and_come_back_whole(tmp_path: Path) -> None:
    rag = tiny_rag(tmp_path, "rag-token")
    questions = [
        Question(f"{number}\u2028", "open-qa", text, ("x",))
        for number, text in enumerate(itertools.islice(itertools.cycle([q.text for q in QUESTIONS]), 130))
    ]
    asked: list[int] = []

    def answer(chunk: Sequence[Question]) -> list[Prediction]:
        if len(asked) == 2:
            asked.append(0)
            raise KeyboardInterrupt
        asked.append(len(chunk))
        return list(answer_questions(rag, QA, chunk))

    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        predict_to_folder(questions, answer, folder)
    made = predict_to_folder(questions, answer, folder)
    assert asked == [64, 64, 0, 2]  # the first two chunks were kept
    assert [one.question_id for one in made] == [question.question_id for question in questions]
    assert read_predictions(folder) == made


def test_a_lost_prediction_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 predictions are not those of the 3 questions"):
        predict_to_folder(
            QUESTIONS, lambda chunk: list(answer_questions(tiny_rag(tmp_path, "closed-book"), QA, chunk))[:2], tmp_path
        )
