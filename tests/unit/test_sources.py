"""Sources other than dumps: every row an article or a reason, and no file shorter than it should be."""

import csv
import gzip
import io
import json
import os
import unicodedata
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.config import SourceFormat
from rag.corpus.sources.article import SeenIds, clean_text, page_id_of
from rag.corpus.sources.read import Article, PsgsRow, Unreadable, read_articles, read_psgs
from rag.errors import ConfigError, DataError
from tests.support.shared_data import shared_data

_HEADER = "id\ttext\ttitle\n"


def _psgs(tmp_path: Path, rows: str, name: str = "psgs_w100.tsv", header: str = _HEADER) -> Path:
    path = tmp_path / name
    data = (header + rows).encode("utf-8", errors="surrogateescape")
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith("gz") else data)
    return path


def _jsonl(path: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith("gz") else data)
    return path


def _articles(path: Path, format: SourceFormat) -> list[Article]:
    """All of a source, where every row is an article."""
    found = list(read_articles(path, format))
    assert [item for item in found if isinstance(item, Unreadable)] == []
    return [item for item in found if isinstance(item, Article)]


def _reasons(path: Path, format: SourceFormat) -> list[tuple[str, int, str]]:
    return [(item.key, item.row, item.reason) for item in read_articles(path, format) if isinstance(item, Unreadable)]


# --- psgs_w100 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["psgs_w100.tsv", "psgs_w100.tsv.gz"])
def test_psgs_rows_are_lines_and_titles_in_a_run_are_a_page(tmp_path: Path, name: str) -> None:
    rows = '1\tLima is old.\tLima\n2\t"The ""City"" of kings"\tLima\n5\tQuito is high.\tQuito\n7\tAgain.\tLima\n'
    assert list(read_psgs(_psgs(tmp_path, rows, name), 4)) == [
        PsgsRow(1, "Lima", "Lima is old.", 1, 0),
        PsgsRow(2, "Lima", 'The "City" of kings', 1, 1),
        PsgsRow(5, "Quito", "Quito is high.", 5, 0),
        PsgsRow(7, "Lima", "Again.", 7, 0),
    ]


def test_a_stray_quotation_mark_takes_no_other_row(tmp_path: Path) -> None:
    rows = '1\t"never closed\tA\n2\t5" disk\tB\n3\t"a" and "b"\t"Weird Al"" Yankovic\n4\t"""Heroes"" is a song"\tD\n'
    assert [(row.text, row.title) for row in read_psgs(_psgs(tmp_path, rows), 4)] == [
        ('"never closed', "A"),
        ('5" disk', "B"),
        ('"a" and "b"', '"Weird Al"" Yankovic'),
        ('"Heroes" is a song', "D"),
    ]


def test_rows_end_at_newlines_alone_and_come_clean(tmp_path: Path) -> None:
    rows = "1\t a\u2028b\x85c\x0cd\x00e  f\u00a0g \tTi\x0btle\r\n2\te\u0301\tE\u0301\r\n3\tlast, without an end\tZ"
    assert [(row.text, row.title) for row in read_psgs(_psgs(tmp_path, rows), 3)] == [
        ("a b c de f g", "Ti tle"),
        ("é", "É"),
        ("last, without an end", "Z"),
    ]


