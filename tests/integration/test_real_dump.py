"""The real English sample dump, and the real files of every schema version, end to end."""

import bz2
import importlib.util
import re
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from data_checks.passage_columns import MARKUP, passages_frame
from data_checks.passages import passages_suite
from data_checks.runner import run_suite
from rag.config import PassageConfig
from rag.corpus.dump import read_pages
from rag.corpus.ingest.ledger import ledger_files
from rag.corpus.ingest.source import IngestReport, SourceSpec, ingest
from rag.corpus.passages import passage_files
from rag.corpus.wikitext import plain_text
from rag.errors import DumpError
from rag.records import Page
from tests.support.shared_data import shared_data

pytestmark = pytest.mark.integration

_SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


@pytest.fixture(scope="module")
def sample() -> Path:
    """The dump of May 2016 inside the gensim package, or the copy of it in the shared data."""
    spec = importlib.util.find_spec("gensim")
    for folder in spec.submodule_search_locations or [] if spec else []:
        path = Path(folder, "test", "test_data", _SAMPLE)
        if path.exists():
            return path
    return shared_data("wikidump", "enwiki-20160501-pages-articles1.xml-p10p30302-shortened.bz2")


@pytest.fixture(scope="module")
def pages(sample: Path) -> list[Page]:
    return list(read_pages(sample))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ingested")


@pytest.fixture(scope="module")
def ingested(sample: Path, folder: Path) -> tuple[IngestReport, pd.DataFrame]:
    report = ingest(SourceSpec("en", (sample,)), PassageConfig(), folder)
    return report, pd.concat([pq.read_table(path).to_pandas() for path in passage_files(folder)])


def test_counts_equal_an_independent_count(sample: Path, ingested: tuple[IngestReport, pd.DataFrame]) -> None:
    xml = bz2.decompress(sample.read_bytes()).decode()
    found = re.findall(r"<page>.*?</page>", xml, re.DOTALL)
    # Counted by other means than the reader's.
    articles = [page for page in found if "<ns>0</ns>" in page]
    redirects = [page for page in articles if "<redirect " in page]
    disambiguation = [page for page in articles if re.search(r"\{\{(?:disambiguation|geodis)[|}]", page, re.IGNORECASE)]
    lists = [page for page in articles if re.search(r"<title>(?:Lists?|Index|Outline) of ", page)]
    report, frame = ingested
    assert (report.pages, report.redirects) == (len(found), len(redirects)) == (206, 99)
    assert report.other_namespaces == len(found) - len(articles) == 1
    assert report.disambiguation == len(disambiguation) == 8
    assert report.lists == len(lists) - sum("<redirect " in page for page in lists) == 2
    assert report.articles == 206 - 99 - 1 - 8 - 2
    assert report.empty_articles == report.rejects == 0
    assert report.passages == len(frame)
    assert frame["page_id"].nunique() == report.articles


def test_the_ledger_names_every_page_and_its_revision(pages: list[Page], folder: Path, ingested: object) -> None:
    assert ingested
    ledger = pd.concat([pq.read_table(path).to_pandas() for path in ledger_files(folder)])
    columns = ["page_id", "revision_id", "title", "namespace", "timestamp", "wikitext_chars"]
    assert list(ledger[columns].itertuples(index=False, name=None)) == [
        (page.page_id, page.revision_id, page.title, page.namespace, page.timestamp, len(page.wikitext))
        for page in pages
    ]
    assert ledger["url"].iloc[0].startswith("http")
    assert ledger["url"].iloc[0].endswith(f"/w/index.php?oldid={pages[0].revision_id}")
    assert (ledger.loc[ledger["kind"] == "articles", "passages"] > 0).all()


def test_passages_are_stretches_of_the_text_of_their_page(
    pages: list[Page], ingested: tuple[IngestReport, pd.DataFrame]
) -> None:
    _, frame = ingested
    texts = {page.page_id: plain_text(page.wikitext) for page in pages if page.page_id in set(frame["page_id"])}
    for page_id, rows in frame.groupby("page_id"):
        text = texts[page_id]
        assert " ".join(rows["text"]).split() == text.split()
        for row in rows.itertuples():
            assert " ".join(text[row.start : row.end].split()) == row.text


