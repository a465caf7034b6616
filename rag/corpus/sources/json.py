"""Articles as JSON, one object a line: KILT's knowledge source, FEVER's wiki-pages, and plain id, title and text."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rag.corpus.sources.article import Article, Record, make_article
from rag.corpus.sources.files import SourceFile, numbered_lines, source_files
from rag.errors import DataError
from rag.text import TREEBANK_ESCAPES

_ENDINGS = (".jsonl", ".jsonl.gz")
# The text of FEVER has the Treebank's quotation marks too; its titles have not.
_BRACKETS = {**TREEBANK_ESCAPES, "``": '"', "''": '"'}
_BRACKET = re.compile("|".join(map(re.escape, _BRACKETS)))
_KILT_HEADING = "Section::::"
_KILT_BULLET = re.compile(r"BULLET::::[ \t]*(?:-|[0-9]+\.)?[ \t]*")


def read_kilt(path: Path) -> Iterator[Record]:
    """Pages of KILT's knowledge source: headings left out, list items as lines, the leading title not repeated.

    Source: Petroni et al. 2021 (arXiv 2009.02252), the file ``kilt_knowledgesource.json``.
    """
    return _records(path, _kilt_article)


def read_fever(path: Path) -> Iterator[Record]:
    """Pages of FEVER's wiki-pages, a folder, a file or the zip archive: brackets and titles as people write them.

    The key is the page's id as FEVER's evidence names it ("Lima_-LRB-Peru-RRB-"). The text stays cut into words.
    Source: Thorne et al. 2018 (arXiv 1803.05355).
    """
    return _records(path, _fever_article)


def read_jsonl(path: Path) -> Iterator[Record]:
    """Objects with id (or ``_id``), title, text (or ``contents``) and perhaps url and revision_id, of a file or folder.

    Contents without a title begin with it, on a line of its own, perhaps in quotation marks, as Pyserini writes them.
    """
    return _records(path, _plain_article)


def restore_brackets(text: str) -> str:
    """The text with the Penn Treebank's names for brackets, colons and quotation marks turned back.

    >>> restore_brackets("the football -LRB- soccer -RRB- events")
    'the football ( soccer ) events'
    """
    return _BRACKET.sub(lambda match: _BRACKETS[match.group()], text)


def _records(path: Path, article: Callable[[Mapping[str, Any]], Article]) -> Iterator[Record]:
    for file in source_files(path, _ENDINGS):
        yield from _file_records(file, article)


def _file_records(file: SourceFile, article: Callable[[Mapping[str, Any]], Article]) -> Iterator[Record]:
    for number, line in numbered_lines(file, refuse=b"<["):
        place = f"{file.name}:{number}"
        try:
            yield Record(place, number, line, article(_object(line)))
        except DataError as error:
            yield Record(place, number, line, None, str(error))


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 at byte {error.start} of the line") from error
    except RecursionError as error:
        raise DataError("not JSON that can be read: nested too deeply") from error
    except ValueError as error:
        raise DataError(f"not JSON: {error}" if line.strip() else "the line is empty") from error
    if not isinstance(value, dict):
        raise DataError("not a JSON object")
    return value


def _kilt_article(row: Mapping[str, Any]) -> Article:
    paragraphs = row.get("text")
    if not isinstance(paragraphs, list) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise DataError("'text' is missing or is no list of paragraphs")
    title = _text(row, "wikipedia_title")
    history = row.get("history")
    known = history if isinstance(history, dict) else {}
    return make_article(
        _key(row, "wikipedia_id"),
        title,
        "\n".join(_kilt_lines(title, paragraphs)),
        _optional(known, "url"),
        _revision(known, "revid"),
    )


def _kilt_lines(title: str, paragraphs: list[str]) -> Iterator[str]:
    for place, paragraph in enumerate(paragraphs):
        if paragraph.startswith(_KILT_HEADING) or (place == 0 and paragraph.strip() == title.strip()):
            continue
        yield _KILT_BULLET.sub("", paragraph, count=1) if paragraph.startswith("BULLET::::") else paragraph


def _fever_article(row: Mapping[str, Any]) -> Article:
    key, text = _text(row, "id"), _text(row, "text")
    if not key.strip() and not text.strip():
        raise DataError("the row is empty")
    return make_article(key, restore_brackets(key).replace("_", " "), restore_brackets(text))


def _plain_article(row: Mapping[str, Any]) -> Article:
    key = _key(row, "id" if "id" in row else "_id")
    if "text" not in row and "contents" in row:
        title, text = _optional(row, "title"), _text(row, "contents")
        if not title.strip():
            title, _, text = text.partition("\n")
            title = title.strip().removeprefix('"').removesuffix('"')
    else:
        title, text = _text(row, "title"), _text(row, "text")
    return make_article(key, title, text, _optional(row, "url"), _revision(row, "revision_id"))


def _key(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(row, name)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        found = ", ".join(map(repr, list(row)[:10])) or "none"
        raise DataError(f"{name!r} is {'not text' if name in row else f'missing; there are {found}'}")
    return value


def _optional(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _revision(row: Mapping[str, Any], name: str) -> int:
    """A revision's number, 0 where there is none; KILT writes it as a number or as text."""
    text = str(row.get(name))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
