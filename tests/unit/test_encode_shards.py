"""Who encodes by which settings, and how the passages of a corpus are read for it."""

import importlib.util
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.encode_shards import EncoderFolder, PassageFolders, shard_runner
from flows.settings import Settings
from rag.config import EncoderConfig
from rag.corpus.passages import PassageRow, PassageTable, passage_table, text_sha1
from rag.errors import ConfigError, DataError
from rag.retrieval.encode import encode_source
from rag.retrieval.vectors import VectorFile
from tests.support.tiny_encoders import encoder_config, write_bert


def _row(number: int) -> PassageRow:
    text = f"the capital of peru {number}"
    return PassageRow(
        f"s:{number}:0", f"Title {number}", text, number, 1, 0, 5, 0, len(text), 0, text_sha1(f"Title {number}", text)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files with row groups of 4, 4 and 2 rows, and of 4 and 1."""
    (tmp_path / "passages").mkdir()
    for number, rows in enumerate([range(10), range(10, 15)]):
        path = tmp_path / "passages" / f"passages-{number:05d}.parquet"
        pq.write_table(passage_table([_row(row) for row in rows]), path, row_group_size=4, write_page_checksum=True)
    return tmp_path / "passages"


def test_a_block_of_passages_is_the_same_over_groups_and_files(folder: Path) -> None:
    rows = PassageFolders((folder,))()
    assert len(rows) == 15
    for start in range(15):
        for stop in range(start + 1, 16):
            wanted = [_row(number) for number in range(start, stop)]
            found = rows.rows(range(start, stop))
            assert found.ids == [row.passage_id for row in wanted]
            assert found.texts == [row.text for row in wanted]
            assert found.titles == [row.title for row in wanted]
            assert found.text_sha1 == [row.text_sha1 for row in wanted]
            assert rows.keys(range(start, stop)) == (found.ids, found.text_sha1)
    with pytest.raises(DataError, match="row 15 is not among the 15 passages"):
        rows.keys(range(12, 16))


def test_a_block_of_a_damaged_file_names_it(folder: Path) -> None:
    path = folder / "passages-00001.parquet"
    content = bytearray(path.read_bytes())
    content[40:200] = bytes(160)
    path.write_bytes(content)
    table = PassageTable.load([folder])
    assert table.block(range(10), ["title"]).num_rows == 10
    with pytest.raises(DataError, match=r"passages-00001.parquet cannot be read"):
        table.block(range(8, 12), ["passage_id"])


def test_passages_on_disk_are_encoded_in_their_order(folder: Path, tmp_path: Path) -> None:
    config = encoder_config(precision="float32")
    encoder = EncoderFolder(write_bert(tmp_path / "bert"), config, "tiny", "cpu")
    encode_source(PassageFolders((folder,)), encoder, tmp_path / "out")
    file = VectorFile.open(tmp_path / "out")
    assert (file.count, file.card.encoder_id) == (15, "tiny")
    wanted = [_row(number) for number in range(15)]
    vectors = encoder().encode_passages([row.title for row in wanted], [row.text for row in wanted])
    assert abs(file.table.block(range(15)) - vectors).max() < 1e-3


def test_openers_are_equal_where_they_open_the_same() -> None:
    one, same, other = (EncoderFolder(Path("a"), EncoderConfig(pooling=p), "", "cpu") for p in ("cls", "cls", "mean"))
    assert len({one, same, other}) == 2
    assert PassageFolders((Path("a"),)) == PassageFolders((Path("a"),))


def test_one_process_encodes_unless_the_settings_say_otherwise() -> None:
    assert shard_runner(Settings(), "cpu") is None
    assert shard_runner(Settings(encoders=1), "cpu") is None
    assert shard_runner(Settings(encoders=3), "cpu") is not None


def test_every_gpu_has_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    runner = shard_runner(Settings(threads=1), "cuda")
    assert runner.args == (2, 1, ["2", "5"])  # type: ignore[union-attr]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert shard_runner(Settings(), "cuda") is None


def test_without_ray_the_setting_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"OPENBOOK_RAY is 'ray://head:10001'.*pip install 'openbook-rag\[ray\]'"):
        shard_runner(Settings(ray="ray://head:10001"), "cpu")
