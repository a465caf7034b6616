"""Checkpoints in Hugging Face's RAG format (``RagSequenceForGeneration``, ``RagTokenForGeneration``), read.

Their folder is one config.json with two inner ones, one weights file with names below ``rag.question_encoder`` and
``rag.generator``, and two folders of tokenizers. Ours is two ordinary model folders and a card, so a tensor only
changes its name on the way and no model is put together. Weights are read from safetensors alone: the older
pytorch_model.bin is a pickle, which runs code when it is opened. ``hf_export`` is the way back.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from torch import Tensor

from rag.config import EncoderConfig
from rag.errors import CheckpointError
from rag.files import write_atomically
from rag.modeling.checkpoint import generation_setting, read_weights, write_weights, writing
from rag.modeling.models import Family
from rag.training.checkpoint import (
    CARD,
    GENERATOR,
    QUESTION_ENCODER,
    ModelCard,
    load_checkpoint,
    read_card,
    save_checkpoint,
    write_card,
)

CLASSES: dict[Family, str] = {"rag-sequence": "RagSequenceForGeneration", "rag-token": "RagTokenForGeneration"}
_FAMILIES = {name: family for family, name in CLASSES.items()}
PREFIXES = {GENERATOR: "rag.generator.", QUESTION_ENCODER: "rag.question_encoder."}
TOKENIZERS = {GENERATOR: "generator_tokenizer", QUESTION_ENCODER: "question_encoder_tokenizer"}
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")
_BESIDE = ("merges.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
OURS = "openbook"  # the key of config.json under which an export says what theirs has no words for


class Imported(NamedTuple):
    """A checkpoint that was read: its card here, and what of it has no counterpart."""

    card: ModelCard
    notes: tuple[str, ...]


def import_checkpoint(source: Path, folder: Path, family: Family, name: str) -> Imported:
    """Write the trained model of ``source``, in our own format or in Hugging Face's, to ``folder`` as one of ours."""
    if not (source / CARD).is_file():
        return import_rag(source, folder, family, name)
    own = load_checkpoint(source, family, read_card(source).retriever)
    save_checkpoint(folder, own.model, own.encoder, own.card)
    return Imported(own.card, ())


def import_rag(source: Path, folder: Path, family: Family, name: str = "") -> Imported:
    """Write the checkpoint of ``source`` as one of ours to ``folder``, which ``load_checkpoint`` reads.

    ``title_sep``, ``doc_sep`` and the generator's ``prefix`` become the layout, ``max_combined_length`` becomes
    max_source_tokens. ``name`` is what people call it (a hub name tells how its question encoder was trained). Which
    passages it was trained with is known only of our own exports.

    Raises CheckpointError where it is of another family or none, is damaged or incomplete, or holds what cannot be
    read here: pickled weights, a question encoder other than DPR's.
    """
    config = _read_config(source)
    _require_family(source, config, family)
    weights = _split(source, _read_safetensors(source))
    try:
        card = _card_of(config, family, name or source.name)
    except (ValidationError, TypeError, AttributeError) as error:
        problem = " ".join(str(error).split())
        raise CheckpointError(f"{source / 'config.json'} is damaged ({problem}); copy it again") from error
    with writing(folder):
        _write_parts(source, folder, config, weights)
        write_card(folder, card)
    try:
        load_checkpoint(folder, family, "dense")
    except CheckpointError as error:
        raise CheckpointError(f"{source} is no whole RAG checkpoint: {error}") from error
    return Imported(card, tuple(_left_behind(config)))