def test_no_markup_in_any_passage(folder: Path, ingested: tuple[IngestReport, pd.DataFrame]) -> None:
    _, frame = ingested
    bad = frame[frame["text"].str.contains(MARKUP) | frame["text"].str.contains(r"\{\||\|\}|\|thumb|px\|")]
    assert bad["text"].tolist() == []
    for shard in passage_files(folder):
        assert run_suite(passages_frame(pq.read_table(shard)), passages_suite(), "passage_id").success


def test_first_sentences_read_as_on_the_page(ingested: tuple[IngestReport, pd.DataFrame]) -> None:
    _, frame = ingested
    first = (
        dict(zip(frame["title"], frame["text"], strict=True))
        and frame[frame["ordinal"] == 0].set_index("title")["text"]
    )
    for title, start in {
        "Anarchism": "Anarchism is a political philosophy that advocates",
        "Autism": "Autism is a neurodevelopmental disorder characterized by",
        "Alabama": "Alabama is a state",
        "Abraham Lincoln": "Abraham Lincoln (February 12, 1809 – April 15, 1865) was the 16th President",
    }.items():
        assert first[title].startswith(start)


def test_single_and_multistream_give_the_same_pages(pages: list[Page]) -> None:
    multistream = shared_data("wikidump", "enwiki-20160501-pages-articles-multistream.xml.bz2")
    assert list(read_pages(multistream)) == pages


def test_a_dump_cut_between_streams_is_an_error(tmp_path: Path) -> None:
    whole = shared_data("wikidump", "enwiki-20160501-pages-articles-multistream.xml.bz2").read_bytes()
    cut = tmp_path / "cut.bz2"
    cut.write_bytes(whole[: whole.index(b"BZh", 1000)])
    with pytest.raises(DumpError, match="closing tag"):
        list(read_pages(cut))


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("aawiki-20260101-pages-meta-current.nouser.xml.bz2", 171),
        ("aawiki-20260101-pages-meta-history.nouser.xml.bz2", 171),
        ("enwiki-20090902-pages-articles-sample.xml.bz2", 4),
        ("page_history_sample.xml", 3),
        ("single/enwiki-20120104-id12.xml", 1),
        ("single/simplewiki-20161220-id6.xml", 1),
    ],
)
def test_every_schema_version_is_read_whole(name: str, pages: int) -> None:
    path = shared_data("wikidump", *name.split("/"))
    read = list(read_pages(path))
    content = path.read_bytes()
    xml = (bz2.decompress(content) if name.endswith("bz2") else content).decode()
    assert len(read) == pages == len(re.findall(r"<page[ >]", xml))
    assert all(not re.search(r"\{\{|\[\[", plain_text(page.wikitext)) for page in read if page.namespace == 0)


def test_the_last_revision_of_a_history_is_the_current_page() -> None:
    history = shared_data("wikidump", "aawiki-20260101-pages-meta-history.nouser.xml.bz2")
    current = shared_data("wikidump", "aawiki-20260101-pages-meta-current.nouser.xml.bz2")
    assert [page._replace(timestamp="") for page in read_pages(history)] == [
        page._replace(timestamp="") for page in read_pages(current)
    ]


def test_other_files_of_a_dump_are_refused() -> None:
    index = shared_data("wikidump", "enwiki-20160501-pages-articles-multistream-index.txt.bz2")
    with pytest.raises(DumpError, match="not a MediaWiki XML dump"):
        list(read_pages(index))


def test_plain_text_agrees_with_another_extraction_of_the_same_articles(pages: list[Page]) -> None:
    """The articles of 2019, extracted by others: most of their words are in ours, for what did not change."""
    snapshot = shared_data("wikidump", "snapshot2019", "enwiki-20190720-derived-plaintext.xml.bz2")
    ours = {page.page_id: set(plain_text(page.wikitext).split()) for page in pages}
    theirs = {page.page_id: set(plain_text(page.wikitext).split()) for page in read_pages(snapshot)}
    shares = [len(ours[page] & words) / len(words) for page, words in theirs.items() if page in ours and words]
    assert len(shares) > 90
    assert sorted(shares)[len(shares) // 2] > 0.75
