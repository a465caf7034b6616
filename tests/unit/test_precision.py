"""bfloat16: used where passages come out the same, refused where not, and without a trace in the weights."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rag.errors import ConfigError
from rag.retrieval.encoders import Encoder
from rag.retrieval.precision import MIN_COSINE, native_bfloat16, resolve_precision
from tests.support.tiny_encoders import encoder_config, tiny_encoder, write_bert

TITLES = ["Peru", "", "France", "the king"]
TEXTS = ["the capital of peru is lima", "river", "paris is the capital of france . " * 9, "who is the king of france ?"]
_CPUINFO = Path("/proc/cpuinfo")


def fragile_encoder(folder: Path, precision: str) -> Encoder:
    """An encoder whose vector of "river" is a small rest of large terms: float32 keeps it, bfloat16 cannot."""
    options = {"pooling": "cls", "normalize": False, "precision": precision}
    encoder = Encoder.load(write_bert(folder), encoder_config(**options))
    river = torch.from_numpy(encoder.encode_passages([""], ["river"])[0])
    with torch.no_grad():
        encoder.module.encoder.layer[-1].output.LayerNorm.bias.sub_(river * (1 - 1e-4))  # type: ignore[union-attr, index]
    return encoder


@pytest.mark.skipif(not _CPUINFO.exists() or "flags" not in _CPUINFO.read_text(), reason="no flags of an x86 CPU here")
def test_the_cpu_computes_bfloat16_where_linux_says_so() -> None:
    flags = next(line for line in _CPUINFO.read_text().splitlines() if line.startswith("flags")).split()
    assert native_bfloat16("cpu") == bool({"avx512_bf16", "amx_bf16"} & set(flags))


def test_a_device_that_is_not_there_computes_nothing() -> None:
    assert native_bfloat16("cuda:0") == (torch.cuda.is_available() and torch.cuda.get_device_capability(0) >= (8, 0))
    assert not native_bfloat16("mps")


def test_a_good_encoder_gets_what_is_asked_for(tmp_path: Path) -> None:
    write_bert(tmp_path)
    asked = {name: Encoder.load(tmp_path, encoder_config(precision=name)) for name in ("auto", "float32", "bfloat16")}
    found = {name: resolve_precision(encoder, TITLES, TEXTS) for name, encoder in asked.items()}
    assert found["float32"] == ("float32", None)
    assert found["bfloat16"].precision == "bfloat16"
    assert MIN_COSINE <= (found["bfloat16"].worst_cosine or 0) < 1
    assert found["auto"] == (found["bfloat16"] if native_bfloat16("cpu") else ("float32", None))


def test_the_worst_row_decides(tmp_path: Path) -> None:
    auto = resolve_precision(fragile_encoder(tmp_path, "auto"), TITLES, TEXTS)
    assert auto.precision == "float32"
    assert auto.worst_cosine is None or auto.worst_cosine < MIN_COSINE
    with pytest.raises(ConfigError, match=r"cosine of only -?0\.\d+ to float32.*encoder.precision"):
        resolve_precision(fragile_encoder(tmp_path, "bfloat16"), TITLES, TEXTS)
    without_river = [0, 2, 3]
    texts = [TEXTS[row] for row in without_river]
    kept = resolve_precision(fragile_encoder(tmp_path, "bfloat16"), [TITLES[row] for row in without_river], texts)
    assert kept.precision == "bfloat16"


def test_a_precision_cannot_be_judged_without_passages(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no passages to compare"):
        resolve_precision(tiny_encoder(tmp_path, precision="bfloat16"), [], [])


def test_bfloat16_is_near_float32_whatever_the_batch(tmp_path: Path) -> None:
    full = tiny_encoder(tmp_path)
    half = full.at("bfloat16")
    together = half.encode_passages(TITLES, TEXTS)
    assert together.dtype == np.float32
    assert not np.array_equal(together, full.encode_passages(TITLES, TEXTS))
    assert (together * full.encode_passages(TITLES, TEXTS)).sum(axis=1).min() >= MIN_COSINE
    alone = np.concatenate([half.encode_passages([t], [x]) for t, x in zip(TITLES, TEXTS, strict=True)])
    assert (together * alone).sum(axis=1).min() >= MIN_COSINE
    np.testing.assert_array_equal(together, half.encode_passages(TITLES, TEXTS))


def test_bfloat16_leaves_the_weights_the_questions_and_the_first_encoder_alone(tmp_path: Path) -> None:
    full = tiny_encoder(tmp_path)
    before = full.fingerprint
    half = full.at("bfloat16")
    half.encode_passages(TITLES, TEXTS)
    assert full.fingerprint == half.fingerprint == before
    assert {weight.dtype for weight in half.module.parameters()} == {torch.float32}
    assert (full.precision, half.precision) == ("float32", "bfloat16")
    np.testing.assert_array_equal(half.encode_questions(TEXTS), full.encode_questions(TEXTS))


def test_bfloat16_follows_the_weights_when_they_are_trained(tmp_path: Path) -> None:
    half = tiny_encoder(tmp_path, normalize=False).at("bfloat16")
    before = half.encode_passages(TITLES, TEXTS)
    with torch.no_grad():
        half.module.encoder.layer[-1].output.LayerNorm.weight.mul_(2)  # type: ignore[union-attr, index]
        half.module.encoder.layer[-1].output.LayerNorm.bias.mul_(2)  # type: ignore[union-attr, index]
    np.testing.assert_array_equal(half.encode_passages(TITLES, TEXTS), 2 * before)
