import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from rag.errors import ConfigError, DataError
from rag.modeling.inputs import DEFAULT_LAYOUT, assemble, assemble_closed_book
from rag.modeling.tokenizer import GeneratorTokenizer
from tests.support.tiny_models import bart_tokenizer, t5_tokenizer


@pytest.fixture
def t5() -> GeneratorTokenizer:
    return GeneratorTokenizer(t5_tokenizer(), pad_token_id=0, eos_token_id=1)


def text_of(tokenizer: GeneratorTokenizer, ids: list[int]) -> str:
    return tokenizer.decode(ids)


def test_rows_follow_the_layout_question_by_question(t5: GeneratorTokenizer) -> None:
    passages = [[("paris", "the capital"), ("lyon", "a b")], [("a", "b c d"), ("b", "c")]]
    inputs = assemble(["who is", "of"], passages, DEFAULT_LAYOUT, t5, 50)
    assert inputs.input_ids.shape == inputs.attention_mask.shape == (2, 2, 8)
    assert inputs.truncated == 0
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "paris / the capital // who is"
    assert text_of(t5, inputs.input_ids[1, 1].tolist()) == "b / c // of"
    assert inputs.attention_mask.sum(dim=2).tolist() == [[8, 8], [8, 6]]
    other = assemble(["who"], [[("paris", "a")]], "{question} // {title} / {text}", t5, 50)
    assert text_of(t5, other.input_ids[0, 0].tolist()) == "who // paris / a"


def test_only_the_passage_text_is_cut_and_cuts_are_counted(t5: GeneratorTokenizer) -> None:
    passages = [[("paris", "a b c d e f g"), ("lyon", "a b")]]
    inputs = assemble(["who is the capital"], passages, DEFAULT_LAYOUT, t5, 11)
    assert inputs.truncated == 1
    assert inputs.attention_mask.sum(dim=2).max() == 11
    assert text_of(t5, inputs.input_ids[0, 0].tolist()) == "paris / a b c // who is the capital"
    assert inputs.input_ids[0, 0, 10] == t5.eos_token_id
    assert text_of(t5, inputs.input_ids[0, 1].tolist()) == "lyon / a b // who is the capital"


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
