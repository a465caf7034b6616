"""The dumps that the ingest benchmark makes are dumps, and their copies are different pages."""

import importlib.util
from pathlib import Path

import pytest

from rag.corpus.dump import check_page_count, read_pages
from tests.benchmarks.ingest_dumps import multistream_dump, plain_dump
from tests.support.shared_data import shared_data

pytestmark = pytest.mark.integration


def test_copies_have_ids_titles_and_words_of_their_own(tmp_path: Path) -> None:
    if importlib.util.find_spec("gensim") is None:
        shared_data("wikidump")  # skips where neither is here
    plain = plain_dump(tmp_path, 7)
    pages = list(read_pages(plain))
    assert len(pages) == 2 * 206
    assert len({page.page_id for page in pages}) == len({page.title for page in pages}) == len(pages)
    for page, copy in zip(pages[:206], pages[206:], strict=True):
        assert copy.page_id == page.page_id + 10**7
        assert copy.wikitext.count("[[") == page.wikitext.count("[[")
        assert len(page.wikitext) < 5000 or copy.wikitext != page.wikitext
    multistream = multistream_dump(plain)
    assert list(read_pages(multistream)) == pages
    check_page_count(multistream, len(pages))


def test_a_small_dump_is_cut_between_pages(tmp_path: Path) -> None:
    if importlib.util.find_spec("gensim") is None:
        shared_data("wikidump")
    plain = plain_dump(tmp_path, 0.2)
    assert 2e5 <= plain.stat().st_size < 6e5
    assert list(read_pages(plain))
