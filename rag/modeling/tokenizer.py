"""Text to token ids and back for a generator, from its ``tokenizer.json`` and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from rag.errors import CheckpointError, ConfigError


class TargetBatch(NamedTuple):
    """Targets as token ids, padded at the right; the mask is True where a token is scored."""

    ids: Int[Tensor, "batch target_len"]
    mask: Bool[Tensor, "batch target_len"]


class TokenizedText(NamedTuple):
    """Token ids of one text, and the characters (start, end) that each came from; (0, 0) for added ones."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class GeneratorTokenizer:
    """The generator's own tokenizer, without truncation or padding of its own.

    A special token written out in a text (``</s>`` in a Wikipedia passage) becomes plain characters or ``<unk>``:
    text from outside cannot end or start a sequence.
    """

    def __init__(self, backend: Tokenizer, pad_token_id: int, eos_token_id: int) -> None:
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        self.backend = backend
        self.pad_token_id = pad_token_id
        self.eos_token_id = eos_token_id
        frame = list(backend.encode("").ids)
        if frame[-1:] != [eos_token_id]:
            raise CheckpointError(
                f"tokenizer.json ends a text with {frame} instead of the generator's eos_token_id {eos_token_id}; "
                "save the tokenizer that belongs to this generator"
            )
        # BART writes <s> before every target and </s> after it; T5 writes only </s>. What stands before the text
        # is part of the target that training scores, so decoding must begin with it too.
        self.first_token_ids: tuple[int, ...] = tuple(frame[:-1])
        self._dropped = {pad_token_id, eos_token_id, *frame}
        added = backend.get_added_tokens_decoder()
        self._special = self._dropped | {number for number, token in added.items() if token.special}
        self._unknown: int | None = backend.token_to_id("<unk>")

    @classmethod
    def load(cls, folder: Path, pad_token_id: int, eos_token_id: int) -> "GeneratorTokenizer":
        """Read ``tokenizer.json`` of a model folder.

        Raises ConfigError where there is none, CheckpointError where it cannot be read or is of another model.
        """
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ConfigError(f"{folder} has no tokenizer.json; save the generator's fast tokenizer into that folder")
        try:
            backend = Tokenizer.from_file(str(path))
        except Exception as error:
            raise CheckpointError(f"{path} is damaged ({error}); copy it again") from error
        return cls(backend, pad_token_id, eos_token_id)

    def encode(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Each text as the generator reads it, with the special tokens that belong around it and no others."""
        encodings = self.backend.encode_batch(list(texts))
        return [TokenizedText(self._ids(encoding), encoding.offsets) for encoding in encodings]

    def _ids(self, encoding: Encoding) -> list[int]:
        """Sentencepiece vocabularies hold ``</s>`` as an ordinary piece, so it must be taken out afterwards."""
        ids: list[int] = encoding.ids
        if self._unknown is None or not self._special.intersection(ids):
            return ids
        return [
            self._unknown if token in self._special and not added else token
            for token, added in zip(ids, encoding.special_tokens_mask, strict=True)
        ]

    def targets(self, texts: Sequence[str]) -> TargetBatch:
        """Targets for teacher forcing: the tokenizer's own form, so ``text </s>`` for T5, ``<s> text </s>`` for BART.

        Padding is told from real tokens by length, never by id, so a pad is never scored.
        """
        return TargetBatch(*pad_rows([encoding.ids for encoding in self.encode(texts)], self.pad_token_id))

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a hypothesis; an ``<unk>`` stays visible, because a letter must not vanish in silence."""
        kept = [token for token in token_ids if token not in self._dropped]
        return str(self.backend.decode(kept, skip_special_tokens=False)).strip()

    def spells(self, text: str) -> bool:
        """Whether the vocabulary can write this text back; T5 has no letter for the a with tilde of "João"."""
        return self.decode(self.encode([text])[0].ids).split() == text.split()


def pad_rows(rows: Sequence[Sequence[int]], pad_token_id: int) -> tuple[Tensor, Tensor]:
    """Rows of ids padded at the right to the longest, and a mask that is True on real ones.

    >>> pad_rows([[5, 1], [7]], 0)
    (tensor([[5, 1],
            [7, 0]]), tensor([[ True,  True],
            [ True, False]]))
    """
    lengths = torch.tensor([len(row) for row in rows])
    width = max((len(row) for row in rows), default=0)
    ids = torch.tensor([[*row, *[pad_token_id] * (width - len(row))] for row in rows], dtype=torch.long)
    return ids, torch.arange(width)[None, :] < lengths[:, None]
