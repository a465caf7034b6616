from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, RagRetriever

from rag.errors import ConfigError, DataError
from rag.modeling.inputs import DEFAULT_LAYOUT, assemble, assemble_closed_book
from rag.modeling.token_cache import TokenCache, TokenizedText
from rag.modeling.tokenizer import GeneratorTokenizer
from tests.support.tiny_models import bart_tokenizer, t5_tokenizer
from tests.support.tiny_tokenizers import byte_level_bpe


@pytest.fixture
def t5() -> GeneratorTokenizer:
    return GeneratorTokenizer(t5_tokenizer(), pad_token_id=0, eos_token_id=1)


def text_of(tokenizer: GeneratorTokenizer, ids: list[int]) -> str:
    return tokenizer.decode(ids)


def test_rows_follow_the_layout_question_by_question(t5: GeneratorTokenizer) -> None:
    passages = [[("paris", "the capital"), ("lyon", "a b")], [("a", "b c d"), ("b", "c")]]
    inputs = assemble(["who is", "of"], passages, DEFAULT_LAYOUT, t5, 50)
    assert inputs.input_ids.shape == inputs.attention_mask.shape == (2, 2, 8)
    assert inputs.truncated == (0, 0)
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "paris / the capital // who is"
    assert text_of(t5, inputs.input_ids[1, 1].tolist()) == "b / c // of"
    assert inputs.attention_mask.sum(dim=2).tolist() == [[8, 8], [8, 6]]
    other = assemble(["who"], [[("paris", "a")]], "{question} // {title} / {text}", t5, 50)
    assert text_of(t5, other.input_ids[0, 0].tolist()) == "who // paris / a"


def test_only_the_passage_text_is_cut_and_cuts_are_counted(t5: GeneratorTokenizer) -> None:
    passages = [[("paris", "a b c d e f g"), ("lyon", "a b")]]
    inputs = assemble(["who is the capital"], passages, DEFAULT_LAYOUT, t5, 11)
    assert inputs.truncated == (1,)
    assert inputs.attention_mask.sum(dim=2).max() == 11
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "paris / a b c // who is the capital"
    assert inputs.input_ids[0, 0, 10] == t5.eos_token_id
    assert text_of(t5, inputs.input_ids[0, 1].tolist()) == "lyon / a b // who is the capital"


@pytest.mark.parametrize("blank", ["\n", "\N{NO-BREAK SPACE}"])
def test_white_space_of_the_passage_is_cut_with_it(blank: str) -> None:
    """A token of nothing but white space is passage text like any other."""
    tokenizer = byte_level_bpe()
    text = f"{blank}the end{blank}of{blank} the sea{blank}"
    nothing = assemble(["who"], [[("king", "")]], DEFAULT_LAYOUT, tokenizer, 60)
    shortest = int(nothing.attention_mask.sum())
    row = assemble(["who"], [[("king", text)]], DEFAULT_LAYOUT, tokenizer, shortest)
    assert tokenizer.decode(row.input_ids[0, 0].tolist()).split() == ["king", "/", "//", "who"]
    assert row.truncated == (1,)
    for limit in range(shortest, 60):  # from its end: what is left is how the passage begins
        left = assemble(["who"], [[("king", text)]], DEFAULT_LAYOUT, tokenizer, limit)
        shown = tokenizer.decode(left.input_ids[0, 0].tolist())
        kept = shown.removeprefix("king / ").removesuffix("// who").removesuffix(" ")
        assert text.startswith(kept.rstrip("\N{REPLACEMENT CHARACTER}"))  # the first byte of two


def test_a_passage_may_be_cut_to_nothing_but_a_question_never(t5: GeneratorTokenizer) -> None:
    inputs = assemble(["who is"], [[("paris", "a b c")]], DEFAULT_LAYOUT, t5, 6)
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "paris / // who is"
    with pytest.raises(DataError, match=r"question 'who is' with its title needs 6 tokens .* max_source_tokens is 5"):
        assemble(["who is"], [[("paris", "a b c")]], DEFAULT_LAYOUT, t5, 5)
    with pytest.raises(DataError, match="'who is the'"):
        assemble_closed_book(["who", "who is the"], t5, 3)


def test_fewer_passages_than_the_neighbour_become_rows_without_text(t5: GeneratorTokenizer) -> None:
    inputs = assemble(["who", "of"], [[("paris", "a")], [("lyon", "b"), ("a", "c")]], DEFAULT_LAYOUT, t5, 50)
    assert inputs.input_ids.shape[:2] == (2, 2)
    assert text_of(t5, inputs.input_ids[0, 1].tolist()) == "/ // who"
    assert inputs.attention_mask.any(dim=2).all()


def test_closed_book_reads_the_question_alone(t5: GeneratorTokenizer) -> None:
    inputs = assemble_closed_book(["who is", "of"], t5, 20)
    assert inputs.input_ids.shape == (2, 1, 3)
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "who is"


def test_braces_and_special_tokens_in_texts_are_only_text() -> None:
    bart = GeneratorTokenizer(bart_tokenizer(), pad_token_id=1, eos_token_id=2)
    inputs = assemble(["{text}"], [[("{question}", "</s> a {title}")]], DEFAULT_LAYOUT, bart, 50)
    ids = inputs.input_ids[0, 0].tolist()
    assert ids[0] == 0
    assert ids.index(2) == len(ids) - 1


