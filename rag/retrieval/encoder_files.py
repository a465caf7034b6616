"""Encoders in files: weights and tokenizer of a transformers folder, what is refused of one, and their hashes."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rag.config import EncoderConfig
from rag.errors import CheckpointError, ConfigError
from rag.retrieval.encoder_card import training_of

_POOLER_IS_OPTIONAL = {"bert", "mpnet", "roberta", "xlm-roberta"}
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
_WEIGHTS, _SHARDS_OF_WEIGHTS = "model.safetensors", "model.safetensors.index.json"


def require_folder(path: Path) -> None:
    """Raises ConfigError if no transformers model lies at ``path``."""
    if not (path / "config.json").is_file():
        raise ConfigError(f"no encoder at {path}: a folder with config.json and model.safetensors is needed")


def training_of_folder(path: Path, encoder_id: str) -> str:
    """The DPR training of the encoder in a folder, by the name it has or the one that its config.json began with."""
    return training_of(encoder_id, _read_object(path / "config.json").get("_name_or_path"))


def load_module(path: Path) -> nn.Module:
    """The weights of a folder as a float32 module with SDPA attention (where the architecture has it), evaluating.

    Raises CheckpointError for damaged or missing weights.
    """
    from transformers import AutoConfig, AutoModel, DPRContextEncoder, DPRQuestionEncoder

    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        has_pooler = any("pooler." in name for name in _weight_names(path))
        options = {} if has_pooler or config.model_type not in _POOLER_IS_OPTIONAL else {"add_pooling_layer": False}
        dpr = {"DPRQuestionEncoder": DPRQuestionEncoder, "DPRContextEncoder": DPRContextEncoder}
        loader = dpr.get((config.architectures or [""])[0], AutoModel)
        module, report = loader.from_pretrained(
            path, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **options
        )
    except CheckpointError:
        raise
    except Exception as error:  # of many kinds, some of transformers' own
        raise CheckpointError(f"the encoder at {path} cannot be loaded: {error}") from error
    if report["missing_keys"]:
        raise CheckpointError(f"the encoder at {path} lacks the weights {', '.join(sorted(report['missing_keys']))}")
    if getattr(module, "pooler", None) is not None:
        module.pooler = None  # a head for another task; never part of a vector, so neither trained nor hashed
    if module._supports_sdpa:  # MPNet has no such attention
        module.set_attn_implementation("sdpa")
    return module.eval()  # type: ignore[no-any-return]


def load_tokenizer(path: Path, module: nn.Module) -> Any:
    """The tokenizer of a folder, for its model. Raises CheckpointError for none, a damaged one or another model's."""
    from transformers import AutoTokenizer

    if not any((path / name).is_file() for name in _TOKENIZER_FILES):
        # transformers would make up a tokenizer of five special tokens here, and read every word as unknown
        raise CheckpointError(f"{path} has no tokenizer; one of {', '.join(_TOKENIZER_FILES)} is needed")
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, use_fast=True)
    except Exception as error:  # of many kinds, some of the tokenizers package's own
        raise CheckpointError(f"the tokenizer at {path} cannot be loaded: {error}") from error
    _check_vocabulary(tokenizer, int(getattr(module.config, "vocab_size", 0)), path)
    return tokenizer


def _check_vocabulary(tokenizer: Any, rows: int, path: Path) -> None:
    """Refuse one that knows no word, or more than the model; fewer are fine: embeddings are often rounded up."""
    known: dict[str, int] = tokenizer.get_vocab()
    if known.keys() <= {*tokenizer.all_special_tokens, *map(str, tokenizer.added_tokens_decoder.values())}:
        raise CheckpointError(f"the tokenizer at {path} knows no word beside {sorted(known)}; copy its files again")
    if max(known.values()) >= rows:
        raise CheckpointError(
            f"the tokenizer at {path} has token ids up to {max(known.values())} and the model {rows} embeddings; copy "
            "the tokenizer that belongs to it"
        )


def check_lengths(module: nn.Module, config: EncoderConfig, path: Path) -> None:
    """Raises ConfigError if a maximum length is beyond the model's positions."""
    positions: int = getattr(module.config, "max_position_embeddings", 512)
    for key in ("max_question_tokens", "max_passage_tokens"):
        if getattr(config, key) > positions:
            raise ConfigError(f"encoder.{key} = {getattr(config, key)}, but {path} has only {positions} positions")


def hash_weights(module: nn.Module) -> str:
    """sha256 over names, types, shapes and bytes of all weights, as they are now."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def hash_tokenizer(tokenizer: Any) -> str:
    """sha256 of the tokenizer without its truncation and padding, which are set anew by every call."""
    described = {**json.loads(tokenizer.backend_tokenizer.to_str()), "truncation": None, "padding": None}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _weight_names(path: Path) -> Iterable[str]:
    from safetensors import safe_open

    if (path / _WEIGHTS).is_file():
        with safe_open(path / _WEIGHTS, framework="pt") as file:
            return list(file.keys())
    if (path / _SHARDS_OF_WEIGHTS).is_file():
        return list(_read_object(path / _SHARDS_OF_WEIGHTS).get("weight_map", ()))
    raise CheckpointError(f"{path} has no {_WEIGHTS}; other weight formats are not read: convert it once")


def _read_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON ({error}); copy it anew") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds no JSON object; copy it anew")
    return found
