"""The two sides of the training benchmark: the same weights, passages and questions in our trainer and in theirs."""

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DPRConfig,
    DPRQuestionEncoder,
    PreTrainedTokenizerFast,
    RagConfig,
    RagRetriever,
    RagSequenceForGeneration,
    RagTokenForGeneration,
)

from rag.config import EncoderConfig, IndexConfig, ModelConfig
from rag.modeling.generator import Generator
from rag.modeling.inputs import DEFAULT_LAYOUT
from rag.modeling.models import RagModel
from rag.records import Passage
from rag.retrieval.encoders import Encoder
from rag.retrieval.index_build import build_index
from rag.retrieval.retriever import DenseRetriever
from rag.training.examples import Example
from rag.training.loop import Trainer
from tests.support.tiny_models import write_model

_SEED, _LIMIT, _RATE = 0, 300, 1e-5  # the limit is theirs: max_combined_length, to which their retriever pads
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
Families = Literal["rag-sequence", "rag-token"]
_THEIRS: dict[str, Any] = {"rag-sequence": RagSequenceForGeneration, "rag-token": RagTokenForGeneration}


class Size(NamedTuple):
    """How large the models and the step are."""

    vocabulary: int = 5000
    layers: int = 6
    dim: int = 512
    encoder_layers: int = 3
    passages: int = 200
    passage_tokens: int = 200
    questions: int = 4
    n_docs: int = 5


QUICK = Size(vocabulary=500, layers=1, dim=32, encoder_layers=1, passages=12, passage_tokens=40, questions=2, n_docs=2)


class Texts(NamedTuple):
    """Made-up passages, and questions with their answers."""

    tokenizer: Tokenizer
    passages: list[Passage]
    examples: list[Example]


