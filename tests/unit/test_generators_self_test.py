"""Families that are on no list are run where they give what transformers gives, and refused in words elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForSeq2SeqLM

from rag.errors import ConfigError
from rag.modeling.generator import Generator
from rag.modeling.self_test import PROVEN
from tests.support.tiny_models import (
    FAMILIES,
    VOCABULARY,
    bart_tokenizer,
    hf_relative_of_bart,
    t5_tokenizer,
    word_tokenizer,
    write_model,
)


def like_t5(family: str, **more: Any) -> Any:
    torch.manual_seed(1)
    config = CONFIG_MAPPING[family](
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=2,
        initializer_factor=1.5, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, **more,
    )  # fmt: skip
    return AutoModelForSeq2SeqLM.from_config(config).eval()


def marian(folder: Path) -> Path:
    return write_model(
        hf_relative_of_bart("marian", 1, 23, 0, 23), word_tokenizer(["</s>", "<s>", "<unk>"], "$A </s>"), folder
    )


def test_longt5_and_marian_prove_themselves_and_move_no_random_state(tmp_path) -> None:
    folders = [write_model(like_t5("longt5"), t5_tokenizer(), tmp_path / "longt5"), marian(tmp_path / "marian")]
    before = torch.random.get_rng_state()
    for folder in folders:
        generator = Generator.load(folder, torch.bfloat16)
        assert generator.config.model_type not in PROVEN
        assert next(generator.parameters()).dtype == torch.bfloat16
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("family", ["bigbird_pegasus", "pegasus_x", "nllb-moe"])
def test_wrong_numbers_are_refused(family: str, tmp_path) -> None:
    write_model(hf_relative_of_bart(family, 1, 1, 2, 2), bart_tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match=f"holds a {family} model.*differ from transformers' own by.*work: bart, "):
        Generator.load(tmp_path)


@pytest.mark.parametrize(
    ("family", "what"), [("switch_transformers", "differ from transformers' own"), ("umt5", "stops with RuntimeError")]
)
def test_relatives_of_t5_that_go_their_own_way_are_refused(family: str, what: str, tmp_path) -> None:
    write_model(like_t5(family), t5_tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match=f"holds a {family} model.*{what}"):
        Generator.load(tmp_path)


def test_a_crash_is_told_in_one_line(tmp_path) -> None:
    write_model(hf_relative_of_bart("mvp", 1, 1, 2, 2), bart_tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match=r"holds a mvp model.*it stops with ValueError \(") as caught:
        Generator.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_model_whose_files_bar_words_is_refused(tmp_path) -> None:
    (marian(tmp_path) / "generation_config.json").write_text('{"bad_words_ids": [[23]]}')
    with pytest.raises(ConfigError, match="bad_words_ids"):
        Generator.load(tmp_path)


def test_every_listed_family_is_compared_with_transformers() -> None:
    assert {kind.model(0).config.model_type for kind in FAMILIES.values()} == set(PROVEN)
