"""Encoders: pooling, sides, order, independence of the batch, fingerprints, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rag.errors import CheckpointError, ConfigError, DataError
from rag.retrieval.encoders import Encoder
from tests.support.tiny_encoders import encoder_config, tiny_encoder, write_bert, write_dpr

TITLES = ["Peru", "", "France", "the king"]
TEXTS = [
    "the capital of peru is lima",
    "river",
    "paris is the capital of france . " * 9,
    "who is the king of france ?",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder.load(folder, encoder_config())


def test_vectors_are_float32_normalised_and_of_the_stated_dimension(encoder: Encoder) -> None:
    vectors = encoder.encode_passages(TITLES, TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, encoder.dim) == (4, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_order_and_neighbours_do_not_matter(encoder: Encoder) -> None:
    together = encoder.encode_passages(TITLES, TEXTS)
    alone = np.concatenate([encoder.encode_passages([t], [x]) for t, x in zip(TITLES, TEXTS, strict=True)])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    backwards = encoder.encode_passages(TITLES[::-1], TEXTS[::-1])
    np.testing.assert_allclose(together, backwards[::-1], atol=1e-5)


def test_mean_pooling_is_the_mean_over_tokens_that_are_not_padding(folder: Path) -> None:
    encoder = Encoder.load(folder, encoder_config(normalize=False))
    inputs = encoder.tokenize_questions(["who is the king", "lima"])
    with torch.inference_mode():
        states = encoder.module(**inputs).last_hidden_state
    expected = states[1, :3].mean(dim=0)  # [CLS] lima [SEP]
    np.testing.assert_allclose(encoder.encode_questions(["lima"])[0], expected.numpy(), atol=1e-5)


def test_cls_pooling_is_the_first_state(folder: Path) -> None:
    encoder = Encoder.load(folder, encoder_config(pooling="cls", normalize=False))
    with torch.inference_mode():
        states = encoder.module(**encoder.tokenize_questions(["who is the king"])).last_hidden_state
    np.testing.assert_allclose(encoder.encode_questions(["who is the king"])[0], states[0, 0].numpy(), atol=1e-5)


def test_prefixes_stand_before_questions_and_titles(folder: Path) -> None:
    plain = Encoder.load(folder, encoder_config())
    encoder = Encoder.load(folder, encoder_config(question_prefix="who is ", passage_prefix="the "))
    questions = encoder.encode_questions(["lima", "king"])
    np.testing.assert_allclose(questions, plain.encode_questions(["who is lima", "who is king"]), atol=1e-5)
    passages = encoder.encode_passages(["Peru", ""], ["river", "king"])
    np.testing.assert_allclose(passages, plain.encode_passages(["the Peru", ""], ["river", "the king"]), atol=1e-5)


def test_a_prefix_changes_the_side_that_it_belongs_to(folder: Path) -> None:
    plain = Encoder.load(folder, encoder_config())
    question = Encoder.load(folder, encoder_config(question_prefix="who "))
    passage = Encoder.load(folder, encoder_config(passage_prefix="the "))
    assert question.passage_fingerprint == plain.passage_fingerprint != passage.passage_fingerprint
    assert question.question_card().fingerprint != plain.question_card().fingerprint
    assert len({plain.fingerprint, question.fingerprint, passage.fingerprint}) == 3


def test_score_scale_multiplies_questions_and_never_passages(folder: Path) -> None:
    one, twenty = (Encoder.load(folder, encoder_config(score_scale=scale)) for scale in (1.0, 20.0))
    questions = ["what is the capital of peru ?"]
    np.testing.assert_allclose(twenty.encode_questions(questions), 20 * one.encode_questions(questions), rtol=1e-6)
    np.testing.assert_array_equal(twenty.encode_passages(TITLES, TEXTS), one.encode_passages(TITLES, TEXTS))


def test_embedding_and_encoding_a_question_agree_and_gradient_reaches_the_weights(folder: Path) -> None:
    encoder = Encoder.load(folder, encoder_config(score_scale=5.0))
    vectors = encoder.embed_questions(encoder.tokenize_questions(["who is the king", "lima"]))
    np.testing.assert_allclose(
        vectors.detach().numpy(), encoder.encode_questions(["who is the king", "lima"]), atol=1e-5
    )
    vectors.square().mul(torch.arange(16.0)).sum().backward()
    missing = [name for name, weight in encoder.module.named_parameters() if weight.grad is None]
    assert not missing


def test_encoding_leaves_the_training_mode_as_it_was_and_uses_no_dropout(folder: Path) -> None:
    encoder = Encoder.load(folder, encoder_config())
    encoder.module.train()
    first, second = encoder.encode_questions(["who is the king"]), encoder.encode_questions(["who is the king"])
    np.testing.assert_array_equal(first, second)
    assert encoder.module.training


def test_long_texts_are_cut_at_the_maximum(encoder: Encoder) -> None:
    assert encoder.tokenize_questions(["king " * 100])["input_ids"].shape == (1, 24)
    np.testing.assert_array_equal(
        encoder.encode_passages([""], ["king " * 100]), encoder.encode_passages([""], ["king " * 200])
    )


def test_no_passages_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.encode_passages([], []).shape == (0, 16)


def test_progress_sees_every_row_once(encoder: Encoder) -> None:
    seen: list[int] = []
    encoder.encode_passages(TITLES, TEXTS, progress=lambda batches: (seen.extend(b) or b for b in batches))  # type: ignore[func-returns-value]
    assert sorted(seen) == [0, 1, 2, 3]


def test_titles_and_texts_must_pair_up(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="3 titles for 4 texts"):
        encoder.encode_passages(TITLES[:3], TEXTS)


def test_saved_and_loaded_is_the_same_encoder(encoder: Encoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved", encoder.config)
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode_passages(TITLES, TEXTS), encoder.encode_passages(TITLES, TEXTS))


def test_fingerprint_changes_with_weights_and_options_and_not_with_use(folder: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(folder, encoder_config())
    before = encoder.fingerprint
    encoder.encode_questions(["who is the king"])
    assert encoder.fingerprint == before == Encoder.load(folder, encoder_config()).fingerprint
    others = [
        tiny_encoder(tmp_path / "seed", seed=1),
        Encoder.load(folder, encoder_config(pooling="cls")),
        Encoder.load(folder, encoder_config(normalize=False)),
        Encoder.load(folder, encoder_config(max_passage_tokens=32)),
        Encoder.load(folder, encoder_config(score_scale=2.0)),
        Encoder.load(folder, encoder_config(max_question_tokens=12)),
    ]
    assert len({before, *(other.fingerprint for other in others)}) == 7
    of_passages = [other.passage_fingerprint == encoder.passage_fingerprint for other in others]
    assert of_passages == [False, False, False, False, True, True]
    with torch.no_grad():
        next(encoder.module.parameters()).add_(1e-3)
    assert encoder.fingerprint != before


def test_an_unused_pooler_is_neither_needed_nor_part_of_the_encoder(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "pooler" not in name}
    assert len(kept) == len(tensors) - 2
    save_file(kept, bare / "model.safetensors", metadata={"format": "pt"})
    assert Encoder.load(folder, encoder_config()).fingerprint == Encoder.load(bare, encoder_config()).fingerprint


def test_dpr_reads_pairs_and_projects(tmp_path: Path) -> None:
    config = encoder_config(pooling="cls", normalize=False)
    questions = Encoder.load(write_dpr(tmp_path / "q", question=True), config)
    contexts = Encoder.load(write_dpr(tmp_path / "c", question=False, seed=1), config)
    assert questions.dim == contexts.dim == 8
    vectors = contexts.encode_passages(["Peru"], ["lima"])
    ids = torch.tensor([[2, 7, 3, 9, 3]])  # [CLS] peru [SEP] lima [SEP]
    types = torch.tensor([[0, 0, 0, 1, 1]])
    with torch.inference_mode():
        expected = contexts.module(input_ids=ids, token_type_ids=types).pooler_output
    np.testing.assert_allclose(vectors, expected.numpy(), atol=1e-5)
    assert questions.encode_questions(["who is the king"]).shape == (1, 8)


def test_a_prefix_of_dpr_stands_before_the_title(tmp_path: Path) -> None:
    config = encoder_config(pooling="cls", normalize=False)
    folder = write_dpr(tmp_path / "c", question=False)
    prefixed = Encoder.load(folder, config.model_copy(update={"passage_prefix": "the "}))
    plain = Encoder.load(folder, config)
    np.testing.assert_allclose(
        prefixed.encode_passages(["Peru", ""], ["lima", "lima"]),
        plain.encode_passages(["the Peru", "the "], ["lima", "lima"]),
        atol=1e-5,
    )


def test_a_side_of_dpr_does_not_stand_in_for_the_other(tmp_path: Path) -> None:
    config = encoder_config(pooling="cls", normalize=False)
    questions = Encoder.load(write_dpr(tmp_path / "q", question=True), config)
    contexts = Encoder.load(write_dpr(tmp_path / "c", question=False), config)
    with pytest.raises(ConfigError, match=r"q is DPR's encoder of questions and cannot encode passages.*context_path"):
        questions.encode_passages(["Peru"], ["lima"])
    for encode in (contexts.encode_questions, contexts.tokenize_questions):
        with pytest.raises(ConfigError, match=r"c is DPR's encoder of passages and cannot encode questions.*path"):
            encode(["who"])


def test_attention_is_torchs_own_where_the_architecture_has_it(tmp_path: Path) -> None:
    for folder in (write_bert(tmp_path / "bert"), write_dpr(tmp_path / "dpr", question=True)):
        assert Encoder.load(folder, encoder_config()).module.config._attn_implementation == "sdpa"  # type: ignore[union-attr]


def test_weights_in_several_files_are_the_same_weights(folder: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(folder, encoder_config())
    encoder.save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    encoder.module.save_pretrained(tmp_path, max_shard_size="4KB")  # type: ignore[operator]
    parts = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(parts) > 1
    assert Encoder.load(tmp_path, encoder_config()).fingerprint == encoder.fingerprint
    parts[0].unlink()
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        Encoder.load(tmp_path, encoder_config())


def test_broken_weights_are_refused_by_row(folder: Path) -> None:
    encoder = Encoder.load(folder, encoder_config())
    with torch.no_grad():
        encoder.module.get_input_embeddings().weight[9] = torch.nan  # type: ignore[operator, union-attr]  # "lima"
    with pytest.raises(DataError, match=r"question row 1 .*1 of 3 rows"):
        encoder.encode_questions(["who", "lima", "king"])
    with pytest.raises(DataError, match="passage row 0 "):
        encoder.encode_passages(TITLES, TEXTS)


def test_a_missing_folder_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no encoder at .*nowhere"):
        Encoder.load(tmp_path / "nowhere", encoder_config())


def test_too_long_a_maximum_is_a_configuration_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"max_passage_tokens = 65, .* only 64 positions"):
        Encoder.load(folder, encoder_config(max_passage_tokens=65))


@pytest.mark.parametrize(
    "damage", ["pickle only", "cut off", "a tensor is missing", "no tokenizer", "no configuration", "a broken list"]
)
def test_damaged_checkpoints_are_refused(tmp_path: Path, damage: str) -> None:
    folder = write_bert(tmp_path / "bert")
    weights = folder / "model.safetensors"
    match damage:
        case "pickle only":
            weights.rename(folder / "pytorch_model.bin")
        case "cut off":
            weights.write_bytes(weights.read_bytes()[:-10])
        case "a tensor is missing":
            tensors = load_file(weights)
            del tensors["encoder.layer.1.output.dense.weight"]
            save_file(tensors, weights, metadata={"format": "pt"})
        case "no tokenizer":
            (folder / "tokenizer.json").unlink()
            (folder / "tokenizer_config.json").write_text(json.dumps({}))
        case "no configuration":
            (folder / "config.json").write_text("{")
        case "a broken list":
            weights.rename(folder / "model-00001-of-00001.safetensors")
            (folder / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(CheckpointError, match=str(folder)):
        Encoder.load(folder, encoder_config())
