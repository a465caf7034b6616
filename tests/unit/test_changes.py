"""What changed between two ingests, against a comparison in plain dictionaries."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.config import PassageConfig
from rag.corpus import changes
from rag.corpus.changes import ChangeReport, passage_changes
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.corpus.passages import PassageRow, passage_table, text_sha1
from rag.errors import DataError, ResourceError
from tests.support.small_wiki import article, redirect, small_pieces, titled, write_dump

Texts = dict[tuple[int, int], str]  # of page id and ordinal


def _write(folder: Path, source: str, texts: Texts, order: list[tuple[int, int]], shards: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        PassageRow(f"{source}:{page}:{ordinal}", "T", texts[page, ordinal], page, 1, ordinal, 1, 0, 1, 0,
                   text_sha1("T", texts[page, ordinal]))
        for page, ordinal in order
    ]  # fmt: skip
    for shard in range(shards):
        part = rows[shard * len(rows) // shards : (shard + 1) * len(rows) // shards]
        pq.write_table(passage_table(part), folder / f"passages-{shard:05d}.parquet", row_group_size=2)
    return folder


def _expected(before: Texts, after: Texts) -> list[tuple[str, str]]:
    found = []
    for page, ordinal in sorted({*before, *after}):
        was, now = before.get((page, ordinal)), after.get((page, ordinal))
        change = "added" if was is None else "removed" if now is None else "changed" if was != now else ""
        if change:
            found.append((f"{'old' if now is None else 'new'}:{page}:{ordinal}", change))
    return found


_TEXTS = st.dictionaries(st.tuples(st.integers(1, 9), st.integers(0, 3)), st.sampled_from("ab"), max_size=12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(_TEXTS, _TEXTS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_changes_are_those_of_a_plain_comparison(
    tmp_path_factory: pytest.TempPathFactory,
    before: Texts,
    after: Texts,
    rows: int,
    random: object,
) -> None:
    folder = tmp_path_factory.mktemp("changes")
    shuffled = sorted(after, key=lambda _: random.random())  # type: ignore[attr-defined]
    old = _write(folder / "old", "old", before, sorted(before))
    new = _write(folder / "new", "new", after, shuffled, shards=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_ROWS_AT_ONCE", rows)
        report = passage_changes(old, new, folder / "out")
    expected = _expected(before, after)
    table = pq.read_table(folder / "out" / "changes.parquet")
    assert list(zip(*table.to_pydict().values(), strict=True)) == expected
    kinds = [change for _, change in expected]
    assert (report.added, report.changed, report.removed) == tuple(map(kinds.count, ("added", "changed", "removed")))
    assert report.unchanged == len([key for key in before if before[key] == after.get(key)])
    pages_before, pages_after = {page for page, _ in before}, {page for page, _ in after}
    touched = {int(name.split(":")[1]) for name, _ in expected}
    assert report.pages_added == len(pages_after - pages_before)
    assert report.pages_removed == len(pages_before - pages_after)
    assert report.pages_changed == len(pages_before & pages_after & touched)


def test_two_dumps_of_one_wiki(tmp_path: Path) -> None:
    dumps = {
        "old": [article(1, 250), article(2, 30), redirect(3, "Page 1"), article(4, 90)],
        "new": [article(1, 250), article(2, 150, revision=1), article(3, 10), titled(5, "Box", "{{Infobox x}}")],
    }
    with small_pieces(block_bytes=1_000, shard_rows=2):
        for name, pages in dumps.items():
            ingest(SourceSpec(name, (write_dump(tmp_path / f"{name}.xml", pages),)), PassageConfig(), tmp_path / name)
    report = passage_changes(tmp_path / "old", tmp_path / "new", tmp_path / "out")
    assert report == ChangeReport(
        added=2, changed=1, removed=1, unchanged=3, pages_added=1, pages_changed=1, pages_removed=1
    )
    assert pq.read_table(tmp_path / "out" / "changes.parquet").to_pylist() == [
        {"passage_id": "new:2:0", "change": "changed"},
        {"passage_id": "new:2:1", "change": "added"},
        {"passage_id": "new:3:0", "change": "added"},
        {"passage_id": "old:4:0", "change": "removed"},
    ]
    first = (tmp_path / "out" / "changes.parquet").read_bytes()
    passage_changes(tmp_path / "old", tmp_path / "new", tmp_path / "out")
    assert (tmp_path / "out" / "changes.parquet").read_bytes() == first


def test_what_cannot_be_compared_is_a_clear_error(tmp_path: Path) -> None:
    texts = {(1, 0): "a", (2, 0): "b"}
    whole = _write(tmp_path / "whole", "old", texts, [(1, 0), (2, 0)])
    twice = _write(tmp_path / "twice", "new", texts, [(1, 0), (2, 0), (1, 0)])
    with pytest.raises(DataError, match="passage new:1:0 twice"):
        passage_changes(whole, twice, tmp_path / "out")
    with pytest.raises(DataError, match="no passages"):
        passage_changes(whole, tmp_path / "none", tmp_path / "out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResourceError, match="cannot write"):
        passage_changes(whole, whole, tmp_path / "file" / "out")
