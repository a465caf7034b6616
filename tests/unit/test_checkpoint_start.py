"""What a training may start from: a checkpoint of either format, and what contradicts it."""

import json
from pathlib import Path

import pytest

from rag.config import EncoderConfig, StudyConfig, parse_study
from rag.errors import CheckpointError, ConfigError
from rag.training.checkpoint import (
    ModelCard,
    load_checkpoint,
    read_card,
    require_encoder_options,
    require_labels,
    require_retriever,
    save_checkpoint,
)
from rag.training.hf_checkpoint import import_checkpoint
from tests.support.tiny_encoders import encoder_config
from tests.support.tiny_rag import LAYOUT, tiny_rag

_MODEL = {"family": "rag-token", "corpus": "c", "tasks": {"q": 1}}


def study(**models: dict[str, object]) -> StudyConfig:
    return parse_study(
        {
            "name": "x",
            "title": "x",
            "sources": {"wiki": {"path": "wiki"}},
            "corpora": {"c": ["wiki"]},
            "tasks": {"q": {"reader": "open-qa", "test": "t"}},
            "models": models,
        }
    )


def test_a_checkpoint_is_one_of_the_three_places_a_model_starts_from() -> None:
    assert study(m={**_MODEL, "checkpoint": "facebook/rag-token-nq", "steps": 0}).models["m"].checkpoint
    with pytest.raises(ConfigError, match="checkpoint and init_from both say what the model starts from"):
        study(a=_MODEL, m={**_MODEL, "checkpoint": "x", "init_from": "a"})
    with pytest.raises(ConfigError, match="checkpoint is a RAG model and this is closed-book"):
        study(m={"family": "closed-book", "tasks": {"q": 1}, "checkpoint": "x"})


def card(**options: object) -> ModelCard:
    encoder = encoder_config(path="somewhere", score_scale=5.0)
    known = {"passage_fingerprint": "c" * 64, "row_ids_sha256": "d" * 64, "trained_steps": 4}
    own = {"family": "rag-token", "retriever": "dense", "n_docs": 2, "layout": LAYOUT, "max_source_tokens": 40}
    return ModelCard.model_validate({**own, "encoder": encoder, **known, **options})


def test_a_checkpoint_of_our_own_format_comes_along_whole(tmp_path: Path) -> None:
    one = tiny_rag(tmp_path / "parts", "rag-token")
    save_checkpoint(tmp_path / "saved", one.model, getattr(one.retriever, "encoder", None), card())
    assert import_checkpoint(tmp_path / "saved", tmp_path / "start", "rag-token", "any name") == (card(), ())
    assert read_card(tmp_path / "start") == card()
    asked = load_checkpoint(tmp_path / "start", "rag-token", "dense", "c" * 64, "d" * 64)
    assert asked.encoder is not None
    assert (asked.encoder.encoder_id, asked.caveat) == ("somewhere", None)
    with pytest.raises(CheckpointError, match="is a rag-token model and was asked for as rag-sequence"):
        import_checkpoint(tmp_path / "saved", tmp_path / "other", "rag-sequence", "any name")


def test_a_model_of_another_family_is_a_start_and_never_tested_as_it_is() -> None:
    other = {**_MODEL, "family": "rag-sequence", "init_from": "a"}
    assert study(a=_MODEL, b=other).models["b"].init_from == "a"
    assert study(a=_MODEL, b={**_MODEL, "init_from": "a", "steps": 0}).models["b"].steps == 0
    with pytest.raises(ConfigError, match="is rag-sequence and takes no step from 'a', which was trained as rag-token"):
        study(a=_MODEL, b={**other, "steps": 0})


def test_only_a_head_of_the_same_labels_is_tested_as_it_is() -> None:
    require_labels(Path("m"), card(head_labels=("A", "B")), ["B", "A"])
    with pytest.raises(CheckpointError, match="m has no head, and classification = 'head' asks for one of A, B"):
        require_labels(Path("m"), card(), ["A", "B"])
    with pytest.raises(CheckpointError, match="m has a head of A, C, and"):
        require_labels(Path("m"), card(head_labels=("A", "C")), ["A", "B"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 0}, "is damaged"),
        ({"format": "2"}, "is damaged"),
        ({"format": 3, "new": True}, "has format 3; this openbook reads up to 2"),
        ({"n_docs": 0}, "is damaged"),
        ({"max_source_tokens": -5}, "is damaged"),
    ],
)
def test_a_card_of_another_format_or_without_sense_is_refused(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    told = {**json.loads(card().model_dump_json()), **changes}
    (tmp_path / "rag.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(CheckpointError) as refused:
        read_card(tmp_path)
    assert words in str(refused.value)


def test_a_card_of_an_older_format_is_saved_in_todays(tmp_path: Path) -> None:
    one = tiny_rag(tmp_path / "parts", "rag-token")
    save_checkpoint(tmp_path / "saved", one.model, getattr(one.retriever, "encoder", None), card(format=1))
    assert read_card(tmp_path / "saved") == card()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score_scale": 1.0, "pooling": "mean", "normalize": True}, "set encoder.score_scale = 5.0"),
        ({"score_scale": 5.0, "normalize": True}, "encoder.pooling = 'mean' and the study says 'cls'"),
        ({"score_scale": 5.0, "pooling": "mean"}, "set encoder.normalize = True"),
        ({"score_scale": 5.0, "pooling": "mean", "normalize": True, "question_prefix": "q: "}, "question_prefix = ''"),
    ],
)
def test_passages_are_scored_as_the_model_learned_to(options: dict[str, object], words: str) -> None:
    require_encoder_options(card(), EncoderConfig(score_scale=5.0, pooling="mean", normalize=True))
    require_encoder_options(card(encoder=None, retriever="bm25"), EncoderConfig())
    with pytest.raises(CheckpointError) as refused:
        require_encoder_options(card(), EncoderConfig.model_validate(options))
    assert words in str(refused.value)


def test_another_retriever_is_refused() -> None:
    require_retriever(Path("m"), card(), "dense")
    with pytest.raises(CheckpointError, match="trained with the retriever dense and was asked for with hybrid"):
        require_retriever(Path("m"), card(), "hybrid")
