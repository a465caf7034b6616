"""Sources to shards: every page is accounted for, every option does what it says."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.ledger import LEDGER_SCHEMA, ledger_files, revision_url
from rag.corpus.ingest.source import DUPLICATES_FILE, SourceSpec, ingest
from rag.corpus.passages import PASSAGE_SCHEMA, passage_files, text_sha1
from rag.errors import ConfigError, DataError, DumpError, ResourceError
from tests.support.dump_fixtures import dump_xml
from tests.support.small_wiki import (
    article,
    contents,
    ingest_file,
    ledger_in,
    passages_in,
    redirect,
    rejects_in,
    small_pieces,
    titled,
    wiki_pages,
    write_dump,
)

_EVERY_KIND = [
    article(1, 250),
    redirect(2, "Page 1"),
    titled(3, "Talk:Page 1", "Talk", 1),
    titled(4, "Page (disambiguation)", "* [[Page 1]]"),
    titled(5, "Mercury", "* a\n{{Disambiguation|geo}}"),
    titled(6, "Only a box", "{{Infobox x\n|a=b\n}}"),
    titled(7, "No text", ""),
    titled(8, "List of pages", "* Page one is the first."),
    redirect(9, ""),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "dump.xml", _EVERY_KIND)


def test_every_page_is_counted_once(dump: Path, tmp_path: Path) -> None:
    report = ingest_file(dump, tmp_path / "out")
    assert (report.pages, report.other_namespaces, report.redirects, report.kept_redirects) == (9, 1, 2, 0)
    assert (report.disambiguation, report.lists, report.articles, report.empty_articles) == (2, 1, 3, 2)
    assert (report.passages, report.left_out_by_cap, report.rejects, report.unreadable) == (3, 0, 2, 0)
    assert report.unrendered_templates == {"odd": 1}
    assert report.duplicates == {"exact": 0, "near": 0, "boilerplate": 0, "copies": 0, "dropped": 0}
    assert (report.not_yet, report.repeated, report.dropped_kinds) == (0, 0, ())
    assert report.site == {
        "dbname": "testwiki",
        "base": "https://test.example/wiki/Main",
        "generator": "MediaWiki 1.99",
    }
    assert json.loads(report.to_json())["passages"] == 3


def test_the_folder_holds_what_the_documentation_says(dump: Path, tmp_path: Path) -> None:
    ingest_file(dump, tmp_path / "out")
    assert sorted(contents(tmp_path / "out")) == [
        ".ingest-state.json", "duplicates.parquet", "pages-00000.parquet", "passages-00000.parquet", "rejects.jsonl",
    ]  # fmt: skip


def test_the_ledger_says_what_became_of_each_page(dump: Path, tmp_path: Path) -> None:
    ingest_file(dump, tmp_path / "out")
    ledger = ledger_in(tmp_path / "out")
    assert ledger.schema.equals(LEDGER_SCHEMA)
    assert ledger.column("kind").to_pylist() == [
        "articles", "redirects", "other_namespaces", "disambiguation", "disambiguation", "empty_articles",
        "empty_articles", "lists", "redirects",
    ]  # fmt: skip
    first = ledger.to_pylist()[0]
    assert (first["page_id"], first["revision_id"], first["key"], first["passages"]) == (1, 10, "1", 3)
    assert first["unrendered"] == [{"name": "odd", "count": 1}]
    assert first["url"] == "https://test.example/w/index.php?oldid=10"
    assert first["text_chars"] < first["wikitext_chars"]


def test_rejects_name_the_page_and_the_reason(dump: Path, tmp_path: Path) -> None:
    ingest_file(dump, tmp_path / "out", PassageConfig(keep_redirects=True))
    assert [(reject["page_id"], reject["title"], reject["reason"]) for reject in rejects_in(tmp_path / "out")] == [
        (6, "Only a box", "no plain text in the wikitext"),
        (7, "No text", "the page has no text"),
        (9, "Redirect 9", "the redirect names no target"),
    ]


def test_rows_can_be_traced_to_their_page(dump: Path, tmp_path: Path) -> None:
    ingest_file(dump, tmp_path / "out")
    table = passages_in(tmp_path / "out")
    assert table.schema.equals(PASSAGE_SCHEMA)
    first, _, last = table.to_pylist()
    assert (first["passage_id"], last["passage_id"]) == ("test:1:0", "test:1:2")
    assert (first["page_id"], first["revision_id"], first["words"], first["start"]) == (1, 10, 100, 0)
    assert (last["words"], last["wrapped"]) == (50, 0)
    assert last["text_sha1"] == text_sha1("Page 1", last["text"])


def test_options_keep_what_is_left_out_by_default(dump: Path, tmp_path: Path) -> None:
    kept = PassageConfig(keep_disambiguation=True, keep_lists=True, keep_redirects=True)
    report = ingest_file(dump, tmp_path / "out", kept)
    assert (report.disambiguation, report.lists, report.articles) == (0, 0, 6)
    assert (report.redirects, report.kept_redirects) == (2, 1)
    texts = {row["title"]: row["text"] for row in passages_in(tmp_path / "out").to_pylist()}
    assert texts["Redirect 2"] == "Redirect to: Page 1"
    assert texts["List of pages"] == "Page one is the first."


def test_a_cap_is_counted_and_the_tail_is_wrapped(dump: Path, tmp_path: Path) -> None:
    spec = SourceSpec("test", (dump,), max_passages_per_page=2)
    report = ingest(spec, PassageConfig(), tmp_path / "capped")
    assert (report.passages, report.left_out_by_cap) == (2, 1)
    ingest_file(dump, tmp_path / "wrapped", PassageConfig(tail="wrap"))
    assert passages_in(tmp_path / "wrapped").column("wrapped").to_pylist() == [0, 0, 50]


@pytest.mark.parametrize("shard_rows", [1, 20, 10_000])
def test_shards_add_up_to_the_corpus(tmp_path: Path, shard_rows: int) -> None:
    dump = write_dump(tmp_path / "dump.xml", wiki_pages())
    ingest_file(dump, tmp_path / "whole")
    with small_pieces(shard_rows=shard_rows):
        report = ingest_file(dump, tmp_path / "parts")
    assert passages_in(tmp_path / "parts").equals(passages_in(tmp_path / "whole"))
    assert ledger_in(tmp_path / "parts").equals(ledger_in(tmp_path / "whole"))
    sizes = [pq.read_metadata(path).num_rows for path in passage_files(tmp_path / "parts")]
    assert sum(sizes) == report.passages == sum(ledger_in(tmp_path / "parts").column("passages").to_pylist())
    assert all(size >= shard_rows for size in sizes[:-1])
    assert (len(sizes) > 1) == (shard_rows < 10_000)
    ids = passages_in(tmp_path / "parts").column("passage_id").to_pylist()
    assert len(set(ids)) == len(ids)


def test_every_shard_holds_the_passages_of_its_pages(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", wiki_pages())
    with small_pieces():
        ingest_file(dump, tmp_path / "out")
    for pages, passages in zip(ledger_files(tmp_path / "out"), passage_files(tmp_path / "out"), strict=True):
        ledger, rows = pq.read_table(pages), pq.read_table(passages)
        expected = [page["page_id"] for page in ledger.to_pylist() for _ in range(page["passages"])]
        assert rows.column("page_id").to_pylist() == expected


def test_a_source_without_an_article_is_one_empty_shard(tmp_path: Path) -> None:
    for number, pages in enumerate(([], [redirect(1, "Page")])):
        report = ingest_file(write_dump(tmp_path / f"{number}.xml", pages), tmp_path / f"out{number}")
        assert (report.pages, report.passages) == (number, 0)
        assert passages_in(tmp_path / f"out{number}").num_rows == 0


def test_parts_are_one_source_in_the_order_given(tmp_path: Path) -> None:
    pages = wiki_pages(30)
    whole = write_dump(tmp_path / "whole.xml", pages)
    parts = tuple(write_dump(tmp_path / f"p{part}.xml", pages[part * 10 : part * 10 + 10]) for part in range(3))
    with small_pieces():
        report = ingest(SourceSpec("test", parts), PassageConfig(), tmp_path / "parts")
        assert report == ingest_file(whole, tmp_path / "whole")
    assert passages_in(tmp_path / "parts").equals(passages_in(tmp_path / "whole"))
    other = tmp_path / "other.xml"
    other.write_bytes(parts[0].read_bytes().replace(b"testwiki", b"otherwiki"))
    with pytest.raises(DataError, match="otherwiki"):
        ingest(SourceSpec("test", (*parts, other)), PassageConfig(), tmp_path / "mixed")


def test_a_cut_dump_is_an_error_and_has_no_rejects_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    path.write_bytes(dump_xml(*_EVERY_KIND)[:-30])
    with pytest.raises(DumpError):
        ingest_file(path, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_what_cannot_be_is_a_clear_error(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResourceError, match="cannot write passages"):
        ingest_file(dump, tmp_path / "file" / "out")
    with pytest.raises(ConfigError, match="0 workers"):
        ingest_file(dump, tmp_path / "out", workers=0)


def test_duplicates_are_counted_and_dropped_by_option(tmp_path: Path) -> None:
    text = "A sentence that stands on two pages of this wiki word for word, and is of some length."
    pages = [titled(1, "One", text), titled(2, "Two", text), titled(3, "Three", "Other words altogether, all of them.")]
    dump = write_dump(tmp_path / "dump.xml", pages)
    counted = ingest_file(dump, tmp_path / "counted")
    assert (counted.passages, counted.duplicates["exact"], counted.duplicates["dropped"]) == (3, 1, 0)
    dropped = ingest_file(dump, tmp_path / "dropped", PassageConfig(exact_duplicates="drop"))
    assert (dropped.passages, dropped.duplicates["exact"], dropped.duplicates["dropped"]) == (2, 1, 1)
    assert passages_in(tmp_path / "dropped").column("passage_id").to_pylist() == ["test:1:0", "test:3:0"]
    assert pq.read_table(tmp_path / "dropped" / DUPLICATES_FILE).column("passage_id").to_pylist() == ["test:2:0"]
    assert ledger_in(tmp_path / "dropped").column("passages").to_pylist() == [1, 1, 1]


def test_the_same_source_gives_the_same_bytes_again(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", wiki_pages())
    with small_pieces():
        ingest_file(dump, tmp_path / "out")
        first = contents(tmp_path / "out")
        ingest_file(dump, tmp_path / "out")
        assert contents(tmp_path / "out") == first
    ingest_file(dump, tmp_path / "out", PassageConfig(words=99))
    assert len(contents(tmp_path / "out")) == 5  # no shard of the smaller pieces stays behind


def test_progress_knows_how_many_blocks_there_are(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def progress(items):  # type: ignore[no-untyped-def]
        items = list(items) if not hasattr(items, "__len__") else items
        total, done = len(items), 0
        for item in items:
            yield item
            done += 1
        seen.append((done, total))

    dump = write_dump(tmp_path / "dump.xml", wiki_pages())
    ingest(SourceSpec("test", (dump,)), PassageConfig(), tmp_path / "out", progress=progress)
    assert seen[0] == (1, 1)


def test_the_url_of_a_revision() -> None:
    assert revision_url("http://de.wikipedia.org/wiki/Hauptseite", 5) == "http://de.wikipedia.org/w/index.php?oldid=5"
    assert revision_url("", 5) == revision_url("https://de.wikipedia.org/wiki/Hauptseite", 0) == ""
