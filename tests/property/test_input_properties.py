"""What the generator reads has the same token ids whether a passage is tokenized with the rest or taken from memory."""

import unicodedata
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from rag.errors import DataError
from rag.modeling.inputs import DEFAULT_LAYOUT, GeneratorInputs, assemble
from rag.modeling.tokenizer import GeneratorTokenizer
from tests.support.tiny_tokenizers import SPLITTING, WHOLE

LAYOUTS = (
    DEFAULT_LAYOUT,
    "question: {question} context: {title}: {text}",
    "{question} / {title} / {text}",
    "{title}|{question}|{text}",
    "{text} {question} {title}",
    "{title}  {question}  {text}",
)
WORDS = [
    "the", "The", "it's", "'s", "end.", "(1990)", "...", "//", "/", "1,300", "é", "e\u0301", "\u0301", "ß", "東京",
    "\u0e33", "\u0d4e", "\u0600", "\ufb01", "\u037a", "\ufdfa", "\u00a8", "\u2581", "\u200b", "\ufeff", "\u00a0",
    "\u3000", "\u2028", "\t", "\n", "\r\n", "\x00", "\u00ad", "\ufffd", "\U0001f469\u200d\U0001f680", "</s>", "<s>",
    "<pad>", "<unk>", "##a", "“q”", "¿que", "{text}", "’s",
]  # fmt: skip
quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@st.composite
def hard_texts(draw: st.DrawFn) -> str:
    """Words that tokenizers trip over, with no, one or more blanks between and around them."""
    words = draw(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=5))
    blanks = st.sampled_from(["", " ", " ", " ", "  "])
    return draw(blanks) + "".join(word + draw(blanks) for word in words)


batches = st.lists(st.tuples(hard_texts(), st.lists(st.tuples(hard_texts(), hard_texts()), max_size=2)), max_size=2)


@cache
def tokenizers(name: str) -> tuple[GeneratorTokenizer, GeneratorTokenizer]:
    """The tokenizer that remembers parts of texts, and the same one that always reads the whole text."""
    ours = {**SPLITTING, **WHOLE}[name]()
    whole = GeneratorTokenizer(Tokenizer.from_str(ours.backend.to_str()), ours.pad_token_id, ours.eos_token_id)
    whole.__dict__["splits_at_blanks"] = False
    return ours, whole


def rows(
    tokenizer: GeneratorTokenizer, batch: list[tuple[str, list[tuple[str, str]]]], layout: str, limit: int
) -> GeneratorInputs | str:
    try:
        return assemble([question for question, _ in batch], [found for _, found in batch], layout, tokenizer, limit)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("name", [*SPLITTING, *WHOLE])
@given(batch=batches, layout=st.sampled_from(LAYOUTS), limit=st.sampled_from([14, 25, 500]))
@quick
def test_parts_have_the_ids_of_the_whole_text(
    name: str, batch: list[tuple[str, list[tuple[str, str]]]], layout: str, limit: int
) -> None:
    ours, whole = tokenizers(name)
    if not _visible(batch):  # tokenizers' own offsets, by which a row is cut, are shifted behind a removed character
        limit = 500
    found, expected = rows(ours, batch, layout, limit), rows(whole, batch, layout, limit)
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected
        return
    assert torch.equal(found.input_ids, expected.input_ids)
    assert torch.equal(found.attention_mask, expected.attention_mask)
    assert found.truncated == expected.truncated


def _visible(batch: list[tuple[str, list[tuple[str, str]]]]) -> bool:
    """Whether no text has a character that a normalizer removes."""
    texts = [text for question, found in batch for text in (question, *(part for pair in found for part in pair))]
    return not any(unicodedata.category(character).startswith("C") for character in "".join(texts))


@pytest.mark.parametrize(("names", "splits"), [(SPLITTING, True), (WHOLE, False)])
def test_a_tokenizer_whose_tokens_may_reach_over_a_blank_reads_whole_texts(
    names: dict[str, object], splits: bool
) -> None:
    assert {name: tokenizers(name)[0].splits_at_blanks for name in names} == dict.fromkeys(names, splits)
