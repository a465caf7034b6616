"""Exact and near duplicates and boilerplate among passages, and shards without them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag.corpus.duplicates import clusters as duplicate_clusters
from rag.corpus.duplicates.clusters import jaccard, shingles
from rag.corpus.duplicates.drop import drop_duplicates
from rag.corpus.duplicates.find import DuplicateCounts, find_duplicates
from rag.corpus.duplicates.sketches import band_rows, sketch
from rag.errors import ConfigError, DataError, ResourceError
from tests.support.duplicate_shards import NEAR, OTHER, TEXT, WORDS, write_shard

_DIGEST = ["0x723c9c108deb9427", "0xa359acc75e6e5d25"]  # of TEXT
_BANDS = ["0xd3044562a22587bb", "0x7c04e3a3ae556d73"]  # the first two


def _find(tmp_path: Path, texts: list[str], pages: int = 10, same_page: bool = False) -> list[tuple[str, str, str]]:
    shard = write_shard(
        tmp_path / "passages-00000.parquet", [(1 if same_page else row, t) for row, t in enumerate(texts)]
    )
    find_duplicates([shard], tmp_path / "duplicates.parquet", 0.8, pages)
    rows = pq.read_table(tmp_path / "duplicates.parquet").to_pylist()
    return [tuple(row[name].removeprefix("w:") for name in ("passage_id", "kind", "cluster")) for row in rows]


def test_the_same_text_is_exact_whatever_its_case_and_title(tmp_path: Path) -> None:
    assert _find(tmp_path, [TEXT, OTHER, TEXT.upper(), TEXT]) == [("2:2", "exact", "0:0"), ("3:3", "exact", "0:0")]


def test_similar_texts_are_near_and_say_how_similar(tmp_path: Path) -> None:
    assert _find(tmp_path, [OTHER, TEXT, NEAR]) == [("2:2", "near", "1:1")]
    similarity = pq.read_table(tmp_path / "duplicates.parquet").column("similarity").to_pylist()
    assert similarity == [pytest.approx(91 / 101)]


def test_a_copy_of_a_near_duplicate_is_exact_and_of_the_same_cluster(tmp_path: Path) -> None:
    assert _find(tmp_path, [TEXT, NEAR, NEAR]) == [("1:1", "near", "0:0"), ("2:2", "exact", "0:0")]


def test_texts_under_five_words_are_only_ever_exact(tmp_path: Path) -> None:
    texts = ["one two three four", "one two three four!", "", "One two three four", "", "a b c d e", "a b c d e"]
    assert _find(tmp_path, texts) == [("3:3", "exact", "0:0"), ("4:4", "exact", "2:2"), ("6:6", "exact", "5:5")]


def test_boilerplate_lists_every_member_the_first_too(tmp_path: Path) -> None:
    found = _find(tmp_path, [TEXT, OTHER, NEAR, TEXT], pages=3)
    assert found == [(f"{row}:{row}", "boilerplate", "0:0") for row in (0, 2, 3)]
    assert pq.read_table(tmp_path / "duplicates.parquet").column("similarity").to_pylist() == [
        pytest.approx(91 / 101),
        pytest.approx(91 / 101),
        1.0,
    ]


def test_many_copies_on_one_page_are_no_boilerplate(tmp_path: Path) -> None:
    assert {kind for _, kind, _ in _find(tmp_path, [TEXT] * 5, pages=2, same_page=True)} == {"exact"}


def test_boilerplate_of_exact_copies_alone_is_wholly_similar(tmp_path: Path) -> None:
    _find(tmp_path, [TEXT, TEXT], pages=2)
    assert pq.read_table(tmp_path / "duplicates.parquet").column("similarity").to_pylist() == [1.0, 1.0]


def test_a_cluster_may_reach_over_shards(tmp_path: Path) -> None:
    shards = [
        write_shard(tmp_path / "passages-00000.parquet", [(1, TEXT)]),
        write_shard(tmp_path / "passages-00001.parquet", []),
        write_shard(tmp_path / "passages-00002.parquet", [(2, NEAR), (3, TEXT)], first=1),
    ]
    counts = find_duplicates(shards, tmp_path / "duplicates.parquet", 0.8, 10)
    assert counts == DuplicateCounts(passages=3, exact=1, near=1, boilerplate=0, clusters=1, copies=1)


def test_no_passages_have_no_duplicates(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "passages-00000.parquet", [])
    for shards in ([], [shard]):
        assert find_duplicates(shards, tmp_path / "d.parquet", 0.8, 10) == DuplicateCounts(0, 0, 0, 0, 0, 0)
        assert pq.read_table(tmp_path / "d.parquet").num_rows == 0
    assert drop_duplicates([shard], tmp_path / "d.parquet", frozenset({"exact"})) == 0


def test_progress_sees_every_row_group(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "passages-00000.parquet", [(row, f"{row} {TEXT}") for row in range(5000)])
    seen: list[object] = []

    def progress(groups):  # type: ignore[no-untyped-def]
        for group in groups:
            seen.append(group)
            yield group

    find_duplicates([shard], tmp_path / "d.parquet", 0.8, 10**6, progress)
    assert len(seen) == 2


def test_a_large_group_is_not_compared_all_with_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that meet in many bands but are not quite similar enough: the worst case."""
    compared = []

    def counted(*arguments):  # type: ignore[no-untyped-def]
        compared.append(1)
        return jaccard(*arguments)

    monkeypatch.setattr(duplicate_clusters, "jaccard", counted)
    texts = [" ".join([*WORDS[:70], *(f"{row}x{place}" for place in range(12))]) for row in range(300)]
    assert 0.6 < jaccard(shingles(texts[0]), shingles(texts[1])) < 0.8
    assert _find(tmp_path, texts) == []
    assert 0 < len(compared) <= 8 * 8 * len(texts)  # all with all would be 44,850 in each of 8 bands


