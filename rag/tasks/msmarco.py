"""MS MARCO v2.1 for natural language generation: one JSON object of columns, each keyed by row.

``{"query": {"0": text, ...}, "query_id": {...}, "answers": {...}, "wellFormedAnswers": {"0": [text] or "[]"}, ...}``.
The same fields as one object a line, as the corpus's own converter writes them, are read too.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import (
    Row,
    TaskFile,
    collect,
    head,
    identifier_of,
    json_row,
    json_rows,
    parse_json,
    text_of,
    texts_of,
    whole_text,
)

_FIRST_VALUE = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"[^"]*"\s*:\s*(.)')
_NO_ANSWER = "no answer present"
_COLUMNS = ("query", "query_id", "answers", "wellFormedAnswers")


def read(path: Path) -> TaskFile:
    """The questions with their well-formed answers; a question without any is unanswerable and has none.

    The passages of the file are not used, as in the paper. Where a file has no column of well-formed answers (v1.1),
    its answers are taken. Raises DataError if the file cannot be read.
    """
    return collect(path, _column_rows(path) if _is_columns(path) else json_rows(path), _question)


def _is_columns(path: Path) -> bool:
    """Whether the file opens a table of columns: an object whose first value is an object."""
    first_value = _FIRST_VALUE.match(head(path))
    return first_value is not None and first_value[1] == b"{"


def _column_rows(path: Path) -> Iterator[Row]:
    text = whole_text(path)
    try:
        table = parse_json(text)
    except DataError as error:
        raise DataError(f"{path}: {error}; MS MARCO's columns are one JSON value, fetch the file again") from error
    columns = {name: column for name, column in _objects(table).items() if name in _COLUMNS}
    for name, column in columns.items():
        if not isinstance(column, dict):
            raise DataError(f"{path}: the column {name!r} is not an object keyed by row; fetch the file again")
    for number, key in enumerate(columns.get("query", {}), start=1):
        fields = {name: column[key] for name, column in columns.items() if key in column}
        yield json_row(number, json.dumps(fields, ensure_ascii=False), fields)


def _objects(table: object) -> dict[str, Any]:
    return table if isinstance(table, dict) else {}


def _question(row: Row) -> Question:
    text = text_of(row.fields, "query")
    return Question(identifier_of(row.fields, "query_id"), "msmarco", text, _answers(row))


def _answers(row: Row) -> tuple[str, ...]:
    key = "wellFormedAnswers" if "wellFormedAnswers" in row.fields else "answers"
    if row.fields.get(key) in ("[]", "", [""]):  # the corpus writes an empty list as text
        return ()
    answers = texts_of(row.fields, key)
    return tuple(answer for answer in answers if answer.strip().rstrip(".").lower() != _NO_ANSWER)
