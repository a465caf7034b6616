"""DPR's passages, ``psgs_w100.tsv``: the columns id, text and title, already cut into 100 words.

The file is written as csv with tabs: a field that holds a quotation mark stands in quotation marks, with those inside
doubled. It is not read as csv here, because a stray mark would then swallow the rows after it without a word: rows
are lines, and only a field that is well formed as a quoted one is taken out of its quotes.
Source: Karpukhin et al. 2020 (arXiv 2004.04906), section 4.1, and the files published with it.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rag.corpus.sources.article import one_line
from rag.corpus.sources.files import numbered_lines, source_files
from rag.errors import DataError

DPR_ROWS = 21_015_324
_HEADER = "id\ttext\ttitle"
_MAX_LINES_OF_A_ROW = 100


class PsgsRow(NamedTuple):
    """One passage of the file, with the page that it seems to be from."""

    key: int
    title: str
    text: str
    page_id: int  # the key of the first row of a run of equal titles
    ordinal: int  # place in that run, from 0


def read_psgs(path: Path, expected_rows: int | None = None) -> Iterator[PsgsRow]:
    """The passages of a psgs_w100 file, plain or gzip, in their order, which must be that of their ids.

    Text and title come in NFC, with single spaces and without control characters. Raises DataError with the line for
    any row that cannot be used, and at the end if the number of rows is not ``expected_rows`` (None: DPR's 21,015,324).
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; a psgs source is one file, psgs_w100.tsv or psgs_w100.tsv.gz")
    lines = numbered_lines(source_files(path, (".tsv", ".tsv.gz"))[0])
    _check_header(path, lines)
    rows, last_key, page_id, ordinal, page_title = 0, 0, 0, 0, ""
    for number, line in lines:
        try:
            key, text, title = _fields(line, lines)
            if key <= last_key:
                raise DataError(f"id {key} does not follow {last_key}: ids must rise, each once; sort the file")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}, line {number}: not UTF-8: {error}; download the file again") from error
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
        if title == page_title:
            ordinal += 1
        else:
            page_id, ordinal, page_title = key, 0, title
        rows, last_key = rows + 1, key
        yield PsgsRow(key, title, text, page_id, ordinal)
    _check_rows(path, rows, expected_rows)


def _fields(line: bytes, following: Iterator[tuple[int, bytes]]) -> tuple[int, str, str]:
    decoded = line.decode()
    fields = decoded.split("\t")
    if len(fields) != 3:
        fields = _whole_row(decoded, following)
    key, text, title = fields
    text, title = _value(text), _title(title)
    if not (key.isascii() and key.isdigit() and len(key) < 19):  # page ids have 63 bits
        raise DataError(f"the id {key[:40]!r} is no number; the columns must be id, text and title")
    if not text or not title:
        raise DataError(f"the {'text' if title else 'title'} of id {key} is empty")
    return int(key), text, title


def unquoted(field: str) -> str:
    """What a csv field stands for; a field that is not well formed as a quoted one stands for itself.

    >>> unquoted('"called ""inland lakes"" here"'), unquoted('"Weird Al" or "Al"'), unquoted('5" disk')
    ('called "inland lakes" here', '"Weird Al" or "Al"', '5" disk')
    """
    if len(field) < 2 or field[0] != '"' or field[-1] != '"':
        return field
    parts = field[1:-1].split('""')
    return field if any('"' in part for part in parts) else '"'.join(parts)


def _whole_row(line: str, following: Iterator[tuple[int, bytes]]) -> list[str]:
    """A row that goes on in the next lines, as csv allows inside quotation marks; DPR's own file has none.

    Only a row that is short of columns and ends inside a quoted field takes more lines, until that field closes.
    """
    fields = line.split("\t")
    used = 1
    while len(fields) < 3 and fields[-1].startswith('"') and fields[-1].count('"') % 2 and used < _MAX_LINES_OF_A_ROW:
        _, more = next(following, (0, b""))
        line = f"{line}\n{more.decode()}"
        fields = line.split("\t")
        used += 1
    if len(fields) != 3:
        columns = len(line.split("\n")[0].split("\t"))
        raise DataError(f"{columns} column(s) instead of the 3 columns id, text and title; download the file again")
    return fields


def _value(field: str) -> str:
    """Most fields are clean as they are; isprintable is False for every control and separator but the space."""
    text = unquoted(field)
    if text.isprintable() and "  " not in text and (text.isascii() or unicodedata.is_normalized("NFC", text)):
        return text.strip()
    return one_line(text)


_title = lru_cache(maxsize=8)(_value)  # the rows of a page stand together


def _check_header(path: Path, lines: Iterator[tuple[int, bytes]]) -> None:
    _, header = next(lines, (0, b""))
    found = header.decode("utf-8", errors="replace").replace('"', "")
    if found != _HEADER:
        raise DataError(
            f"{path} begins with {found[:80]!r}, not with the header 'id<TAB>text<TAB>title' of a psgs_w100 file; "
            "check the path and the format of the source"
        )


def _check_rows(path: Path, rows: int, expected: int | None) -> None:
    wanted = DPR_ROWS if expected is None else expected
    if rows != wanted:
        whose = "DPR's file has" if expected is None else "the study expects"
        raise DataError(
            f"{path} has {rows:,} rows, {whose} {wanted:,}; download it again, or, if it is another set of passages, "
            f"set sources.NAME.expected_rows = {rows} in the study"
        )
