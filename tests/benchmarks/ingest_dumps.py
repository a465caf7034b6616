"""Dumps of any size for the ingest benchmark, made of the real English sample.

The sample is repeated; every copy has page ids and titles of its own, and other words in its prose, so that neither a
cache nor the search for duplicates sees the same text again. Markup is never touched. The same size gives the same
bytes.
"""

import bz2
import html
import importlib.util
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

_SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_SHARED = "wikidump/enwiki-20160501-pages-articles1.xml-p10p30302-shortened.bz2"
_SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_PROSE_WORD = re.compile(rb"(?<=[a-z] )[a-z]{3,12}(?= [a-z])")
_CHANGED_SHARE = 1.0  # of such words: lists and names stay, so copies are still more alike than other passages
_IDS_A_COPY = 10**7
_PAGES_A_STREAM = 100  # as in the multistream dumps of Wikimedia
_PAGE = re.compile(rb"  <page>\n.*?</page>\n", re.DOTALL)


def sample_dump() -> Path:
    """The dump of May 2016 inside the gensim package, or its copy in the shared test data."""
    spec = importlib.util.find_spec("gensim")
    folders = list(spec.submodule_search_locations or []) if spec else []
    shared = Path(os.environ.get("OPENBOOK_TEST_DATA", _SHARED_DATA), _SHARED)
    for path in [*(Path(folder, "test", "test_data", _SAMPLE) for folder in folders), shared]:
        if path.exists():
            return path
    raise SystemExit("the sample dump is in the package gensim: pip install --no-deps gensim")


def plain_dump(folder: Path, megabytes: float) -> Path:
    """An uncompressed dump of that size and up to 7 MB more; one that lies there already is taken as it is."""
    path = folder / f"{megabytes:g}mb" / "pages-articles.xml"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            for part in _repeated(bz2.decompress(sample_dump().read_bytes()), round(megabytes * 1e6)):
                file.write(part)
        temporary.replace(path)
    return path


def bz2_dump(plain: Path) -> Path:
    """The same dump in one bz2 stream."""
    path = plain.with_name(plain.name + ".bz2")
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        with plain.open("rb") as source, bz2.open(temporary, "wb") as file:
            while data := source.read(1 << 20):
                file.write(data)
        temporary.replace(path)
    return path


def multistream_dump(plain: Path) -> Path:
    """The same dump in bz2 streams of 100 pages, with its index beside it."""
    path = plain.with_name("pages-articles-multistream.xml.bz2")
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        index = []
        with temporary.open("wb") as file:
            for pages in _streams(plain.read_bytes()):
                index += [f"{file.tell()}:{number}:{title}\n" for number, title in map(_id_and_title, pages[1:])]
                file.write(bz2.compress(b"".join(pages)))
        index_path = plain.with_name("pages-articles-multistream-index.txt.bz2")
        index_path.write_bytes(bz2.compress("".join(index).encode()))
        temporary.replace(path)
    return path


def _repeated(sample: bytes, size: int) -> Iterator[bytes]:
    start, end = sample.index(b"  <page>"), sample.rindex(b"</mediawiki>")
    pages = sample[start:end]
    vocabulary = sorted(set(_PROSE_WORD.findall(pages)))
    yield sample[:start]
    written = start + len(b"</mediawiki>\n")
    copy = 0
    while written < size:
        text = _copy(pages, copy, vocabulary)
        if size < len(sample):
            text = text[: text.index(b"</page>\n", size - written) + len(b"</page>\n")]
        yield text
        written += len(text)
        copy += 1
    yield b"</mediawiki>\n"


def _copy(pages: bytes, number: int, vocabulary: list[bytes]) -> bytes:
    """The pages as copy ``number``; the first is the sample itself."""
    if not number:
        return pages
    draw = random.Random(number)

    def word(match: re.Match[bytes]) -> bytes:
        return draw.choice(vocabulary) if draw.random() < _CHANGED_SHARE else match[0]

    def page(match: re.Match[bytes]) -> bytes:
        text = match[0].replace(b"</title>", b" (copy %d)</title>" % number, 1)
        return re.sub(rb"<id>(\d+)", lambda found: b"<id>%d" % (int(found[1]) + number * _IDS_A_COPY), text, count=1)

    return _PAGE.sub(page, _PROSE_WORD.sub(word, pages))


def _streams(dump: bytes) -> Iterator[list[bytes]]:
    """What goes into each stream: something before the pages (of the first: the header), then the pages."""
    start, end = dump.index(b"  <page>"), dump.rindex(b"</mediawiki>")
    yield [dump[:start]]
    pages = _PAGE.findall(dump, start, end)
    for first in range(0, len(pages), _PAGES_A_STREAM):
        yield [b"", *pages[first : first + _PAGES_A_STREAM]]
    yield [dump[end:]]


def _id_and_title(page: bytes) -> tuple[int, str]:
    number, title = re.search(rb"<id>(\d+)", page), re.search(rb"<title>(.*?)</title>", page)
    if number is None or title is None:
        raise SystemExit(f"a page of the sample has no id or title: {page[:80]!r}")
    return int(number[1]), html.unescape(title[1].decode())
