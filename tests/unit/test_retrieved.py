"""What retrievers found, on disk: read back question by question, and scored as it would be without the file."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag.errors import DataError
from rag.evaluation.retrieval_score import ScoredPassage, score_retrieval
from rag.records import Passage, Question
from rag.retrieved import RETRIEVED_FILE, read_retrieved, retrieve_to_file, score_file
from tests.support.word_retriever import WordRetriever

PASSAGES = [
    Passage(f"w:{row}:0", title, text, row, 1)
    for row, (title, text) in enumerate([("Peru", "the capital is Lima"), ("Chile", "Santiago"), ("Oslo", "of Norway")])
]
QUESTIONS = {
    "qa": [
        Question(f"q{row}", "open-qa", text, ("Lima",)) for row, text in enumerate(["capital of Peru", "", "Chile"])
    ],
    "claims": [Question("q0", "fever", "Oslo is in Chile", ("REFUTES",), ("Oslo",), (("Oslo",),))],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / RETRIEVED_FILE


def test_every_question_comes_back_with_its_passages(path: Path) -> None:
    retriever = WordRetriever.of(PASSAGES)
    rows = retrieve_to_file(retriever, QUESTIONS, 2, path)
    assert pq.read_metadata(path).num_rows == rows
    for task, questions in QUESTIONS.items():
        read = dict(read_retrieved(path, task, questions))
        found = retriever.retrieve([question.text for question in questions], 2)
        assert set(read) == set(questions)
        for row, question in enumerate(questions):
            scores = found.doc_scores[row][found.mask[row]].tolist()
            assert read[question] == [
                ScoredPassage(passage.text, passage.title, score)
                for passage, score in zip(found.passages[row], scores, strict=True)
            ]
    assert read_nothing(path) == []
    assert list(path.parent.iterdir()) == [path]


def read_nothing(path: Path) -> list[ScoredPassage]:
    """The passages of the question without a word."""
    return dict(read_retrieved(path, "qa", QUESTIONS["qa"]))[QUESTIONS["qa"][1]]


def test_scores_from_the_file_are_the_scores(path: Path) -> None:
    retrieve_to_file(WordRetriever.of(PASSAGES), QUESTIONS, 3, path)
    for task, questions in QUESTIONS.items():
        read = {question.question_id: passages for question, passages in read_retrieved(path, task, questions)}
        scored = score_file(path, task, questions, [1, 2], patterns=False, seed=1)
        assert scored == score_retrieval(questions, read, [1, 2], patterns=False, seed=1)
        assert scored.metrics


def test_batches_change_nothing(path: Path) -> None:
    many = {"qa": [Question(f"q{row}", "open-qa", f"capital {row} Peru", ("Lima",)) for row in range(150)]}
    seen: list[int] = []

    def progress(batches):  # type: ignore[no-untyped-def]
        for task, asked in batches:
            seen.append(len(asked))
            yield task, asked

    retrieve_to_file(WordRetriever.of(PASSAGES), many, 1, path, progress)
    assert sum(seen) == 150
    assert len(seen) > 1
    assert [question for question, _ in read_retrieved(path, "qa", many["qa"])] == many["qa"]


def test_passages_of_another_question_are_refused(path: Path) -> None:
    retrieve_to_file(WordRetriever.of(PASSAGES), QUESTIONS, 1, path)
    with pytest.raises(DataError, match="passages of 'q2', which is no question of qa"):
        score_file(path, "qa", QUESTIONS["qa"][:2], [1], patterns=False, seed=0)
