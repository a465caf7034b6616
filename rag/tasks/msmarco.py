"""MS MARCO v2.1 for natural language generation: one JSON object of columns, each keyed by row.

``{"query": {"0": text, ...}, "query_id": {...}, "answers": {...}, "wellFormedAnswers": {"0": [text] or "[]"}, ...}``.
The same fields as one object a line, as the corpus's own converter writes them, are read too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import (
    Row,
    TaskFile,
    collect,
    identifier_of,
    json_row,
    json_rows,
    lines,
    parse_json,
    text_of,
    texts_of,
    whole_text,
)

_NO_ANSWER = "no answer present"
_COLUMNS = ("query", "query_id", "answers", "wellFormedAnswers")


def read(path: Path) -> TaskFile:
    """The questions with their well-formed answers; a question without any is unanswerable and has none.

    The passages of the file are not used, as in the paper. Where a file has no column of well-formed answers (v1.1),
    its answers are taken. Raises DataError if the file cannot be read.
    """
    return collect(path, json_rows(path) if _is_line_json(path) else _column_rows(path), _question)


def _is_line_json(path: Path) -> bool:
    first = next(lines(path), (1, b""))[1]
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first.lstrip()[:1] != b"{" or not _is_columns_head(first)
    return not (isinstance(value, dict) and isinstance(value.get("query"), dict))


def _is_columns_head(first: bytes) -> bool:
    """Whether an unfinished first line opens a table of columns: an object whose first value is an object."""
    after_key = first.partition(b":")[2].lstrip()
    return not after_key or after_key.startswith(b"{")


def _column_rows(path: Path) -> Iterator[Row]:
    try:
        table = parse_json(whole_text(path))
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
