"""Jeopardy question generation: the answer entity is the input, the clue is what has to be written.

Two layouts: a JSON list of objects with the keys question and answer (in either case), and a CSV file with a header
whose names may begin with blanks.
"""

import csv
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import Row, TaskFile, collect, json_row, lines, parse_json, place_id, text_of, whole_text


def read(path: Path) -> TaskFile:
    """The clues of a Jeopardy file; each one's id is the file's name and its place, as the format has none.

    Raises DataError if the file cannot be read, or if it is no JSON list and no CSV with the two columns.
    """
    is_csv = ".csv" in path.suffixes
    return collect(path, _csv_rows(path) if is_csv else _json_rows(path), partial(_question, path))


def _question(path: Path, row: Row) -> Question:
    fields = {key.strip().lower(): value for key, value in row.fields.items()}
    clue, answer = (text_of(fields, name).replace("\\'", "'") for name in ("question", "answer"))
    return Question(
        place_id(path, row.number), "jeopardy", answer, (_unwrapped(clue) if "question" in row.fields else clue,)
    )


def _unwrapped(clue: str) -> str:
    """The clue without the pair of single quotes that the public dump with lower-case keys puts around each.

    >>> _unwrapped("'No. 2: 1912 Olympian'"), _unwrapped("'Tis a pity she's a whore")
    ('No. 2: 1912 Olympian', "'Tis a pity she's a whore")
    """
    wrapped = len(clue) > 2 and clue[0] == clue[-1] == "'"
    return clue[1:-1] if wrapped else clue


def _json_rows(path: Path) -> Iterator[Row]:
    text = whole_text(path)
    try:
        values = parse_json(text)
    except DataError as error:
        raise DataError(f"{path}: {error}; a Jeopardy file is one JSON list, fetch it again") from error
    if not isinstance(values, list):
        raise DataError(f"{path} is no JSON list of clues; give a Jeopardy JSON or CSV file")
    for number, value in enumerate(values, start=1):
        yield json_row(number, json.dumps(value, ensure_ascii=False), value)


def _csv_rows(path: Path) -> Iterator[Row]:
    # One line at a time: a quote that is never closed then costs its own row, not the rest of the file.
    header: list[str] = []
    for number, line in lines(path):
        text = line.decode("utf-8", errors="replace")
        try:
            cells = next(csv.reader([line.decode("utf-8")], strict=True, skipinitialspace=not header), [])
        except (UnicodeDecodeError, csv.Error) as error:
            yield Row(number, text, {}, f"not a row of CSV: {error}")
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            if not {"question", "answer"} <= {name.lower() for name in header}:
                raise DataError(f"{path} has no columns Question and Answer but {', '.join(header) or 'none'}")
            continue
        problem = None if len(cells) == len(header) else f"{len(cells)} cells, the header has {len(header)}"
        yield Row(number, text, dict(zip(header, cells, strict=False)), problem)
