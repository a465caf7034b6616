"""Shards without their duplicates: the right rows go, whatever the ids, and after any interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag.corpus.duplicates.drop import drop_duplicates
from rag.corpus.duplicates.find import DuplicateCounts, find_duplicates
from rag.errors import DataError
from tests.support.duplicate_shards import NEAR, OTHER, TEXT, write_shard


def _three_shards(folder: Path, pages: int = 900) -> list[Path]:
    """Shards of 300 passages; with fewer pages than passages, ids stand in them more than once."""
    folder.mkdir()
    texts = [f"{TEXT} {row // 3}" if row % 3 else f"{row} {OTHER[row:]} {row}" for row in range(900)]
    rows = [(row % pages, text) for row, text in enumerate(texts)]
    if pages < 900:
        return [write_shard(folder / f"passages-{n:05d}.parquet", rows[n * 300 : n * 300 + 300]) for n in range(3)]
    return [write_shard(folder / f"passages-{n:05d}.parquet", rows[n * 300 : n * 300 + 300], n * 300) for n in range(3)]


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_dropping_keeps_the_columns_and_rewrites_only_what_changes(tmp_path: Path) -> None:
    shards = [
        write_shard(tmp_path / "passages-00000.parquet", [(1, TEXT)]),
        write_shard(tmp_path / "passages-00001.parquet", [(2, TEXT), (3, NEAR), (4, OTHER)], first=1),
    ]
    before, untouched = pq.read_table(shards[1]), shards[0].stat().st_ino
    find_duplicates(shards, tmp_path / "d.parquet", 0.8, 10)
    assert drop_duplicates(shards, tmp_path / "d.parquet", frozenset()) == 0
    assert drop_duplicates(shards, tmp_path / "d.parquet", frozenset({"exact"})) == 1
    assert pq.read_table(shards[1]).equals(before.slice(1))
    assert shards[0].stat().st_ino == untouched
    # The rewritten shard is what the ingest would have written.
    again = write_shard(tmp_path / "again.parquet", [(3, NEAR), (4, OTHER)], first=2)
    assert shards[1].read_bytes() == again.read_bytes()
    assert drop_duplicates(shards, tmp_path / "d.parquet", frozenset({"exact"})) == 1
    assert shards[1].read_bytes() == again.read_bytes()


def test_of_passages_with_one_id_only_the_listed_row_goes(tmp_path: Path) -> None:
    rows = [[(1, TEXT), (1, OTHER)], [(1, TEXT), (1, NEAR)]]
    shards = [write_shard(tmp_path / f"passages-{number:05d}.parquet", part) for number, part in enumerate(rows)]
    ids = [pq.read_table(shard).column("passage_id").to_pylist() for shard in shards]
    assert ids[0] == ids[1]
    find_duplicates(shards, tmp_path / "d.parquet", 0.95, 10)
    assert pq.read_table(tmp_path / "d.parquet").column("row").to_pylist() == [2]
    for _ in range(2):
        assert drop_duplicates(shards, tmp_path / "d.parquet", frozenset({"exact"})) == 1
        assert [text for shard in shards for text in pq.read_table(shard).column("text").to_pylist()] == [
            TEXT, OTHER, NEAR,
        ]  # fmt: skip


_LEFT = [({"exact"}, [0, 2]), ({"boilerplate"}, []), ({"near"}, [0, 1, 2, 3]), ({"near", "exact"}, [0, 2])]


@pytest.mark.parametrize(("kinds", "left"), _LEFT)
def test_exact_takes_the_copies_of_boilerplate_too(tmp_path: Path, kinds: set[str], left: list[int]) -> None:
    shard = write_shard(tmp_path / "passages-00000.parquet", list(enumerate([TEXT, TEXT.upper(), NEAR, NEAR])))
    before = pq.read_table(shard)
    counts = find_duplicates([shard], tmp_path / "d.parquet", 0.8, 2)
    assert counts == DuplicateCounts(passages=4, exact=0, near=0, boilerplate=4, clusters=1, copies=2)
    listed = pq.read_table(tmp_path / "d.parquet")
    assert listed.column("is_copy").to_pylist() == [False, True, False, True]
    assert set(listed.column("kind").to_pylist()) == {"boilerplate"}
    assert drop_duplicates([shard], tmp_path / "d.parquet", frozenset(kinds)) == 4 - len(left)
    assert pq.read_table(shard).equals(before.take(pa.array(left, pa.int64())))


def test_shards_that_are_not_those_of_the_list_are_refused(tmp_path: Path) -> None:
    shards = _three_shards(tmp_path / "shards")
    find_duplicates(shards, tmp_path / "d.parquet", 0.8, 10**6)
    with pytest.raises(DataError, match="is of 3 shards, not 2"):
        drop_duplicates(shards[:2], tmp_path / "d.parquet", frozenset({"exact"}))
    pq.write_table(pq.read_table(shards[0]).slice(1), shards[0])
    with pytest.raises(DataError, match=r"passages-00000\.parquet has 299 passages where .* of 300"):
        drop_duplicates(shards, tmp_path / "d.parquet", frozenset({"exact"}))
    pq.write_table(pq.read_table(tmp_path / "d.parquet").replace_schema_metadata(None), tmp_path / "d.parquet")
    with pytest.raises(DataError, match="d\\.parquet cannot be read"):
        drop_duplicates(shards, tmp_path / "d.parquet", frozenset({"exact"}))


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "passages-00000.parquet", [(1, TEXT), (2, TEXT)])
    pq.write_table(pq.read_table(shard), shard, compression="none", write_page_checksum=True, use_dictionary=False)
    shard.write_bytes(shard.read_bytes().replace(b"word50 ", b"word51 "))
    with pytest.raises(DataError, match=r"passages-00000\.parquet cannot be read"):
        find_duplicates([shard], tmp_path / "d.parquet", 0.8, 10)


_DROP = """
import sys
from pathlib import Path
from rag.corpus.duplicates import drop, find
import rag.files, os, time
folder = Path(sys.argv[1])
shards = sorted(folder.glob("passages-*.parquet"))
published = drop.publish
def slow(temporary, path):
    print(path.name, flush=True)
    time.sleep(float(sys.argv[2]))
    published(temporary, path)
