"""What the generator reads: question, title and passage laid out as one text, of which only the passage is cut."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from rag.errors import ConfigError, DataError
from rag.modeling.token_cache import TokenizedText, may_cut
from rag.modeling.tokenizer import GeneratorTokenizer, pad_rows

DEFAULT_LAYOUT = "{title} / {text} // {question}"  # what the public RAG checkpoints were trained on
_PARTS = re.compile(r"(\{title\}|\{text\}|\{question\})")


class GeneratorInputs(NamedTuple):
    """Token ids for each question and passage, padded at the right, and how many passages of each question were cut."""

    input_ids: Int[Tensor, "batch n_docs source_len"]
    attention_mask: Bool[Tensor, "batch n_docs source_len"]
    truncated: tuple[int, ...] = ()


class _Row(NamedTuple):
    """One text for the generator; characters start..end of it are the passage text, which may be cut off."""

    text: str
    start: int
    end: int
    seams: tuple[int, ...] = ()  # blanks at which the question may be told from the rest


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

    The ids are those of the whole row's text. Where the tokenizer allows, question and passage are tokenized apart,
    and the tokenizer remembers them: a passage that comes back, at another step or question, costs nothing.

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
    text, spans = "", {}
    for piece in pieces:
        spans[piece] = (len(text), len(text) + len(values.get(piece, piece)))
        text += values.get(piece, piece)
    return _Row(text, *spans["{text}"], _seams(text, *spans["{question}"]))


def _seams(text: str, start: int, end: int) -> tuple[int, ...]:
    """The blanks nearest to the question, characters start..end of a row, at which a text may be cut."""
    before, after = text.rfind(" ", 0, start), text.find(" ", end)
    while before > 0 and not may_cut(text, before):
        before = text.rfind(" ", 0, before)
    while after > 0 and not may_cut(text, after):
        after = text.find(" ", after + 1)
    return tuple(place for place in (before, after) if place > 0)


def _tokenize(
    rows: list[_Row], questions: Sequence[str], n_docs: int, tokenizer: GeneratorTokenizer, limit: int
) -> GeneratorInputs:
    whole = not tokenizer.splits_at_blanks
    texts = tokenizer.encode([row.text for row in rows]) if whole else _encode_in_parts(rows, tokenizer)
    ids = [
        _cut(text, row, limit, questions[number // n_docs])
        for number, (text, row) in enumerate(zip(texts, rows, strict=True))
    ]
    shorter = np.array([len(kept) < len(text.ids) for kept, text in zip(ids, texts, strict=True)], dtype=bool)
    input_ids, attention_mask = pad_rows(ids, tokenizer.pad_token_id)
    shape = (len(questions), n_docs, -1) if ids else (len(questions), n_docs, 0)
    truncated = tuple(shorter.reshape(len(questions), n_docs).sum(axis=1).tolist())
    return GeneratorInputs(input_ids.reshape(shape), attention_mask.reshape(shape), truncated)


def _encode_in_parts(rows: list[_Row], tokenizer: GeneratorTokenizer) -> list[TokenizedText]:
    """What ``tokenizer.encode`` gives for the rows' texts, put together from their parts between the seams."""
    cuts = [(0, *row.seams, len(row.text)) for row in rows]
    texts = [row.text[start:end] for row, places in zip(rows, cuts, strict=True) for start, end in pairwise(places)]
    parts = iter(tokenizer.encode_parts(texts))
    return [_join([(place, next(parts)) for place in places[:-1]], tokenizer) for places in cuts]


def _join(parts: list[tuple[int, TokenizedText]], tokenizer: GeneratorTokenizer) -> TokenizedText:
    """The tokens of parts that begin at such characters of a row, and the special tokens around the row."""
    before, after = (_added(token_ids) for token_ids in (tokenizer.before, tokenizer.after))
    tokens = [before, *(TokenizedText(part.ids, part.offsets + place) for place, part in parts), after]
    return TokenizedText(*(np.concatenate(arrays) for arrays in zip(*tokens, strict=True)))


def _added(token_ids: Sequence[int]) -> TokenizedText:
    return TokenizedText(np.array(token_ids, np.int32), np.zeros((len(token_ids), 2), np.int32))


def _cut(tokenized: TokenizedText, row: _Row, limit: int, question: str) -> Int[np.ndarray, "length"]:
    """The row's ids without the last tokens of its passage text, as many as are too many."""
    ids = tokenized.ids
    excess = len(ids) - limit
    if excess <= 0:
        return ids
    cuttable = [position for position, span in enumerate(tokenized.offsets.tolist()) if _inside(row, *span)]
    if len(cuttable) < excess:
        raise DataError(
            f"question {question!r} with its title needs {len(ids) - len(cuttable)} tokens without any passage text, "
            f"max_source_tokens is {limit}; raise max_source_tokens"
        )
    return np.delete(ids, cuttable[-excess:])


def _inside(row: _Row, start: int, end: int) -> bool:
    """Whether a token is wholly passage text; the blank that some tokenizers glue to a word's front may be outside."""
    while start < min(end, row.start) and row.text[start].isspace():
        start += 1
    return row.start <= start < end <= row.end
