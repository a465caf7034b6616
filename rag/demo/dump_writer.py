"""MediaWiki dumps in the layout of Wikimedia's own: export 0.11, multistream bz2, with index and checksums.

Layout: a bz2 stream with the head, one stream for every 100 pages, one stream with the closing tag; the index has
a line ``offset:page id:title`` for each page, where offset is the byte at which its stream starts.
"""

import bz2
import hashlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from rag.demo.wiki import DumpPage
from rag.files import write_atomically

PAGES_PER_STREAM = 100

_NAMESPACES = (
    (-2, "Media"), (-1, "Special"), (0, ""), (1, "Talk"), (2, "User"), (3, "User talk"), (4, "Wikipedia"),
    (5, "Wikipedia talk"), (6, "File"), (7, "File talk"), (8, "MediaWiki"), (9, "MediaWiki talk"), (10, "Template"),
    (11, "Template talk"), (12, "Help"), (13, "Help talk"), (14, "Category"), (15, "Category talk"), (100, "Portal"),
    (101, "Portal talk"), (828, "Module"), (829, "Module talk"),
)  # fmt: skip
_SCHEMA = "http://www.mediawiki.org/xml/export-0.11"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_SHA1_DIGITS = 31  # of a sha1 in base 36


def write_dump(pages: Sequence[DumpPage], path: Path) -> None:
    """Write the pages to ``path`` (``...-multistream.xml.bz2``) and the index beside it; same pages, same bytes."""
    streams = [bz2.compress(_head().encode("utf-8"))]
    offset, index = len(streams[0]), []
    for start in range(0, len(pages), PAGES_PER_STREAM):
        group = pages[start : start + PAGES_PER_STREAM]
        index += [f"{offset}:{entry.page.page_id}:{entry.page.title}\n" for entry in group]
        streams.append(bz2.compress("".join(page_xml(entry) for entry in group).encode("utf-8")))
        offset += len(streams[-1])
    streams.append(bz2.compress(b"</mediawiki>\n"))
    write_atomically(path, b"".join(streams))
    write_atomically(index_path(path), bz2.compress("".join(index).encode("utf-8")))


def index_path(dump: Path) -> Path:
    """Where the index of a multistream dump lies.

    >>> index_path(Path("wiki-pages-articles-multistream.xml.bz2")).name
    'wiki-pages-articles-multistream-index.txt.bz2'
    """
    return dump.with_name(dump.name.replace("-multistream.xml.bz2", "-multistream-index.txt.bz2"))


def write_checksums(files: Sequence[Path], path: Path) -> None:
    """Write one line for each file: its sha1, two spaces, its name."""
    lines = [f"{hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()}  {file.name}\n" for file in files]
    write_atomically(path, "".join(lines).encode("utf-8"))


def page_xml(entry: DumpPage) -> str:
    """One <page> element as the export has it."""
    page = entry.page
    text = page.wikitext.encode("utf-8")
    sha1 = sha1_base36(text)
    redirect = [f"    <redirect title={_attribute(page.redirect)} />"] if page.redirect else []
    parent = [f"      <parentid>{entry.parent_id}</parentid>"] if entry.parent_id else []
    opening = f'      <text bytes="{len(text)}" sha1="{sha1}"'
    body = f'{opening} xml:space="preserve">{_quoted(page.wikitext)}</text>' if text else f"{opening} />"
    lines = [
        "  <page>",
        f"    <title>{_quoted(page.title)}</title>",
        f"    <ns>{page.namespace}</ns>",
        f"    <id>{page.page_id}</id>",
        *redirect,
        "    <revision>",
        f"      <id>{page.revision_id}</id>",
        *parent,
        f"      <timestamp>{page.timestamp}</timestamp>",
        "      <contributor>",
        f"        <username>{_quoted(entry.contributor)}</username>",
        f"        <id>{entry.contributor_id}</id>",
        "      </contributor>",
        f"      <comment>{_quoted(entry.comment)}</comment>",
        f"      <origin>{page.revision_id}</origin>",
        f"      <model>{'Scribunto' if page.namespace == 828 else 'wikitext'}</model>",
        f"      <format>{'text/plain' if page.namespace == 828 else 'text/x-wiki'}</format>",
        body,
        f"      <sha1>{sha1}</sha1>",
        "    </revision>",
        "  </page>",
    ]
    return "\n".join(lines) + "\n"


def sha1_base36(data: bytes) -> str:
    """The sha1 of a revision in base 36, as MediaWiki writes it.

    >>> sha1_base36(b"")
    'phoiac9h4m842xq45sp7s6u21eteeq1'
    """
    number = int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest(), "big")
    digits = ""
    for _ in range(_SHA1_DIGITS):
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits


def _head() -> str:
    namespaces = "\n".join(
        f'      <namespace key="{key}" case="first-letter"' + (f">{name}</namespace>" if name else " />")
        for key, name in _NAMESPACES
    )
    return (
        f'<mediawiki xmlns="{_SCHEMA}/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{_SCHEMA}/ {_SCHEMA}.xsd" version="0.11" xml:lang="en">\n'
        "  <siteinfo>\n    <sitename>Demo wiki</sitename>\n    <dbname>demowiki</dbname>\n"
        "    <base>https://example.org/wiki/Main_Page</base>\n    <generator>openbook demo</generator>\n"
        f"    <case>first-letter</case>\n    <namespaces>\n{namespaces}\n    </namespaces>\n  </siteinfo>\n"
    )


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _attribute(text: str) -> str:
    return f'"{_quoted(text)}"'
