"""The private marks that the wikitext passes leave for each other inside the text.

All are control characters, which ``without_controls`` removes from the input, so that no page can forge one.
"""

DROPPED = "\x02"  # something was left out here; punctuation around it may need mending
PROTECTED_PIPE = "\x01"  # a visible "|" that must not split the arguments of the template around it
PROTECTED_EQUALS = "\x03"  # likewise "="

# Characters that mean something in wikitext, and what stands for them where they are meant literally. The stand-ins
# avoid the separators that str.split takes for whitespace (0x09-0x0d, 0x1c-0x1f).
_LITERALS = dict(zip("[]{}'<>*#:;_-!", map(chr, [*range(0x04, 0x09), *range(0x0E, 0x17)]), strict=True))
_PROTECT = str.maketrans({**_LITERALS, "|": PROTECTED_PIPE, "=": PROTECTED_EQUALS})
_RESTORE = str.maketrans(
    {**{mark: literal for literal, mark in _LITERALS.items()}, PROTECTED_PIPE: "|", PROTECTED_EQUALS: "=", DROPPED: ""}
)
# C0 and C1 controls, marks of text direction, the byte order mark, the soft hyphen and the zero-width space: a
# reader sees none of them. The zero-width joiners stay, because they change how Persian and Indic words look.
_INVISIBLE = str.maketrans(
    dict.fromkeys(
        [
            *(code for code in range(0x20) if chr(code) not in "\n\t"),
            *range(0x7F, 0xA0),
            *(0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
            *range(0x202A, 0x202F),
            *range(0x2066, 0x206A),
            *range(0xD800, 0xE000),  # lone surrogates, which UTF-8 cannot write
        ]
    )
)


def without_controls(text: str) -> str:
    """``text`` without control and invisible characters; line ends become a newline."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE)


def protect(text: str) -> str:
    """``text`` with every character of wikitext's grammar made literal."""
    return text.translate(_PROTECT)


def protect_separators(text: str) -> str:
    """``text`` that can stand inside a template's argument without splitting it."""
    return text.replace("|", PROTECTED_PIPE).replace("=", PROTECTED_EQUALS)


def restore(text: str) -> str:
    """``text`` with the literal characters back in place and the other marks gone."""
    return text.translate(_RESTORE)
