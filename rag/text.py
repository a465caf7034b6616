"""Words of a text as open-domain QA counts them; shared by the answer matching and by sparse retrieval."""

import unicodedata

import regex

# A run of letters, digits and combining marks, or one character that is neither space nor control.
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
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
