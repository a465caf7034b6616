"""Encoding a source: row order, re-use by text, going on after a kill, checks of every vector, bad passages."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.errors import DataError, IndexMismatchError, ResourceError
from rag.retrieval import encode as encode_module
from rag.retrieval.encode import VectorReport, encode_source
from rag.retrieval.encode_shard import ShardRecord, ShardTask, encode_shard, record_path
from rag.retrieval.vectors import VectorFile, shard_path
from tests.support.listed_source import EncoderAt, ListedSource, listed_source
from tests.support.tiny_encoders import encoder_config, write_bert

_CONFIG = encoder_config(precision="float32", storage="float32")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def encoder(model: Path) -> EncoderAt:
    return EncoderAt(model, _CONFIG)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "SHARD_ROWS", 4)


def _vectors(folder: Path) -> np.ndarray:
    file = VectorFile.open(folder)
    return file.table.block(range(file.count))


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _encoded(source: ListedSource, encoder: EncoderAt) -> np.ndarray:
    return encoder().encode_passages(source.titles, source.texts)


@pytest.mark.parametrize(("storage", "tolerance"), [("float32", 1e-5), ("float16", 1e-3)])
def test_rows_are_the_passages_in_their_order(model: Path, tmp_path: Path, storage: Any, tolerance: float) -> None:
    encoder, source = EncoderAt(model, encoder_config(precision="float32", storage=storage)), listed_source(range(11))
    assert encode_source(source, encoder, tmp_path) == VectorReport(encoded=11, resumed=0, reused=0, repeated=0)
    np.testing.assert_allclose(_vectors(tmp_path), _encoded(source, encoder), atol=tolerance)
    file = VectorFile.open(tmp_path)
    assert file.dtype == storage
    assert file.card == encoder().passage_card()
    assert sorted(_content(tmp_path)) == [
        "text_sha1.npy",
        "vectors-00000.npy",
        "vectors-00001.npy",
        "vectors-00002.npy",
        "vectors.json",
    ]


@pytest.mark.parametrize("shard_rows", [1, 2, 3, 50, 102, 103, 104])
def test_no_passage_of_103_is_lost_between_shards(
    encoder: EncoderAt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_rows: int
) -> None:
    monkeypatch.setattr(encode_module, "SHARD_ROWS", shard_rows)
    source = listed_source(range(103))
    seen: list[str] = []

    def in_reverse(tasks: Iterable[ShardTask]) -> Iterator[ShardRecord]:
        for task in list(tasks)[::-1]:
            seen.extend(source.rows(task.rows).ids)
            yield encode_shard(task)

    encode_source(source, encoder, tmp_path, run_shards=lambda tasks: (record for record in in_reverse(tasks)))
    file = VectorFile.open(tmp_path)
    assert len(file.shards) == -(-103 // shard_rows)
    assert sum(shard.rows for shard in file.shards) == file.count == len(file.table) == 103
    assert sorted(seen) == sorted(source.ids)
    np.testing.assert_allclose(_vectors(tmp_path), _encoded(source, encoder), atol=1e-5)


def test_the_precision_that_was_chosen_is_on_the_card(model: Path, tmp_path: Path) -> None:
    source = listed_source(range(9))
    encode_source(source, EncoderAt(model, encoder_config(precision="bfloat16")), tmp_path)
    file = VectorFile.open(tmp_path)
    assert file.card.precision == "bfloat16"
    expected = _encoded(source, EncoderAt(model, _CONFIG))
    assert not np.array_equal(_vectors(tmp_path), expected.astype(np.float16))
    assert (_vectors(tmp_path) * expected).sum(axis=1).min() > 0.999


def test_a_finished_folder_is_left_as_it_is(encoder: EncoderAt, tmp_path: Path) -> None:
    encode_source(listed_source(range(5)), encoder, tmp_path)
    before, written = _content(tmp_path), shard_path(tmp_path, 0).stat().st_mtime_ns
    assert encode_source(listed_source(range(5)), encoder, tmp_path) == VectorReport(0, 5, 0, 0)
    assert _content(tmp_path) == before
    assert shard_path(tmp_path, 0).stat().st_mtime_ns == written


def test_a_damaged_shard_of_a_finished_folder_is_made_again(encoder: EncoderAt, tmp_path: Path) -> None:
    encode_source(listed_source(range(9)), encoder, tmp_path)
    before = _content(tmp_path)
    content = bytearray(before["vectors-00001.npy"])
    content[-1] ^= 1
    shard_path(tmp_path, 1).write_bytes(content)
    assert encode_source(listed_source(range(9)), encoder, tmp_path) == VectorReport(4, 5, 0, 0)
    assert _content(tmp_path) == before


def test_shards_of_other_passages_are_made_again_and_those_too_many_removed(encoder: EncoderAt, tmp_path: Path) -> None:
    encode_source(listed_source(range(12)), encoder, tmp_path)
    fewer = listed_source([*range(4), 30, 31])
    assert encode_source(fewer, encoder, tmp_path) == VectorReport(encoded=2, resumed=4, reused=0, repeated=0)
    np.testing.assert_allclose(_vectors(tmp_path), _encoded(fewer, encoder), atol=1e-5)
    assert not shard_path(tmp_path, 2).exists()


def test_the_same_call_writes_the_same_bytes(encoder: EncoderAt, tmp_path: Path) -> None:
    for name in ("one", "other"):
        encode_source(listed_source(range(9)), encoder, tmp_path / name)
    assert _content(tmp_path / "one") == _content(tmp_path / "other")


def test_known_texts_are_copied_and_new_ones_encoded(encoder: EncoderAt, tmp_path: Path) -> None:
    encode_source(listed_source(range(6)), encoder, tmp_path / "old")
    encode_source(listed_source([8, 3]), encoder, tmp_path / "older")
    source, known = listed_source([20, 5, 3, 21, 0, 8]), [tmp_path / "old", tmp_path / "older"]
    report = encode_source(source, encoder, tmp_path / "new", known=known)
    assert report == VectorReport(encoded=2, resumed=0, reused=4, repeated=0)
    new, old, older = (_vectors(tmp_path / name) for name in ("new", "old", "older"))
    np.testing.assert_array_equal(new[[1, 2, 4, 5]], [old[5], old[3], old[0], older[0]])
    np.testing.assert_allclose(new, _encoded(source, encoder), atol=1e-5)


@pytest.mark.parametrize(
    ("seed", "options"),
    [(1, {}), (0, {"max_passage_tokens": 16}), (0, {"storage": "float16"}), (0, {"precision": "bfloat16"})],
)
def test_vectors_of_another_encoder_arithmetic_or_storage_are_not_copied(
    encoder: EncoderAt, tmp_path: Path, seed: int, options: dict[str, Any]
) -> None:
    other = EncoderAt(write_bert(tmp_path / "model", seed), _CONFIG.model_copy(update=options))
    encode_source(listed_source(range(3)), other, tmp_path / "old")
    report = encode_source(listed_source(range(3)), encoder, tmp_path / "new", known=[tmp_path / "old"])
    assert report == VectorReport(encoded=3, resumed=0, reused=0, repeated=0)


def test_folders_that_are_not_sound_are_left_out_with_a_note(encoder: EncoderAt, tmp_path: Path) -> None:
    for name in ("cut", "flipped"):
        encode_source(listed_source(range(8)), encoder, tmp_path / name)
    cut, flipped = shard_path(tmp_path / "cut", 1), shard_path(tmp_path / "flipped", 0)
    cut.write_bytes(cut.read_bytes()[:-1])
    flipped.write_bytes(flipped.read_bytes()[:-1] + b"\x00")
    notes: list[str] = []
    folders = [tmp_path / "cut", tmp_path / "none", tmp_path / "flipped"]
    report = encode_source(listed_source(range(8)), encoder, tmp_path / "new", known=folders, notify=notes.append)
    assert report == VectorReport(encoded=4, resumed=0, reused=4, repeated=0)
    assert len(notes) == 3
    assert "vectors-00001.npy is missing or cut off" in notes[0]
    assert "no finished vectors" in notes[1]
    assert "flipped: 1 of its shards are damaged and not re-used (first 0)" in notes[2]


def test_vectors_are_not_found_by_the_texts_of_other_rows(encoder: EncoderAt, tmp_path: Path) -> None:
    encode_source(listed_source(range(6)), encoder, tmp_path / "old")
    hashes = tmp_path / "old" / "text_sha1.npy"
    np.save(hashes, np.load(hashes)[::-1])
    notes: list[str] = []
    source, known = listed_source([5, 4, 20]), [tmp_path / "old"]
    report = encode_source(source, encoder, tmp_path / "new", known=known, notify=notes.append)
    assert report == VectorReport(encoded=3, resumed=0, reused=0, repeated=0)
    assert notes == [f"vectors that are not re-used: {hashes} is damaged or of another folder"]
    np.testing.assert_allclose(_vectors(tmp_path / "new"), _encoded(source, encoder), atol=1e-5)


def test_equal_texts_of_a_shard_are_encoded_once_and_have_equal_vectors(encoder: EncoderAt, tmp_path: Path) -> None:
    source = listed_source([7, 8, 7, 7, 8, 7])
    assert encode_source(source, encoder, tmp_path) == VectorReport(encoded=4, resumed=0, reused=0, repeated=2)
    vectors = _vectors(tmp_path)
    np.testing.assert_array_equal(vectors[[2, 3]], vectors[[0, 0]])
    np.testing.assert_allclose(vectors[[4, 5]], vectors[[1, 0]], atol=1e-5)


class Killed(Exception):
    """What ends a run in these tests."""


def _stopped_after(shards: int) -> Any:
    def run(tasks: Iterable[ShardTask]) -> Iterator[ShardRecord]:
        for number, task in enumerate(tasks):
            if number == shards:
                raise Killed
            yield encode_shard(task)

    return run


def test_a_stopped_run_goes_on_at_its_shard(encoder: EncoderAt, tmp_path: Path) -> None:
    source = listed_source(range(11))
    encode_source(source, encoder, tmp_path / "whole")
    stopped = tmp_path / "stopped"
    with pytest.raises(Killed):
        encode_source(source, encoder, stopped, run_shards=_stopped_after(2))
    with pytest.raises(DataError, match="no finished vectors"):
        VectorFile.open(stopped)
    assert encode_source(source, encoder, stopped) == VectorReport(encoded=3, resumed=8, reused=0, repeated=0)
    assert _content(stopped) == _content(tmp_path / "whole")


def _flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


@pytest.mark.parametrize("damage", [_flip, _cut, Path.unlink])
@pytest.mark.parametrize("what", [shard_path, record_path])
def test_a_shard_or_record_that_is_damaged_is_made_again(
    encoder: EncoderAt, tmp_path: Path, what: Any, damage: Any
) -> None:
    source = listed_source(range(11))
    with pytest.raises(Killed):
        encode_source(source, encoder, tmp_path, run_shards=_stopped_after(2))
    damage(what(tmp_path, 1))
    assert encode_source(source, encoder, tmp_path) == VectorReport(encoded=7, resumed=4, reused=0, repeated=0)
    np.testing.assert_allclose(_vectors(tmp_path), _encoded(source, encoder), atol=1e-5)


def test_shards_of_another_encoder_are_not_resumed(encoder: EncoderAt, tmp_path: Path) -> None:
    source = listed_source(range(8))
    other = EncoderAt(write_bert(tmp_path / "model", seed=1), _CONFIG)
    with pytest.raises(Killed):
        encode_source(source, other, tmp_path / "out", run_shards=_stopped_after(1))
    assert encode_source(source, encoder, tmp_path / "out") == VectorReport(encoded=8, resumed=0, reused=0, repeated=0)


def test_progress_counts_the_passages_that_are_encoded(encoder: EncoderAt, tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []

    def progress(rows: Iterable[int]) -> Iterator[int]:
        total = len(rows)  # type: ignore[arg-type]
        for done, row in enumerate(rows, 1):
            counts.append((done, total))
            yield row

    encode_source(listed_source(range(4)), encoder, tmp_path / "old")
    source = listed_source([0, 1, 20, 21, 21, 22, 23, 24, 25])
    report = encode_source(source, encoder, tmp_path / "new", known=[tmp_path / "old"], progress=progress)
    assert report == VectorReport(encoded=7, resumed=0, reused=2, repeated=0)
    assert counts == [(done, 7) for done in range(1, 8)]
    counts.clear()
    runner = _stopped_after(100)
    encode_source(listed_source([1, 5, 5, 6, 9]), encoder, tmp_path / "run", run_shards=runner, progress=progress)
    assert counts == [(done, 5) for done in range(1, 6)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, r"passage s:2:0: passage row 2 has a vector that is not finite"),
        (1e5, r"the vector of passage s:2:0 holds 100,000, and float16 ends at 65,504; set encoder.storage"),
        (0.0, r"the vector of passage s:2:0 has norm 0.0, which should be finite and above 0"),
    ],
)
def test_a_vector_that_cannot_be_stored_names_its_passage(
    model: Path, tmp_path: Path, value: float, words: str
) -> None:
    config = encoder_config(precision="float32", normalize=False, storage="float16")
    encoder = EncoderAt(model, config)()

    def spoil(_: object, __: object, inputs: dict[str, Any], output: Any) -> None:
        is_long = inputs["attention_mask"].sum(dim=1) == 16
        output.last_hidden_state[is_long] = value

    encoder.module.register_forward_hook(spoil, with_kwargs=True)
    source = listed_source(range(6))
    long = replace(source, texts=(*source.texts[:2], "lima " * 14, *source.texts[3:]), titles=("",) * 6)
    with pytest.raises(DataError, match=words):
        encode_source(long, lambda: encoder, tmp_path / "out")


def test_a_norm_that_is_not_1_though_the_encoder_normalises_is_refused(model: Path, tmp_path: Path) -> None:
    encoder = EncoderAt(model, encoder_config(precision="float32", normalize=False))()
    encoder.config = encoder_config(precision="float32", normalize=True)
    card = encoder.passage_card()
    encoder.config = encoder_config(precision="float32", normalize=False)
    encoder.passage_card = lambda: card  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"passage s:0:0 has norm .*, which should be 1, for the encoder normalises"):
        encode_source(listed_source(range(3)), lambda: encoder, tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"texts": ("x",)}, "differ in length"),
        ({"ids": ("a", "b", "c", "d", "e", "a")}, "'a' occurs more than once"),
        ({"ids": ("a", "a", "c", "d", "e", "f")}, "'a' occurs more than once"),
        ({"text_sha1": ("0" * 40, "0" * 39, *["0" * 40] * 4)}, "s:1:0 has text_sha1 '0+', not 40 hexadecimal digits"),
        ({"text_sha1": ("0" * 40, "0" * 39 + " ", *["0" * 40] * 4)}, "s:1:0 has text_sha1"),
        ({"text_sha1": ("0" * 40, "0" * 39 + "g", *["0" * 40] * 4)}, "s:1:0 has text_sha1"),
        ({"ids": (), "titles": (), "texts": (), "text_sha1": ()}, "holds no passages"),
    ],
)
def test_columns_that_cannot_be_right_are_refused(
    encoder: EncoderAt, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        encode_source(replace(listed_source(range(6)), **change), encoder, tmp_path)


def test_a_worker_that_reads_other_passages_or_another_encoder_is_refused(encoder: EncoderAt, tmp_path: Path) -> None:
    def elsewhere(**change: Any) -> Any:
        def run(tasks: Iterable[ShardTask]) -> Iterator[ShardRecord]:
            for task in tasks:
                yield encode_shard(task._replace(job=replace(task.job, **change)))

        return run

    source, other = listed_source(range(6)), EncoderAt(write_bert(tmp_path / "model", seed=1), _CONFIG)
    with pytest.raises(IndexMismatchError, match="s:0:0 to s:3:0 are not those that encoding began with"):
        encode_source(source, encoder, tmp_path / "a", run_shards=elsewhere(open_source=listed_source(range(1, 7))))
    with pytest.raises(IndexMismatchError, match="give all the same encoder"):
        encode_source(source, encoder, tmp_path / "b", run_shards=elsewhere(load_encoder=other))


def test_a_full_disk_is_noticed_first_and_counts_only_what_is_missing(
    encoder: EncoderAt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = encode_module.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(encode_module.shutil, "disk_usage", lambda _: usage._replace(free=3 * 16 * 4))
    with pytest.raises(ResourceError, match=r"192 bytes free.* need 320"):
        encode_source(listed_source(range(5)), encoder, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(encode_module, "SHARD_ROWS", 4)
    with pytest.raises(Killed):
        encode_source(listed_source(range(5)), encoder, tmp_path, run_shards=_stopped_after(1))
    monkeypatch.setattr(encode_module.shutil, "disk_usage", lambda _: usage._replace(free=16 * 4))
    assert encode_source(listed_source(range(5)), encoder, tmp_path).resumed == 4
