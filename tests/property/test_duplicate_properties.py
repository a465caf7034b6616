"""Duplicates against a slow oracle that compares every passage with every other."""

import random
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.duplicates.drop import drop_duplicates
from rag.corpus.duplicates.find import find_duplicates
from rag.corpus.duplicates.listing import DUPLICATE_SCHEMA

_SETTINGS = settings(derandomize=True, deadline=None, max_examples=20)
_WORDS = [f"w{number}" for number in range(400)] + ["É", "ß", "Ελλάς", "-"]


def _shingles(text: str) -> set[str]:
    words = text.casefold().split(" ")
    return {" ".join(words[place : place + 5]) for place in range(len(words) - 4)}


def _similarity(first: str, second: str) -> float:
    if first.casefold() == second.casefold():
        return 1.0
    one, other = _shingles(first), _shingles(second)
    return len(one & other) / len(one | other) if one and other else 0.0


def _varied(text: str, changes: int, draw: random.Random) -> str:
    words = text.split(" ")
    for _ in range(changes):
        words[draw.randrange(len(words))] = draw.choice(_WORDS)
    return " ".join(word.upper() if draw.random() < 0.1 else word for word in words)


def _corpus(seed: int) -> list[str]:
    """Short texts, random texts, and copies of both with few or many changes."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(_WORDS, k=draw.choice([1, 3, 5, 8, 40, 100]))) for _ in range(12)]
    for _ in range(28):
        texts.append(_varied(draw.choice(texts), draw.choice([0, 0, 1, 1, 2, 6]), draw))
    draw.shuffle(texts)
    return texts


def _write(folder: Path, texts: list[str], shard_rows: int, pages: int = 10**6) -> list[Path]:
    shards: list[Path] = []
    for first in range(0, max(len(texts), 1), shard_rows):
        part = texts[first : first + shard_rows]
        rows = range(first, first + len(part))
        path = folder / f"passages-{len(shards):05d}.parquet"
        columns = {
            "passage_id": pa.array([f"w:{row // 2 % pages}:{row % 2}" for row in rows], pa.string()),
            "text": pa.array(part, pa.string()),
            "page_id": pa.array([row // 2 % pages for row in rows], pa.int64()),
        }
        pq.write_table(pa.table(columns), path, row_group_size=7)
        shards.append(path)
    return shards


def _found(texts: list[str], jaccard: float, pages: int = 10**6, shard_rows: int = 16) -> list[dict[str, object]]:
    with TemporaryDirectory() as folder:
        shards = _write(Path(folder), texts, shard_rows)
        out = Path(folder, "duplicates.parquet")
        counts = find_duplicates(shards, out, jaccard, pages)
        assert sorted(Path(folder).iterdir()) == [out, *shards]
        table = pq.read_table(out)
    assert table.schema == DUPLICATE_SCHEMA
    kinds = table.column("kind").to_pylist()
    assert [counts.exact, counts.near, counts.boilerplate] == [
        kinds.count(kind) for kind in ("exact", "near", "boilerplate")
    ]
    assert counts.passages == len(texts)
    assert counts.copies == sum(table.column("is_copy").to_pylist())
    assert [_row(one) for one in table.column("passage_id").to_pylist()] == table.column("row").to_pylist()
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def _row(passage_id: object) -> int:
    _, page, ordinal = str(passage_id).split(":")
    return 2 * int(page) + int(ordinal)


def _components(texts: list[str], at_least: float) -> list[int]:
    """The first text of the cluster of each, by comparing all with all."""
    heads = list(range(len(texts)))
    for first, second in combinations(range(len(texts)), 2):
        if heads[first] != heads[second] and _similarity(texts[first], texts[second]) >= at_least:
            low, high = sorted((heads[first], heads[second]))
            heads = [low if head == high else head for head in heads]
    return heads


@given(seed=st.integers(0, 10**6), jaccard=st.sampled_from([0.3, 0.5, 0.8, 0.95, 1.0]))
@_SETTINGS
def test_nothing_is_listed_that_is_not_similar(seed: int, jaccard: float) -> None:
    texts = _corpus(seed)
    exact = {text.casefold(): row for row, text in reversed(list(enumerate(texts)))}
    allowed = _components(texts, jaccard)
    for found in _found(texts, jaccard):
        row, head = _row(found["passage_id"]), _row(found["cluster"])
        assert head < row
        assert allowed[row] == allowed[head]
        assert (found["kind"] == "exact") == (exact[texts[row].casefold()] < row)
        best = max(_similarity(texts[row], text) for place, text in enumerate(texts) if place != row)
        assert jaccard - 1e-6 <= float(str(found["similarity"])) <= best + 1e-6


@given(seed=st.integers(0, 10**6), jaccard=st.sampled_from([0.3, 0.5, 0.8, 0.95]))
@_SETTINGS
def test_exact_and_very_similar_pairs_are_in_one_cluster(seed: int, jaccard: float) -> None:
    texts = _corpus(seed)
    heads = list(range(len(texts)))
    for found in _found(texts, jaccard):
        heads[_row(found["passage_id"])] = _row(found["cluster"])
    for first, second in combinations(range(len(texts)), 2):
        if _similarity(texts[first], texts[second]) >= max(0.95, jaccard):
            assert heads[first] == heads[second]


def test_most_pairs_at_the_threshold_are_found() -> None:
    draw = random.Random(5)
    pairs = []
    for _ in range(300):
        words = [f"x{draw.randrange(10**9)}" for _ in range(100)]
        other = [*words[:40], "changed", *words[41:75], "changed too", *words[76:]]  # 86 of 106 shingles: 0.81
        pairs += [" ".join(words), " ".join(other)]
    assert _similarity(pairs[0], pairs[1]) == pytest.approx(0.81, abs=0.02)
    found = _found(pairs, 0.8, shard_rows=200)
    assert len(found) >= 0.95 * 300
    assert all(_row(row["cluster"]) == _row(row["passage_id"]) - 1 for row in found)


@given(seed=st.integers(0, 10**6), pages=st.integers(2, 5))
@_SETTINGS
def test_boilerplate_is_every_member_of_a_cluster_on_many_pages(seed: int, pages: int) -> None:
    texts = _corpus(seed)
    clusters: dict[object, set[int]] = {}
    for found in _found(texts, 0.8):
        clusters.setdefault(found["cluster"], {_row(found["cluster"])}).add(_row(found["passage_id"]))
    for found in _found(texts, 0.8, pages):
        members = clusters[found["cluster"]]
        assert (found["kind"] == "boilerplate") == (len({row // 2 for row in members}) >= pages)
    many = {row for rows in clusters.values() if len({row // 2 for row in rows}) >= pages for row in rows}
    listed = {_row(found["passage_id"]) for found in _found(texts, 0.8, pages) if found["kind"] == "boilerplate"}
    assert listed == many


@given(seed=st.integers(0, 10**6), shard_rows=st.integers(1, 50))
@_SETTINGS
def test_where_shards_are_cut_changes_nothing(seed: int, shard_rows: int) -> None:
    texts = _corpus(seed)
    assert _found(texts, 0.8, 4, shard_rows) == _found(texts, 0.8, 4, 10**6)


@given(
    seed=st.integers(0, 10**6),
    kinds=st.sets(st.sampled_from(["exact", "near", "boilerplate"])),
    pages=st.sampled_from([1, 5, 10**6]),
)
@_SETTINGS
def test_dropping_leaves_exactly_the_others_in_order(seed: int, kinds: set[str], pages: int) -> None:
    texts = _corpus(seed)
    folded = [text.casefold() for text in texts]
    with TemporaryDirectory() as folder:
        shards = _write(Path(folder), texts, 16, pages)
        out = Path(folder, "duplicates.parquet")
        find_duplicates(shards, out, 0.8, 4)
        gone = {row["row"] for row in pq.read_table(out).to_pylist() if row["kind"] in kinds}
        if "exact" in kinds:
            gone |= {row for row, text in enumerate(folded) if text in folded[:row]}
        for _ in range(2):
            assert drop_duplicates(shards, out, frozenset(kinds)) == len(gone)
            after = [row["text"] for shard in shards for row in pq.read_table(shard).to_pylist()]
            assert after == [text for row, text in enumerate(texts) if row not in gone]
