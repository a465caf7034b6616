"""Passages, their table, and the ingestion of a dump: every page and every word accounted for."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag.config import PassageConfig
from rag.corpus.ingest import PASSAGES_FILE, REJECTS_FILE, IngestReport, ingest_dump, is_disambiguation
from rag.corpus.passages import (
    PASSAGE_SCHEMA,
    ROW_GROUP_ROWS,
    PassageRow,
    PassageTable,
    passage_rows,
    passage_table,
    split_passages,
    text_sha1,
)
from rag.errors import ConfigError, DataError, DumpError, ResourceError
from rag.records import Page


def _page(number: int, title: str, wikitext: str, namespace: int = 0, redirect: str = "") -> str:
    target = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        f"<page><title>{title}</title><ns>{namespace}</ns><id>{number}</id>{target}<revision><id>{number + 100}</id>"
        f"<timestamp>2016-05-01T00:00:00Z</timestamp><text>{wikitext}</text></revision></page>\n"
    )


_PAGES = [
    _page(1, "Lima", "'''Lima''' " + " ".join(f"w{n}" for n in range(249)) + " {{odd}}"),
    _page(2, "LIMA", "#REDIRECT [[Lima]]", redirect="Lima"),
    _page(3, "Talk:Lima", "Talk", namespace=1),
    _page(4, "Lima (disambiguation)", "* [[Lima]]"),
    _page(5, "Mercury", "* a\n{{Disambiguation|geo}}"),
    _page(6, "Only a box", "{{Infobox x\n|a=b\n}}"),
    _page(7, "No text", ""),
    _page(8, "Talk:Redirect", "x", namespace=1, redirect="Talk:Lima"),
]


def _dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.xml"
    path.write_text("<mediawiki>\n" + "".join(_PAGES) + "</mediawiki>\n")
    return path


def _ingest(tmp_path: Path, options: PassageConfig = PassageConfig(), cap: int | None = None) -> IngestReport:  # noqa: B008
    return ingest_dump(_dump(tmp_path), "test", options, cap, tmp_path / "out")


def test_split_passages_keeps_every_word_once_and_the_tail_short() -> None:
    text = " ".join(f"w{n}" for n in range(250))
    passages = split_passages("Title", text)
    assert [len(passage.split()) for passage in passages] == [100, 100, 50]
    assert " ".join(passages) == text
    assert split_passages("Title", " a\n\nb\tc ") == ["a b c"]
    assert split_passages("Title", " \n") == []


def test_split_passages_refuses_what_cannot_be() -> None:
    with pytest.raises(DataError, match="without a title"):
        split_passages(" ", "text")
    with pytest.raises(DataError, match="0 words"):
        split_passages("Title", "text", words=0)


def test_every_page_is_counted_once(tmp_path: Path) -> None:
    report = _ingest(tmp_path)
    assert (report.pages, report.other_namespaces, report.redirects) == (8, 2, 1)
    assert (report.disambiguation, report.articles, report.empty_articles) == (2, 3, 2)
    assert report.pages == report.other_namespaces + report.redirects + report.disambiguation + report.articles
    assert (report.passages, report.left_out_by_cap, report.rejects) == (3, 0, 2)
    assert report.unrendered_templates == {"odd": 1}
    assert json.loads(report.to_json())["passages"] == 3


def test_rejects_name_the_page_and_the_reason(tmp_path: Path) -> None:
    _ingest(tmp_path)
    rejects = [json.loads(line) for line in (tmp_path / "out" / REJECTS_FILE).read_text().splitlines()]
    assert [(reject["page_id"], reject["title"], reject["reason"]) for reject in rejects] == [
        (6, "Only a box", "no plain text in the wikitext"),
        (7, "No text", "the page has no text"),
    ]


def test_rows_can_be_traced_to_their_page(tmp_path: Path) -> None:
    _ingest(tmp_path)
    table = pq.read_table(tmp_path / "out" / PASSAGES_FILE)
    assert table.schema.equals(PASSAGE_SCHEMA)
    first, _, last = table.to_pylist()
    assert (first["passage_id"], last["passage_id"]) == ("test:1:0", "test:1:2")
    assert (first["page_id"], first["revision_id"], first["words"], first["start"]) == (1, 101, 100, 0)
    assert last["words"] == 50
    assert last["text_sha1"] == text_sha1("Lima", last["text"])


def test_options_keep_disambiguation_and_cap_pages(tmp_path: Path) -> None:
    report = _ingest(tmp_path, PassageConfig(keep_disambiguation=True), cap=1)
    assert (report.disambiguation, report.articles) == (0, 5)
    assert (report.passages, report.left_out_by_cap) == (3, 2)


def test_the_same_dump_gives_the_same_bytes(tmp_path: Path) -> None:
    _ingest(tmp_path)
    first = (tmp_path / "out" / PASSAGES_FILE).read_bytes()
    _ingest(tmp_path)
    assert (tmp_path / "out" / PASSAGES_FILE).read_bytes() == first
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [PASSAGES_FILE, REJECTS_FILE]


def test_a_cut_dump_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    path.write_text("<mediawiki>" + _PAGES[0])
    with pytest.raises(DumpError):
        ingest_dump(path, "test", PassageConfig(), None, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unwritable_folder_and_too_long_passages_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResourceError, match="cannot write passages"):
        ingest_dump(_dump(tmp_path), "test", PassageConfig(), None, tmp_path / "file" / "out")
    with pytest.raises(ConfigError, match="40000"):
        _ingest(tmp_path, PassageConfig(words=40000))


def test_progress_sees_every_page(tmp_path: Path) -> None:
    seen: list[str] = []

    def progress(pages):  # type: ignore[no-untyped-def]
        for page in pages:
            seen.append(page.title)
            yield page

    ingest_dump(_dump(tmp_path), "test", PassageConfig(), None, tmp_path / "out", progress)
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("title", "wikitext", "expected"),
    [
        ("A", "{{disambig}}", True),
        ("A", "{{ Hndis|name=A }}", True),
        ("A", "{{geodis}}", True),
        ("A", "{{Disambiguation needed}}", False),
        ("A", "{{Airport disambiguation\n|x}}", True),
        ("A (disambiguation)", "", True),
        ("Disambiguation", "The word is", False),
    ],
)
def test_disambiguation_pages_are_known_by_template_or_title(title: str, wikitext: str, expected: bool) -> None:
    assert is_disambiguation(Page(1, title, 0, None, 1, "", wikitext)) is expected


def _write(path: Path, source: str, n_rows: int) -> Path:
    rows: list[PassageRow] = []
    for number in range(1, n_rows + 1):
        page = Page(number, f"{source} {number}", 0, None, number, "", "")
        rows += passage_rows(source, page, f"Text {number} of {source}")
    pq.write_table(passage_table(rows), path, row_group_size=7)
    return path


def test_table_rows_run_over_all_sources_in_order(tmp_path: Path) -> None:
    table = PassageTable.load([_write(tmp_path / "a.parquet", "a", 20), _write(tmp_path / "b.parquet", "b", 10)])
    assert len(table) == 30
    ids = table.passage_ids.to_pylist()
    wanted = [29, 0, 19, 20, 0, 7]
    rows = table.rows(wanted)
    assert [row.passage_id for row in rows] == [ids[row] for row in wanted]
    assert rows[0] == ("b:10:0", "b 10", "Text 10 of b", 10, 10)
    assert table.text_sha1[3].as_py() == text_sha1("a 4", "Text 4 of a")
    assert table.rows([]) == []


def test_table_refuses_rows_that_are_not_there(tmp_path: Path) -> None:
    table = PassageTable.load([_write(tmp_path / "a.parquet", "a", 5)])
    for row in (-1, 5):
        with pytest.raises(DataError, match=f"row {row} is not among the 5 passages"):
            table.rows([0, row])


def test_table_refuses_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least one"):
        PassageTable.load([])
    with pytest.raises(DataError, match="run the ingest stage"):
        PassageTable.load([tmp_path / "none.parquet"])
    (tmp_path / "text").write_text("no parquet")
    with pytest.raises(DataError, match="cannot be read as passages"):
        PassageTable.load([tmp_path / "text"])
    pq.write_table(passage_table([]).select(["title"]), tmp_path / "other.parquet")
    with pytest.raises(DataError, match="has the columns title"):
        PassageTable.load([tmp_path / "other.parquet"])


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    pq.write_table(passage_table([]), tmp_path / "empty.parquet")
    assert len(PassageTable.load([tmp_path / "empty.parquet"])) == 0
    assert ROW_GROUP_ROWS > 0
