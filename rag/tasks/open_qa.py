"""NQ-open: one JSON object a line, ``{"question": text, "answer": [text, ...]}``; CuratedTREC has patterns there."""

from functools import partial
from pathlib import Path

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import Row, TaskFile, collect, json_rows, place_id, text_of, texts_of
from rag.text import compile_pattern


def read(path: Path, patterns: bool = False) -> TaskFile:
    """The questions of an NQ-open file; each one's id is the file's name and the line, as the format has none.

    With ``patterns`` the answers are regular expressions, and a row with one that is none, or that fits everything,
    is a reject. Raises DataError if the file cannot be read.
    """
    return collect(path, json_rows(path), partial(_question, path, patterns))


def _question(path: Path, patterns: bool, row: Row) -> Question:
    answers = texts_of(row.fields, "answer")
    if not answers:
        raise DataError("'answer' is an empty list; an open question needs a gold answer")
    for answer in answers if patterns else ():
        if compile_pattern(answer).search(""):
            raise DataError(f"answer pattern {answer!r} fits the empty text, and so every text")
    return Question(place_id(path, row.number), "open-qa", text_of(row.fields, "question"), answers)