def _write_parts(source: Path, folder: Path, config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Both models as ordinary transformers folders; of generation_config.json what the generator is made to begin with.

    The rest of that file is of transformers' search, and the study says how to search here.
    """
    for part, prefix in PREFIXES.items():
        own = {key.removeprefix(prefix): tensor for key, tensor in weights.items() if key.startswith(prefix)}
        write_weights(folder / part / "model.safetensors", own)
        write_atomically(folder / part / "config.json", json.dumps(config[part], indent=2).encode())
    forced = generation_setting(source, "forced_bos_token_id")
    if forced is not None:
        content = json.dumps({"forced_bos_token_id": forced}).encode()
        write_atomically(folder / GENERATOR / "generation_config.json", content)
    _import_generator_tokenizer(source / TOKENIZERS[GENERATOR], folder / GENERATOR)
    copy_tokenizer(source / TOKENIZERS[QUESTION_ENCODER], folder / QUESTION_ENCODER)


def _read_config(source: Path) -> dict[str, Any]:
    """Their config.json, with what is left out filled in."""
    path = source / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"no checkpoint at {source}: config.json cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}); copy it again") from error
    if not isinstance(config, dict) or config.get("model_type") != "rag":
        kind = config.get("model_type") if isinstance(config, dict) else type(config).__name__
        raise CheckpointError(
            f"{source} holds a {kind} model, no RAG checkpoint; name a generator in generator.path and a question "
            "encoder in encoder.path instead"
        )
    defaults = {GENERATOR: "bart", QUESTION_ENCODER: "dpr"}
    for part, kind in defaults.items():
        if not isinstance(config.get(part), dict):
            raise CheckpointError(f"{path} has no {part}; copy it again")
        config[part] = {"model_type": kind, **config[part]}
    kind = config[QUESTION_ENCODER]["model_type"]
    if kind != "dpr":
        raise CheckpointError(f"{source} has a question encoder of the kind {kind}; RAG checkpoints have DPR's")
    config[QUESTION_ENCODER]["architectures"] = ["DPRQuestionEncoder"]
    return config


def _require_family(source: Path, config: dict[str, Any], family: Family) -> None:
    named = config.get("architectures") or ["(none)"]
    found = str(named[0] if isinstance(named, list) else named)
    if found not in _FAMILIES:
        raise CheckpointError(
            f"{source} says that it is a {found}; one saved by {' or '.join(_FAMILIES)} is needed, for the two "
            "families take the same weights and answer differently"
        )
    if _FAMILIES[found] != family:
        raise CheckpointError(
            f"{source} is a {_FAMILIES[found]} model ({found}) and was asked for as {family}; name the right family"
        )


def _read_safetensors(source: Path) -> dict[str, Tensor]:
    pickled = sorted(path.name for path in source.glob("pytorch_model*.bin"))
    if pickled and not any(source.glob("*.safetensors")):
        raise CheckpointError(
            f"{source} holds its weights as {pickled[0]}, a pickle, which runs code when it is opened; where you trust "
            "it, load it with the transformers class in its config.json and save_pretrained it to a new folder, beside "
            "copies of the two tokenizer folders"
        )
    return read_weights(source)


def _split(source: Path, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, after checking that each belongs to one of the two models."""
    strange = [key for key in weights if not key.startswith(tuple(PREFIXES.values()))]
    if strange:
        raise CheckpointError(
            f"{source}: the tensor {strange[0]} and {len(strange) - 1} more belong to neither "
            f"{' nor '.join(prefix + '*' for prefix in PREFIXES.values())}; save the whole RAG model again"
        )
    return weights


def _card_of(config: dict[str, Any], family: Family, name: str) -> ModelCard:
    own = config.get(OURS) or {}
    prefix, title_sep, doc_sep = config[GENERATOR].get("prefix") or "", config.get("title_sep"), config.get("doc_sep")
    longest = min(256, config[QUESTION_ENCODER].get("max_position_embeddings") or 256)
    pieces = [prefix, " / " if title_sep is None else title_sep, " // " if doc_sep is None else doc_sep]
    if not all(isinstance(piece, str) and "{" not in piece for piece in pieces):
        raise TypeError(f"prefix, title_sep and doc_sep are {pieces}, and must be texts without braces")
    before, title_sep, doc_sep = (piece.replace("  ", " ") for piece in pieces)  # as theirs does with the whole text
    return ModelCard(
        family=family,
        retriever="dense",
        n_docs=config.get("n_docs", 5),
        layout=f"{before}{{title}}{title_sep}{{text}}{doc_sep}{{question}}",
        max_source_tokens=config.get("max_combined_length", 300),
        encoder=EncoderConfig(path=own.get("encoder") or name, max_question_tokens=longest, max_passage_tokens=longest),
        passage_fingerprint=own.get("passage_fingerprint"),
        row_ids_sha256=own.get("row_ids_sha256"),
        trained_steps=own.get("trained_steps") or 0,
    )


def _left_behind(config: dict[str, Any]) -> Iterator[str]:
    """What transformers does with such a model and nothing here does."""
    yield "was fed questions as its question encoder's tokenizer spells them (the public ones: in lower case)"
    if config.get("exclude_bos_score"):
        yield "has exclude_bos_score; here every token of an answer is scored, the first one too"
    if config.get("label_smoothing"):
        yield f"has label_smoothing {config['label_smoothing']}; training here is without"


def _import_generator_tokenizer(source: Path, folder: Path) -> None:
    """tokenizer.json as it is; from the older files (vocab.json with merges.txt, spiece.model) it is made once."""
    _require_vocabulary(source)
    if (source / "tokenizer.json").is_file():
        write_atomically(folder / "tokenizer.json", (source / "tokenizer.json").read_bytes())
        return
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(source, config=config, local_files_only=True, use_fast=True)
        text = tokenizer.backend_tokenizer.to_str(pretty=True)
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        raise CheckpointError(
            f"{source} has no tokenizer.json and none can be made of its older files ({str(error).strip()[:200]}); "
            "load it with transformers' AutoTokenizer where that works, and save_pretrained it there"
        ) from error
    write_atomically(folder / "tokenizer.json", text.encode())


def copy_tokenizer(source: Path, folder: Path) -> None:
    """The files of a tokenizer, and nothing else that lies beside them."""
    _require_vocabulary(source)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*_VOCABULARIES, *_BESIDE):
        if (source / name).is_file():
            write_atomically(folder / name, (source / name).read_bytes())


def _require_vocabulary(folder: Path) -> None:
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise CheckpointError(
            f"{folder} holds no tokenizer (one of {', '.join(_VOCABULARIES)}); save the tokenizers of the checkpoint "
            "there: RagTokenizer.from_pretrained(...).save_pretrained(...) of transformers writes both"
        )
