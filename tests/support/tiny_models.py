"""Tiny random models in the real file formats, built in milliseconds and the same for the same seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    CONFIG_MAPPING,
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartForConditionalGeneration,
    DPRConfig,
    DPRQuestionEncoder,
    T5Config,
    T5ForConditionalGeneration,
)

from rag.modeling.generator import EncodedPassages, Generator

WORDS = ["a", "b", "c", "d", "e", "f", "g", "/", "//", "the", "paris", "lyon", "capital", "of", "is", "who"]
VOCABULARY = 24


def word_tokenizer(specials: list[str], template: str, size: int = VOCABULARY) -> Tokenizer:
    """One token for each known word, the special tokens first; ``template`` says what stands around a text."""
    ids = {word: number for number, word in enumerate([*specials, *WORDS][:size])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(specials)
    used = [(name, ids[name]) for name in specials if name in template]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    return tokenizer


def t5_tokenizer(size: int = VOCABULARY) -> Tokenizer:
    """Pad 0, </s> 1, <unk> 2 and ``text </s>``, as T5 has it."""
    return word_tokenizer(["<pad>", "</s>", "<unk>"], "$A </s>", size)


def bart_tokenizer(size: int = VOCABULARY) -> Tokenizer:
    """<s> 0, pad 1, </s> 2, <unk> 3 and ``<s> text </s>``, as BART has it."""
    return word_tokenizer(["<s>", "<pad>", "</s>", "<unk>"], "<s> $A </s>", size)


def hf_t5(seed: int = 0, vocabulary: int = VOCABULARY, tied: bool = True) -> Any:
    """A T5 of 2+2 layers; ``tied=False`` gives it a head of its own and gated layers, as FLAN-T5 has."""
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=2,
        feed_forward_proj="relu" if tied else "gated-gelu", tie_word_embeddings=tied, initializer_factor=1.5,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(vocabulary, 16))
    return model.eval()


def hf_bart(seed: int = 0, vocabulary: int = VOCABULARY) -> Any:
    """A BART of 2+2 layers with a final bias that is not zero."""
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=vocabulary, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, init_std=0.6,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    model.final_logits_bias.normal_()
    return model.eval()


def hf_relative_of_bart(
    model_type: str, seed: int, pad: int, eos: int, start: int | None, forced: int | None = None
) -> Any:
    """A model of 2+2 layers of one of the families that descend from BART, with the special tokens it uses."""
    torch.manual_seed(seed)
    config = CONFIG_MAPPING[model_type](
        vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, init_std=0.6,
        pad_token_id=pad, eos_token_id=eos, decoder_start_token_id=start, forced_eos_token_id=None,
        scale_embedding=True,
    )  # fmt: skip
    model = AutoModelForSeq2SeqLM.from_config(config)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_()
    model.generation_config.forced_bos_token_id = forced
    return model.eval()


def hf_mt5(seed: int) -> Any:
    torch.manual_seed(seed)
    config = CONFIG_MAPPING["mt5"](
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=2,
        initializer_factor=1.5, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return AutoModelForSeq2SeqLM.from_config(config).eval()


class Kind(NamedTuple):
    """How one kind of generator is built for a seed, and what its tokenizer writes around a text."""

    model: Callable[[int], Any]
    tokenizer: Callable[[], Tokenizer]


def language_tokenizer(template: str) -> Tokenizer:
    """<s> 0, pad 1, </s> 2, <unk> 3 and the codes of two languages, 4 and 5."""
    return word_tokenizer(["<s>", "<pad>", "</s>", "<unk>", "en_XX", "ro_RO"], template)


def blenderbot_tokenizer() -> Tokenizer:
    """Pad 0, <s> 1, </s> 2, <unk> 3 and ``text </s>``, as Blenderbot has it."""
    return word_tokenizer(["<pad>", "<s>", "</s>", "<unk>"], "$A </s>")


# Every family the generator runs, with the special tokens of its published checkpoints.
FAMILIES: dict[str, Kind] = {
    "t5": Kind(lambda seed: hf_t5(seed), t5_tokenizer),
    "flan-t5": Kind(lambda seed: hf_t5(seed, tied=False), t5_tokenizer),
    "mt5": Kind(hf_mt5, t5_tokenizer),
    "bart": Kind(lambda seed: hf_bart(seed), bart_tokenizer),
    # mBART-25 starts with the code that stands behind </s>; mBART-50 and NLLB force the one of the target's language
    "mbart": Kind(
        lambda seed: hf_relative_of_bart("mbart", seed, 1, 2, None), lambda: language_tokenizer("$A </s> en_XX")
    ),
    "mbart-50": Kind(
        lambda seed: hf_relative_of_bart("mbart", seed, 1, 2, 2, 5), lambda: language_tokenizer("en_XX $A </s>")
    ),
    "m2m_100": Kind(
        lambda seed: hf_relative_of_bart("m2m_100", seed, 1, 2, 2, 5), lambda: language_tokenizer("en_XX $A </s>")
    ),
    "pegasus": Kind(lambda seed: hf_relative_of_bart("pegasus", seed, 0, 1, 0), t5_tokenizer),
    "blenderbot": Kind(lambda seed: hf_relative_of_bart("blenderbot", seed, 0, 2, 1), blenderbot_tokenizer),
    "blenderbot-small": Kind(lambda seed: hf_relative_of_bart("blenderbot-small", seed, 0, 2, 1), blenderbot_tokenizer),
    "plbart": Kind(lambda seed: hf_relative_of_bart("plbart", seed, 1, 2, 2), bart_tokenizer),
}


def hf_dpr_question_encoder(seed: int = 0) -> Any:
    """A DPR question encoder of one layer."""
    torch.manual_seed(seed)
    config = DPRConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    return DPRQuestionEncoder(config).eval()


def write_model(model: Any, tokenizer: Tokenizer, folder: Path) -> Path:
    """A model folder as a hub has them: config.json, model.safetensors (tied tensors once), tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    first: dict[int, str] = {}
    tensors = model.state_dict()
    kept = {name: tensor for name, tensor in tensors.items() if first.setdefault(tensor.data_ptr(), name) == name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.to_json_file(folder / "config.json")
    if getattr(model, "generation_config", None) and model.generation_config.forced_bos_token_id is not None:
        model.generation_config.to_json_file(folder / "generation_config.json")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def tiny_generator(kind: str, folder: Path, seed: int = 0, vocabulary: int = VOCABULARY) -> Generator:
    """A Generator written to and loaded from ``folder``; kinds are those of ``FAMILIES``.

    ``vocabulary`` is for t5, flan-t5 (own head) and bart.
    """
    if kind == "bart":
        return Generator.load(write_model(hf_bart(seed, vocabulary), bart_tokenizer(vocabulary), folder))
    if kind in ("t5", "flan-t5"):
        model = hf_t5(seed, vocabulary, tied=kind == "t5")
        return Generator.load(write_model(model, t5_tokenizer(vocabulary), folder))
    return Generator.load(write_model(FAMILIES[kind].model(seed), FAMILIES[kind].tokenizer(), folder))


def random_passages(
    generator: Generator, count: int, seed: int = 0, vocabulary: int = VOCABULARY, length: int = 6
) -> EncodedPassages:
    """``count`` encoded passages of random ids and lengths."""
    ids, mask = random_ids(count, seed, vocabulary, length)
    with torch.no_grad():
        return generator.encode(ids.where(mask, generator.pad_token_id), mask)


def random_ids(
    count: int, seed: int = 0, vocabulary: int = VOCABULARY, length: int = 6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids above the special tokens, and a mask of random lengths of at least one."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(min(4, vocabulary - 1), vocabulary, (count, length), generator=random)
    lengths = torch.randint(1, length + 1, (count,), generator=random)
    lengths[torch.randint(count, (1,), generator=random)] = length
    return ids, torch.arange(length)[None, :] < lengths[:, None]