def test_wrong_layouts_and_counts_are_refused(t5: GeneratorTokenizer) -> None:
    for layout in ("{title} {question}", "{title} {text} {text} {question}", "", "{title} {text} {Question}"):
        with pytest.raises(ConfigError, match="layout"):
            assemble(["who"], [[("a", "b")]], layout, t5, 50)
    with pytest.raises(DataError, match="2 questions but passages for 1"):
        assemble(["who", "of"], [[("a", "b")]], DEFAULT_LAYOUT, t5, 50)


def test_no_questions_make_an_empty_batch(t5: GeneratorTokenizer) -> None:
    assert assemble([], [], DEFAULT_LAYOUT, t5, 50).input_ids.shape[0] == 0
    assert assemble_closed_book([], t5, 50).input_ids.shape[0] == 0


def test_a_passage_is_tokenized_once_whatever_asks_for_it(t5: GeneratorTokenizer) -> None:
    seen: list[str] = []
    tokenize = t5._encode_parts

    def counting(texts: Sequence[str]) -> list[TokenizedText]:
        seen.extend(texts)
        return tokenize(texts)

    t5._cache = TokenCache(counting)
    first = assemble(["who is", "of"], [[("paris", "a b")], [("paris", "a b")]], DEFAULT_LAYOUT, t5, 50)
    again = assemble(["of", "who is"], [[("paris", "a b")], [("paris", "a b")]], DEFAULT_LAYOUT, t5, 50)
    assert sorted(seen) == [" of", " who is", "paris / a b //"]
    assert torch.equal(again.input_ids, first.input_ids.flip(0))


def test_the_least_used_texts_are_forgotten_first() -> None:
    seen: list[str] = []

    def tokenize(texts: Sequence[str]) -> list[TokenizedText]:
        seen.extend(texts)
        return [TokenizedText(np.array([len(text)]), np.zeros((1, 2), np.int64)) for text in texts]

    cache = TokenCache(tokenize, max_bytes=1100)  # two short ones
    for text in ("aaa", "bb", "aaa", "cc", "aaa", "bb", "far too long" * 50):
        assert cache.tokens([text])[0].ids.tolist() == [len(text)]
    assert seen == ["aaa", "bb", "cc", "bb", "far too long" * 50]
    assert cache.tokens(["bb", "bb"])[1].ids.tolist() == [2]
    assert seen[-1] == "bb"


def test_what_short_texts_take_beside_their_characters_counts() -> None:
    tokenizer = byte_level_bpe()
    cache = TokenCache(tokenizer._encode_parts, max_bytes=100_000)
    cache.tokens([f" {number}" for number in range(1000)])
    assert 100 < len(cache._kept) < 200


def test_threads_that_share_a_cache_get_the_same_rows() -> None:
    tokenizer = byte_level_bpe()
    tokenizer._cache = TokenCache(tokenizer._encode_parts, max_bytes=2000)  # so small that it forgets all the time
    batches = [([f"who is {number % 7}?"], [[("title", f"text {number % 11}. " * 3)]]) for number in range(200)]

    def rows(batch: tuple[list[str], list[list[tuple[str, str]]]]) -> list[int]:
        return assemble(*batch, DEFAULT_LAYOUT, tokenizer, 100).input_ids.flatten().tolist()

    alone = [rows(batch) for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(rows, batches)) == alone


def test_rows_are_those_of_transformers_retriever() -> None:
    """Title, passage and question as its postprocess_docs lays them out, whose separators are the default layout."""
    tokenizer = byte_level_bpe()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer.backend.to_str()), pad_token="<pad>", eos_token="</s>"
    )
    config = SimpleNamespace(title_sep=" / ", doc_sep=" // ", max_combined_length=60)
    docs = [{"title": ["The King", "Été"], "text": ["the end of the 1990s, it's", "in 東京 (the sea)."]}]
    theirs, mask = RagRetriever.postprocess_docs(
        SimpleNamespace(config=config, generator_tokenizer=fast), docs, ["Who's the King of the Sea?"], None, 2, "pt"
    )
    pairs = [list(zip(docs[0]["title"], docs[0]["text"], strict=True))]
    ours = assemble(["Who's the King of the Sea?"], pairs, DEFAULT_LAYOUT, tokenizer, 60)
    width = ours.input_ids.shape[2]
    assert torch.equal(ours.input_ids[0], theirs[:, :width])
    assert torch.equal(ours.attention_mask[0], mask[:, :width].bool())
    assert not mask[:, width:].any()


def metaspace(text: str) -> Tokenizer:
    """Single characters, the blank glued to the front of a word, as sentencepiece does it."""
    letters = sorted({*text} - {" "})
    pieces = ["<pad>", "</s>", "<unk>", "▁", *letters, *["▁" + letter for letter in letters]]
    ids = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(ids, [("▁", letter) for letter in letters], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


@pytest.mark.parametrize("limit", range(19, 30))
def test_tokens_that_reach_over_a_border_keep_question_and_title_whole(limit: int) -> None:
    tokenizer = GeneratorTokenizer(metaspace("wxyz / // qpr"), pad_token_id=0, eos_token_id=1)
    inputs = assemble(["qq pp rr"], [[("ww xx", "zz y zz y")]], DEFAULT_LAYOUT, tokenizer, limit)
    text = tokenizer.decode(inputs.input_ids[0, 0].tolist())
    start, end = text.split(" /", 1)[0], text.rsplit("// ", 1)[1]
    assert (start, end) == ("ww xx", "qq pp rr")
    assert inputs.attention_mask.sum() <= limit
    assert text.split("/ ", 1)[1].rsplit(" //", 1)[0].replace("/", "") in "zz y zz y"
