"""Small dumps of our own, in every packing that is read."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

CLOSING = "</mediawiki>\n"


class Revision(NamedTuple):
    number: int
    timestamp: str = "2016-05-01T00:00:00Z"
    text: str = "<text>Hello</text>"

    def xml(self) -> str:
        return (
            f"    <revision><id>{self.number}</id><timestamp>{self.timestamp}</timestamp>"
            f"<contributor><username>A</username><id>7</id></contributor>{self.text}</revision>\n"
        )


def header_xml(version: str = "10") -> str:
    return f"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.{version}/" version="0.{version}" xml:lang="en">
  <siteinfo><sitename>Test</sitename><dbname>testwiki</dbname><base>https://test.example/wiki/Main</base>
    <generator>MediaWiki 1.99</generator><case>first-letter</case><namespaces>
    <namespace key="0" case="first-letter" /><namespace key="1">Talk</namespace><namespace key="4">Project</namespace>
  </namespaces></siteinfo>
"""


def page_xml(number: int, title: str, *revisions: Revision, extra: str = "<ns>0</ns>") -> str:
    inner = "".join(each.xml() for each in revisions or (Revision(number + 1000),))
    return f"  <page><title>{title}</title>{extra}<id>{number}</id>\n{inner}  </page>\n"


def dump_xml(*pages: str, version: str = "10") -> bytes:
    return (header_xml(version) + "".join(pages) + CLOSING).encode()


def text_xml(text: str) -> str:
    return f'<text xml:space="preserve">{text}</text>'


def multistream(pages: Sequence[str], to_a_stream: int = 2) -> bytes:
    """Header, pages and closing tag in streams of their own, as Wikimedia cuts them."""
    streams = [pages[start : start + to_a_stream] for start in range(0, len(pages), to_a_stream)]
    texts = [header_xml(), *("".join(each) for each in streams), CLOSING]
    return b"".join(bz2.compress(text.encode(), 1) for text in texts)


def write_with_index(folder: Path, pages: Sequence[str], ids: Sequence[int], to_a_stream: int = 2) -> Path:
    """A multistream dump and its index beside it."""
    path = folder / "testwiki-20160501-pages-articles-multistream.xml.bz2"
    path.write_bytes(multistream(pages, to_a_stream))
    offset, lines = len(bz2.compress(header_xml().encode(), 1)), []
    for start in range(0, len(pages), to_a_stream):
        lines += [f"{offset}:{number}:Title: {number}\n" for number in ids[start : start + to_a_stream]]
        offset += len(bz2.compress("".join(pages[start : start + to_a_stream]).encode(), 1))
    index_path(path).write_bytes(bz2.compress("".join(lines).encode()))
    return path


def index_path(path: Path) -> Path:
    return path.with_name("testwiki-20160501-pages-articles-multistream-index.txt.bz2")


def _halves(content: bytes) -> tuple[bytes, bytes]:
    return content[: len(content) // 2], content[len(content) // 2 :]


def _in_two(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(compress(half) for half in _halves(content))


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def gz(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0)


def xz(content: bytes) -> bytes:
    return lzma.compress(content, preset=0)


def _cut_by_pages(content: bytes) -> bytes:
    """The same XML with a bz2 stream for every second page, header and closing tag in the first and the last."""
    first, *pages = content.split(b"  <page>")
    texts = [first, *(b"  <page>" + page for page in pages)]
    return b"".join(bz2.compress(b"".join(texts[start : start + 2]), 1) for start in range(0, len(texts), 2))


# Packings of one XML text; the halves are cut in the middle of a page, as some compressors do.
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda content: content,
    "bz2": lambda content: bz2.compress(content, 1),
    "bz2-halves": _in_two(lambda content: bz2.compress(content, 1)),
    "bz2-pages": _cut_by_pages,
    "gz": gz,
    "gz-halves": _in_two(gz),
    "xz": xz,
    "xz-halves": _in_two(xz),
    "zstd": zstd,
    "zstd-halves": _in_two(zstd),
}
