"""What the readers of all sources share: articles of clean text, and what becomes of a row that holds none."""

import hashlib
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections import defaultdict
from typing import NamedTuple

from rag.corpus.wikitext.marks import without_controls
from rag.errors import DataError

_MAX_ID = 2**63 - 1  # page_id is int64
_RAW_CHARACTERS = 500
# Control characters and separators at which str.split or a reader breaks a line.
_BREAK = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile("[1-9][0-9]{0,18}")


class Article(NamedTuple):
    """The plain text of one page, of a source that is no MediaWiki dump."""

    key: str  # the source's own id
    page_id: int  # the key where it is a positive number, else a hash of it
    revision_id: int  # 0 where the source has none
    title: str
    text: str  # one paragraph a line; NFC, without control characters
    url: str  # "" where there is none


class Unreadable(NamedTuple):
    """A row or document, or a page of one, that cannot be used."""

    key: str  # where it stands: "file:row", or the path of a document in its folder
    row: int  # from 1: the line or record in its file, the page of a document; 0 for a whole document
    reason: str
    text: str  # the row as it is, or its first 500 characters


class Record(NamedTuple):
    """One row of a source on its way: its place, and an article or the reason why there is none."""

    key: str
    row: int
    raw: str | bytes
    article: Article | None
    problem: str = ""


def make_article(key: str, title: str, text: str, url: str = "", revision_id: int = 0) -> Article:
    """An article of raw texts, cleaned. Raises DataError where id, title or text is blank.

    >>> make_article("12", "Lima ", "Lima is\\tthe capital.\\r\\n\\r\\n\\r\\nIt is old.").text
    'Lima is the capital.\\nIt is old.'
    """
    clean_key, clean_title, clean = one_line(key), one_line(title), clean_text(text)
    for name, value in (("id", clean_key), ("title", clean_title), ("text", clean)):
        if not value:
            raise DataError(f"the {name} is empty")
    # Anything but the web's own schemes could run code where a report shows it as a link.
    shown = one_line(url) if url.startswith(("http://", "https://")) else ""
    return Article(clean_key, page_id_of(clean_key), revision_id, clean_title, clean, shown)


def clean_text(text: str) -> str:
    """The text in NFC, a paragraph a line: no blank lines, single spaces, no control or invisible characters."""
    broken = text if text.isascii() and text.isprintable() else without_controls(_BREAK.sub("\n", text))
    lines = (" ".join(line.split()) for line in unicodedata.normalize("NFC", broken).split("\n"))
    return "\n".join(line for line in lines if line)


def one_line(text: str) -> str:
    """Like ``clean_text``, with the lines joined by spaces."""
    return clean_text(text).replace("\n", " ")


def page_id_of(key: str) -> int:
    """The key itself where it is a positive 63-bit number, else a positive 63-bit hash of it, the same everywhere.

    >>> page_id_of("290"), page_id_of("notes/a.pdf"), page_id_of("007") == page_id_of("7")
    (290, 7285223092248329364, False)
    """
    if _NUMBER.fullmatch(key) and int(key) <= _MAX_ID:
        return int(key)
    digest = hashlib.sha1(key.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") & _MAX_ID or 1


def unreadable(record: Record, reason: str) -> Unreadable:
    """The record as what the caller keeps of it."""
    raw = record.raw[: 4 * _RAW_CHARACTERS]  # a character has four bytes at most
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    shown = text[:_RAW_CHARACTERS].encode("utf-8", errors="replace").decode()
    return Unreadable(printable(record.key), record.row, printable(reason), shown)


def printable(text: str) -> str:
    """The text with U+FFFD for the bytes of a file name that are no UTF-8, which Python carries as lone surrogates.

    >>> printable("caf\\udce9.txt")
    'caf\ufffd.txt'
    """
    return _SURROGATE.sub("\ufffd", text)


class SeenIds:
    """A set of 63-bit ids that takes under 20 bytes an id, where a set of Python's takes 80: millions of pages fit."""

    def __init__(self) -> None:
        self._buckets: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))

    def add(self, page_id: int) -> bool:
        """Whether the id is new; it is in the set from now on."""
        bucket = self._buckets[page_id & 0xFFFF]
        place = bisect_left(bucket, page_id)
        if place < len(bucket) and bucket[place] == page_id:
            return False
        bucket.insert(place, page_id)
        return True
