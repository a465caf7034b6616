"""Dumps: every kind that exists in the wild, and a clear error for everything that is none."""

import bz2
import gzip
from pathlib import Path

import pytest

from rag.corpus.dump import SiteInfo, read_pages, read_site
from rag.errors import DumpError
from rag.records import Page
from tests.support.dump_fixtures import xz, zstd

_HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.{version}/" version="0.{version}" xml:lang="en">
  <siteinfo><sitename>Test</sitename><namespaces>
    <namespace key="0" /><namespace key="1">Talk</namespace><namespace key="4">Project</namespace>
  </namespaces></siteinfo>
"""
_TAIL = "</mediawiki>\n"


def _page(number: int, title: str, text: str = "<text>Hello</text>", extra: str = "<ns>0</ns>") -> str:
    return (
        f"  <page><title>{title}</title>{extra}<id>{number}</id><revision><id>{number + 1000}</id>"
        f"<timestamp>2016-05-01T00:00:00Z</timestamp><contributor><id>7</id></contributor>{text}</revision></page>\n"
    )


def _dump(*pages: str, version: str = "10") -> bytes:
    return (_HEAD.format(version=version) + "".join(pages) + _TAIL).encode()


def _read(tmp_path: Path, content: bytes, name: str = "dump.xml") -> list[Page]:
    path = tmp_path / name
    path.write_bytes(content)
    return list(read_pages(path))


@pytest.mark.parametrize("version", [str(number) for number in range(3, 12)])
def test_every_schema_version_reads_alike(tmp_path: Path, version: str) -> None:
    assert _read(tmp_path, _dump(_page(5, "Lima &amp; Callao"), version=version)) == [
        Page(5, "Lima & Callao", 0, None, 1005, "2016-05-01T00:00:00Z", "Hello")
    ]


def test_compressions_and_multistream_read_alike(tmp_path: Path) -> None:
    pages = [_page(number, f"Page {number}") for number in range(1, 6)]
    plain = _dump(*pages)
    streams = [_HEAD.format(version="10"), "".join(pages[:2]), "".join(pages[2:]), _TAIL]
    multistream = b"".join(bz2.compress(stream.encode()) for stream in streams)
    expected = _read(tmp_path, plain)
    assert len(expected) == 5
    assert _read(tmp_path, bz2.compress(plain), "a.bz2") == expected
    assert _read(tmp_path, multistream, "b.bz2") == expected
    assert _read(tmp_path, gzip.compress(plain), "c.gz") == expected
    assert _read(tmp_path, zstd(plain[:99]) + zstd(plain[99:]), "d.zst") == expected
    assert _read(tmp_path, xz(plain[:99]) + bytes(8) + xz(plain[99:]), "e.xz") == expected
    assert _read(tmp_path, b"\x50\x2a\x4d\x18\3\0\0\0abc" + zstd(plain), "skippable frame.zst") == expected
    assert _read(tmp_path, b"\xef\xbb\xbf" + plain) == expected


def test_e3_empty_and_deleted_texts_swallow_nothing(tmp_path: Path) -> None:
    """The page behind a self-closed text is a page of its own."""
    texts = ["<text/>", '<text deleted="deleted" />', '<text bytes="0"></text>', "<text>B</text>"]
    pages = _read(tmp_path, _dump(*(_page(number, f"P{number}", text) for number, text in enumerate(texts, 1))))
    assert [page.wikitext for page in pages] == ["", "", "", "B"]


def test_the_last_of_several_revisions_is_read(tmp_path: Path) -> None:
    revisions = "".join(f"<revision><id>{number}</id><text>v{number}</text></revision>" for number in (1, 2, 3))
    page = f"<page><title>A</title><ns>0</ns><id>9</id>{revisions}</page>"
    after = "<page><title>B</title><ns>0</ns><id>10</id></page>"
    pages = _read(tmp_path, _dump(page, after))
    assert [(page.revision_id, page.wikitext) for page in pages] == [(3, "v3"), (0, "")]


def test_redirects_from_the_element_and_from_the_text(tmp_path: Path) -> None:
    element = _page(1, "A", extra='<ns>0</ns><redirect title="Target page" />')
    text = _page(2, "B", "<text>#redirect [[Other|x]]</text>")
    none = _page(3, "C", "<text>* #REDIRECT [[No]]</text>")
    assert [page.redirect for page in _read(tmp_path, _dump(element, text, none))] == ["Target page", "Other", None]


def test_namespaces_without_their_element_come_from_the_title(tmp_path: Path) -> None:
    titles = ["Lima", "Talk:Lima", "Project:About", "Alien: Resurrection"]
    pages = _dump(*(_page(number, title, extra="") for number, title in enumerate(titles, 1)))
    assert [page.namespace for page in _read(tmp_path, pages)] == [0, 1, 4, 0]


def test_the_site_is_told(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    info = "<sitename>Wikipedia</sitename><dbname>enwiki</dbname><base>https://en.example/</base>"
    info += "<generator>M 1</generator>"
    path.write_bytes(_dump(_page(1, "A"), version="11").replace(b"<sitename>Test</sitename>", info.encode()))
    names = {0: "", 1: "Talk", 4: "Project"}
    assert read_site(path) == SiteInfo("Wikipedia", "enwiki", "https://en.example/", "M 1", "0.11", names)
    path.write_bytes(bz2.compress(_page(1, "A").encode()))
    bare = read_site(path)
    assert bare[:5] == ("", "", "", "", "")
    assert (bare.namespaces[0], bare.namespaces[6], bare.namespaces[14]) == ("", "File", "Category")
    with pytest.raises(DumpError, match="No such file"):
        read_site(tmp_path / "none")


def test_comments_and_character_data_sections_are_text_like_any(tmp_path: Path) -> None:
    text = "<text>a<!-- c -->b<![CDATA[<ref>]]>&lt;c&#10;<?x y?>d</text>"
    assert _read(tmp_path, _dump(_page(1, "A", text)))[0].wikitext == "ab<ref><c\nd"


def test_bare_pages_without_a_root_are_read(tmp_path: Path) -> None:
    content = (_page(1, "A") + _page(2, "File:B.jpg", extra="")).encode()
    assert [(page.page_id, page.namespace) for page in _read(tmp_path, content)] == [(1, 0), (2, 6)]
    with pytest.raises(DumpError, match="closing tag of its last page"):
        _read(tmp_path, content[:-20])


def _multistream() -> bytes:
    streams = [_HEAD.format(version="10") + _page(1, "A"), _page(2, "B") + _TAIL]
    return b"".join(bz2.compress(stream.encode()) for stream in streams)


_FIRST_STREAM = len(bz2.compress((_HEAD.format(version="10") + _page(1, "A")).encode()))
_BAD = {
    "empty": (b"", "is empty"),
    "cut xml": (_dump(_page(1, "A"))[:-30], "closing tag"),
    "cut between pages": (_dump(_page(1, "A")).replace(_TAIL.encode(), b""), "closing tag"),
    "cut bz2": (_multistream()[:-20], "cut or corrupt"),
    "cut between streams": (_multistream()[:_FIRST_STREAM], "closing tag"),
    "corrupt bz2": (bz2.compress(_dump(_page(1, "A")))[:60] + b"x" * 400, "cut or corrupt"),
    "bz2 magic only": (b"BZh9", "cut or corrupt"),
    "cut gzip": (gzip.compress(_dump(_page(1, "A")))[:-9], "cut or corrupt"),
    "html": (b"<!DOCTYPE html><html><body>503</body></html>", "HTML page"),
    "html in bz2": (bz2.compress(b"<html><br></html>"), "HTML page"),
    "other xml": (b"<?xml version='1.0'?><rss></rss>", "its root is <rss>"),
    "text": (b"638:10:AccessibleComputing\n", "not a MediaWiki XML dump"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + b"\0" * 64, "7z archive"),
    "zip": (b"PK\x03\x04" + b"\0" * 64, "zip archive; unpack"),
    "cut zstd": (zstd(_dump(_page(1, "A")))[:-9], "cut or corrupt"),
    "cut between zstd frames": (zstd(_dump(_page(1, "A"))[:-9]), "closing tag"),
    "cut xz": (xz(_dump(_page(1, "A")))[:-9], "cut or corrupt"),
    "xz magic only": (b"\xfd7zXZ\x00", "cut or corrupt"),
    "zstd magic only": (b"\x28\xb5\x2f\xfd", "cut or corrupt"),
    "empty bz2": (bz2.compress(b""), "is empty"),
    "empty gz": (gzip.compress(b" "), "is empty"),
    "7z in gz": (gzip.compress(b"7z\xbc\xaf\x27\x1c"), "7z archive"),
    "utf-16": ("<mediawiki></mediawiki>".encode("utf-16"), "UTF-16; convert it first"),
    "latin-1": (b"<?xml version='1.0' encoding='ISO-8859-1'?>" + _dump(_page(1, "A")), "ISO-8859-1, not UTF-8"),
    "bad utf-8": (_dump(_page(1, "A\xe4")).replace("\xe4".encode(), b"\xe4"), "not well-formed"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
    "damaged": (_dump(_page(1, "A"), "<page><title>x</page>", *[_page(n, "B") for n in range(400)]), "not well-formed"),
    "no title": (_dump("<page><ns>0</ns><id>1</id></page>"), "without a title"),
    "no id": (_dump("<page><title>A</title><ns>0</ns></page>"), "page id of 'A' that is no number"),
    "entities": (b'<!DOCTYPE x [<!ENTITY a "b">]><mediawiki>&a;</mediawiki>', "document type"),
    "undefined entity": (_dump(_page(1, "A", "<text>a &nbsp; b</text>")), "not well-formed"),
    "log": (_dump("<logitem><id>1</id></logitem>"), "<logitem> where only pages belong"),
    "log between": (_dump(_page(1, "A"), "<logitem/>", _page(2, "B")), "<logitem> where only pages belong"),
    "text between": (_dump(_page(1, "A"), "Hello", _page(2, "B")), "text between two pages: 'Hello'"),
    "text behind": (_dump(_page(1, "A"), "Hello"), "text between two pages: 'Hello'"),
    "text before": (_dump("", _page(1, "A")).replace(b"<siteinfo>", b"x<siteinfo>"), "text before its first page"),
    "nested": (_dump("<page>" + _page(1, "A") + "</page>"), "does not stand directly in <mediawiki>"),
    "two titles": (_dump(_page(1, "A", extra="<title>B</title>")), "<page> with two <title>"),
    "two pages merged": (_dump((_page(1, "A") + _page(2, "B")).replace("</page>\n  <page>", "")), "with two <title>"),
    "two texts": (_dump(_page(1, "A", "<text>a</text><text>b</text>")), "<revision> with two <text>"),
    "markup in text": (_dump(_page(1, "A", "<text>a <b>c</b> d</text>")), "markup inside a <text>"),
    "odd number": (_dump(_page(1, "A").replace("<id>1</id>", "<id>1_0</id>")), "no number: '1_0'"),
    "trailing": (_dump(_page(1, "A")) + _dump(_page(2, "B")), "goes on after its closing tag"),
}


@pytest.mark.parametrize(("content", "message"), _BAD.values(), ids=_BAD)
def test_what_is_no_whole_dump_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DumpError, match=message) as error:
        _read(tmp_path, content)
    assert str(tmp_path / "dump.xml") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="No such file"):
        list(read_pages(tmp_path / "none.xml"))
    with pytest.raises(DumpError, match="cannot read"):
        list(read_pages(tmp_path))


def test_external_entities_are_never_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    content = f'<!DOCTYPE x [<!ENTITY a SYSTEM "{secret.as_uri()}">]><mediawiki><page>&a;</page></mediawiki>'
    with pytest.raises(DumpError):
        _read(tmp_path, content.encode())
