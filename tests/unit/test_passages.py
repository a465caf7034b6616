"""Passages and their table: every word accounted for, every row found again."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.passages import (
    ROW_GROUP_ROWS,
    PassageRow,
    PassageTable,
    Tail,
    passage_files,
    passage_rows,
    passage_spans,
    passage_table,
    split_passages,
    text_sha1,
)
from rag.errors import DataError
from rag.records import Page


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


def test_the_tail_is_filled_up_from_the_start_of_the_page() -> None:
    text = " ".join(f"w{n}" for n in range(250))
    *whole, last = passage_spans(text, 100, "wrap")
    assert [(span.words, span.wrapped) for span in [*whole, last]] == [(100, 0), (100, 0), (100, 50)]
    assert last.text.split() == [f"w{n}" for n in [*range(200, 250), *range(50)]]
    assert text[last.start : last.end].split() == [f"w{n}" for n in range(200, 250)]
    # Nothing is repeated where a page is short, or where its last passage is full.
    assert split_passages("Title", "a b", 3, "wrap") == ["a b"]
    assert split_passages("Title", "a b c d", 2, "wrap") == ["a b", "c d"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.text(st.sampled_from(" \n\t\u00a0\u2003abé東"), max_size=80),
    st.integers(1, 5),
    st.sampled_from(["short", "wrap"]),
)
def test_spans_say_where_their_words_are(text: str, words: int, tail: Tail) -> None:
    spans = passage_spans(text, words, tail)
    own = [word for span in spans for word in span.text.split()[: span.words - span.wrapped]]
    assert own == text.split()
    for span in spans:
        count = span.words - span.wrapped
        assert " ".join(text[span.start : span.end].split()) == " ".join(span.text.split()[:count])
        assert span.words == len(span.text.split())
        assert span.text.split()[count:] == text.split()[: span.wrapped]
    assert all(span.words == words for span in spans if tail == "wrap" and len(spans) > 1)


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


def test_a_folder_of_shards_is_one_source(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number in (10, 2, 100000, 0):
        _write(tmp_path / "a" / f"passages-{number:05d}.parquet", f"s{number}", 3)
    _write(tmp_path / "b.parquet", "b", 1)
    table = PassageTable.load([tmp_path / "a", tmp_path / "b.parquet"])
    assert [row.passage_id for row in table.rows(range(len(table)))][::3] == [
        "s0:1:0",
        "s2:1:0",
        "s10:1:0",
        "s100000:1:0",
        "b:1:0",
    ]
    with pytest.raises(DataError, match="no passages"):
        passage_files(tmp_path)


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


def test_a_changed_letter_in_a_shard_is_noticed(tmp_path: Path) -> None:
    page = Page(1, "Lima", 0, None, 1, "", "")
    path = tmp_path / "passages-00000.parquet"
    table = passage_table(passage_rows("w", page, "Lima is the capital of Peru."))
    pq.write_table(table, path, compression="none", write_page_checksum=True, use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"capital of Peru", b"capital of Cuba"))
    read = PassageTable.load([path])
    assert len(read.passage_ids) == 1
    for attempt in (lambda: read.rows([0]), lambda: read.column("text")):
        with pytest.raises(DataError, match=r"passages-00000\.parquet cannot be read as passages"):
            attempt()
