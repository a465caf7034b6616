"""Multistream bz2 dumps: the borders of their streams, by the index beside the file or by the streams' first bytes.

A multistream dump holds its header, about 100 pages each, and its closing tag in streams of their own, so that a
reader can begin at any of them. The index has a line ``offset:page id:title`` for every page.
Format: https://en.wikipedia.org/wiki/Wikipedia:Database_download#Multistream_dump_index
"""

import bz2
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rag.corpus.dump.cut import TAIL_BYTES, pages_end
from rag.corpus.dump.files import AGAIN, PIECE_BYTES, bz2_streams, open_dump, plain_range
from rag.corpus.dump.header import FIRST_PAGE
from rag.errors import DumpError

# "BZh", the block size, and the magic of a first block or of the end of an empty stream.
_STREAM = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_STREAM_BYTES = 10
_SAMPLED_BORDERS = 8
_TEXT_START_BYTES = 64
_SAMPLED_BYTES = 16 << 20
_LAST_STREAM_WITHIN = 4 << 20
_LINE = re.compile(rb"(\d{1,18}):(\d{1,18}):")


class StreamRange(NamedTuple):
    """Streams that lie one after the other in the file, holding whole pages."""

    start: int
    end: int
    page_ids: tuple[int, ...] | None  # as the index has them; None without an index


def index_beside(path: Path) -> Path | None:
    """The index of a multistream dump, where it lies in the same folder.

    ``x-multistream1.xml-p1p9.bz2`` has ``x-multistream-index1.txt-p1p9.bz2``; it may be unpacked.
    """
    name = path.name.replace("-multistream", "-multistream-index", 1).replace(".xml", ".txt", 1)
    if name == path.name:
        return None
    names = (name, name.removesuffix(".bz2"), f"{name}.bz2")
    return next((path.with_name(each) for each in names if path.with_name(each).is_file()), None)


def index_lines(index: Path) -> Iterator[tuple[int, int]]:
    """Offset and page id of every page, in the order of the index.

    Raises DumpError, with the line, if the index is damaged or is none.
    """
    rest = b""
    number = 0
    for piece in _unpacked(index):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            number += 1
            yield _line(index, number, line)
    if rest:
        yield _line(index, number + 1, rest)


def _unpacked(index: Path) -> Iterator[bytes]:
    with open_dump(index) as file:
        read = bz2_streams if file.read(3) == b"BZh" else plain_range
    return read(index, 0, index.stat().st_size)


def _line(index: Path, number: int, line: bytes) -> tuple[int, int]:
    found = _LINE.match(line)
    if not found:
        raise DumpError(f"{index}, line {number} is not `offset:page id:title` but {line[:40]!r}; {AGAIN}")
    return int(found[1]), int(found[2])


def indexed_ranges(path: Path, index: Path, size: int) -> Iterator[StreamRange]:
    """The whole file in ranges of about ``size`` bytes, each of whole streams with the page ids of the index.

    Raises DumpError if the index goes backwards or beyond the end of the file.
    """
    length = path.stat().st_size
    start = stream = 0
    page_ids: list[int] = []
    for offset, page_id in index_lines(index):
        if not stream <= offset < length:
            raise DumpError(
                f"{index} has a stream at byte {offset} after one at {stream}, which {path} of {length} bytes does not "
                f"have: one of the two is cut or they are of different dumps; {AGAIN}"
            )
        if offset != stream and offset - start >= size:
            yield StreamRange(start, offset, tuple(page_ids))
            start, page_ids = offset, []
        stream = offset
        page_ids.append(page_id)
    yield StreamRange(start, length, tuple(page_ids))


def found_ranges(path: Path, size: int) -> Iterator[StreamRange]:
    """The same without an index: every range begins with a stream whose text begins with a page."""
    start = 0
    for border in stream_borders(path):
        if border - start >= size and FIRST_PAGE.match(_text_start(path, border)):
            yield StreamRange(start, border, None)
            start = border
    yield StreamRange(start, path.stat().st_size, None)


def has_page_streams(path: Path) -> bool:
    """Whether a bz2 file is one of many short streams that begin with pages, by the first of them.

    Some tools cut anywhere, and others put a whole dump between the streams of its header and its closing tag.
    """
    borders = list(islice(stream_borders(path, _SAMPLED_BYTES), _SAMPLED_BORDERS))
    if not borders or (len(borders) < _SAMPLED_BORDERS and path.stat().st_size > _SAMPLED_BYTES):
        return False
    texts = (_text_start(path, border) for border in borders)
    return all(FIRST_PAGE.match(text) or text.startswith(b"</mediawiki") for text in texts)


def stream_borders(path: Path, end: int | None = None) -> Iterator[int]:
    """Where the streams after the first begin, in file order, in the bytes before ``end``."""
    position, window = 0, b""
    for piece in plain_range(path, 0, path.stat().st_size if end is None else end):
        window += piece
        yield from (position + found.start() for found in _STREAM.finditer(window) if position + found.start())
        position += max(0, len(window) - _STREAM_BYTES + 1)
        window = window[-_STREAM_BYTES + 1 :]


def check_last_stream(path: Path, bare: bool) -> None:
    """DumpError if the last stream is cut or lacks the closing tag; a stream longer than the window is let pass."""
    length = path.stat().st_size
    start = max(0, length - _LAST_STREAM_WITHIN)
    with open_dump(path) as file:
        file.seek(start)
        borders = [found.start() for found in _STREAM.finditer(file.read())]
    if borders:
        tail = b""
        for piece in bz2_streams(path, start + borders[-1], length):
            tail = (tail + piece)[-TAIL_BYTES:]
        pages_end(path, tail, bare)


def _text_start(path: Path, offset: int) -> bytes:
    """The first bytes of the text of a stream, without the space before them."""
    stream, text = bz2.BZ2Decompressor(), b""
    with open_dump(path) as file:
        file.seek(offset)
        while len(text) < _TEXT_START_BYTES and not stream.eof and (piece := file.read(PIECE_BYTES >> 4)):
            try:
                text = (text + stream.decompress(piece, PIECE_BYTES)).lstrip()
            except OSError as error:
                where = f"in the stream that starts at byte {offset}"
                raise DumpError(f"{path} is cut or corrupt {where}: {error}; {AGAIN}") from error
            if not stream.needs_input:
                break
    return text
