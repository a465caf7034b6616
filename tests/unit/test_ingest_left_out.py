"""Pages of a dump that are not there yet, or once more, or missing, and copies of text: each is counted."""

from datetime import date
from pathlib import Path

import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.errors import DumpError
from tests.support.dump_fixtures import Revision, page_xml, text_xml, write_with_index
from tests.support.small_wiki import (
    article,
    ingest_file,
    ledger_in,
    passages_in,
    redirect,
    rejects_in,
    small_pieces,
    titled,
    write_dump,
)


def test_a_history_is_taken_as_of_a_day(tmp_path: Path) -> None:
    revisions = [Revision(year, f"{year}-03-01T00:00:00Z", text_xml(f"As of {year}.")) for year in (2015, 2017, 2019)]
    dump = write_dump(tmp_path / "dump.xml", [page_xml(1, "Page", *revisions), page_xml(2, "Later", revisions[2])])
    report = ingest(SourceSpec("test", (dump,), until=date(2018, 1, 1)), PassageConfig(), tmp_path / "out")
    assert passages_in(tmp_path / "out").column("text").to_pylist() == ["As of 2017."]
    assert (report.pages, report.not_yet, report.articles, report.rejects) == (2, 1, 1, 0)
    later = ledger_in(tmp_path / "out").to_pylist()[1]
    assert (later["kind"], later["page_id"], later["title"], later["revision_id"]) == ("not_yet", 2, "Later", 0)


def test_pages_of_the_index_are_counted_also_where_they_are_not_yet(tmp_path: Path) -> None:
    revision = Revision(1, "2019-03-01T00:00:00Z", text_xml("Later."))
    pages = [page_xml(number, f"Page {number}", revision) for number in range(1, 4)]
    for name, named in (("whole", [1, 2, 3]), ("cut", [1, 2, 4])):
        (tmp_path / name).mkdir()
        spec = SourceSpec("test", (write_with_index(tmp_path / name, pages, named),), until=date(2018, 1, 1))
        if name == "whole":
            assert ingest(spec, PassageConfig(), tmp_path / "out").not_yet == 3
        else:
            with pytest.raises(DumpError, match="index"):
                ingest(spec, PassageConfig(), tmp_path / "out")


@pytest.mark.parametrize("block_bytes", [200, 8_000], ids=["in many blocks", "in one block"])
@pytest.mark.parametrize("second", [article(1, 120, title="Other"), titled(1, "Box", "{{Infobox x}}"), redirect(1, "")])
def test_the_first_page_of_an_id_is_kept_and_the_others_are_rejects(
    tmp_path: Path, block_bytes: int, second: str
) -> None:
    first = [article(1, 250), titled(2, "Empty", ""), article(3, 30)]
    dump = write_dump(tmp_path / "dump.xml", [*first, second, titled(2, "Empty too", ""), article(4, 30)])
    with small_pieces(block_bytes=block_bytes):
        report = ingest_file(dump, tmp_path / "out", PassageConfig(keep_redirects=True))
        expected = ingest_file(write_dump(tmp_path / "once.xml", [*first, article(4, 30)]), tmp_path / "once")
    assert passages_in(tmp_path / "out").equals(passages_in(tmp_path / "once"))
    assert (report.pages, report.repeated, report.articles) == (6, 2, expected.articles)
    assert [(reject["page_id"], reject["reason"]) for reject in rejects_in(tmp_path / "out")] == [
        (2, "the page has no text"), *[(page, "a page with this id was there before") for page in (1, 2)],
    ]  # fmt: skip
    kinds = ledger_in(tmp_path / "out").column("kind").to_pylist()
    assert kinds == ["articles", "empty_articles", "articles", "repeated", "repeated", "articles"]


def test_exact_copies_are_dropped_from_boilerplate_too(tmp_path: Path) -> None:
    text = "A sentence that stands on two pages of this wiki word for word, and is of some length."
    dump = write_dump(tmp_path / "dump.xml", [titled(number, f"Page {number}", text) for number in range(1, 5)])
    options = PassageConfig(exact_duplicates="drop", boilerplate_pages=2)
    report = ingest_file(dump, tmp_path / "out", options)
    assert report.duplicates == {"exact": 0, "near": 0, "boilerplate": 4, "copies": 3, "dropped": 3}
    assert (report.passages, report.dropped_kinds) == (1, ("exact",))


def test_a_page_that_the_index_names_and_the_dump_lacks_is_an_error(tmp_path: Path) -> None:
    pages = [article(number, 30) for number in range(1, 7)]
    dump = write_with_index(tmp_path, pages, [1, 2, 3, 4, 5, 6])
    assert ingest_file(dump, tmp_path / "out").pages == 6
    (tmp_path / "more").mkdir()
    dump = write_with_index(tmp_path / "more", pages, [1, 2, 3, 4, 5, 7])
    with pytest.raises(DumpError, match="index"):
        ingest_file(dump, tmp_path / "more" / "out")