def test_a_quoted_field_may_go_over_lines_where_the_row_is_short_of_columns(tmp_path: Path) -> None:
    rows = '1\t"first ""line""\nsecond\n"\tA\n2\tnext\tB\n'
    assert [(row.key, row.text) for row in read_psgs(_psgs(tmp_path, rows), 2)] == [
        (1, 'first "line" second'),
        (2, "next"),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1\ta\tA\n2\tb\n", "line 3: 2 column"),
        ("1\ta\tA\tmore\n", "line 2: 4 column"),
        ('1\t"cut off\n2\tb\tB\n3\tc\tC\n', "line 2: 2 column"),
        ("1\ta\tA\n\n2\tb\tB\n", "line 3: 1 column"),
        ("1\ta\tA\nx\tb\tB\n", "line 3: the id 'x' is no number"),
        ("1\ta\tA\n1\tb\tB\n", "line 3: id 1 does not follow 1"),
        ("2\ta\tA\n1\tb\tB\n", "line 3: id 1 does not follow 2"),
        ("1\t \tA\n", "line 2: the text of id 1 is empty"),
        ('1\ta\t""\n', "line 2: the title of id 1 is empty"),
        ("1\t\udcff\tA\n", "line 2: not UTF-8"),
    ],
)
def test_a_bad_row_is_an_error_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_psgs(_psgs(tmp_path, rows), None))


def test_the_number_of_rows_is_a_contract(tmp_path: Path) -> None:
    path = _psgs(tmp_path, "1\ta\tA\n2\tb\tB\n")
    with pytest.raises(DataError, match=r"2 rows, DPR's file has 21,015,324.*expected_rows = 2"):
        list(read_psgs(path, None))
    with pytest.raises(DataError, match="2 rows, the study expects 3"):
        list(read_psgs(path, 3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"BZh91AY", "bzip2"),
        (b"1\ta\tA\n", "header"),
        (gzip.compress(_HEADER.encode() + b"1\ta\tA\n" * 999, mtime=0)[:-9], "cut off"),
        (gzip.compress(_HEADER.encode() + b"1\ta\tA\n" * 999, mtime=0)[:40] + b"\0" * 9, "cut off or damaged"),
    ],
)
def test_a_file_that_is_no_whole_psgs_file_says_what_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "psgs_w100.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_psgs(path, 999))


def test_a_missing_file_and_a_folder_are_no_psgs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file or folder"):
        list(read_psgs(tmp_path / "missing.tsv", 1))
    with pytest.raises(DataError, match="is a folder"):
        list(read_psgs(tmp_path, 1))


_FIELD = st.text("ab \"'\u2028é\u00a0", max_size=8)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.tuples(_FIELD, _FIELD), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_what_csv_writes_is_read_back_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str
) -> None:
    rows = [(f"x {text}", f"y {title}") for text, title in rows]
    quoted = [
        tuple(f'"{field.replace(chr(34), chr(34) * 2)}"' if '"' in field else field for field in row) for row in rows
    ]
    lines = "".join(f"{key}\t{text}\t{title}{end}" for key, (text, title) in enumerate(quoted, start=1))
    path = _psgs(tmp_path_factory.mktemp("csv"), lines)
    read = [(clean_text(row.text), clean_text(row.title)) for row in read_psgs(path, len(rows))]
    assert read == [(" ".join(text.split()), " ".join(title.split())) for text, title in rows]


@pytest.mark.parametrize(
    ("parts", "rows"),
    [
        (("dpr", "psgs_w100.sample751.tsv"), 751),
        (("corpus", "wiki2019_mini", "psgs_w100.tsv.gz"), 1997),
        (("corpus", "nq_gold_2018", "psgs_w100.nq_gold.tsv.gz"), 2600),
    ],
)
def test_real_psgs_are_what_csv_makes_of_them(parts: tuple[str, ...], rows: int) -> None:
    path = shared_data(*parts)
    found = [(str(row.key), row.text, row.title) for row in read_psgs(path, rows)]
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    _, *wanted = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    assert len(found) == rows
    for row, (key, passage, title) in zip(found, wanted, strict=True):
        assert tuple(map(_visible, row)) == (key, _visible(passage), _visible(title))


def _visible(field: str) -> str:
    seen = "".join(character for character in field if unicodedata.category(character) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen).split())


# --- articles as JSON --------------------------------------------------------------------------------------------

_KILT = {
    "wikipedia_id": "290",
    "wikipedia_title": "Lima",
    "text": [
        "Lima\n",
        "Lima is old.\n",
        "Section::::History.\n",
        "BULLET::::- one\n",
        "BULLET::::2. two\n",
        "\n",
        "End.\n",
    ],
    "anchors": [],
    "categories": "Cities",
    "history": {"revid": "907008141", "pageid": "290", "url": "https://example.org/w?oldid=907008141"},
}


def test_kilt_drops_headings_and_keeps_bullets_as_lines(tmp_path: Path) -> None:
    other = {"wikipedia_id": 12, "wikipedia_title": "Quito", "text": ["Quito is high."], "history": None}
    assert _articles(_jsonl(tmp_path / "kilt_knowledgesource.json", [_KILT, other]), "kilt") == [
        Article("290", 290, 907008141, "Lima", "Lima is old.\none\ntwo\nEnd.", "https://example.org/w?oldid=907008141"),
        Article("12", 12, 0, "Quito", "Quito is high.", ""),
    ]


def test_fever_restores_brackets_and_titles_and_rejects_the_empty_first_row(tmp_path: Path) -> None:
    rows = [
        {"id": "", "text": "", "lines": ""},
        {"id": "Lima_-LRB-Peru-RRB-", "text": "Lima -LRB- `` City '' -RRB- is old . ", "lines": "0\t..."},
        {"id": "Star_Wars-COLON-_Two", "text": "", "lines": ""},
    ]
    (tmp_path / "wiki-pages").mkdir()
    _jsonl(tmp_path / "wiki-pages" / "wiki-002.jsonl", rows[2:])
    _jsonl(tmp_path / "wiki-pages" / "wiki-001.jsonl", rows[:2])
    first, second, third = read_articles(tmp_path / "wiki-pages", "fever")
    assert first == Unreadable("wiki-001.jsonl:1", 1, "the row is empty", json.dumps(rows[0]))
    assert isinstance(second, Article)
    assert (second.key, second.title) == ("Lima_-LRB-Peru-RRB-", "Lima (Peru)")
    assert second.text == 'Lima ( " City " ) is old .'
    assert third[:3] == ("wiki-002.jsonl:1", 1, "the text is empty")


def test_fever_reads_its_zip_archive_in_place(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "wiki-pages.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("wiki-pages/wiki-002.jsonl", '{"id": "B", "text": "b ."}\n')
        archive.writestr("wiki-pages/wiki-001.jsonl", '{"id": "A", "text": "a ."}\n')
        archive.writestr("__MACOSX/wiki-pages/._wiki-001.jsonl", "x")
        archive.writestr("license.html", "<p>")
    assert [article.key for article in _articles(tmp_path / "wiki-pages.zip", "fever")] == ["A", "B"]


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_jsonl_in_its_usual_shapes(tmp_path: Path, name: str) -> None:
    rows = [
        {"id": 7, "title": "A", "text": "a\n\nb", "url": "https://example.org/7", "revision_id": 70},
        {"_id": "doc-1", "title": "B", "text": "b", "metadata": {}},
        {"id": "8", "contents": '"Lima"\nLima is old.'},
        {"id": "9", "title": "Quito", "contents": "Quito is high.", "url": "javascript:alert(1)"},
    ]
    assert _articles(_jsonl(tmp_path / name, rows), "jsonl") == [
        Article("7", 7, 70, "A", "a\nb", "https://example.org/7"),
        Article("doc-1", page_id_of("doc-1"), 0, "B", "b", ""),
        Article("8", 8, 0, "Lima", "Lima is old.", ""),
        Article("9", 9, 0, "Quito", "Quito is high.", ""),
    ]


def test_rows_that_cannot_be_used_are_kept_with_line_and_reason(tmp_path: Path) -> None:
    good = {"id": "1", "title": "A", "text": "a"}
    deep = "[" * 100_000
    rows = [good, "", "{", "[1]", {"id": "2", "text": "b"}, {"id": "3", "title": "C", "text": 5}, good]
    rows += [
        {"id": True, "title": "D", "text": "d"},
        {"id": "4", "title": " ", "text": "d"},
        f'{{"id": {deep}',
        '{"id": "\x00"}',
    ]
    path = _jsonl(tmp_path / "rows.jsonl", rows)
    with path.open("ab") as file:
        file.write(b'{"id": "5", "title": "E", "text": "\xff"}\n{"id": "6", "title": "F", "text": "a\\ud800\\u0000b"}')
    reasons = _reasons(path, "jsonl")
    assert [(key, row) for key, row, _ in reasons] == [(f"rows.jsonl:{row}", row) for row in range(2, 13)]
    wanted = ["empty", "not JSON", "not a JSON object", "'title' is missing", "'text' is not text", "there before"]
    wanted += ["'id' is not text", "title is empty", "nested", "not JSON", "not UTF-8 at byte 35"]
    assert [want for want, (_, _, reason) in zip(wanted, reasons, strict=True) if want not in reason] == []
    assert [item.text for item in read_articles(path, "jsonl") if isinstance(item, Article)] == ["a", "ab"]


def test_a_bad_row_of_a_file_whose_name_is_no_text_has_a_printable_place(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.jsonl")).write_text("no JSON\n")
    (bad,) = read_articles(tmp_path, "jsonl")
    assert bad.key == "caf\ufffd.jsonl:1"


def test_a_long_bad_row_is_kept_in_part(tmp_path: Path) -> None:
    [found] = read_articles(_jsonl(tmp_path / "rows.jsonl", ["é" * 5000]), "jsonl")
    assert isinstance(found, Unreadable)
    assert found.text == "é" * 500


def test_a_duplicate_is_found_in_another_file_too(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        _jsonl(tmp_path / name, [{"id": "x", "title": "X", "text": name}])
    _jsonl(tmp_path / ".hidden.jsonl", ["junk"])
    (tmp_path / "README.md").write_text("about")
    assert _reasons(tmp_path, "jsonl") == [("b.jsonl:1", 1, "the id 'x' was there before")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\n <html><body>Not found", "web page"),
        (b'[{"id": 1}]', "one JSON object a line"),
        (gzip.compress(b'{"id": "1", "title": "A", "text": "a"}\n' * 50, mtime=0)[:-4], "cut off"),
    ],
)
def test_a_file_of_another_kind_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    for format in ("jsonl", "kilt", "fever"):
        with pytest.raises(DataError, match=message):
            list(read_articles(path, format))


def test_a_path_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    _jsonl(tmp_path / "inner" / "a.jsonl", ["{}"])
    with pytest.raises(DataError, match="no file or folder"):
        list(read_articles(tmp_path / "missing", "jsonl"))
    with pytest.raises(DataError, match="its folders inner do"):
        list(read_articles(tmp_path, "jsonl"))
    with pytest.raises(ConfigError, match="'psgs' holds no plain articles"):
        list(read_articles(tmp_path, "psgs"))


def test_lines_longer_than_a_chunk_are_whole(tmp_path: Path) -> None:
    texts = ["a" * size for size in (1 << 20, 5, (1 << 21) + 3, 0)]
    rows = [{"id": str(key), "title": "T", "text": f"x{text}"} for key, text in enumerate(texts, start=1)]
    assert [article.text for article in _articles(_jsonl(tmp_path / "a.jsonl", rows), "jsonl")] == [
        f"x{t}" for t in texts
    ]


def test_real_fever_pages() -> None:
    found = list(read_articles(shared_data("fever", "wiki-pages"), "fever"))
    assert [type(item) for item in found] == [Unreadable, Article, Article]
    derived = list(read_articles(shared_data("fever", "wiki2019-intros.derived.jsonl"), "fever"))
    assert [type(item) for item in derived].count(Article) == 141
    assert not any("-LRB-" in item.text for item in found + derived if isinstance(item, Article))


# --- Parquet -----------------------------------------------------------------------------------------------------


def _parquet(path: Path, rows: Sequence[tuple[Any, Any, Any, Any]], kind: pa.DataType | None = None) -> Path:
    columns = list(zip(*rows, strict=True))
    text = kind or pa.string()
    arrays = [pa.array(column, text) for column in columns]
    pq.write_table(pa.table(arrays, ["id", "url", "title", "text"]), path)
    return path


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_hf_articles_in_shards(tmp_path: Path, kind: pa.DataType) -> None:
    _parquet(tmp_path / "train-00001-of-00002.parquet", [("13", "", "B", "b")], kind)
    _parquet(
        tmp_path / "train-00000-of-00002.parquet", [("12", "https://example.org/wiki/A", "A", "a\n\nb  c\n")], kind
    )
    assert _articles(tmp_path, "hf-articles") == [
        Article("12", 12, 0, "A", "a\nb c", "https://example.org/wiki/A"),
        Article("13", 13, 0, "B", "b", ""),
    ]


def test_hf_rows_that_cannot_be_used(tmp_path: Path) -> None:
    rows = [("1", None, "A", "a"), (None, "", "B", "b"), ("3", "", "C", " "), ("1", "", "D", "d")]
    path = _parquet(tmp_path / "a.parquet", rows)
    assert _reasons(path, "hf-articles") == [
        ("a.parquet:2", 2, "the id is empty"),
        ("a.parquet:3", 3, "the text is empty"),
        ("a.parquet:4", 4, "the id '1' was there before"),
    ]


def test_text_that_is_not_utf_8_costs_its_row_alone(tmp_path: Path) -> None:
    columns = [pa.array(values, pa.binary()) for values in ([b"1", b"2"], [b"", b""], [b"A", b"B"], [b"\xff", b"b"])]
    table = pa.table([column.view(pa.string()) for column in columns], ["id", "url", "title", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    found = list(read_articles(tmp_path / "a.parquet", "hf-articles"))
    assert [type(item) for item in found] == [Unreadable, Article]


def test_parquet_that_is_incomplete_or_of_other_columns(tmp_path: Path) -> None:
    _parquet(tmp_path / "train-00001-of-00003.parquet", [("13", "", "B", "b")])
    with pytest.raises(DataError, match=r"1 of the 3 files .* 00000, 00002"):
        list(read_articles(tmp_path, "hf-articles"))
    pq.write_table(pa.table({"docid": ["1"], "text": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"docid \(string\), text \(string\); articles need id, url, title, text"):
        list(read_articles(tmp_path / "other.parquet", "hf-articles"))
    whole = (tmp_path / "train-00001-of-00003.parquet").read_bytes()
    for content, message in (
        (whole[:-9], "cannot be read as Parquet"),
        (b"version https://git-lfs.github.com/spec/v1", "LFS"),
    ):
        (tmp_path / "bad.parquet").write_bytes(content)
        with pytest.raises(DataError, match=message):
            list(read_articles(tmp_path / "bad.parquet", "hf-articles"))


# --- what all share ----------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(max_size=40))
def test_clean_text_is_clean_and_stays_so(text: str) -> None:
    clean = clean_text(text)
    assert clean_text(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") and character != "\n" for character in clean)
    assert all(line and line == " ".join(line.split()) for line in clean.split("\n") if clean)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.integers(1, 300), st.integers(1, 2**63 - 1))))
def test_seen_ids_are_a_set(ids: list[int]) -> None:
    seen, plain = SeenIds(), set[int]()
    for page_id in ids:
        assert seen.add(page_id) == (page_id not in plain)
        plain.add(page_id)


def test_page_ids_are_positive_and_fit_63_bits() -> None:
    assert [page_id_of(key) for key in ("1", "9223372036854775807")] == [1, 2**63 - 1]
    for key in ("0", "-1", "01", "9223372036854775808", "١", "x", "1 2"):
        assert 0 < page_id_of(key) < 2**63
        assert str(page_id_of(key)) != key
