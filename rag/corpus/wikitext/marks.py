"""The private marks that the wikitext passes leave for each other inside the text.

All are control characters, which ``without_controls`` removes from the input, so that no page can forge one.
"""

import re

DROPPED = "\x02"  # something was left out here; punctuation around it may need mending
PROTECTED_PIPE = "\x01"  # a visible "|" that must not split the arguments of the template around it
PROTECTED_EQUALS = "\x03"  # likewise "="
FRACTION = "\x80"  # before a fraction, which must not run into a whole number before it: "1 1/4"
JOINED = "\x82"  # nothing was left out here, although nothing is shown: a soft hyphen, a place to break a line

# Characters that mean something in wikitext, and what stands for them where they are meant literally. The stand-ins
# avoid the separators that str.split takes for whitespace (0x09-0x0d, 0x1c-0x1f).
_LITERALS = dict(zip("[]{}'<>*#:;_-!", map(chr, [*range(0x04, 0x09), *range(0x0E, 0x17)]), strict=True))
_LITERALS["&"] = "\x81"
_PROTECT = str.maketrans({**_LITERALS, "|": PROTECTED_PIPE, "=": PROTECTED_EQUALS})
_RESTORED = {
    **{mark: literal for literal, mark in _LITERALS.items()},
    PROTECTED_PIPE: "|",
    PROTECTED_EQUALS: "=",
    DROPPED: "",
    FRACTION: "",
    JOINED: "",
}
_MARK = re.compile(f"[{''.join(_RESTORED)}]")
_MIXED_NUMBER = re.compile(rf"(?<=\d){FRACTION}")
# C0 and C1 controls, marks of text direction, the byte order mark, the soft hyphen, the zero-width space and lone
# surrogates: a reader sees none of them. The zero-width joiners stay: they change how Persian and Indic words look.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def without_controls(text: str) -> str:
    """``text`` without control and invisible characters; line ends become a newline."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _INVISIBLE.sub("", text)


def protect(text: str) -> str:
    """``text`` with every character of wikitext's grammar made literal."""
    return text.translate(_PROTECT)


def protect_separators(text: str) -> str:
    """``text`` that can stand inside a template's argument without splitting it."""
    return text.replace("|", PROTECTED_PIPE).replace("=", PROTECTED_EQUALS)


def restore(text: str) -> str:
    """``text`` with the literal characters back in place and the other marks gone."""
    if FRACTION in text:
        text = _MIXED_NUMBER.sub(" ", text)
    return _MARK.sub(lambda mark: _RESTORED[mark.group()], text)
