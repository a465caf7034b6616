"""Vectors on disk: row order, reuse by text, resuming a killed run, and damaged folders."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rag.config import IndexConfig
from rag.errors import DataError, IndexMismatchError, ResourceError
from rag.retrieval import vectors as vectors_module
from rag.retrieval.encoders import Encoder
from rag.retrieval.index import build_index_from_files
from rag.retrieval.vectors import SourcePassages, VectorFile, VectorReport, encode_source, hash_row_ids
from tests.support.tiny_encoders import WORDS, tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return tiny_encoder(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "SHARD_ROWS", 4)


def source(rows: Iterable[int], name: str = "s") -> SourcePassages:
    """A passage for each number, told apart by its words; ids by place."""
    texts = [" ".join(WORDS[(row * step + step) % len(WORDS)] for step in range(1, 3 + row % 5)) for row in rows]
    titles = [WORDS[row % len(WORDS)] for row in rows]
    sha1 = [hashlib.sha1(f"{t}\n{x}".encode()).hexdigest() for t, x in zip(titles, texts, strict=True)]
    return SourcePassages([f"{name}:{place}:0" for place in range(len(texts))], titles, texts, sha1)


def test_rows_are_the_passages_in_their_order(encoder: Encoder, tmp_path: Path) -> None:
    passages = source(range(11))
    report = encode_source(passages, encoder, tmp_path)
    assert report == VectorReport(encoded=11, resumed=0, reused=0, repeated=0)
    file = VectorFile.open(tmp_path)
    np.testing.assert_allclose(file.vectors, encoder.encode_passages(passages.titles, passages.texts), atol=1e-5)
    assert isinstance(file.vectors, np.memmap)
    assert (file.count, file.dim, file.dtype) == (11, 16, "float32")
    assert file.encoder_fingerprint == encoder.passage_fingerprint
    assert file.row_ids_sha256 == hash_row_ids(passages.ids)
    assert 0.999 < file.norm_min <= file.norm_max < 1.001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text_sha1.npy", "vectors.json", "vectors.npy"]


def test_a_finished_folder_is_left_as_it_is(encoder: Encoder, tmp_path: Path) -> None:
    encode_source(source(range(5)), encoder, tmp_path)
    before = (tmp_path / "vectors.npy").stat().st_mtime_ns
    assert encode_source(source(range(5)), encoder, tmp_path) == VectorReport(0, 0, reused=5, repeated=0)
    assert (tmp_path / "vectors.npy").stat().st_mtime_ns == before


def test_other_passages_in_the_same_folder_are_encoded_again(encoder: Encoder, tmp_path: Path) -> None:
    encode_source(source(range(5)), encoder, tmp_path)
    assert encode_source(source(range(6)), encoder, tmp_path).encoded == 6


def test_the_same_call_writes_the_same_bytes(encoder: Encoder, tmp_path: Path) -> None:
    for name in ("one", "other"):
        encode_source(source(range(9)), encoder, tmp_path / name)
    for name in ("vectors.npy", "text_sha1.npy", "vectors.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_known_texts_are_copied_and_new_ones_encoded(encoder: Encoder, tmp_path: Path) -> None:
    encode_source(source(range(6)), encoder, tmp_path / "old")
    passages = source([20, 5, 3, 21, 0])
    known = VectorFile.open(tmp_path / "old")
    report = encode_source(passages, encoder, tmp_path / "new", reuse=[known])
    assert report == VectorReport(encoded=2, resumed=0, reused=3, repeated=0)
    new = VectorFile.open(tmp_path / "new").vectors
    np.testing.assert_array_equal(new[[1, 2, 4]], known.vectors[[5, 3, 0]])
    np.testing.assert_allclose(new, encoder.encode_passages(passages.titles, passages.texts), atol=1e-5)


def test_vectors_of_another_encoder_are_not_reused(encoder: Encoder, tmp_path: Path) -> None:
    other = tiny_encoder(tmp_path / "model", seed=1)
    encode_source(source(range(3)), other, tmp_path / "old")
    report = encode_source(source(range(3)), encoder, tmp_path / "new", reuse=[VectorFile.open(tmp_path / "old")])
    assert report == VectorReport(encoded=3, resumed=0, reused=0, repeated=0)


def test_equal_texts_are_encoded_once_and_have_equal_vectors(encoder: Encoder, tmp_path: Path) -> None:
    report = encode_source(source([7, 8, 7, 9, 8, 7]), encoder, tmp_path)
    assert report == VectorReport(encoded=3, resumed=0, reused=0, repeated=3)
    vectors = VectorFile.open(tmp_path).vectors
    np.testing.assert_array_equal(vectors[[2, 5]], vectors[[0, 0]])
    np.testing.assert_array_equal(vectors[4], vectors[1])


class Killed(Exception):
    """What ends a run in these tests."""


def _killed_after(shards: Iterable[range], count: int) -> Iterator[range]:
    for number, shard in enumerate(shards):
        if number == count:
            raise Killed
        yield shard


def test_a_killed_run_goes_on_at_its_shard(encoder: Encoder, tmp_path: Path) -> None:
    passages = source(range(11))
    with pytest.raises(Killed):
        encode_source(passages, encoder, tmp_path, progress=lambda shards: _killed_after(shards, 2))
    with pytest.raises(DataError, match="no finished vectors"):
        VectorFile.open(tmp_path)
    assert encode_source(passages, encoder, tmp_path) == VectorReport(encoded=3, resumed=8, reused=0, repeated=0)
    fresh = tmp_path / "fresh"
    encode_source(passages, encoder, fresh)
    assert (tmp_path / "vectors.npy").read_bytes() == (fresh / "vectors.npy").read_bytes()


def test_a_damaged_shard_is_encoded_again(encoder: Encoder, tmp_path: Path) -> None:
    passages = source(range(11))
    with pytest.raises(Killed):
        encode_source(passages, encoder, tmp_path, progress=lambda shards: _killed_after(shards, 2))
    shard = min((tmp_path / "shards").iterdir())
    shard.write_bytes(shard.read_bytes()[:-4])
    assert encode_source(passages, encoder, tmp_path) == VectorReport(encoded=7, resumed=4, reused=0, repeated=0)


def test_vectors_that_are_not_finite_name_their_passages(tmp_path: Path) -> None:
    broken = tiny_encoder(tmp_path / "model")
    for weight in broken.module.parameters():
        weight.data.fill_(np.nan)
    with pytest.raises(DataError, match=r"among s:0:0 to s:3:0: passage row 0 "):
        encode_source(source(range(6)), broken, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"texts": ["x"]}, "differ in length"),
        ({"ids": ["a", "b", "a"]}, "'a' occurs more than once"),
        ({"text_sha1": ["0" * 40, "0" * 39, "0" * 40]}, "s:1:0 has text_sha1 '0+', not 40 digits"),
        ({"ids": [], "titles": [], "texts": [], "text_sha1": []}, "holds no passages"),
    ],
)
def test_columns_that_cannot_be_right_are_refused(
    encoder: Encoder, tmp_path: Path, change: dict[str, list[str]], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        encode_source(source(range(3))._replace(**change), encoder, tmp_path)


def test_a_full_disk_is_noticed_first(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = vectors_module.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(vectors_module.shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(ResourceError, match="10 bytes free"):
        encode_source(source(range(3)), encoder, tmp_path)


def test_a_cut_or_foreign_folder_is_refused(encoder: Encoder, tmp_path: Path) -> None:
    encode_source(source(range(5)), encoder, tmp_path)
    content = (tmp_path / "vectors.npy").read_bytes()
    (tmp_path / "vectors.npy").write_bytes(content[:-10])
    with pytest.raises(DataError, match="cut off"):
        VectorFile.open(tmp_path)
    np.save(tmp_path / "vectors.npy", np.zeros((4, 16), np.float32))
    with pytest.raises(DataError, match=r"\(4, 16\), but vectors.json says \(5, 16\)"):
        VectorFile.open(tmp_path)


def test_an_index_of_sources_is_bound_to_passages_and_encoder(encoder: Encoder, tmp_path: Path) -> None:
    one, other = source(range(5), "one"), source(range(5, 12), "other")
    for name, passages in (("one", one), ("other", other)):
        encode_source(passages, encoder, tmp_path / name)
    files = [VectorFile.open(tmp_path / "one"), VectorFile.open(tmp_path / "other")]
    ids = [*one.ids, *other.ids]
    index = build_index_from_files(files, ids, IndexConfig(kind="flat"))
    assert index.info.row_ids_sha256 == hash_row_ids(ids)
    assert index.info.encoder_fingerprint == encoder.passage_fingerprint
    vectors = np.concatenate([file.vectors for file in files])
    np.testing.assert_array_equal(index.search(vectors, 1).rows[:, 0], np.arange(12))

    with pytest.raises(IndexMismatchError, match="in another order"):
        build_index_from_files(files, [ids[1], ids[0], *ids[2:]], IndexConfig(kind="flat"))
    with pytest.raises(IndexMismatchError, match=r"one: its vectors|other: its vectors"):
        build_index_from_files(files[::-1], ids, IndexConfig(kind="flat"))
    with pytest.raises(IndexMismatchError, match="11 passages for 12 vectors"):
        build_index_from_files(files, ids[:-1], IndexConfig(kind="flat"))


def test_vectors_of_two_encoders_do_not_share_an_index(encoder: Encoder, tmp_path: Path) -> None:
    one, other = source(range(3), "one"), source(range(3, 6), "other")
    encode_source(one, encoder, tmp_path / "one")
    encode_source(other, tiny_encoder(tmp_path / "model", seed=1), tmp_path / "other")
    files = [VectorFile.open(tmp_path / "one"), VectorFile.open(tmp_path / "other")]
    with pytest.raises(IndexMismatchError, match="2 encoders cannot share an index"):
        build_index_from_files(files, [*one.ids, *other.ids], IndexConfig(kind="flat"))
