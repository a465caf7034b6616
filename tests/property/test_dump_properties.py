"""Any dump in any packing reads as its XML says, and no damage is read in silence.

What cannot be seen without the published checksum is not asked for: bytes changed, added or taken away inside the
text of a dump that is not compressed (or by zstd without its checksum), and whole streams taken out of a
multistream dump that has no index.
"""

import bz2
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import date
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.dump import dump_blocks, read_block, read_pages
from rag.errors import DumpError
from rag.records import Page
from tests.support.dump_fixtures import (
    CLOSING,
    PACKINGS,
    Revision,
    dump_xml,
    index_path,
    page_xml,
    text_xml,
    write_with_index,
)

_SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)
_SIZES = st.sampled_from([100, 700, 1 << 20])
# What XML can hold; line ends and names of tags are likely in it.
_CHARACTERS = st.characters(exclude_categories=("Cs", "Cc", "Cn"))
_TEXTS = st.text(st.one_of(_CHARACTERS, st.sampled_from("\n\t<>&'\"")), max_size=60) | st.sampled_from(
    ["</page>", "<page>", "</mediawiki>", "]]>", "#REDIRECT [[B]]", "BZh91AY&SY", "&amp;lt;", "x" * 3000]
)
_TIMES = st.integers(2001, 2009).map(lambda year: f"{year}-06-15T12:00:00Z")


@st.composite
def _pages(draw: st.DrawFn) -> list[str]:
    pages = []
    for number in range(1, draw(st.integers(1, 7)) + 1):
        title = draw(st.text(_CHARACTERS, min_size=1, max_size=9).map(str.strip)) or "A"
        revisions = [
            Revision(draw(st.integers(1, 10**9)), draw(_TIMES), text_xml(escape(draw(_TEXTS))))
            for _ in range(draw(st.integers(1, 4)))
        ]
        pages.append(page_xml(number, escape(title), *revisions))
    return pages


Key = tuple[int, str, int, str, str]


def _oracle(content: bytes, until: date | None) -> list[Key]:
    """The whole document in memory, by another parser."""
    keys = []
    for page in ElementTree.fromstring(content).iterfind("{*}page"):
        revisions = [
            (each.findtext("{*}timestamp") or "", int(each.findtext("{*}id") or 0), each.findtext("{*}text") or "")
            for each in page.iterfind("{*}revision")
        ]
        if until is not None:
            revisions = sorted((each for each in revisions if each[0] < f"{until}T24"), key=lambda each: each[:2])
        if revisions:
            time, revision, text = revisions[-1]
            keys.append((int(page.findtext("{*}id") or 0), page.findtext("{*}title") or "", revision, time, text))
    return keys


def _keys(pages: list[Page]) -> list[Key]:
    return [(page.page_id, page.title, page.revision_id, page.timestamp, page.wikitext) for page in pages]


def _read(path: Path, size: int, until: date | None = None) -> list[Page]:
    return [page for block in dump_blocks(path, until, block_bytes=size) for page in read_block(block, until)]


def _read_or_refuse(path: Path, size: int) -> list[Page] | str:
    try:
        return _read(path, size)
    except DumpError as error:
        return str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@_SETTINGS
@given(pages=_pages(), size=_SIZES, until=st.none() | st.integers(2001, 2010).map(lambda year: date(year, 6, 15)))
def test_every_packing_reads_as_the_xml_says(folder: Path, pages: list[str], size: int, until: date | None) -> None:
    content = dump_xml(*pages)
    expected = _oracle(content, until)
    for name, pack in PACKINGS.items():
        path = folder / name
        path.write_bytes(pack(content))
        assert _keys(_read(path, size, until)) == expected
    path = write_with_index(folder, pages, range(1, len(pages) + 1))
    assert _keys(_read(path, size, until)) == expected


# Damage

_WHOLE = dump_xml(*(page_xml(number, f"Page {number}", extra="<ns>0</ns>") for number in range(1, 13)))


