"""Tiny random encoders in the real file formats: a BERT and a DPR pair that know a handful of words."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, DPRConfig
from transformers.models.dpr import DPRContextEncoder, DPRQuestionEncoder

from rag.config import EncoderConfig
from rag.retrieval.encoders import Encoder

WORDS = ["the", "capital", "of", "peru", "is", "lima", "france", "paris", "who", "what", "river", "king", ".", "?"]
_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "vocab_size": len(_SPECIALS) + len(WORDS),
    "initializer_range": 0.4,
}


def encoder_config(**options: Any) -> EncoderConfig:
    """Mean pooling, normalised, short texts."""
    defaults: dict[str, Any] = {"pooling": "mean", "normalize": True, "max_question_tokens": 24}
    return EncoderConfig(**{**defaults, "max_passage_tokens": 48, **options})


def write_bert(folder: Path, seed: int = 0) -> Path:
    """A folder with a random two-layer BERT."""
    torch.manual_seed(seed)
    return _write(BertModel(BertConfig(**_SIZES)), folder)


def write_dpr(folder: Path, question: bool, seed: int = 0) -> Path:
    """A folder with a random DPR question or context encoder with a projection to 8 dimensions."""
    torch.manual_seed(seed)
    kind = DPRQuestionEncoder if question else DPRContextEncoder
    return _write(kind(DPRConfig(**_SIZES, projection_dim=8)), folder)


def tiny_encoder(folder: Path, seed: int = 0, **options: Any) -> Encoder:
    """A random BERT as an Encoder, written to and loaded from ``folder``."""
    return Encoder.load(write_bert(folder, seed), encoder_config(**options))


def _write(model: Any, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.to_json_file(folder / "config.json")
    save_file(dict(model.state_dict()), folder / "model.safetensors", metadata={"format": "pt"})
    _tokenizer().save(str(folder / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*_SPECIALS, *WORDS])}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(_SPECIALS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer
