"""Small trained tokenizers of the kinds that generators have."""

from collections.abc import Callable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from rag.modeling.tokenizer import GeneratorTokenizer
from tests.support.packaged import packaged

_CORPUS = [
    "the end of the 1990s. it's the day of the king's men, in the north / of the sea // who is the king of the sea?",
    "The capital of France is Paris; Lyon (the second city) isn't. question: where is it? context: \N{EM DASH} é 東京",
]
_SPECIAL = ["<pad>", "</s>", "<unk>"]


def byte_level_bpe(blank_first: bool = False) -> GeneratorTokenizer:
    """As BART's, in which the blank before a word belongs to its first token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=blank_first)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<s>", *_SPECIAL], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    backend.train_from_iterator(_CORPUS, trainer)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=blank_first)
    return GeneratorTokenizer(backend, 1, 2)


def unigram(prepend: str = "always", cut_blanks: bool = True) -> GeneratorTokenizer:
    """Sentencepiece's kind with a normalization of its own, as PEGASUS and mBART have it."""
    backend = Tokenizer(models.Unigram())
    collapse = [normalizers.Replace(Regex(" {2,}"), " ")] if cut_blanks else []
    backend.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), *collapse])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend)
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=_SPECIAL, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator(_CORPUS, trainer)
    return _ending(backend)


def word_piece() -> GeneratorTokenizer:
    """As BERT's, lower case without accents."""
    backend = Tokenizer(models.WordPiece(unk_token="<unk>"))  # type: ignore[arg-type]  # its vocabulary is learned
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=_SPECIAL, show_progress=False)
    backend.train_from_iterator(_CORPUS, trainer)
    return _ending(backend)


def packaged_t5() -> GeneratorTokenizer:
    """The real one of T5; skips the calling test where its package is not installed."""
    file = packaged("traceforge_title_model", "data", "span", "tokenizer.json")
    return GeneratorTokenizer(Tokenizer.from_file(str(file)), 0, 1)


def whole_text_bpe() -> GeneratorTokenizer:
    """One that never splits a text, so that a token may reach over a blank ("of the")."""
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=_SPECIAL, show_progress=False)
    backend.train_from_iterator(_CORPUS * 3, trainer)
    return _ending(backend)


def stripping_byte_level() -> GeneratorTokenizer:
    """One that drops the blanks in front of a text, and so of a part that begins with one."""
    tokenizer = byte_level_bpe()
    tokenizer.backend.normalizer = normalizers.Strip()
    return tokenizer


def _ending(backend: Tokenizer) -> GeneratorTokenizer:
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return GeneratorTokenizer(backend, 0, 1)


SPLITTING: dict[str, Callable[[], GeneratorTokenizer]] = {
    "byte-level BPE": byte_level_bpe,
    "byte-level BPE, blank first": lambda: byte_level_bpe(blank_first=True),
    "Unigram": unigram,
    "Unigram, blank at the start": lambda: unigram("first", cut_blanks=False),
    "WordPiece": word_piece,
    "T5": packaged_t5,
}
WHOLE: dict[str, Callable[[], GeneratorTokenizer]] = {"BPE": whole_text_bpe, "stripping": stripping_byte_level}
