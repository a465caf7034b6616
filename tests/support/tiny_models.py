"""Tiny random models in the real file formats, built in milliseconds and the same for the same seed."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, DPRConfig, T5Config, T5ForConditionalGeneration
from transformers.models.dpr import DPRQuestionEncoder

from rag.modeling.generator import Generator

WORDS = ["a", "b", "c", "d", "e", "f", "g", "/", "//", "the", "paris", "lyon", "capital", "of", "is", "who"]


def word_tokenizer(specials: tuple[str, ...], single: str, special_ids: dict[str, int]) -> Tokenizer:
    """Whole words as tokens, with the special tokens in front of the vocabulary and placed as ``single`` says."""
    vocabulary = {word: number for number, word in enumerate([*specials, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(list(specials))
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=list(special_ids.items()))
    return tokenizer


def t5_tokenizer() -> Tokenizer:
    """pad 0, </s> 1, <unk> 2, as in T5."""
    return word_tokenizer(("<pad>", "</s>", "<unk>"), "$A </s>", {"</s>": 1})


def bart_tokenizer() -> Tokenizer:
    """<s> 0, <pad> 1, </s> 2, <unk> 3, as in BART."""
    return word_tokenizer(("<s>", "<pad>", "</s>", "<unk>"), "<s> $A </s>", {"<s>": 0, "</s>": 2})


def hf_t5(seed: int = 0, vocabulary: int = 24, tied: bool = True) -> Any:
    """A T5 of 2+2 layers; ``tied=False`` gives it its own head, as FLAN-T5 has."""
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=2,
        feed_forward_proj="relu" if tied else "gated-gelu", tie_word_embeddings=tied, initializer_factor=0.6,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(vocabulary, 16))
    return model.eval()


def hf_bart(seed: int = 0, vocabulary: int = 24) -> Any:
    """A BART of 2+2 layers with a non-zero final bias."""
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=vocabulary, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, init_std=0.6,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    model.final_logits_bias.normal_()
    return model.eval()


def hf_dpr_question_encoder(seed: int = 0) -> Any:
    """A one-layer DPR question encoder."""
    torch.manual_seed(seed)
    return DPRQuestionEncoder(
        DPRConfig(vocab_size=24, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    ).eval()


def write_model(model: Any, tokenizer: Tokenizer, folder: Path) -> Path:
    """A model folder as the hub has them: config.json, model.safetensors, tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    seen: dict[int, str] = {}
    state = {
        name: tensor for name, tensor in model.state_dict().items() if seen.setdefault(tensor.data_ptr(), name) == name
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.to_json_file(folder / "config.json")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def tiny_t5(folder: Path, seed: int = 0, vocabulary: int = 24, tied: bool = True) -> Generator:
    """A tiny T5 as a Generator, written to and loaded from ``folder``."""
    return Generator.load(write_model(hf_t5(seed, vocabulary, tied), t5_tokenizer(), folder))


def tiny_bart(folder: Path, seed: int = 0, vocabulary: int = 24) -> Generator:
    """A tiny BART as a Generator, written to and loaded from ``folder``."""
    return Generator.load(write_model(hf_bart(seed, vocabulary), bart_tokenizer(), folder))
