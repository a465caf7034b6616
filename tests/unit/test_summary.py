"""The sums over a source, against the same counted naively."""

import json
import statistics
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.summary import CorpusSummary, summarise, summarise_shards
from rag.errors import DataError
from tests.support.passages import SCHEMA, passages_table, texts_table


def _write(folder: Path, *tables: pa.Table) -> list[Path]:
    paths = [folder / f"passages-{number:05d}.parquet" for number in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=3)
    return paths


def test_sums_over_two_shards(tmp_path: Path) -> None:
    first = texts_table(["one two", "one " * 100, "a " * 11], ["A", "A", "B"])
    second = passages_table((0, "title", "B"), rows=1, first_page=9)
    found = summarise(_write(tmp_path, first, second)[0].parent)
    assert found == CorpusSummary(
        rows=4, shard_rows=(3, 1), pages=4, titles=2, repeated_ids=0, repeated_examples=(),
        characters=7 + 400 + 22 + 14, min_words=2, median_words=4, p95_words=100, max_words=100,
        mean_words=(2 + 100 + 11 + 4) / 4, short_share=0.75, words_by_ten=(2, 1, 0, 0, 0, 0, 0, 0, 0, 1),
    )  # fmt: skip
    assert found.to_json() == summarise(tmp_path).to_json()
    assert json.loads(found.to_json())["rows"] == 4


def test_no_passages_at_all(tmp_path: Path) -> None:
    _write(tmp_path, SCHEMA.empty_table())
    found = summarise(tmp_path)
    assert (found.rows, found.pages, found.mean_words, found.max_words, found.words_by_ten) == (0, 0, 0.0, 0, ())


def test_ids_repeated_within_and_across_shards_are_counted(tmp_path: Path) -> None:
    first = passages_table((4, "passage_id", "s:1:0"))
    found = summarise_shards(_write(tmp_path, first, passages_table(first_page=9), passages_table(rows=1)))
    assert found.repeated_ids == 4  # s:1:0 twice more, s:9:0 and s:10:0 once more
    assert found.repeated_examples == ("s:10:0", "s:1:0", "s:9:0")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=str(tmp_path)):
        summarise(tmp_path)
    bad = tmp_path / "passages-00000.parquet"
    bad.write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"passages-00000\.parquet cannot be read as passages"):
        summarise(tmp_path)
    pq.write_table(passages_table().drop_columns(["title"]), bad)
    with pytest.raises(DataError, match="lacks the columns title"):
        summarise(tmp_path)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 120), min_size=1, max_size=30), st.integers(1, 30))
def test_lengths_as_counted_naively(tmp_path_factory: pytest.TempPathFactory, words: list[int], cut: int) -> None:
    table = passages_table(*((row, "words", count) for row, count in enumerate(words)), rows=len(words))
    folder = tmp_path_factory.mktemp("shards")
    found = summarise_shards(_write(folder, table.slice(0, cut), table.slice(cut)))
    assert found.rows == len(words) == sum(found.words_by_ten)
    assert found.mean_words == pytest.approx(statistics.fmean(words))
    assert found.median_words == sorted(words)[(len(words) + 1) // 2 - 1]
    assert found.p95_words == sorted(words)[-(-95 * len(words) // 100) - 1]
    assert (found.min_words, found.max_words) == (min(words), max(words))
    assert found.short_share == sum(count < 20 for count in words) / len(words)
    for place, count in enumerate(found.words_by_ten):
        assert count == sum(10 * place < one <= 10 * place + 10 for one in words)
