"""The files of a dump that lie in a folder: all parts in page order, or a clear error."""

from pathlib import Path

import pytest

from rag.corpus.download.files import local_dump_files
from rag.errors import ConfigError, DumpError
from tests.support.dump_lists import BASE, IN_ORDER, PARTS, WHOLE, job_of, status_of, sums_of


def test_a_folder_gives_its_dump_in_page_order(tmp_path: Path) -> None:
    for name in [
        *PARTS,
        "notes.txt",
        f"{PARTS[0]}.download.json",
        f"{PARTS[0]}.part",
        f"{BASE}-multistream.xml.bz2",
    ]:
        (tmp_path / name).touch()
    assert local_dump_files(tmp_path, "articles") == [tmp_path / name for name in IN_ORDER]
    assert local_dump_files(tmp_path, "multistream") == [tmp_path / f"{BASE}-multistream.xml.bz2"]
    (tmp_path / f"{BASE}.xml").touch()
    assert local_dump_files(tmp_path, "articles") == [tmp_path / f"{BASE}.xml"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "try the other job"),
        ([f"{BASE}-multistream.xml.bz2"], "dump_job = 'articles'"),
        ([f"{BASE}.xml", WHOLE], "holds the same dump twice"),
        ([f"{BASE}1.xml-p1p2", f"{BASE}1.xml-p1p2.bz2"], "a part of the dump twice"),
        ([WHOLE, "xxwiki-20240701-pages-articles.xml.bz2"], "xxwiki-20240701, xxwiki-20240801"),
    ],
)
def test_a_folder_without_one_whole_dump_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=message):
        local_dump_files(tmp_path, "articles")


@pytest.mark.parametrize("gone", range(10))
def test_a_folder_without_one_of_its_parts_is_no_dump(tmp_path: Path, gone: int) -> None:
    """The names tell of any part but the last."""
    for name in IN_ORDER:
        (tmp_path / name).touch()
    (tmp_path / IN_ORDER[gone]).unlink()
    with pytest.raises(DumpError, match=r"lacks part \d+|no part holds the page ids \d+ to \d+"):
        local_dump_files(tmp_path, "articles")


_LISTS = {
    "xxwiki-20240801-sha1sums.txt": sums_of(*PARTS, WHOLE, "xxwiki-20240801-pages-articles-multistream2.xml-p5p6.bz2"),
    "dumpstatus.json": status_of(
        articlesdump=job_of(PARTS), articlesdumprecombine=job_of([WHOLE]), other=job_of(["a"])
    ),
}


@pytest.mark.parametrize("listing", _LISTS)
def test_every_part_that_a_list_beside_them_names_must_be_there(tmp_path: Path, listing: str) -> None:
    (tmp_path / listing).write_bytes(_LISTS[listing])
    for name in IN_ORDER:
        (tmp_path / name).touch()
    (tmp_path / IN_ORDER[4]).rename(tmp_path / IN_ORDER[4].removesuffix(".bz2"))  # unpacked by hand
    assert len(local_dump_files(tmp_path, "articles")) == len(IN_ORDER)
    (tmp_path / IN_ORDER[-1]).unlink()
    with pytest.raises(DumpError, match=rf"lacks {IN_ORDER[-1]}, which {listing} names; fetch what is missing"):
        local_dump_files(tmp_path, "articles")
    (tmp_path / WHOLE).touch()
    assert local_dump_files(tmp_path, "articles") == [tmp_path / WHOLE]


def test_a_list_of_another_dump_says_nothing_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / IN_ORDER[0]).touch()
    listing = tmp_path / "xxwiki-20240701-sha1sums.txt"
    listing.write_bytes(sums_of("xxwiki-20240701-pages-articles2.xml-p31p40.bz2"))
    assert local_dump_files(tmp_path, "articles") == [tmp_path / IN_ORDER[0]]
    listing.write_text("<html>")
    with pytest.raises(DumpError, match="line 1"):
        local_dump_files(tmp_path, "articles")


def test_parts_of_two_divisions_are_refused(tmp_path: Path) -> None:
    for pages in ("1.xml-p1p30", "1.xml-p21p40", "2.xml-p41p50"):
        (tmp_path / f"{BASE}{pages}.bz2").touch()
    with pytest.raises(ConfigError, match="two parts hold the page ids from 21 on"):
        local_dump_files(tmp_path, "articles")


_OLD = {
    "20150702": ("000000010p000010000", "000010002p000025001", "000025001p000055000", "000055002p000104998"),
    "20170220": ("000000010p000030302", "000030304p000088444", "000088445p000200507", "000200511p000352689"),
    "20181101": ("10p30302", "30304p88444", "88445p200507", "200511p352689"),
}


@pytest.mark.parametrize("date", _OLD)
def test_old_parts_are_named_by_the_pages_that_there_were(tmp_path: Path, date: str) -> None:
    """The first parts of three real dumps: deleted pages lie between them, and one may begin where another ends."""
    names = [f"enwiki-{date}-pages-articles{part}.xml-p{pages}.bz2" for part, pages in enumerate(_OLD[date], 1)]
    after = int(_OLD[date][-1].rpartition("p")[2]) + 41
    ranges = (f"{after}p{after + 1_500_000}", f"{after + 1_500_000}p{after + 1_600_000}")
    names += [f"enwiki-{date}-pages-articles5.xml-p{pages}.bz2" for pages in ranges]
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in local_dump_files(tmp_path, "articles")] == names
    (tmp_path / names[4]).unlink()
    with pytest.raises(DumpError, match="no part holds the page ids"):
        local_dump_files(tmp_path, "articles")
