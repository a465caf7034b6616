"""Blocks: whatever the packing and the size, their pages together are the pages of the dump."""

import bz2
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from rag.corpus.dump import streams as dump_streams
from rag.corpus.dump.reader import ByteRange, block_total, check_page_count, dump_blocks, read_block, read_pages
from rag.corpus.dump.streams import StreamRange, index_beside
from rag.errors import DumpError
from rag.records import Page
from tests.support.dump_fixtures import (
    CLOSING,
    PACKINGS,
    Revision,
    dump_xml,
    header_xml,
    index_path,
    multistream,
    page_xml,
    text_xml,
    write_with_index,
)

_IDS = range(1, 41)
# Page 20 is longer than two of the small blocks below: it cannot be carried in one.
_PAGES = [
    page_xml(
        number,
        f"Page {number}",
        *(Revision(n, text=text_xml(f"{number} {'word ' * 40}")) for n in range(1, 40 if number == 20 else 3)),
    )
    for number in _IDS
]
_SIZES = [100, 1000, 3000, 1 << 20]


def _write(folder: Path, content: bytes) -> Path:
    path = folder / "dump"
    path.write_bytes(content)
    return path


def _read(path: Path, size: int) -> list[Page]:
    return [page for block in dump_blocks(path, block_bytes=size) for page in read_block(block)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Page]:
    pages = list(read_pages(_write(tmp_path_factory.mktemp("plain"), dump_xml(*_PAGES))))
    assert [page.page_id for page in pages] == list(_IDS)
    assert all(page.wikitext == f"{page.page_id} {'word ' * 40}" for page in pages)
    return pages


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("packing", PACKINGS)
def test_blocks_together_are_the_dump(tmp_path: Path, expected: list[Page], packing: str, size: int) -> None:
    path = _write(tmp_path, PACKINGS[packing](dump_xml(*_PAGES)))
    blocks = list(dump_blocks(path, block_bytes=size))
    assert list(read_pages(path)) == expected
    assert [page for block in blocks for page in read_block(block)] == expected
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert len(blocks) == 1 if size == 1 << 20 else len(blocks) > 3
    for first in (1, len(blocks) // 2, len(blocks)):
        assert list(map(repr, dump_blocks(path, first=first, block_bytes=size))) == list(map(repr, blocks[first:]))


@pytest.mark.parametrize("size", _SIZES)
def test_blocks_of_a_multistream_dump_follow_its_index(tmp_path: Path, expected: list[Page], size: int) -> None:
    path = write_with_index(tmp_path, _PAGES, _IDS)
    blocks = list(dump_blocks(path, block_bytes=size))
    assert [page for block in blocks for page in read_block(block)] == expected
    assert len(blocks) == (21 if size == 100 else 1 if size == 1 << 20 else len(blocks))
    index_path(path).unlink()
    without = list(dump_blocks(path, block_bytes=size))
    assert [block.content[:2] for block in without] == [block.content[:2] for block in blocks]


def test_bare_pages_are_cut_as_well(tmp_path: Path, expected: list[Page]) -> None:
    for packing in PACKINGS.values():
        path = _write(tmp_path, packing("".join(_PAGES).encode()))
        blocks = list(dump_blocks(path, block_bytes=2000))
        assert len(blocks) > 3
        assert [page for block in blocks for page in read_block(block)] == expected


def _numbers(block: bytes) -> list[int]:
    return [page.page_id for page in read_block(pickle.loads(block))]  # noqa: S301  our own bytes


@pytest.mark.parametrize("packing", ["plain", "bz2", "bz2-pages"])
def test_blocks_are_read_in_other_processes(tmp_path: Path, packing: str) -> None:
    path = _write(tmp_path, PACKINGS[packing](dump_xml(*_PAGES)))
    blocks = [pickle.dumps(block) for block in dump_blocks(path, block_bytes=2000)]
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        assert [number for numbers in pool.map(_numbers, blocks) for number in numbers] == list(_IDS)


def test_the_number_of_blocks_is_known_where_the_file_can_be_seeked(tmp_path: Path) -> None:
    assert block_total(write_with_index(tmp_path, _PAGES, _IDS)) == 1
    assert block_total(_write(tmp_path, dump_xml(*_PAGES))) == 1
    for packing in ("bz2", "bz2-pages", "gz", "xz", "zstd"):
        assert block_total(_write(tmp_path, PACKINGS[packing](dump_xml(*_PAGES)))) is None


def test_a_dump_without_pages_has_none(tmp_path: Path) -> None:
    for packing in PACKINGS.values():
        path = _write(tmp_path, packing(dump_xml()))
        assert list(read_pages(path)) == []
        assert [list(read_block(block)) for block in dump_blocks(path)] == [[]]


def test_skipping_blocks_of_a_plain_dump_reads_little_of_it(tmp_path: Path) -> None:
    path = _write(tmp_path, dump_xml(*_PAGES))
    blocks = list(dump_blocks(path, block_bytes=1000))
    content = bytearray(path.read_bytes())
    place = blocks[2].content
    assert isinstance(place, ByteRange)
    start, end = place
    content[start + 300 : start + 305] = b"<<<<<"  # damage that whoever reads the block sees
    path.write_bytes(content)
    later = [block.number for block in dump_blocks(path, first=3, block_bytes=1000) if list(read_block(block))]
    assert later == list(range(3, len(blocks)))
    with pytest.raises(DumpError, match=rf"bytes {start} to {end}.*not well-formed"):
        list(read_block(list(dump_blocks(path, block_bytes=1000))[2]))


# Completeness


def test_e10_a_cut_between_two_streams_is_an_error(tmp_path: Path) -> None:
    """Half of a multistream dump looks whole to bz2."""
    for with_index in (True, False):
        path = write_with_index(tmp_path, _PAGES, _IDS)
        if not with_index:
            index_path(path).unlink()
        whole = path.read_bytes()
        borders = [at for at in range(1, len(whole)) if whole.startswith(b"BZh1", at)]
        assert len(borders) == 21
        for border in borders:
            path.write_bytes(whole[:border])
            assert len(bz2.decompress(whole[:border])) > 0
            with pytest.raises(DumpError, match=r"closing tag|does not have"):
                list(read_pages(path))


def test_e10_a_stream_cut_by_20_bytes_is_an_error(tmp_path: Path) -> None:
    """A download that was cut."""
    path = _write(tmp_path, multistream(_PAGES)[:-20])
    with pytest.raises(DumpError, match="is cut or corrupt: its stream from byte"):
        list(read_pages(path))


def test_e10_all_streams_are_read_not_only_the_first(tmp_path: Path, expected: list[Page]) -> None:
    """One decompressor alone would stop after the first stream."""
    assert list(read_pages(_write(tmp_path, multistream(_PAGES)))) == expected


def test_a_lost_stream_is_seen_by_the_index(tmp_path: Path) -> None:
    path = write_with_index(tmp_path, _PAGES, _IDS)
    whole = path.read_bytes()
    start = whole.index(b"BZh1", 5000)
    end = whole.index(b"BZh1", start + 1)
    path.write_bytes(whole[:start] + whole[end:])
    with pytest.raises(DumpError, match=r"38 pages in bytes 0 to .* index names 40; missing: \[\d+, \d+\]"):
        list(read_pages(path))


def test_other_page_ids_than_the_index_names_are_an_error(tmp_path: Path) -> None:
    path = write_with_index(tmp_path, _PAGES, [*range(1, 40), 99])
    with pytest.raises(DumpError, match=r"missing: \[99\], not in the index: \[40\]"):
        list(read_pages(path))


def test_the_page_count_is_compared_with_the_index(tmp_path: Path) -> None:
    path = write_with_index(tmp_path, _PAGES, _IDS)
    check_page_count(path, 40)
    with pytest.raises(DumpError, match=r"gave 39 pages where its index .*-index.txt.bz2 names 40"):
        check_page_count(path, 39)
    index_path(path).unlink()
    check_page_count(path, 39)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"<html>502</html>", "line 1 is not"),
        (bz2.compress(b"600:1:A\n500:2:B\n"), "after one at 600"),
        (bz2.compress(b"600:1:A\n99999999:2:B\n"), "one of the two is cut"),
        (bz2.compress(b"600:1:A\n600:x:B\n"), "line 2 is not"),
        (bz2.compress(b"600:1:A\n")[:-4], "cut or corrupt"),
        (bz2.compress(b""), "not in the index"),
    ],
)
def test_a_damaged_index_is_an_error(tmp_path: Path, index: bytes, message: str) -> None:
    path = write_with_index(tmp_path, _PAGES, _IDS)
    index_path(path).write_bytes(index)
    with pytest.raises(DumpError, match=message):
        list(read_pages(path))


