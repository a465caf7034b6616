"""Cards of encoders: what they say, what they hash, and which two sides are let together."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from rag.errors import IndexMismatchError
from rag.retrieval.encoder_card import EncoderCard, pair_problem, require_pair
from rag.retrieval.encoders import Encoder
from tests.support.tiny_encoders import encoder_config, tiny_encoder, write_bert, write_dpr

PASSAGES = EncoderCard(
    encoder_id="facebook/dpr-ctx_encoder-single-nq-base",
    training="dpr-single-nq",
    weights_sha256="a" * 64,
    tokenizer_sha256="b" * 64,
    pooling="cls",
    normalize=False,
    max_tokens=256,
    layout="pair",
    prefix="",
    dim=768,
)
QUESTIONS = replace(
    PASSAGES, encoder_id="facebook/dpr-question_encoder-single-nq-base", weights_sha256="c" * 64, layout="text"
)
MULTISET = replace(
    QUESTIONS,
    encoder_id="facebook/dpr-question_encoder-multiset-base",
    training="dpr-multiset",
    weights_sha256="d" * 64,
)


def test_sides_of_one_training_belong_together() -> None:
    assert pair_problem(QUESTIONS, PASSAGES) is None
    assert require_pair(QUESTIONS, PASSAGES) is None


def test_sides_of_two_trainings_are_refused_by_both_names_and_let_through_on_request() -> None:
    with pytest.raises(IndexMismatchError, match="allow_mismatch = true") as error:
        require_pair(MULTISET, PASSAGES)
    warning = require_pair(MULTISET, PASSAGES, allow_mismatch=True)
    for text in (str(error.value), warning or "", pair_problem(MULTISET, PASSAGES) or ""):
        assert "dpr-question_encoder-multiset-base (dpr-multiset, weights dddddddddddd)" in text
        assert "dpr-ctx_encoder-single-nq-base (dpr-single-nq, weights aaaaaaaaaaaa)" in text


@pytest.mark.parametrize("other", [{"training": ""}, {"training": "", "encoder_id": "mine", "prefix": "query: "}])
def test_a_training_that_is_not_known_is_no_reason_to_refuse(other: dict[str, str]) -> None:
    assert require_pair(replace(MULTISET, **other), PASSAGES) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"pooling": "mean"}, "mean against cls pooling"),
        ({"normalize": True}, "only one of them is normalised"),
        ({"weights_sha256": "a" * 64, "tokenizer_sha256": "e" * 64}, "the same weights with two tokenizers"),
    ],
)
def test_sides_that_cannot_share_a_space_are_refused(other: dict[str, str], words: str) -> None:
    with pytest.raises(IndexMismatchError, match=words):
        require_pair(replace(QUESTIONS, **other), PASSAGES)
    assert words in str(require_pair(replace(QUESTIONS, **other), PASSAGES, allow_mismatch=True))


@pytest.mark.parametrize(("other", "words"), [({"dim": 384}, "384 against 768 dim"), ({"metric": "l2"}, "metric l2")])
def test_another_dimension_or_metric_is_never_let_through(other: dict[str, str], words: str) -> None:
    with pytest.raises(IndexMismatchError, match=words):
        require_pair(replace(QUESTIONS, **other), PASSAGES, allow_mismatch=True)


def test_the_fingerprint_is_of_all_that_decides_a_vector_and_of_nothing_else() -> None:
    same = {"encoder_id": "x", "training": "", "precision": "bfloat16"}
    other = {
        "weights_sha256": "0",
        "tokenizer_sha256": "0",
        "pooling": "mean",
        "normalize": True,
        "max_tokens": 8,
        "layout": "text",
        "prefix": "passage: ",
        "dim": 8,
        "metric": "l2",
    }
    assert set(asdict(PASSAGES)) == {*same, *other}
    assert replace(PASSAGES, **same).fingerprint == PASSAGES.fingerprint
    found = {replace(PASSAGES, **{name: value}).fingerprint for name, value in other.items()}
    assert len(found | {PASSAGES.fingerprint}) == len(other) + 1


def test_a_card_survives_json() -> None:
    assert EncoderCard(**json.loads(json.dumps(asdict(PASSAGES)))) == PASSAGES


def test_the_training_is_known_by_hub_name_folder_name_and_configuration(tmp_path: Path) -> None:
    config = encoder_config(pooling="cls", normalize=False)
    single = write_dpr(tmp_path / "dpr-ctx_encoder-single-nq-base", question=False)
    moved = write_dpr(tmp_path / "contexts", question=False)
    about = json.loads((moved / "config.json").read_text())
    (moved / "config.json").write_text(json.dumps({**about, "_name_or_path": "facebook/dpr-ctx_encoder-multiset-base"}))
    cards = [
        Encoder.load(single, config).passage_card(),
        Encoder.load(moved, config).passage_card(),
        Encoder.load(moved, config, encoder_id="facebook/rag-token-nq").passage_card(),
        Encoder.load(write_dpr(tmp_path / "own", question=False), config).passage_card(),
    ]
    assert [card.training for card in cards] == ["dpr-single-nq", "dpr-multiset", "dpr-single-nq", ""]
    assert [card.encoder_id for card in cards] == [
        "dpr-ctx_encoder-single-nq-base",
        "contexts",
        "facebook/rag-token-nq",
        "own",
    ]
    assert cards[0].fingerprint == cards[1].fingerprint  # the same weights, by two names


def test_cards_say_what_the_encoder_does(tmp_path: Path) -> None:
    config = encoder_config(question_prefix="who ", passage_prefix="the ", pooling="cls", normalize=False)
    bert = Encoder.load(write_bert(tmp_path / "bert"), config)
    dpr = Encoder.load(write_dpr(tmp_path / "dpr", question=False), encoder_config(normalize=False))
    questions, passages = bert.question_card(), bert.at("bfloat16").passage_card()
    assert questions == replace(passages, layout="text", prefix="who ", max_tokens=24, precision="float32")
    assert (passages.layout, passages.prefix, passages.max_tokens) == ("title. text", "the ", 48)
    assert (passages.precision, passages.dim, passages.metric) == ("bfloat16", 16, "inner_product")
    assert passages.fingerprint == bert.passage_fingerprint == bert.passage_card().fingerprint
    contexts = dpr.passage_card()
    assert (contexts.layout, contexts.pooling, contexts.dim) == ("pair", "cls", 8)


def test_a_question_encoder_that_was_trained_on_goes_with_the_passages_it_began_with(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "bert")
    passages = encoder.passage_card()
    with torch.no_grad():
        next(encoder.module.parameters()).add_(1e-3)
    encoder.save(tmp_path / "question_encoder")
    trained = Encoder.load(tmp_path / "question_encoder", encoder.config).question_card()
    assert trained.weights_sha256 != passages.weights_sha256
    assert require_pair(trained, passages) is None
