"""What stands in a dump before its first page: the root element and <siteinfo>."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree

from rag.corpus.dump.files import AGAIN, refuse_other_formats, unpacked
from rag.corpus.dump.pages import CLOSING_TAG, DEFAULT_NAMESPACES, ROOT, local_names, syntax_error
from rag.errors import DumpError

FIRST_PAGE = re.compile(rb"<page[\s>]")
_LONGEST_HEADER_BYTES = 4 << 20
_NO_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
_ENCODING = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([\w.-]+)""")
_SCHEMA = re.compile(r"\{[^}]*/export-([\d.]+)/?\}")
_ALIASES = frozenset({"Image"})


class SiteInfo(NamedTuple):
    """The wiki a dump was made of; "" for what a dump without <siteinfo> does not say."""

    name: str
    dbname: str
    base: str  # the address of the main page
    generator: str
    schema: str  # of the export format: "0.11"
    namespaces: dict[int, str]  # local names by number; English defaults where the dump names none


class Header(NamedTuple):
    """The XML that makes any run of a dump's pages a document, with the closing tag behind them."""

    xml: bytes  # before the first page; "<mediawiki>" where the pages are bare
    length: int  # bytes of the file before its first page
    site: SiteInfo

    @property
    def bare(self) -> bool:
        """Samples cut out of dumps are often <page> elements without a root."""
        return self.xml == _BARE


_BARE = b"<mediawiki>"


def read_header(path: Path, pieces: Iterable[bytes] | None = None) -> Header:
    """The header of a dump, from its first pieces.

    Raises DumpError if the file is no dump, or has a document type or an encoding that no dump has.
    """
    start = _before_first_page(path, unpacked(path) if pieces is None else pieces)
    xml = _BARE if _NO_ROOT.fullmatch(start) else start
    return Header(xml, len(start), _site(path, xml))


def _before_first_page(path: Path, pieces: Iterable[bytes]) -> bytes:
    start = bytearray()
    for piece in pieces:
        looked = max(0, len(start) - 8)
        start += piece
        if looked == 0:
            refuse_other_formats(path, bytes(start[:64]))
        if found := FIRST_PAGE.search(start, looked):
            return bytes(start[: found.start()])
        if len(start) > _LONGEST_HEADER_BYTES:
            raise DumpError(f"{path} has no <page> in its first {len(start)} bytes: it is no dump of pages")
    return _without_pages(path, bytes(start))


def _without_pages(path: Path, document: bytes) -> bytes:
    if not document.strip():
        raise DumpError(f"{path} is empty; {AGAIN}")
    _root(path, document)  # a cut header, and XML of another kind
    return document[: document.rindex(CLOSING_TAG)] if CLOSING_TAG in document else document


def _site(path: Path, xml: bytes) -> SiteInfo:
    encoding = _ENCODING.search(xml)
    if encoding and encoding[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
        raise DumpError(f"{path} is in {encoding[1].decode()}, not UTF-8; convert it first, for example with iconv")
    root = _root(path, xml + CLOSING_TAG)
    info = root.find("{*}siteinfo")
    schema = root.get("version") or "".join(_SCHEMA.findall(root.tag))
    names = {} if info is None else local_names(info)
    names = names or {name: number for name, number in DEFAULT_NAMESPACES.items() if name not in _ALIASES}
    numbers = {number: name for name, number in names.items()}
    name, dbname, base, generator = (_said(info, each) for each in ("sitename", "dbname", "base", "generator"))
    return SiteInfo(name, dbname, base, generator, schema, numbers)


def _said(info: Any, name: str) -> str:
    return "" if info is None else (info.findtext(f"{{*}}{name}") or "").strip()


def _root(path: Path, document: bytes) -> Any:
    if b"<!DOCTYPE" in document:  # looked for before parsing: entities can grow without end
        raise DumpError(f"{path} declares a document type, which no MediaWiki dump does; {AGAIN}")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise syntax_error(str(path), error, at_end=True) from error
    if (name := root.tag.rpartition("}")[2]) != ROOT:
        raise DumpError(f"{path} is XML but no MediaWiki dump: its root is <{name}>, not <{ROOT}>; {AGAIN}")
    return root
