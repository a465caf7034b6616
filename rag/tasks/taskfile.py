"""What every task reader shares: rows of a file, one by one, and the questions and rejects they become."""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rag.errors import DataError
from rag.records import Question, Reject

_REJECT_CHARACTERS = 500


class TaskFile(NamedTuple):
    """The questions of a task file and the rows that are none; together they are all of its rows."""

    questions: list[Question]
    rejects: list[Reject]


class Row(NamedTuple):
    """One row of a task file, or why it could not be taken apart."""

    number: int  # line or record, from 1
    text: str  # as it stands in the file, for the reject
    fields: Mapping[str, Any]
    problem: str | None = None


def collect(path: Path, rows: Iterable[Row], parse: Callable[[Row], Question]) -> TaskFile:
    """Turn rows into questions; a row that ``parse`` refuses with a DataError, or whose id was there, is a reject."""
    questions: list[Question] = []
    rejects: list[Reject] = []
    first_row: dict[str, int] = {}
    for row in rows:
        try:
            if row.problem:
                raise DataError(row.problem)
            question = parse(row)
            if question.question_id in first_row:
                raise DataError(f"id {question.question_id!r} is that of row {first_row[question.question_id]}")
        except DataError as error:
            rejects.append(Reject(path.name, row.number, str(error), row.text[:_REJECT_CHARACTERS]))
            continue
        first_row[question.question_id] = row.number
        questions.append(question)
    return TaskFile(questions, rejects)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, cut at \\n alone, without \\r\\n, without a byte order mark.

    Raises DataError if the file cannot be read; ``.gz`` is unpacked on the way.
    """
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                start = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                yield number, start.removesuffix(b"\n").removesuffix(b"\r")
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def whole_text(path: Path) -> str:
    """The whole file as text, for formats that are one JSON value. Raises DataError as ``lines``, or if not UTF-8."""
    try:
        with _open(path) as file:
            return file.read().decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from error


def head(path: Path) -> bytes:
    """The first few thousand bytes, to tell layouts apart. Raises DataError as ``lines``."""
    try:
        with _open(path) as file:
            return file.read(4096)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def json_rows(path: Path) -> Iterator[Row]:
    """The rows of a file with one JSON object a line."""
    for number, line in lines(path):
        text = line.decode("utf-8", errors="replace")
        try:
            yield json_row(number, text, parse_json(line.decode("utf-8")))
        except UnicodeDecodeError as error:
            yield Row(number, text, {}, f"not UTF-8 at byte {error.start} of the line")
        except DataError as error:
            yield Row(number, text, {}, str(error))


def json_row(number: int, text: str, value: object) -> Row:
    """A row of a parsed JSON value, which has to be an object."""
    if not isinstance(value, dict):
        return Row(number, text, {}, f"not a JSON object but {_kind(value)}")
    return Row(number, text, value)


def parse_json(text: str) -> object:
    """The JSON value of a text. Raises DataError that says where it breaks."""
    if not text.strip():
        raise DataError("empty line")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DataError("not JSON that can be read: nested too deeply") from error
    except ValueError as error:
        raise DataError(f"not JSON: {error}") from error


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """A field that has to be text with something in it."""
    if key not in fields:
        raise DataError(f"the field {key!r} is missing; there are {', '.join(map(repr, fields)) or 'none'}")
    return checked_text(fields[key], key)


def texts_of(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A field that has to be a list, with text in each place."""
    if key not in fields:
        raise DataError(f"the field {key!r} is missing; there are {', '.join(map(repr, fields)) or 'none'}")
    values = fields[key]
    if not isinstance(values, list):
        raise DataError(f"{key!r} is {_kind(values)}, not a list of texts")
    return tuple(checked_text(value, f"{key}[{place}]") for place, value in enumerate(values))


def checked_text(value: object, key: str) -> str:
    """The value if it is text that can be stored and asked; raises DataError that names the field if not."""
    if not isinstance(value, str):
        raise DataError(f"{key!r} is {_kind(value)}, not text")
    if not value.strip():
        raise DataError(f"{key!r} is empty")
    if "\x00" in value:
        raise DataError(f"{key!r} holds a NUL character")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"{key!r} holds half a character at {error.start} (a lone surrogate)") from error
    return value


def identifier_of(fields: Mapping[str, Any], key: str) -> str:
    """A field that identifies its row: a whole number or a text."""
    value = fields.get(key)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(fields, key)


def place_id(path: Path, number: int) -> str:
    """An id for formats that have none: the file's name without its ending, and the row.

    >>> place_id(Path("data/NQ-open.dev.jsonl.gz"), 7)
    'NQ-open.dev:7'
    """
    return f"{Path(path.name.removesuffix('.gz')).stem}:{number}"


def _open(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return DataError(f"cannot read the task file {path}: {reason}; check the path in the study")


def _kind(value: object) -> str:
    names: dict[type, str] = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    if isinstance(value, bool):
        return "true or false"
    return "null" if value is None else names.get(type(value), type(value).__name__)
