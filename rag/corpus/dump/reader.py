"""Pages of a MediaWiki XML dump, one at a time or in blocks for many readers, in constant memory.

Reads the export format 0.3 to 0.11, plain or packed with bz2 (one stream or many), gzip, xz or zstd. A dump that
does not end with its closing tag is an error wherever it was cut: half a Wikipedia never looks like a whole one.
Where the index of a multistream dump lies beside it, every page that it names must be there, and no other.

What cannot be seen without the published checksum: changed letters inside the text of a dump that is not
compressed, or compressed by a tool that wrote no checksums.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rag.corpus.dump.cut import BigPage, cut_pages, plain_end, plain_ranges
from rag.corpus.dump.files import AGAIN, bz2_streams, packing, plain_range, unpacked
from rag.corpus.dump.header import Header, SiteInfo, read_header
from rag.corpus.dump.pages import CLOSING_TAG, ParsedPage, parse_pages
from rag.corpus.dump.streams import (
    StreamRange,
    check_last_stream,
    found_ranges,
    has_page_streams,
    index_beside,
    index_lines,
    indexed_ranges,
)
from rag.errors import DumpError
from rag.records import Page

__all__ = [
    "Block",
    "SiteInfo",
    "block_total",
    "check_page_count",
    "dump_blocks",
    "read_block",
    "read_pages",
    "read_site",
    "read_whole_block",
]

BLOCK_BYTES = 4 << 20  # of XML; constant, because the borders of shards lie at borders of blocks
_PACKING_RATIO = 4  # of bz2 on wikitext: streams are gathered to a quarter of it


class ByteRange(NamedTuple):
    """Bytes of an uncompressed dump, holding whole pages."""

    start: int
    end: int


class Block(NamedTuple):
    """Whole pages of one dump: where they lie in the file, or their XML, or a page that was too long to carry."""

    number: int
    path: Path
    header: bytes  # what makes a document of the content, before and behind it
    content: ByteRange | StreamRange | bytes | tuple[ParsedPage, ...]
    closing: bytes


def read_site(path: Path) -> SiteInfo:
    """Which wiki a dump is of. Raises DumpError as `read_pages` does for a file that is no dump."""
    return read_header(path).site


def read_pages(path: Path, until: date | None = None) -> Iterator[Page]:
    """Every page of the dump at ``path``, in file order, each in its last revision.

    That is the last in the file, or with ``until`` the latest at or before the end of that day (UTC), by timestamp
    and then by revision id; a page without one is not yielded. Its title is the one of the dump's day.

    A page with deleted or empty text has ``wikitext`` "". The namespace comes from <ns>, or from the title's
    prefix where the dump is older than <ns>; the redirect from <redirect>, or from the wikitext's #REDIRECT.

    Raises DumpError, with the file and what to do, if the file is missing, empty, cut, corrupt, not a dump, or of
    a compression that is not read here. The error can come after pages were yielded.
    """
    for block in dump_blocks(path, until):
        yield from read_block(block, until)


def dump_blocks(
    path: Path, until: date | None = None, first: int = 0, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """The blocks of a dump in file order, from number ``first`` on, to be read by `read_block` in any process.

    The borders depend on the dump alone. Blocks of plain and of multistream dumps are places in the file, found
    without reading what lies between; other packings are unpacked here, at the speed of one core.

    Raises DumpError as `read_pages` does; a cut file shows at once where the end can be looked at, else at the end.
    """
    header = read_header(path)
    length = path.stat().st_size
    for number, content in enumerate(_contents(path, header, until, block_bytes)):
        if number >= first:
            own_end = isinstance(content, StreamRange) and content.end == length and not header.bare
            yield Block(number, path, _opening(number, header), content, b"" if own_end else CLOSING_TAG)


def _opening(number: int, header: Header) -> bytes:
    return b"" if number == 0 and not header.bare else header.xml


def _contents(
    path: Path, header: Header, until: date | None, size: int
) -> Iterator[ByteRange | StreamRange | bytes | tuple[ParsedPage, ...]]:
    if ranges := _ranges(path, header.bare, size):
        yield from ranges
        return
    for number, content in enumerate(cut_pages(path, unpacked(path), header.bare, size)):
        if isinstance(content, BigPage):
            document = chain([_opening(number, header)], content.pieces, [CLOSING_TAG])
            yield tuple(parse_pages(f"{path} (block {number})", document, until))
        else:
            yield content


def _ranges(path: Path, bare: bool, size: int) -> Iterable[ByteRange] | Iterable[StreamRange] | None:
    """The places of the blocks, where the file can be read from the middle."""
    kind = packing(path)
    if kind == "xml":
        return (ByteRange(*each) for each in plain_ranges(path, plain_end(path, bare), size))
    if kind != "bz2":
        return None
    index = index_beside(path)
    if index is None and not has_page_streams(path):
        return None
    check_last_stream(path, bare)
    return indexed_ranges(path, index, size // _PACKING_RATIO) if index else found_ranges(path, size // _PACKING_RATIO)


def read_block(block: Block, until: date | None = None) -> Iterator[Page]:
    """The pages of a block, as `read_pages` yields them.

    Raises DumpError if the block is damaged, or its pages are not those that the index names.
    """
    return (parsed.page for parsed in read_whole_block(block, until) if parsed.exists)


def read_whole_block(block: Block, until: date | None = None) -> Iterator[ParsedPage]:
    """Like `read_block`, with the pages too that had no revision at or before ``until``, marked as such."""
    found: list[int] = []
    for parsed in _parsed(block, until):
        found.append(parsed.page.page_id)
        yield parsed
    if isinstance(block.content, StreamRange):
        _check_page_ids(block.path, block.content, found)


def _parsed(block: Block, until: date | None) -> Iterable[ParsedPage]:
    path, where = block.path, f"{block.path} (block {block.number})"
    match block.content:
        case ByteRange(start, end):
            pieces: Iterable[bytes] = plain_range(path, start, end)
            where = f"{path} (bytes {start} to {end})"
        case StreamRange(start, end):
            pieces = bz2_streams(path, start, end)
            where = f"{path} (its bz2 streams in bytes {start} to {end})"
        case bytes():
            pieces = [block.content]
        case _:
            return block.content
    return parse_pages(where, chain([block.header], pieces, [block.closing]), until)


def _check_page_ids(path: Path, place: StreamRange, found: list[int]) -> None:
    if place.page_ids is None:
        return
    missing, more = Counter(place.page_ids) - Counter(found), Counter(found) - Counter(place.page_ids)
    if not missing and not more:
        return
    raise DumpError(
        f"{path} has {len(found)} pages in bytes {place.start} to {place.end} where its index names "
        f"{len(place.page_ids)}; missing: {sorted(missing)[:5]}, not in the index: {sorted(more)[:5]}; {AGAIN}"
    )


def block_total(path: Path) -> int | None:
    """The number of blocks of a plain dump or of a multistream dump with its index; None where only reading tells."""
    if packing(path) == "bz2" and index_beside(path) is None:
        return None
    ranges = _ranges(path, read_header(path).bare, BLOCK_BYTES)
    return None if ranges is None else sum(1 for _ in ranges)


def check_page_count(path: Path, pages: int) -> None:
    """DumpError unless a multistream dump had as many pages as the index beside it names; no index, no check.

    ``pages`` counts all pages, as `read_whole_block` gives them: a reading with ``until`` may leave some out.
    """
    index = index_beside(path)
    if index is None:
        return
    named = sum(1 for _ in index_lines(index))
    if named != pages:
        raise DumpError(f"{path} gave {pages} pages where its index {index.name} names {named}; {AGAIN}")
