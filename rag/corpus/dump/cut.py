"""A dump cut at page borders into blocks of a few megabytes of XML.

The borders depend on the bytes of the dump alone: not on the number of readers, nor on where reading began.
Text is escaped in a dump, so </page> is always the tag; a dump that hides one in a comment or a CDATA section is
cut in the wrong place and then refused, never misread.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rag.corpus.dump.files import AGAIN, PIECE_BYTES, open_dump
from rag.corpus.dump.pages import CLOSING_TAG
from rag.errors import DumpError

PAGE_END = b"</page>"
_END = re.compile(rb"</mediawiki\s*>\s*\Z")
TAIL_BYTES = 1 << 16


class BigPage(NamedTuple):
    """A page, with what stands before it, that is too long to be held: to be used up before the next block."""

    pieces: Iterator[bytes]


def cut_pages(path: Path, pieces: Iterator[bytes], bare: bool, size: int) -> Iterator[bytes | BigPage]:
    """Cut a stream of XML into blocks: each ends at the first page end at or after ``size`` bytes.

    Where that is beyond twice ``size``, the block ends at the last page end before ``size``; and where there is
    none either, it is one page that is handed on as a stream. The first block holds the header. Raises DumpError
    at the end of a stream that lacks the closing tag (bare pages have none).

    >>> pieces = iter([b"<mediawiki><page>1</page><page>2</pa", b"ge><page>3</page></mediawiki>"])
    >>> list(cut_pages(Path("dump.xml"), pieces, bare=False, size=30))
    [b'<mediawiki><page>1</page><page>2</page>', b'<page>3</page>']
    """
    pending, pieces = bytearray(), filter(None, pieces)
    more = True
    while more:
        if end := _block_end(pending, size):
            yield bytes(pending[:end])
            del pending[:end]
        elif len(pending) >= 2 * size:
            yield BigPage(_one_page(path, pending, pieces))
        else:
            piece = next(pieces, b"")
            more = bool(piece)
            pending += piece
    if len(pending) >= size and (end := _page_end_before(pending, size)):
        yield bytes(pending[:end])
        del pending[:end]
    yield from _last(path, bytes(pending), bare)


def _block_end(pending: bytearray, size: int) -> int:
    """Where the block that begins these bytes ends; 0 if that cannot be told yet, or if it is a big page."""
    found = pending.find(PAGE_END, size - len(PAGE_END), 2 * size)
    if found >= 0:
        return found + len(PAGE_END)
    return _page_end_before(pending, size) if len(pending) >= 2 * size else 0


def _page_end_before(pending: bytearray, size: int) -> int:
    found = pending.rfind(PAGE_END, 0, size)
    return found + len(PAGE_END) if found >= 0 else 0


def _one_page(path: Path, pending: bytearray, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes up to the end of the first page, leaving the rest in ``pending``."""
    while (found := pending.find(PAGE_END)) < 0:
        keep = len(PAGE_END) - 1  # the tag may begin at the end of one piece
        yield bytes(pending[:-keep])
        del pending[:-keep]
        piece = next(pieces, b"")
        if not piece:
            raise _without_closing_tag(path)
        pending += piece
    end = found + len(PAGE_END)
    yield bytes(pending[:end])
    del pending[:end]


def _last(path: Path, pending: bytes, bare: bool) -> Iterator[bytes]:
    rest = pending[: pages_end(path, pending, bare)]
    if rest.strip():
        yield rest


def pages_end(path: Path, tail: bytes, bare: bool) -> int:
    """Where the pages end in the last bytes of a dump."""
    if bare:
        if tail.strip() and not tail.rstrip().endswith(PAGE_END):
            raise DumpError(f"{path} ends before the closing tag of its last page; {AGAIN}")
        return len(tail)
    start = tail.rfind(b"</mediawiki")
    if start < 0 or not _END.match(tail, start):
        raise _without_closing_tag(path)
    return len(tail[:start].rstrip())


def _without_closing_tag(path: Path) -> DumpError:
    return DumpError(f"{path} ends before its closing tag {CLOSING_TAG.decode()}; {AGAIN}")


def plain_end(path: Path, bare: bool) -> int:
    """Where the pages of an uncompressed dump end; DumpError if the closing tag is missing."""
    with open_dump(path) as file:
        start = file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return start + pages_end(path, file.read(), bare)


def plain_ranges(path: Path, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of whole pages of an uncompressed dump, one after the other from 0 to ``end``.

    Each ends at the first page end at or after ``size`` bytes. Reads little more than a page of each.
    """
    start = 0
    with open_dump(path) as file:
        while start < end:
            cut = _page_end_after(file, start + size - len(PAGE_END), end)
            yield start, cut
            start = cut


def _page_end_after(file: BinaryIO, position: int, end: int) -> int:
    """The end of the first </page> that begins at or after a position; ``end`` if there is none."""
    window, read = b"", PIECE_BYTES >> 4
    file.seek(position)
    while position + len(window) < end and (piece := file.read(min(read, end - position - len(window)))):
        window += piece
        if (found := window.find(PAGE_END)) >= 0:
            return position + found + len(PAGE_END)
        position += max(0, len(window) - len(PAGE_END) + 1)
        window, read = window[-len(PAGE_END) + 1 :], PIECE_BYTES
    return end
