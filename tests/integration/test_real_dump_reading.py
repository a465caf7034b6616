"""Real dumps of every schema, in every packing, in blocks: the same pages as an independent reading finds."""

import bz2
import re
from datetime import date
from pathlib import Path

import pytest

from rag.corpus.dump import check_page_count, dump_blocks, read_block, read_pages, read_site
from rag.errors import DumpError
from rag.records import Page
from tests.support.dump_fixtures import PACKINGS
from tests.support.shared_data import shared_data

pytestmark = pytest.mark.integration

_MULTISTREAM = "enwiki-20160501-pages-articles-multistream.xml.bz2"
_INDEX = "enwiki-20160501-pages-articles-multistream-index.txt.bz2"
_HISTORY = "aawiki-20260101-pages-meta-history.nouser.xml.bz2"


@pytest.fixture(scope="module")
def multistream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump and its index in a folder where they can be damaged."""
    folder = tmp_path_factory.mktemp("multistream")
    for name in (_MULTISTREAM, _INDEX):
        (folder / name).write_bytes(shared_data("wikidump", name).read_bytes())
    return folder / _MULTISTREAM


@pytest.fixture(scope="module")
def pages(multistream: Path) -> list[Page]:
    return list(read_pages(multistream))


@pytest.fixture(scope="module")
def xml(multistream: Path) -> bytes:
    return bz2.decompress(multistream.read_bytes())


def _read(path: Path, size: int) -> list[Page]:
    return [page for block in dump_blocks(path, block_bytes=size) for page in read_block(block)]


def test_the_index_and_the_pages_agree(multistream: Path, pages: list[Page]) -> None:
    lines = bz2.decompress(multistream.with_name(_INDEX).read_bytes()).decode().splitlines()
    assert [f"{page.page_id}:{page.title}" for page in pages] == [line.split(":", 1)[1] for line in lines]
    check_page_count(multistream, len(pages))
    with pytest.raises(DumpError, match="gave 205 pages"):
        check_page_count(multistream, 205)


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_packing_and_size_of_block_gives_the_same_pages(
    tmp_path: Path, xml: bytes, pages: list[Page], packing: str
) -> None:
    # The whole sample is packed only where that is quick.
    cut = xml if packing in ("plain", "zstd") else xml[: xml.index(b"<page>", 600_000)] + b"</mediawiki>"
    path = tmp_path / "dump"
    path.write_bytes(PACKINGS[packing](cut))
    whole = list(read_pages(path))
    assert whole == pages[: cut.count(b"<page>")]
    assert len(whole) == (206 if cut is xml else len(whole)) > 5
    assert _read(path, 100_000) == whole


def test_blocks_of_the_multistream_dump_with_and_without_its_index(multistream: Path, pages: list[Page]) -> None:
    blocks = list(dump_blocks(multistream, block_bytes=4))
    assert len(blocks) == 4  # the header, and 100, 100 and 6 pages
    assert [page for block in blocks for page in read_block(block)] == pages
    index = multistream.with_name(_INDEX)
    index.rename(index.with_suffix(".away"))
    try:
        assert _read(multistream, 4) == pages
    finally:
        index.with_suffix(".away").rename(index)


def test_e10_the_real_dump_cut_anywhere_is_an_error(tmp_path: Path, multistream: Path) -> None:
    """At each border of two streams, 20 bytes before the end, and somewhere."""
    whole = multistream.read_bytes()
    borders = [found.start() for found in re.finditer(rb"BZh91AY", whole)][1:]
    assert len(borders) == 4
    path = tmp_path / "cut.xml.bz2"
    for cut in (*borders, len(whole) - 20, len(whole) // 3):
        path.write_bytes(whole[:cut])
        with pytest.raises(DumpError, match=rf"{path} (ends before its closing tag|is cut or corrupt)"):
            list(read_pages(path))


def test_a_flipped_bit_in_the_real_dump_names_the_place(tmp_path: Path, multistream: Path) -> None:
    content = bytearray(multistream.read_bytes())
    content[700_000] ^= 1
    path = tmp_path / "flipped.xml.bz2"
    path.write_bytes(content)
    start = max(found.start() for found in re.finditer(rb"BZh91AY", content) if found.start() < 700_000)
    with pytest.raises(DumpError, match=rf"{path} is cut or corrupt .*in the stream that starts at byte {start}"):
        list(read_pages(path))


def _revisions(xml: str, title: str) -> list[tuple[str, int]]:
    """Counted by other means than the reader's."""
    page = next(each for each in xml.split("<page>") if f"<title>{title}</title>" in each)
    found = re.findall(r"<revision>\s*<id>(\d+)</id>.*?<timestamp>(.*?)</timestamp>", page, re.DOTALL)
    return [(time, int(number)) for number, time in found]


@pytest.mark.parametrize("until", [date(2005, 12, 31), date(2007, 6, 30), date(2008, 2, 29), date(2030, 1, 1)])
def test_a_history_is_read_as_it_stood_on_a_day(until: date) -> None:
    path = shared_data("wikidump", _HISTORY)
    xml = bz2.decompress(path.read_bytes()).decode()
    read = {page.title: page for page in read_pages(path, until)}
    assert len(read) == (171 if until.year == 2030 else len(read))
    titles = re.findall(r"<title>(.*?)</title>", xml)
    assert len(titles) == 171
    for title in titles:
        before = [each for each in _revisions(xml, title) if each[0][:10] <= until.isoformat()]
        plain = title.replace("&amp;", "&").replace("&quot;", '"').replace("&#039;", "'")
        found = read.get(plain)
        assert (found and (found.timestamp, found.revision_id)) == (max(before) if before else None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (_MULTISTREAM, ("Wikipedia", "enwiki", "0.10", "File")),
        (_HISTORY, ("Wikipedia", "aawiki", "0.11", "File")),
        ("enwiki-20090902-pages-articles-sample.xml.bz2", ("Wikipedia", "", "0.3", "File")),
        ("page_history_sample.xml", ("", "", "", "File")),
    ],
)
def test_the_site_of_real_dumps(name: str, expected: tuple[str, ...]) -> None:
    site = read_site(shared_data("wikidump", name))
    assert (site.name, site.dbname, site.schema, site.namespaces[6]) == expected
    assert site.base.startswith("http") or not site.name


def test_every_real_file_reads_alike_in_blocks() -> None:
    folder = shared_data("wikidump")
    files = [*folder.glob("*.xml*.bz2"), *folder.glob("*.xml"), *folder.glob("single/*.xml")]
    assert len(files) > 12
    for path in files:
        assert _read(path, 30_000) == list(read_pages(path)) != []
