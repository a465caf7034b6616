"""Text to token ids and back for a generator, from its ``tokenizer.json`` and nothing else."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise, takewhile
from operator import eq
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from rag.errors import CheckpointError, ConfigError
from rag.modeling.token_cache import TokenCache, TokenizedText, splits_at_blanks

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]+")  # en_XX of mBART, eng_Latn of NLLB


class TargetBatch(NamedTuple):
    """Targets as token ids, padded at the right; the mask is True where a token is scored."""

    ids: Int[Tensor, "batch target_len"]
    mask: Bool[Tensor, "batch target_len"]


class GeneratorTokenizer:
    """The generator's own tokenizer, without truncation or padding of its own.

    A special token written out in a text (``</s>`` in a Wikipedia passage) becomes plain characters or ``<unk>``:
    text from outside cannot end or start a sequence.
    """

    def __init__(
        self, backend: Tokenizer, pad_token_id: int, eos_token_id: int, forced_bos_token_id: int | None = None
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        self.backend = backend
        self.pad_token_id = pad_token_id
        self.eos_token_id = eos_token_id
        self.before, self.after = _frame(backend, eos_token_id)
        # BART writes <s> before every target, mBART-50 the code of its language (of the target's, where the model
        # forces one), T5 nothing. It is part of the target that training scores, so decoding must begin with it too.
        forced = self.before if forced_bos_token_id is None else (forced_bos_token_id,)
        self.first_token_ids: tuple[int, ...] = forced
        self._dropped = {pad_token_id, *self.before, *self.after, *forced}
        added = backend.get_added_tokens_decoder()
        self._special = self._dropped | {number for number, token in added.items() if token.special}
        self._unknown: int | None = backend.token_to_id("<unk>")
        self._cache = TokenCache(self._encode_parts)

    @classmethod
    def load(
        cls, folder: Path, pad_token_id: int, eos_token_id: int, forced_bos_token_id: int | None = None
    ) -> "GeneratorTokenizer":
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
        return cls(backend, pad_token_id, eos_token_id, forced_bos_token_id)

    @property
    def language_token_id(self) -> int | None:
        """The code that mBART writes behind </s>, with which its decoder starts; None for everyone else."""
        return self.after[1] if len(self.after) == 2 else None

    def encode(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Each text as the generator reads it, with the special tokens that belong around it and no others."""
        return [self._tokenized(encoding) for encoding in self.backend.encode_batch(list(texts))]

    @cached_property
    def splits_at_blanks(self) -> bool:
        """Whether the parts of a text, cut before blanks, have the ids that they have in the whole."""
        return splits_at_blanks(self.backend, self.before, self.after)

    def encode_parts(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Each text without any special token around it, from memory where it was tokenized before."""
        return self._cache.tokens(texts)

    def _encode_parts(self, texts: Sequence[str]) -> list[TokenizedText]:
        encodings = self.backend.encode_batch(list(texts), add_special_tokens=False)
        return [self._tokenized(encoding) for encoding in encodings]

    def _tokenized(self, encoding: Encoding) -> TokenizedText:
        return TokenizedText(
            np.array(self._ids(encoding), np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2)
        )

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
        """Targets for teacher forcing: ``text </s>`` for T5, ``<s> text </s>`` for BART, as decoding writes them.

        Padding is told from real tokens by length, never by id, so a pad is never scored.
        """
        rows = [
            [*self.first_token_ids, *one.ids[len(self.before) : -len(self.after)], self.eos_token_id]
            for one in self.encode(texts)
        ]
        return TargetBatch(*pad_rows(rows, self.pad_token_id))

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a hypothesis; an ``<unk>`` stays visible, because a letter must not vanish in silence."""
        kept = [token for token in token_ids if token not in self._dropped]
        return str(self.backend.decode(kept, skip_special_tokens=False)).strip()

    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        """The part of ``decode(token_ids)`` that each token wrote; one after the other they are all of it.

        A letter of several tokens belongs to the last of them, and tokens around the text have "".
        """
        whole = self.decode(token_ids)
        ends = [_shared(whole, self.decode(token_ids[: end + 1])) for end in range(len(token_ids))]
        starts = [0, *accumulate(ends, max)]
        return [whole[start:end] for start, end in pairwise(starts)]

    def spells(self, text: str) -> bool:
        """Whether the vocabulary can write this text back; T5 has no letter for the a with tilde of "João"."""
        return self.decode(self.encode([text])[0].ids.tolist()).split() == text.split()


def _shared(text: str, other: str) -> int:
    """How many characters both begin with."""
    return sum(takewhile(bool, map(eq, text, other)))


def _frame(backend: Tokenizer, eos_token_id: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer writes before and after every text: </s>, for mBART with a language code behind it."""
    frame = tuple(backend.encode("").ids)
    place = len(frame) - 1 - frame[::-1].index(eos_token_id) if eos_token_id in frame else -1
    behind = [str(backend.id_to_token(token)) for token in frame[place + 1 :]]
    if place < 0 or len(behind) > 1 or not all(map(_LANGUAGE_CODE.fullmatch, behind)):
        raise CheckpointError(
            f"tokenizer.json ends a text with {list(frame)} instead of the generator's eos_token_id {eos_token_id}; "
            "save the tokenizer that belongs to this generator"
        )
    return frame[:place], frame[place:]


def pad_rows(rows: Sequence[Sequence[int] | Int[np.ndarray, "length"]], pad_token_id: int) -> tuple[Tensor, Tensor]:
    """Rows of ids padded at the right to the longest, and a mask that is True on real ones.

    >>> pad_rows([[5, 1], [7]], 0)
    (tensor([[5, 1],
            [7, 0]]), tensor([[ True,  True],
            [ True, False]]))
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), lengths.max(initial=0)), pad_token_id, dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return torch.from_numpy(ids), torch.from_numpy(np.arange(ids.shape[1])[None, :] < lengths[:, None])
