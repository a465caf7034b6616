"""An index on disk: every way in which a file can be the wrong one, and saves that do not end."""

import json
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest

from rag.errors import IndexMismatchError, ResourceError
from rag.retrieval import index_file
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_build import build_index
from tests.support.indexes import CONFIGS, vectors_of

FLAT, HNSW = CONFIGS["flat"], CONFIGS["hnsw"]


def _cut(folder: Path) -> None:
    path = folder / "index.faiss"
    path.write_bytes(path.read_bytes()[:-10])


def _flip(folder: Path) -> None:
    path = folder / "index.faiss"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _lfs_pointer(folder: Path) -> None:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * "0" + "\nsize 12345\n"
    (folder / "index.faiss").write_text(text)


def _describe(folder: Path, **changes: object) -> None:
    path = folder / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _describe_size(folder: Path) -> None:
    """A description that fits the size of the file that is there now."""
    size = (folder / "index.faiss").stat().st_size
    _describe(folder, files={"index.faiss": {"bytes": size, "sha256": ""}})


def _replace(folder: Path, index: faiss.Index) -> None:
    """Another FAISS index with a description that fits the file."""
    faiss.write_index(index, str(folder / "index.faiss"))
    _describe_size(folder)


def _by_distance(folder: Path) -> None:
    index = faiss.IndexFlatL2(16)
    index.add(vectors_of(50))
    _replace(folder, index)


def _one_short(folder: Path) -> None:
    index = faiss.IndexFlatIP(16)
    index.add(vectors_of(49))
    _replace(folder, index)


def _other_kind(folder: Path) -> None:
    index = faiss.IndexHNSWFlat(16, 4, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors_of(50))
    _replace(folder, index)


def _not_faiss(folder: Path) -> None:
    (folder / "index.faiss").write_bytes(bytes(1000))
    _describe_size(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut, "index.faiss is cut off: "),
        (_flip, "has changed since it was written"),
        (_lfs_pointer, "a Git LFS pointer of 130 bytes.*git lfs pull"),
        (_by_distance, "another metric than inner product"),
        (_one_short, "holds 49 vectors of 16 dimensions, index.json says 50 of 16"),
        (_other_kind, "says 'flat', the file holds a IndexHNSWFlat"),
        (_not_faiss, "cannot read"),
        (lambda folder: (folder / "index.json").unlink(), "no finished index"),
        (lambda folder: (folder / "index.json").write_text("{"), "index.json cannot be read"),
        (lambda folder: (folder / "index.faiss").unlink(), "index.faiss is missing"),
        (lambda folder: _describe(folder, metric="l2"), "another metric"),
        (lambda folder: _describe(folder, unknown=1), "index.json cannot be read"),
        (lambda folder: _describe(folder, kind="annoy"), "index.json cannot be read.*'annoy'"),
        (lambda folder: _describe(folder, files={}), "index.json cannot be read.*files without index.faiss"),
        (lambda folder: (folder / "contents.npy").unlink(), "contents.npy is missing"),
        (lambda folder: _describe(folder, files=["index.faiss"]), "index.json cannot be read.*files"),
        (lambda folder: _describe(folder, files={"index.faiss": {}}), "index.json cannot be read.*file index.faiss"),
        (lambda folder: _describe(folder, files={"index.faiss": 3}), "index.json cannot be read.*file index.faiss"),
        (lambda folder: _describe(folder, ntotal="50"), "index.json cannot be read.*ntotal '50'"),
        (lambda folder: _describe(folder, ntotal=True), "index.json cannot be read.*ntotal True"),
        (lambda folder: _describe(folder, dim=0), "index.json cannot be read.*dim 0"),
        (lambda folder: _describe(folder, options=None), "index.json cannot be read.*options None"),
        (lambda folder: _describe(folder, options={"m": "2"}), "index.json cannot be read.*option m = '2'"),
        (lambda folder: _describe(folder, encoder=3), "index.json cannot be read.*encoder 3"),
        (lambda folder: _describe(folder, ntotal=51), "51 passages and 50 distinct vectors, but the repeats"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_words(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    build_index(vectors_of(50), FLAT).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(IndexMismatchError, match=words):
        PassageIndex.load(tmp_path, check_bytes=damage is _flip)


def test_a_full_disk_is_noticed_before_anything_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(vectors_of(50), FLAT).save(tmp_path)
    old = (tmp_path / "index.faiss").read_bytes()
    usage = index_file.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(index_file.shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(ResourceError, match="100 bytes free, but the index needs"):
        build_index(vectors_of(60), FLAT).save(tmp_path)
    assert (tmp_path / "index.faiss").read_bytes() == old


def test_a_disk_that_fills_up_leaves_the_old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(vectors_of(50), FLAT).save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise RuntimeError("fwrite failed: No space left on device")

    monkeypatch.setattr(index_file.faiss, "write_index", full)
    with pytest.raises(ResourceError, match=r"could not be written .*No space left.*unchanged"):
        build_index(vectors_of(60), FLAT).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert PassageIndex.load(tmp_path).ntotal == 50


@pytest.mark.parametrize("at", range(4))
def test_a_save_that_is_stopped_leaves_no_description_of_other_files(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are put in place one by one, and the description last: whatever stands is whole or refused."""
    build_index(vectors_of(50), FLAT).save(tmp_path)
    real, names = index_file.publish, list[str]()

    def stopped(temporary: Path, final: Path) -> None:
        if len(names) == at:
            raise KeyboardInterrupt
        names.append(final.name)
        real(temporary, final)

    monkeypatch.setattr(index_file, "publish", stopped)
    changed = build_index(np.tile(vectors_of(60), (2, 1)), FLAT)
    with pytest.raises(KeyboardInterrupt):
        changed.save(tmp_path)
    if at == 0:
        assert PassageIndex.load(tmp_path).ntotal == 50
    else:
        with pytest.raises(IndexMismatchError):
            PassageIndex.load(tmp_path)
    assert "index.json" not in names


def test_an_index_without_repeated_rows_leaves_no_file_of_an_earlier_one_that_had_some(tmp_path: Path) -> None:
    build_index(np.tile(vectors_of(25), (2, 1)), FLAT).save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"index.faiss", "index.json", "repeats.npy", "contents.npy"}
    build_index(vectors_of(50), HNSW).save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"index.faiss", "index.json"}
