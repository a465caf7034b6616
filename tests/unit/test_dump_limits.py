"""Dumps with numbers or revisions beyond what the ledger of an ingest, or the memory, can hold."""

from pathlib import Path

import pytest

from rag.corpus.dump import pages as dump_pages
from rag.corpus.dump import read_pages
from rag.errors import DumpError
from tests.support.dump_fixtures import Revision, dump_xml, page_xml, text_xml


def _read(folder: Path, content: str | bytes) -> int:
    path = folder / "dump.xml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return len(list(read_pages(path)))


def _page(namespace: str = "0", number: str = "1", title: str = "A") -> str:
    ns = f"<ns>{namespace}</ns>" if namespace else ""
    return f"<page><title>{title}</title>{ns}<id>{number}</id></page>"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (_page("99999999999"), "a namespace of more than 32 bits: '99999999999'"),
        (_page("-2147483649"), "a namespace of more than 32 bits"),
        (_page("0", str(2**63)), f"a page id of 'A' of more than 64 bits: '{2**63}'"),
        (_page("0", "9" * 20), "that is no number"),
    ],
)
def test_numbers_that_no_ledger_can_hold_are_refused(tmp_path: Path, page: str, message: str) -> None:
    with pytest.raises(DumpError, match=message):
        _read(tmp_path, page)


def test_the_largest_numbers_are_read(tmp_path: Path) -> None:
    pages = _page(str(2**31 - 1), str(2**63 - 1)) + _page(str(-(2**31)), "2")
    assert _read(tmp_path, pages) == 2


def test_a_namespace_of_the_site_that_no_ledger_can_hold_is_passed_over(tmp_path: Path) -> None:
    names = '<siteinfo><namespaces><namespace key="99999999999">Far</namespace></namespaces></siteinfo>'
    path = tmp_path / "dump.xml"
    path.write_text(f"<mediawiki>{names}{_page('', title='Far:A')}</mediawiki>")
    assert [page.namespace for page in read_pages(path)] == [0]


def _long(title: str, *revisions: int) -> str:
    return page_xml(1, title, *(Revision(at, text=text_xml("word " * words)) for at, words in enumerate(revisions, 1)))


@pytest.mark.parametrize(
    "pages", [[_long("B", 100_000)], [_long("A", 3), _long("B", 100_000)], [_long("B", 3, 100_000)]]
)
def test_a_revision_that_is_too_long_is_named_by_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: list[str]
) -> None:
    monkeypatch.setattr(dump_pages, "_LONGEST_BYTES", 1 << 17)
    with pytest.raises(
        DumpError, match=r"without the end of a revision of the page 'B': .*allows 2 MB.*leave this page"
    ):
        _read(tmp_path, dump_xml(*pages))