def test_an_index_is_found_by_the_names_of_wikimedia(tmp_path: Path) -> None:
    names = {
        "w-multistream.xml.bz2": "w-multistream-index.txt.bz2",
        "w-multistream2.xml-p5p9.bz2": "w-multistream-index2.txt-p5p9.bz2",
        "v-multistream.xml.bz2": "v-multistream-index.txt",
        "u-multistream.xml": "u-multistream-index.txt.bz2",
    }
    for dump, index in names.items():
        assert index_beside(tmp_path / dump) is None
        (tmp_path / index).touch()
        assert index_beside(tmp_path / dump) == tmp_path / index
        assert index_beside(tmp_path / index) is None
    assert index_beside(tmp_path / "pages-articles.xml.bz2") is None


@pytest.mark.parametrize("packing", ["bz2", "bz2-pages", "gz", "xz"])
def test_a_flipped_bit_in_the_middle_names_the_file_and_the_place(tmp_path: Path, packing: str) -> None:
    content = bytearray(PACKINGS[packing](dump_xml(*_PAGES)))
    content[len(content) // 2] ^= 0x10
    path = _write(tmp_path, bytes(content))
    with pytest.raises(DumpError, match=rf"{path} is cut or corrupt .*byte \d+"):
        list(read_pages(path))


@pytest.mark.parametrize("packing", PACKINGS)
def test_two_dumps_in_one_file_are_an_error(tmp_path: Path, packing: str) -> None:
    pack = PACKINGS[packing]
    other = dump_xml(page_xml(99, "B"))
    for content in (pack(dump_xml(*_PAGES) + other), pack(dump_xml(*_PAGES)) + pack(other)):
        path = _write(tmp_path, content)
        for size in (1000, 1 << 20):
            with pytest.raises(DumpError, match="goes on after its closing tag"):
                _read(path, size)


@pytest.mark.parametrize("packing", ["plain", "bz2", "bz2-pages", "gz", "xz", "zstd"])
def test_garbage_behind_the_dump_is_an_error(tmp_path: Path, packing: str) -> None:
    path = _write(tmp_path, PACKINGS[packing](dump_xml(*_PAGES)) + b"garbage behind it")
    with pytest.raises(DumpError, match=str(path)):
        list(read_pages(path))


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_missing_closing_tag_is_an_error_at_every_size(tmp_path: Path, packing: str) -> None:
    whole = dump_xml(*_PAGES)
    for cut in (whole[: -len(CLOSING)], whole[:-200], whole[: len(whole) // 2], whole[: len(header_xml()) - 30]):
        path = _write(tmp_path, PACKINGS[packing](cut))
        for size in (1000, 1 << 20):
            with pytest.raises(DumpError, match="ends before its closing tag"):
                _read(path, size)


def test_a_hidden_page_end_is_refused_not_misread(tmp_path: Path) -> None:
    hidden = page_xml(1, "A", Revision(1, text="<text><![CDATA[ </page> ]]></text>"))
    path = _write(tmp_path, dump_xml(hidden, *_PAGES))
    with pytest.raises(DumpError, match=r"not well-formed|closing tag"):
        _read(path, 100)


def test_a_few_long_streams_are_cut_like_one(
    tmp_path: Path, expected: list[Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a dump in one stream, with its header and its closing tag in two more, would be a single block."""
    path = _write(tmp_path, multistream(_PAGES))
    assert all(isinstance(block.content, StreamRange) for block in dump_blocks(path, block_bytes=2000))
    monkeypatch.setattr(dump_streams, "_SAMPLED_BYTES", 1000)  # as if the file had eight streams beyond that only
    blocks = list(dump_blocks(path, block_bytes=2000))
    assert not any(isinstance(block.content, StreamRange) for block in blocks)
    assert [page for block in blocks for page in read_block(block)] == expected


def test_a_page_that_never_ends_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    endless = page_xml(1, "A", Revision(1, text=text_xml("word " * (7 << 20))))
    path = _write(tmp_path, dump_xml(endless))
    with pytest.raises(DumpError, match=r"has \d+ bytes without the end of a revision"):
        list(read_pages(path))