def texts(size: Size) -> Texts:
    """Of made-up words, about half as many of them as tokens, and a byte-level BPE as BART's learned from them."""
    draw = random.Random(_SEED)
    syllables = [first + second for first in "bdfghklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er")]
    words = ["".join(draw.choices(syllables, k=draw.choice((1, 2, 2, 3, 4)))) for _ in range(12_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]

    def text(count: int) -> str:
        return " ".join(draw.choices(words, weights, k=count))

    tokenizer = _byte_level([text(100) for _ in range(2_000)], size.vocabulary)
    passages = [
        Passage(
            f"w:{row}:0", text(2), _long(text, tokenizer, draw.randint(85, 115) * size.passage_tokens // 100), row, 0
        )
        for row in range(size.passages)
    ]
    examples = [Example("qa", question, question, text(3)) for question in (text(8) for _ in range(2 * size.questions))]
    return Texts(tokenizer, passages, examples)


def _long(text: Any, tokenizer: Tokenizer, tokens: int) -> str:
    """A text of so many tokens, to the word."""
    words = text(tokens).split(" ")
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch([f" {word}" for word in words], False, False)]
    return " ".join(words[: int(np.searchsorted(np.cumsum(lengths), tokens))])


def _byte_level(lines: list[str], vocabulary: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=_SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


class Weights(NamedTuple):
    """The models as transformers makes them, and the vectors of the passages."""

    generator: Any
    question_encoder: Any
    vectors: Float[np.ndarray, "passages dim"]


def weights(size: Size) -> Weights:
    """Random ones, without dropout, the same every time."""
    torch.manual_seed(_SEED)
    bart = BartConfig(
        vocab_size=size.vocabulary, d_model=size.dim, encoder_layers=size.layers, decoder_layers=size.layers,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=4 * size.dim,
        decoder_ffn_dim=4 * size.dim, dropout=0.0, bos_token_id=0, pad_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_eos_token_id=None,
        init_std=size.dim**-0.5,  # large enough that passages matter and the question encoder has a gradient
    )  # fmt: skip
    dpr = DPRConfig(
        vocab_size=size.vocabulary, hidden_size=size.dim, num_hidden_layers=size.encoder_layers, num_attention_heads=8,
        intermediate_size=4 * size.dim, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=1,
    )  # fmt: skip
    drawn = np.random.default_rng(_SEED).standard_normal((size.passages, size.dim))
    vectors = (drawn / size.dim**0.5).astype(np.float32)  # small, so that no passage gets all of p(z|x)
    return Weights(BartForConditionalGeneration(bart), DPRQuestionEncoder(dpr), vectors)


def our_trainer(size: Size, family: Families, made: Texts, start: Weights) -> Trainer:
    """Our side, loaded from files as in a study."""
    with TemporaryDirectory() as folder:
        generator = Generator.load(write_model(start.generator, made.tokenizer, Path(folder)))
    encoder = Encoder(start.question_encoder, _fast(made.tokenizer), EncoderConfig(max_question_tokens=64))
    index = build_index(start.vectors, IndexConfig(kind="flat"))
    retriever = DenseRetriever(encoder, index, _Rows(made.passages), start.vectors)
    config = ModelConfig(
        family=family, corpus="c", tasks={"qa": 1}, n_docs=size.n_docs, steps=10_000, batch_size=size.questions,
        learning_rate=_RATE, question_encoder_learning_rate=_RATE, dropout=False,
    )  # fmt: skip
    model = RagModel(family, generator, encoder.module)
    return Trainer(model, config, DEFAULT_LAYOUT, _LIMIT, _SEED, retriever)


class _Rows(tuple[Passage, ...]):
    """Passages by row number."""

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        return [self[row] for row in rows]


class Theirs:
    """transformers' model with its own retriever over an exact index in memory, and torch's AdamW as it comes."""

    def __init__(self, size: Size, family: Families, made: Texts, start: Weights) -> None:
        self.size = size
        self.tokenizer = _fast(made.tokenizer)
        config = RagConfig.from_question_encoder_generator_configs(
            start.question_encoder.config, start.generator.config, n_docs=size.n_docs, max_combined_length=_LIMIT,
            retrieval_vector_size=size.dim,
        )  # fmt: skip
        self.index = ExactIndex(made.passages, start.vectors)
        self.retriever = _Retriever(config, self.tokenizer, self.index)
        self.model: Any = _THEIRS[family](
            config=config, question_encoder=start.question_encoder, generator=start.generator
        )
        self.trained = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.trained, lr=_RATE, weight_decay=0.0)

    def loss(self, batch: Sequence[Example], with_text: bool) -> Float[Tensor, "batch"]:
        """Of each example: passages found and laid out as text by their retriever, or with their token ids given."""
        asked = self.tokenizer([one.question for one in batch], padding=True, return_tensors="pt")
        answers = self.tokenizer([one.target for one in batch], padding=True, return_tensors="pt")["input_ids"]
        start = torch.full((len(batch), 1), self.model.config.generator.decoder_start_token_id)
        labels = torch.cat([start, answers], dim=1)
        if with_text:
            self.model.set_retriever(self.retriever)
            given: dict[str, Any] = {"input_ids": asked["input_ids"], "attention_mask": asked["attention_mask"]}
        else:
            self.model.rag.retriever = None
            given = self._given(asked)
        loss: Tensor = self.model(**given, labels=labels, reduce_loss=False, n_docs=self.size.n_docs).loss
        return loss

    def prepare(self, batch: Sequence[Example]) -> None:
        """Find and tokenize the passages beforehand, without padding that no row needs."""
        asked = self.tokenizer([one.question for one in batch], padding=True, return_tensors="pt")
        with torch.no_grad():
            vectors = self.model.question_encoder(**asked)[0].numpy()
        found = self.retriever(asked["input_ids"], vectors, n_docs=self.size.n_docs, return_tensors="pt")
        width = int(found["context_attention_mask"].sum(dim=1).max())
        self.context = {name: found[name][:, :width] for name in ("context_input_ids", "context_attention_mask")}
        self.embeds = found["retrieved_doc_embeds"].float()

    def _given(self, asked: Any) -> dict[str, Any]:
        vectors = self.model.question_encoder(**asked)[0]
        return {**self.context, "doc_scores": torch.bmm(vectors.unsqueeze(1), self.embeds.transpose(1, 2)).squeeze(1)}

    def step(self, batch: Sequence[Example], with_text: bool) -> float:
        """Forward, backward, clipping and optimizer; the mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch, with_text).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        return loss.item()


class ExactIndex:
    """What their retriever asks of an index: inner products with every passage."""

    def __init__(self, passages: Sequence[Passage], vectors: Float[np.ndarray, "passages dim"]) -> None:
        self.passages, self.vectors = passages, vectors

    def init_index(self) -> None:
        """Nothing to load."""

    def get_top_docs(
        self, question_vectors: Float[np.ndarray, "batch dim"], n_docs: int = 5
    ) -> tuple[Int[np.ndarray, "batch n_docs"], Float[np.ndarray, "batch n_docs dim"]]:
        """The rows of the largest inner products, and their vectors."""
        rows = np.argsort(-(question_vectors @ self.vectors.T), axis=1, kind="stable")[:, :n_docs]
        return rows, self.vectors[rows]

    def get_doc_dicts(self, rows: Int[np.ndarray, "batch n_docs"]) -> list[dict[str, list[str]]]:
        """Titles and texts by question."""
        return [
            {"title": [self.passages[row].title for row in found], "text": [self.passages[row].text for row in found]}
            for found in rows
        ]


class _Retriever(RagRetriever):  # type: ignore[misc]  # transformers is not typed
    """Theirs, without its demand for the package ``datasets``, which an index in memory does not use."""

    def __init__(self, config: Any, tokenizer: Any, index: ExactIndex) -> None:
        self.index = index
        self.generator_tokenizer = self.question_encoder_tokenizer = tokenizer
        self.n_docs, self.batch_size, self.config = config.n_docs, config.retrieval_batch_size, config
        self.ctx_encoder_tokenizer, self.return_tokenized_docs = None, False


def _fast(tokenizer: Tokenizer) -> Any:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer.to_str()), bos_token="<s>", pad_token="<pad>", eos_token="</s>",
        unk_token="<unk>", clean_up_tokenization_spaces=False,
    )  # fmt: skip
