"""What the generator reads: question, title and passage laid out as one text, of which only the passage is cut."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor

from rag.errors import ConfigError, DataError
from rag.modeling.tokenizer import GeneratorTokenizer, TokenizedText, pad_rows

DEFAULT_LAYOUT = "{title} / {text} // {question}"  # what the public RAG checkpoints were trained on
_PARTS = re.compile(r"(\{title\}|\{text\}|\{question\})")


class GeneratorInputs(NamedTuple):
    """Token ids for each question and passage, padded at the right; ``truncated`` counts passages that were cut."""

    input_ids: Int[Tensor, "batch n_docs source_len"]
    attention_mask: Bool[Tensor, "batch n_docs source_len"]
    truncated: int


class _Row(NamedTuple):
    """One text for the generator; characters start..end of it are the passage text, which may be cut."""

    text: str
    start: int
    end: int


def assemble(
    questions: Sequence[str],
    passages: Sequence[Sequence[tuple[str, str]]],
    layout: str,
    tokenizer: GeneratorTokenizer,
    max_source_tokens: int,
) -> GeneratorInputs:
    """Lay out every question with each of its passages, given as (title, text).

    Question, title and the pieces of the layout always survive whole, case and accents too; the passage text
    loses tokens from its end until the row has at most ``max_source_tokens``. A question with fewer passages
    than its neighbours gets rows with an empty passage, which the caller's doc_mask must leave out. What goes
    before the question for the generator (a task's prefix) is part of ``questions`` here.

    Raises ConfigError for a layout without its three parts, DataError, naming the question, where question and
    title alone exceed the limit or the counts differ.
    """
    if len(questions) != len(passages):
        raise DataError(f"{len(questions)} questions but passages for {len(passages)}; give one list a question")
    n_docs = max((len(found) for found in passages), default=0)
    pieces = _split_layout(layout)
    rows = [
        _lay_out(pieces, {"{title}": title, "{text}": text, "{question}": question})
        for question, found in zip(questions, passages, strict=True)
        for title, text in [*found, *[("", "")] * (n_docs - len(found))]
    ]
    return _tokenize(rows, questions, n_docs, tokenizer, max_source_tokens)


def assemble_closed_book(
    questions: Sequence[str], tokenizer: GeneratorTokenizer, max_source_tokens: int
) -> GeneratorInputs:
    """The questions alone, as rows of one empty passage (n_docs 1): what a closed-book model reads.

    Raises DataError, naming the question, where it exceeds ``max_source_tokens``.
    """
    rows = [_Row(question, len(question), len(question)) for question in questions]
    return _tokenize(rows, questions, 1, tokenizer, max_source_tokens)


def _split_layout(layout: str) -> list[str]:
    pieces = _PARTS.split(layout)
    if sorted(piece for piece in pieces if _PARTS.fullmatch(piece)) != ["{question}", "{text}", "{title}"]:
        raise ConfigError(f"layout {layout!r} must hold each of {{title}}, {{text}} and {{question}} once")
    return pieces


def _lay_out(pieces: list[str], values: dict[str, str]) -> _Row:
    text, start, end = "", 0, 0
    for piece in pieces:
        if piece == "{text}":
            start, end = len(text), len(text) + len(values[piece])
        text += values.get(piece, piece)
    return _Row(text, start, end)


def _tokenize(
    rows: list[_Row], questions: Sequence[str], n_docs: int, tokenizer: GeneratorTokenizer, limit: int
) -> GeneratorInputs:
    texts = tokenizer.encode([row.text for row in rows])
    ids = [
        _cut(text, row, limit, questions[number // n_docs])
        for number, (text, row) in enumerate(zip(texts, rows, strict=True))
    ]
    truncated = sum(len(kept) < len(text.ids) for kept, text in zip(ids, texts, strict=True))
    input_ids, attention_mask = pad_rows(ids, tokenizer.pad_token_id)
    shape = (len(questions), n_docs, -1) if ids else (len(questions), n_docs, 0)
    return GeneratorInputs(input_ids.reshape(shape), attention_mask.reshape(shape), truncated)


def _cut(tokenized: TokenizedText, row: _Row, limit: int, question: str) -> list[int]:
    """The row's ids without the last tokens of its passage text, as many as are too many."""
    ids = tokenized.ids
    excess = len(ids) - limit
    if excess <= 0:
        return ids
    cuttable = [position for position, span in enumerate(tokenized.offsets) if _inside(row, *span)]
    if len(cuttable) < excess:
        raise DataError(
            f"question {question!r} with its title needs {len(ids) - len(cuttable)} tokens without any passage text, "
            f"max_source_tokens is {limit}; raise max_source_tokens"
        )
    dropped = set(cuttable[-excess:])
    return [token for position, token in enumerate(ids) if position not in dropped]


def _inside(row: _Row, start: int, end: int) -> bool:
    """Whether a token is wholly passage text; the blank that some tokenizers glue to a word's front may be outside."""
    while start < end and row.text[start].isspace():
        start += 1
    return row.start <= start < end <= row.end
