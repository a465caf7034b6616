"""Entities such as "&minus;" and "&#8722;"."""

import re
from html.entities import html5

from rag.corpus.wikitext.marks import without_controls

_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def decode(text: str) -> str:
    """``text`` with its entities replaced by their characters.

    >>> decode("10 &minus; 3 &#60; 8 &nosuch;")
    '10 − 3 < 8 &nosuch;'
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    name = entity.group(1)
    if name[0] != "#":
        return without_controls(html5.get(f"{name};", entity.group()))
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return without_controls(chr(code)) if 0 < code < 0x110000 else ""