drop.publish = find.publish = slow
if not (folder / "duplicates.parquet").exists():
    find.find_duplicates(shards, folder / "duplicates.parquet", 0.8, 10**6)
drop.drop_duplicates(shards, folder / "duplicates.parquet", frozenset({"exact", "near"}))
"""


@pytest.mark.parametrize("lines", [1, 3], ids=["while listing", "while dropping"])
@pytest.mark.parametrize("pages", [900, 2], ids=["own ids", "repeated ids"])
def test_kill_9_and_again_gives_the_same_bytes(tmp_path: Path, lines: int, pages: int) -> None:
    undisturbed = _three_shards(tmp_path / "undisturbed", pages)
    find_duplicates(undisturbed, tmp_path / "undisturbed" / "duplicates.parquet", 0.8, 10**6)
    drop_duplicates(undisturbed, tmp_path / "undisturbed" / "duplicates.parquet", frozenset({"exact", "near"}))
    _three_shards(tmp_path / "killed", pages)
    # With another seed of Python's own hash, which must not show anywhere.
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", _DROP, str(tmp_path / "killed")]
    with subprocess.Popen([*command, "0.4"], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        for _ in range(lines):
            process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert _contents(tmp_path / "killed") != _contents(tmp_path / "undisturbed")
    subprocess.run([*command, "0"], check=True, stdout=subprocess.DEVNULL, env=environment)
    assert _contents(tmp_path / "killed") == _contents(tmp_path / "undisturbed")
