"""Token ids of texts, kept so that a passage is tokenized once; and where a text may be cut to be tokenized in parts.

A tokenizer that splits at blanks before it looks for tokens gives the parts of a text, cut before a blank, the ids
that they have in the whole text. Where that is not certain, of the tokenizer or at one place, the text stays whole.
"""

import json
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import product
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int
from tokenizers import Tokenizer

_BYTES_KEPT = 70_000_000  # 25,000 passages of 100 words
_BYTES_OF_A_TEXT = 500  # beside characters, ids and offsets: the objects that hold them
_NORMALIZERS = {  # that change no character because of one beyond a blank
    "BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Replace", "Strip",
    "StripAccents",
}  # fmt: skip
_SPLITTERS = {"BertPreTokenizer", "ByteLevel", "Metaspace", "Whitespace", "WhitespaceSplit"}  # at every blank
_REFINERS = {"Digits", "Punctuation"}  # split what lies between blanks
_LEFT_ENDS, _RIGHT_STARTS = ("a", "A.", "1", "/", "é", "東", "it's"), (" b", " B", " 9", " //", " 's", " é", " 東")


class TokenizedText(NamedTuple):
    """Token ids of one text, and the characters (start, end) that each came from; (0, 0) for added ones."""

    ids: Int[np.ndarray, "length"]
    offsets: Int[np.ndarray, "length 2"]


class TokenCache:
    """Texts with their tokens; the least recently used ones go first. Safe on threads."""

    def __init__(
        self, tokenize: Callable[[Sequence[str]], Sequence[TokenizedText]], max_bytes: int = _BYTES_KEPT
    ) -> None:
        self._tokenize = tokenize
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, TokenizedText] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def tokens(self, texts: Sequence[str]) -> list[TokenizedText]:
        """The tokens of each text; only those that are not at hand are tokenized, all of them at once."""
        with self._lock:
            found = {text: self._kept[text] for text in texts if text in self._kept}
            for text in found:
                self._kept.move_to_end(text)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        found.update(zip(missing, self._tokenize(missing) if missing else [], strict=True))
        with self._lock:
            for text in missing:
                self._keep(text, found[text])
        return [found[text] for text in texts]

    def _keep(self, text: str, tokens: TokenizedText) -> None:
        if text in self._kept:  # another thread was faster
            return
        self._kept[text] = tokens
        self._bytes += _size(text, tokens)
        while self._bytes > self._max_bytes:
            self._bytes -= _size(*self._kept.popitem(last=False))


def _size(text: str, tokens: TokenizedText) -> int:
    return _BYTES_OF_A_TEXT + len(text) + tokens.ids.nbytes + tokens.offsets.nbytes


def may_cut(text: str, place: int) -> bool:
    """Whether a single blank stands at ``place`` between two characters that no normalizer turns into a blank.

    >>> [may_cut("the  end of", place) for place in (3, 4, 8, 0)]
    [False, False, True, False]
    """
    return 0 < place < len(text) - 1 and text[place] == " " and _plain(text[place - 1]) and _plain(text[place + 1])


def _plain(character: str) -> bool:
    if character.isascii():
        return "!" <= character <= "~"
    return character.isalnum() and unicodedata.normalize("NFKC", character) == character


def splits_at_blanks(backend: Tokenizer, before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether ids of a text are those of its parts, wherever ``may_cut`` allows the cuts.

    ``before`` and ``after`` are the special tokens around a text.

    True for byte-level BPE as BART's, sentencepiece vocabularies as T5's and WordPiece as BERT's. It follows from
    the tokenizer's parts where they are known, and is tried out on a few texts as well.
    """
    parts = json.loads(backend.to_str())
    normalizers, splitters = _flat(parts["normalizer"], "normalizers"), _flat(parts["pre_tokenizer"], "pretokenizers")
    kinds = {splitter["type"] for splitter in splitters}
    return (
        all(_keeps_borders(normalizer) for normalizer in normalizers)
        and kinds <= _SPLITTERS | _REFINERS
        and not kinds.isdisjoint(_SPLITTERS)
        and all(splitter.get("use_regex", True) and splitter.get("split", True) for splitter in splitters)
        and not any(_reaches_out(token) for token in parts["added_tokens"])
        and _tried_out(backend, before, after)
    )


def _flat(part: Any, members: str) -> list[dict[str, Any]]:
    """The steps of a part of tokenizer.json, which may be missing, one step or a sequence of them."""
    if part is None:
        return []
    return [step for member in part[members] for step in _flat(member, members)] if members in part else [part]


def _keeps_borders(normalizer: dict[str, Any]) -> bool:
    if normalizer["type"] != "Replace":
        return normalizer["type"] in _NORMALIZERS
    pattern = normalizer["pattern"]
    return " " not in pattern["String"] if "String" in pattern else pattern["Regex"] == " {2,}"


def _reaches_out(token: dict[str, Any]) -> bool:
    """Whether an added token, where text may hold it, takes in a blank or depends on its neighbours."""
    beyond = token["lstrip"] or token["rstrip"] or token["single_word"] or " " in token["content"]
    return bool(beyond and not token["special"])  # special ones are never looked for in texts


def _tried_out(backend: Tokenizer, before: Sequence[int], after: Sequence[int]) -> bool:
    for left, right in product(_LEFT_ENDS, _RIGHT_STARTS):
        parts = [backend.encode(part, add_special_tokens=False).ids for part in (left, right)]
        if backend.encode(left + right).ids != [*before, *parts[0], *parts[1], *after]:
            return False
    return True
