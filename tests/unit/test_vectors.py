"""Vectors on disk: what a finished folder says, how it is mapped, and damaged or foreign folders."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rag.config import IndexConfig
from rag.errors import DataError, IndexMismatchError
from rag.retrieval.encode import encode_source
from rag.retrieval.index_build import build_index_from_files
from rag.retrieval.vectors import VectorFile, hash_row_ids, map_array, row_id_lines, shard_path
from tests.support.listed_source import EncoderAt, ListedSource, listed_source
from tests.support.tiny_encoders import encoder_config, write_bert

_CONFIG = encoder_config(precision="float32")


@pytest.fixture(scope="module")
def source() -> ListedSource:
    return listed_source(range(11))


@pytest.fixture
def folder(source: ListedSource, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("rag.retrieval.encode.SHARD_ROWS", 4)
    folder = tmp_path_factory.mktemp("vectors")
    encode_source(source, EncoderAt(write_bert(tmp_path_factory.mktemp("bert")), _CONFIG), folder)
    return folder


def test_a_folder_says_what_it_holds_and_by_whom(folder: Path, source: ListedSource) -> None:
    file = VectorFile.open(folder)
    assert (file.count, file.dim, file.dtype) == (11, 16, "float16")
    assert [shard.rows for shard in file.shards] == [4, 4, 3]
    assert [part.shape for part in file.parts] == [(4, 16), (4, 16), (3, 16)]
    assert len(file.table) == 11
    assert file.row_ids_sha256 == hash_row_ids(source.ids)
    assert [shard.row_ids_sha256 for shard in file.shards] == [
        hash_row_ids(source.ids[start : start + 4]) for start in (0, 4, 8)
    ]
    assert [bytes(digest).hex() for digest in file.text_sha1] == list(source.text_sha1)
    assert file.encoder_fingerprint == file.card.fingerprint
    assert 0.99 < file.norm_min <= file.norm_max < 1.01
    assert (file.norm_min, file.norm_max) == (
        min(shard.norm_min for shard in file.shards),
        max(shard.norm_max for shard in file.shards),
    )


def test_opening_and_saving_again_changes_nothing(folder: Path) -> None:
    before = (folder / "vectors.json").read_bytes()
    VectorFile.open(folder).save()
    assert (folder / "vectors.json").read_bytes() == before


def test_mapped_arrays_are_read_only_and_hold_no_file_open(folder: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list the open files of a process")
    before = len(os.listdir(descriptors))
    arrays = [map_array(shard_path(folder, number)) for number in (0, 1, 2)]
    assert len(os.listdir(descriptors)) == before
    assert not any(array.flags.writeable or array.flags.owndata for array in arrays)
    np.testing.assert_array_equal(arrays[2], np.load(shard_path(folder, 2)))


def test_a_folder_without_its_last_file_is_unfinished(folder: Path) -> None:
    (folder / "vectors.json").unlink()
    with pytest.raises(DataError, match="no finished vectors"):
        VectorFile.open(folder)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def _lfs_pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 300\n")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_cut, _lfs_pointer, _empty, Path.unlink])
@pytest.mark.parametrize("name", ["vectors-00001.npy", "text_sha1.npy"])
def test_a_damaged_file_is_named(folder: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(folder / name)
    with pytest.raises(DataError, match=rf"{name} is missing or cut off .* encode the source again"):
        VectorFile.open(folder)


@pytest.mark.parametrize(
    "array", [np.zeros((4, 8), np.float16), np.zeros((4, 16), np.float32), np.zeros((3, 16), np.float16)]
)
def test_a_shard_of_another_shape_or_kind_is_named(folder: Path, array: np.ndarray) -> None:
    np.save(folder / "vectors-00000.npy", array)
    with pytest.raises(DataError, match=r"vectors-00000.npy has shape .* says \(4, 16\) of float16"):
        VectorFile.open(folder)


def test_arrays_that_are_not_stored_row_by_row_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.eye(3)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name in ("columns.npy", "objects.npy"):
        with pytest.raises(DataError, match="not stored row by row"):
            map_array(tmp_path / name)


@pytest.mark.parametrize("change", [{"card": {"dim": 3}}, {"shards": [{"rows": 1}]}, {"new": 1}, {"card": None}])
def test_a_description_that_cannot_be_read_is_refused(folder: Path, change: dict[str, object]) -> None:
    about = json.loads((folder / "vectors.json").read_text())
    (folder / "vectors.json").write_text(json.dumps({**about, **change}))
    with pytest.raises(DataError, match=r"vectors.json cannot be read"):
        VectorFile.open(folder)


def test_a_row_too_few_is_noticed(folder: Path) -> None:
    digests = np.load(folder / "text_sha1.npy")
    np.save(folder / "text_sha1.npy", digests[:-1])
    with pytest.raises(DataError, match="different numbers of rows"):
        VectorFile.open(folder)


def test_a_flipped_byte_makes_a_shard_unsound(folder: Path) -> None:
    path = shard_path(folder, 1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    file = VectorFile.open(folder)
    assert [file.is_sound(number) for number in range(3)] == [True, False, True]


def test_row_ids_are_hashed_piece_by_piece_or_all_at_once() -> None:
    ids = ["a:1:0", "a:1:1", "ä:2:0"]
    assert row_id_lines(ids) == row_id_lines(ids[:1]) + row_id_lines(ids[1:])
    assert hash_row_ids(iter(ids)) == hash_row_ids(ids) != hash_row_ids(ids[::-1])


def test_an_index_of_sources_is_bound_to_passages_and_encoder(tmp_path: Path) -> None:
    sources = [listed_source(range(5), "one"), listed_source(range(5, 12), "other")]
    encoder = EncoderAt(write_bert(tmp_path / "bert"), _CONFIG)
    for source, name in zip(sources, ("one", "other"), strict=True):
        encode_source(source, encoder, tmp_path / name)
    files = [VectorFile.open(tmp_path / name) for name in ("one", "other")]
    ids, config = [*sources[0].ids, *sources[1].ids], IndexConfig(kind="flat")
    index = build_index_from_files(files, ids, config)
    assert index.info.row_ids_sha256 == hash_row_ids(ids)
    assert index.info.encoder_fingerprint == encoder().passage_fingerprint
    vectors = np.concatenate([file.table.block(range(file.count)) for file in files])
    np.testing.assert_array_equal(index.search(vectors, 1).rows[:, 0], np.arange(12))

    with pytest.raises(IndexMismatchError, match="in another order"):
        build_index_from_files(files, [ids[1], ids[0], *ids[2:]], config)
    with pytest.raises(IndexMismatchError, match=r"one: its vectors|other: its vectors"):
        build_index_from_files(files[::-1], ids, config)
    for wrong, count in ((ids[:-1], 11), ([*ids, "more"], 13)):
        with pytest.raises(IndexMismatchError, match=f"{count} passages for 12 vectors"):
            build_index_from_files(files, iter(wrong), config)


def test_shards_in_each_others_place_are_not_indexed(folder: Path, source: ListedSource) -> None:
    one, other = shard_path(folder, 0), shard_path(folder, 1)
    first, second = one.read_bytes(), other.read_bytes()
    assert len(first) == len(second)
    one.write_bytes(second)
    other.write_bytes(first)
    with pytest.raises(DataError, match=r"vectors-00000.npy does not hold .* encode the source again"):
        build_index_from_files([VectorFile.open(folder)], source.ids, IndexConfig(kind="flat"))


def test_vectors_of_two_encoders_do_not_share_an_index(tmp_path: Path) -> None:
    one, other = listed_source(range(3), "one"), listed_source(range(3, 6), "other")
    encode_source(one, EncoderAt(write_bert(tmp_path / "bert"), _CONFIG), tmp_path / "one")
    encode_source(other, EncoderAt(write_bert(tmp_path / "bert-1", seed=1), _CONFIG), tmp_path / "other")
    files = [VectorFile.open(tmp_path / "one"), VectorFile.open(tmp_path / "other")]
    with pytest.raises(IndexMismatchError, match="2 encoders cannot share an index"):
        build_index_from_files(files, [*one.ids, *other.ids], IndexConfig(kind="flat"))