def _flip(content: bytes, at: int, drawn: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << drawn % 8)]) + content[at + 1 :]


def _insert(content: bytes, at: int, drawn: int) -> bytes:
    return content[:at] + bytes((drawn * n + n) % 256 for n in range(1 + drawn % 40)) + content[at:]


def _delete(content: bytes, at: int, drawn: int) -> bytes:
    return content[:at] + content[at + 1 + drawn % 400 :]


def _cut(content: bytes, at: int, _: int) -> bytes:
    return content[:at]


def _repeat(content: bytes, at: int, drawn: int) -> bytes:
    return content[: at + 1 + drawn] + content[at:]


_DAMAGES = st.sampled_from([_flip, _insert, _delete, _cut, _repeat])
_Damage = Callable[[bytes, int, int], bytes]
_UNCHECKED = ("plain", "zstd", "zstd-halves")
_CHECKED = [name for name in PACKINGS if name not in _UNCHECKED]
_PLACES = st.floats(0, 1, exclude_max=True)


def _damaged(content: bytes, damages: list[tuple[_Damage, float, int]]) -> bytes:
    for damage, place, drawn in damages:
        content = damage(content, int(place * len(content)), drawn) or b"\n"
    return content


_ALL_DAMAGES = st.lists(st.tuples(_DAMAGES, _PLACES, st.integers(0, 10**4)), min_size=1, max_size=2)


@pytest.mark.parametrize("packing", _CHECKED)
@_SETTINGS
@given(damages=_ALL_DAMAGES, size=_SIZES)
def test_damage_to_a_packed_dump_is_an_error_or_harmless(
    folder: Path, packing: str, damages: list[tuple[_Damage, float, int]], size: int
) -> None:
    path = folder / "damaged"
    path.write_bytes(_damaged(PACKINGS[packing](_WHOLE), damages))
    read = _read_or_refuse(path, size)
    assert str(path) in read if isinstance(read, str) else _keys(read) == _oracle(_WHOLE, None)


@_SETTINGS
@given(damages=_ALL_DAMAGES, size=_SIZES, of_index=st.booleans())
def test_damage_to_a_multistream_dump_or_its_index_is_an_error_or_harmless(
    folder: Path, damages: list[tuple[_Damage, float, int]], size: int, of_index: bool
) -> None:
    pages = [page_xml(number, f"Page {number}") for number in range(1, 13)]
    path = write_with_index(folder, pages, range(1, 13))
    file = index_path(path) if of_index else path
    whole = bz2.decompress(file.read_bytes()) if of_index else file.read_bytes()
    file.write_bytes(_damaged(whole, damages))
    read = _read_or_refuse(path, size)
    assert str(folder) in read if isinstance(read, str) else _keys(read) == _oracle(_WHOLE, None)


@pytest.mark.parametrize("packing", _UNCHECKED)
@_SETTINGS
@given(damages=_ALL_DAMAGES, size=_SIZES)
def test_damage_where_nothing_is_checked_is_never_another_error(
    folder: Path, packing: str, damages: list[tuple[_Damage, float, int]], size: int
) -> None:
    path = folder / "damaged"
    path.write_bytes(_damaged(PACKINGS[packing](_WHOLE), damages))
    read = _read_or_refuse(path, size)
    assert str(path) in read if isinstance(read, str) else list(read_pages(path)) == read


@_SETTINGS
@given(packing=st.sampled_from(list(PACKINGS)), place=_PLACES, size=_SIZES)
def test_a_cut_is_never_read_in_silence(folder: Path, packing: str, place: float, size: int) -> None:
    whole = PACKINGS[packing](_WHOLE)
    cut = whole[: int(place * len(whole))]
    path = folder / "cut"
    path.write_bytes(cut)
    if packing == "plain" and cut.endswith(CLOSING.strip().encode()):
        return
    with pytest.raises(DumpError, match=str(path)):
        _read(path, size)
