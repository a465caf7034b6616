"""Words and patterns of a text as open-domain QA counts them.

Shared by the answer matching, the task readers, the coverage of a corpus and sparse retrieval.
"""

import re
import unicodedata
from functools import lru_cache

import regex

from rag.errors import DataError

# A run of letters, digits and combining marks, or one character that is neither space nor control.
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# How the Penn Treebank, and so FEVER, writes what its own notation needs.
TREEBANK_ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "-COLON-": ":",
}


def decompose(text: str) -> str:
    """The text in Unicode NFD: é becomes e and a combining accent."""
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def word_tokens(text: str) -> list[str]:
    """Lower-case words and single punctuation marks of the text in NFD.

    Source: the "simple" tokenizer of DrQA and DPR, uncased.

    >>> word_tokens("Don't stop, Zoë!")[:5]
    ['don', "'", 't', 'stop', ',']
    """
    words: list[str] = _WORD.findall(decompose(text))
    return [word.lower() for word in words]


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """An answer pattern as CuratedTREC means it: NFD, any case, multiline. Raises DataError if it cannot compile.

    A backslash before a letter outside ASCII is dropped: in NFD it would stand before the bare letter, and an escape
    of that is another thing or an error. (DPR's script never matches the three such patterns of CuratedTREC.)

    >>> compile_pattern("P\\\\étain").search("Marshal Pe\u0301tain") is not None
    True
    """
    try:
        return re.compile(decompose(_ESCAPED.sub(_without_needless_backslash, pattern)), re.IGNORECASE | re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise DataError(f"answer pattern {pattern!r} is no regular expression: {error}; mend the task file") from error


def _without_needless_backslash(escaped: re.Match[str]) -> str:
    return escaped[0] if escaped[1].isascii() else escaped[1]
