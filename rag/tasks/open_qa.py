"""NQ-open: one JSON object a line, ``{"question": text, "answer": [text, ...]}``."""

from functools import partial
from pathlib import Path

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import Row, TaskFile, collect, json_rows, place_id, text_of, texts_of


def read(path: Path) -> TaskFile:
    """The questions of an NQ-open file; each one's id is the file's name and the line, as the format has none.

    Raises DataError if the file cannot be read.
    """
    return collect(path, json_rows(path), partial(_question, path))


def _question(path: Path, row: Row) -> Question:
    answers = texts_of(row.fields, "answer")
    if not answers:
        raise DataError("'answer' is an empty list; an open question needs a gold answer")
    return Question(place_id(path, row.number), "open-qa", text_of(row.fields, "question"), answers)
