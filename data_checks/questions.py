"""What must hold for the questions of a task, and between its splits."""

from typing import NamedTuple

import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.expectations import between, not_null, one_row, sentence
from data_checks.passage_columns import CONTROL_CHARACTERS


class Overlap(NamedTuple):
    """A question text that stands in two splits."""

    text: str
    train_ids: tuple[str, ...]
    test_ids: tuple[str, ...]


def questions_suite(expected_rows: int | None = None, answers_required: bool = True) -> ExpectationSuite:
    """The suite for rows of one task file: question_id, text, n_answers, n_empty_answers.

    ``expected_rows`` is the number that the split is known to have. Without ``answers_required`` a question may have
    no answer, as in a test set whose answers are held back.
    """
    count = (
        gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one question"))
        if expected_rows is None
        else gxe.ExpectTableRowCountToEqual(value=expected_rows, **sentence(f"exactly {expected_rows} questions"))
    )
    return ExpectationSuite(
        name="questions",
        expectations=[
            count,
            not_null("question_id", "every question has an id"),
            gxe.ExpectColumnValuesToBeUnique(column="question_id", **sentence("question ids are unique")),
            not_null("text", "every question has a text"),
            gxe.ExpectColumnValuesToMatchRegex(column="text", regex=r"\S", **sentence("question texts are not blank")),
            gxe.ExpectColumnValuesToNotMatchRegex(
                column="text", regex=CONTROL_CHARACTERS, mostly=0.99,
                **sentence("control characters are rare in questions"),
            ),
            between("n_answers", int(answers_required), None, "every question has an answer"),
            between("n_empty_answers", 0, 0, "no answer is blank"),
        ],
    )  # fmt: skip


def questions_frame(ids: list[str], texts: list[str], answers: list[tuple[str, ...]]) -> pd.DataFrame:
    """The table that ``questions_suite`` checks.

    >>> questions_frame(["q1"], ["Who is it?"], [("Ada", " ")]).to_dict("records")
    [{'question_id': 'q1', 'text': 'Who is it?', 'n_answers': 2, 'n_empty_answers': 1}]
    """
    return pd.DataFrame(
        {
            "question_id": ids,
            "text": texts,
            "n_answers": [len(of_one) for of_one in answers],
            "n_empty_answers": [sum(not answer.strip() for answer in of_one) for of_one in answers],
        }
    )


def train_test_overlap(train: pd.DataFrame, test: pd.DataFrame) -> list[Overlap]:
    """Questions of ``test`` whose text stands in ``train`` too, by text; case, spaces and end marks do not count.

    Both frames have question_id and text.

    >>> train = pd.DataFrame({"question_id": ["a"], "text": ["Who is  the President of Peru"]})
    >>> test = pd.DataFrame({"question_id": ["b", "c"], "text": ["who is the president of Peru?", "Why?"]})
    >>> train_test_overlap(train, test)
    [Overlap(text='who is the president of peru', train_ids=('a',), test_ids=('b',))]
    """
    in_train, in_test = _ids_by_text(train), _ids_by_text(test)
    return [Overlap(text, in_train[text], ids) for text, ids in sorted(in_test.items()) if text in in_train]


def _ids_by_text(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    ids: dict[str, list[str]] = {}
    for question_id, text in zip(frame["question_id"], frame["text"], strict=True):
        ids.setdefault(" ".join(str(text).casefold().split()).rstrip(" ?.!"), []).append(str(question_id))
    return {text: tuple(found) for text, found in ids.items()}


def overlap_frame(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """One row for ``overlap_suite``: how many questions of the test split stand in the training split too."""
    return pd.DataFrame([{"split": "test", "in_train": len(train_test_overlap(train, test))}])


def overlap_suite(max_overlap: int = 0) -> ExpectationSuite:
    """The suite for the row of ``overlap_frame``."""
    text = f"at most {max_overlap} questions of the test split stand in the training split"
    return ExpectationSuite(
        name="train-test overlap",
        expectations=[one_row("one row for the pair of splits"), between("in_train", 0, max_overlap, text)],
    )