def test_similarity_of_sets_of_shingles() -> None:
    assert jaccard(shingles(TEXT), shingles(OTHER)) == 0
    assert jaccard(frozenset(), frozenset()) == 0
    assert jaccard(shingles(TEXT), shingles(NEAR), at_least=0.95) == pytest.approx(91 / 101)
    assert jaccard(shingles(TEXT), shingles(" ".join(WORDS[:50])), at_least=0.5) == 0  # cannot reach it


def test_the_sketch_is_the_same_everywhere() -> None:
    """A changed value here means that other candidates are found: the result of an ingest can change."""
    values = sketch([TEXT, "Ελλάδα is too short", OTHER], rows=4)
    assert [hex(value) for value in values.digest[:, 0].tolist()] == _DIGEST
    assert [hex(value) for value in values.bands[:2, 0].tolist()] == _BANDS
    assert values.bands[:, 1].tolist() == [0] * 8


def test_neighbours_in_a_batch_do_not_change_a_sketch() -> None:
    texts = ["", TEXT, "a", " ".join(WORDS * 300), OTHER, "b c d e f", "  "]
    together = sketch(texts, rows=2)
    for place, text in enumerate(texts):
        alone = sketch([text], rows=2)
        np.testing.assert_array_equal(alone.digest[:, 0], together.digest[:, place])
        np.testing.assert_array_equal(alone.bands[:, 0], together.bands[:, place])


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.9, 1.0])
def test_bands_find_nearly_all_pairs_at_the_threshold(threshold: float) -> None:
    rows = band_rows(threshold)
    assert 1 - (1 - threshold**rows) ** (32 // rows) >= 0.98


def test_impossible_thresholds_are_refused(tmp_path: Path) -> None:
    for threshold, pages in [(0.0, 10), (1.1, 10), (0.8, 1)]:
        with pytest.raises(ConfigError, match="near_duplicate_jaccard"):
            find_duplicates([], tmp_path / "d.parquet", threshold, pages)
    with pytest.raises(ConfigError, match="unknown kinds of duplicates \\['exakt'\\]"):
        drop_duplicates([], tmp_path / "d.parquet", frozenset({"exakt"}))


def test_shards_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing, text = tmp_path / "missing.parquet", tmp_path / "text.parquet"
    text.write_text("no Parquet")
    pq.write_table(pa.table({"title": ["A"]}), tmp_path / "columns.parquet")
    for path in (missing, text, tmp_path / "columns.parquet"):
        with pytest.raises(DataError, match=path.name):
            find_duplicates([path], tmp_path / "d.parquet", 0.8, 10)
        with pytest.raises(DataError, match=path.name):
            drop_duplicates([], path, frozenset({"exact"}))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="nowhere"):
        find_duplicates([], tmp_path / "nowhere" / "d.parquet", 0.8, 10)
