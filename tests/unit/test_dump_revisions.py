"""Histories: which of a page's revisions is read, and what is known of it."""

from datetime import date
from pathlib import Path

import pytest

from rag.corpus.dump import dump_blocks, read_block, read_pages
from rag.errors import DumpError
from rag.records import Page
from tests.support.dump_fixtures import PACKINGS, Revision, dump_xml, page_xml, text_xml


def _read(tmp_path: Path, *pages: str, until: date | None = None) -> list[Page]:
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_xml(*pages))
    return list(read_pages(path, until))


def _revisions(*times: tuple[int, str]) -> list[Revision]:
    return [Revision(number, time, text_xml(f"v{number}")) for number, time in times]


_HISTORY = page_xml(
    9,
    "A",
    *_revisions(
        (1, "2005-03-01T10:00:00Z"),
        (4, "2007-03-01T23:59:59Z"),
        (2, "2006-01-01T00:00:00Z"),  # histories are not always in the order of time
        (5, "2007-03-02T00:00:00Z"),
        (3, "2007-03-01T23:59:59Z"),
    ),
)


@pytest.mark.parametrize(
    ("until", "revision"),
    [
        (None, 3),  # the last in the file
        (date(2030, 1, 1), 5),
        (date(2007, 3, 2), 5),
        (date(2007, 3, 1), 4),  # to the end of the day; of two at one time the one of the greater id
        (date(2007, 2, 28), 2),
        (date(2005, 12, 31), 1),
        (date(2005, 3, 1), 1),
    ],
)
def test_the_revision_of_a_day(tmp_path: Path, until: date | None, revision: int) -> None:
    pages = _read(tmp_path, _HISTORY, until=until)
    assert [(page.revision_id, page.wikitext) for page in pages] == [(revision, f"v{revision}")]


def test_a_page_that_did_not_exist_yet_is_not_there(tmp_path: Path) -> None:
    later = page_xml(10, "B", *_revisions((9, "2008-01-01T00:00:00Z")))
    assert [page.title for page in _read(tmp_path, later, _HISTORY, later, until=date(2007, 1, 1))] == ["A"]
    assert _read(tmp_path, later, until=date(2007, 1, 1)) == []
    assert _read(tmp_path, "<page><title>C</title><ns>0</ns><id>3</id></page>", until=date(2007, 1, 1)) == []


def test_a_redirect_is_one_at_that_time(tmp_path: Path) -> None:
    """<redirect> tells of the newest revision only."""
    texts = {"2005": "An article.", "2006": "#redirect [[B|b]]", "2007": "#WEITERLEITUNG [[C]]"}
    revisions = [Revision(int(y), f"{y}-01-01T00:00:00Z", text_xml(text)) for y, text in texts.items()]
    now = page_xml(1, "A", *revisions, extra='<ns>0</ns><redirect title="Canonical C" />')
    redirects = [_read(tmp_path, now, until=date(year, 6, 1))[0].redirect for year in (2005, 2006, 2007)]
    assert redirects == [None, "B", "Canonical C"]
    article_now = page_xml(1, "A", *revisions[::-1])
    redirects = [_read(tmp_path, article_now, until=date(year, 6, 1))[0].redirect for year in (2005, 2006, 2007)]
    assert redirects == [None, "B", "C"]


def test_a_redirect_element_without_a_target_takes_it_from_the_text(tmp_path: Path) -> None:
    old = page_xml(1, "A", Revision(1, text=text_xml("#REDIRECT [[B]] {{R}}")), extra="<redirect />")
    odd = page_xml(1, "A", Revision(1, text=text_xml("#NEUES WORT [[B]]")), extra="<redirect />")
    assert [page.redirect for page in _read(tmp_path, old, odd)] == ["B", ""]


@pytest.mark.parametrize("time", ["", "2007", "2007-03-01T10:00:00+02:00", "tomorrow"])
def test_a_time_that_cannot_be_compared_is_an_error_only_where_it_is_asked_for(tmp_path: Path, time: str) -> None:
    page = page_xml(1, "A", Revision(77, time))
    assert _read(tmp_path, page)[0].timestamp == time
    with pytest.raises(DumpError, match="revision 77 with the timestamp"):
        _read(tmp_path, page, until=date(2008, 1, 1))


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_page_too_long_for_a_block_is_read_in_any_packing(tmp_path: Path, packing: str) -> None:
    times = [(n, f"2005-01-{n:02}T00:00:00Z") for n in range(1, 29)]
    pages = [page_xml(1, "A"), page_xml(2, "Long", *_revisions(*times)), _HISTORY]
    path = tmp_path / "dump"
    path.write_bytes(PACKINGS[packing](dump_xml(*pages)))
    for until in (None, date(2005, 1, 14)):
        blocks = list(dump_blocks(path, until, block_bytes=400))
        read = [page for block in blocks for page in read_block(block, until)]
        assert len(blocks) > 1
        assert [page.revision_id for page in read] == ([1001, 28, 3] if until is None else [14])


def test_suppressed_parts_of_a_revision_are_no_error(tmp_path: Path) -> None:
    revision = """<revision><id>5</id><timestamp>2016-01-01T00:00:00Z</timestamp><contributor deleted="deleted" />
      <comment deleted="deleted" /><model>wikitext</model><format>text/x-wiki</format>
      <text bytes="9" sha1="x" deleted="deleted" /><sha1 /></revision>"""
    page = f"<page><title>A</title><ns>0</ns><id>3</id>{revision}</page>"
    assert _read(tmp_path, page, page_xml(4, "B")) == [
        Page(3, "A", 0, None, 5, "2016-01-01T00:00:00Z", ""),
        Page(4, "B", 0, None, 1004, "2016-05-01T00:00:00Z", "Hello"),
    ]


def test_only_the_main_slot_of_a_revision_is_its_text(tmp_path: Path) -> None:
    """Schema 0.11 has further slots in <content>."""
    slots = """<revision><id>5</id><origin>5</origin><timestamp>2026-01-01T00:00:00Z</timestamp>
      <text bytes="4" sha1="x" xml:space="preserve">Main</text>
      <content><role>mediainfo</role><origin>5</origin><text bytes="5" sha1="y">{"a"}</text></content></revision>"""
    assert _read(tmp_path, f"<page><title>A</title><ns>0</ns><id>3</id>{slots}</page>")[0].wikitext == "Main"


def test_a_stub_dump_is_refused(tmp_path: Path) -> None:
    for text in ('<text id="1" bytes="9" />', '<text bytes="9" sha1="x" location="tt:1" id="1" />'):
        with pytest.raises(DumpError, match=r"stub dump.*take the pages-articles dump"):
            _read(tmp_path, page_xml(1, "A", Revision(1, text=text)))
