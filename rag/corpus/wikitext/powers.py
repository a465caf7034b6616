"""Text that the page raises or lowers beside a number: joined to it, it would be another number.

10<sup>6</sup> is not 106, and 1<sup>1</sup>/<sub>2</sub> is not 11/2. Ordinals (1<sup>st</sup>) and notes stay joined.
"""

import re

from rag.corpus.wikitext.entities import decode

_ATTRIBUTES = r"(?:\s[^<>]*+)?>"
_FORMAT_TAG = rf"</?(?:i|b|em|var|span|small|nowiki){_ATTRIBUTES}"
# With a bound on what is inside, for no power is longer.
_RAISED = re.compile(
    rf"<(su[pb]){_ATTRIBUTES}((?:[^<>\n]|{_FORMAT_TAG}){{1,80}}+)</\1\s*+>"
    rf"(?:(?:[⁄/]|&frasl;|&#8260;)<sub{_ATTRIBUTES}([^<>\n]{{1,20}}+)</sub\s*+>)?+",
    re.IGNORECASE,
)
_TAG = re.compile(_FORMAT_TAG, re.IGNORECASE)
_OPENERS = re.compile(r"(?:<(?:i|b|em|var|span|small)(?:\s[^<>]*)?>|')+$", re.IGNORECASE)
_BEFORE = 60  # characters in which the number before the raised text is looked for
_INTEGER = re.compile(r"[-−–+]?\d+$")
_CHARGE = re.compile(r"\d?[-−–+]$")
_SUPERSCRIPTS = str.maketrans("0123456789-−–+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁻⁺")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_EXPRESSION = re.compile(r"[\w .,+−–*/×·⋅^()-]+$")
_WORD = re.compile(r"[^\W\d_⁰¹²³⁴⁵⁶⁷⁸⁹]{3}")
_VARIABLES = frozenset("nkxyzpqijNKXYZ")  # as a single letter; others are ordinals, hours or notes
_ORDINALS = frozenset("eoad")
_TIMES = 3  # a power of a power of a power


def show_powers(text: str) -> str:
    """``text`` without the tags of raised and lowered text.

    >>> show_powers("10<sup>6</sup>, 10<sup>6.5</sup>, 2<sup>64 − 1</sup>, 1<sup>1</sup>⁄<sub>2</sub>, 1<sup>st</sup>")
    '10⁶, 10^6.5, 2^(64 − 1), 1 1/2, 1st'
    """
    for _ in range(_TIMES):
        text, found = _RAISED.subn(_shown, text)
        if not found or ("<su" not in text and "<SU" not in text):
            break
    return text


def _shown(raised: re.Match[str]) -> str:
    written, bottom = raised.group(2), raised.group(3)
    content = " ".join(decode(_TAG.sub("", written).replace("'''", "").replace("''", "")).split())
    after_digit = _after_digit(raised)
    if bottom:
        return f"{' ' if after_digit else ''}{content}/{bottom.strip()}"
    if not after_digit:
        return written
    if raised.group(1).lower() == "sub":
        return content.translate(_SUBSCRIPTS) if content.isascii() and content.isdigit() else written
    if _INTEGER.match(content) or _CHARGE.match(content):
        return content.translate(_SUPERSCRIPTS)
    if not _is_power(content, italic="''" in written or "<" in written):
        return written
    return f"^({content})" if re.search(r"[^\w.−–-]|.[−–-]", content) else f"^{content}"


def _after_digit(raised: re.Match[str]) -> bool:
    """Whether a digit stands before the tag, apart from tags and quotes that open there."""
    start = raised.start()
    before = raised.string[start - 1 : start]
    if before in (">", "'"):
        before = _OPENERS.sub("", raised.string[max(start - _BEFORE, 0) : start])[-1:]
    return before.isdigit()


def _is_power(content: str, italic: bool) -> bool:
    if not _EXPRESSION.match(content) or _WORD.search(content):
        return False
    if len(content) == 1:
        return content in _VARIABLES or (italic and content.isalpha() and content not in _ORDINALS)
    return any(map(str.isdigit, content)) or re.search(r"\w ?[+−–*/×·⋅-] ?\w|^[−–-]\w$", content) is not None
