"""The first pass over wikitext: comments and extension tags, whose content is not wikitext.

MediaWiki takes these out before it looks at braces, so that a "}}" inside a reference closes nothing outside.
"""

import re

from rag.corpus.wikitext.entities import decode
from rag.corpus.wikitext.marks import DROPPED, protect

_COMMENT = "!--"
_LITERAL = frozenset({"nowiki", "pre"})  # shown as it is written
_INVISIBLE = (
    "ref", "references", "gallery", "math", "chem", "ce", "timeline", "score", "hiero", "imagemap", "graph", "mapframe",
    "maplink", "templatedata", "templatestyles", "inputbox", "categorytree", "indicator", "includeonly", "source",
    "syntaxhighlight", "section", "style", "script",
)  # fmt: skip
_NAMES = "|".join((*_INVISIBLE, *_LITERAL))
_WHOLE_REFERENCE = r"ref(?:\s[^<>]*)?(?<!/)>[^<]*</ref\s*>"  # with no other tag inside, as most are
_OPEN = re.compile(
    rf"<(?P<whole>{_WHOLE_REFERENCE})|<!--|<(?P<name>{_NAMES})(?=[\s/>])(?P<attributes>[^<>]*)>", re.IGNORECASE
)
_CLOSE = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in (*_INVISIBLE, *_LITERAL)}
_CLOSE[_COMMENT] = re.compile("-->")
# A table inside the argument of a template has its bars written as {{!}}.
_TABLE_START = re.compile(r"([ \t:*#]*+)(?:\{\{\{!\}\}|\{\{\(!\}\})")
_TABLE_END = re.compile(r"([ \t]*+)(?:\{\{!\}\}\}|\{\{!\)\}\})")
_OPEN_REF = re.compile(r"<ref(?:\s[^<>/]*)?>", re.IGNORECASE)


def strip_extensions(text: str) -> str:
    """``text`` without comments and extension tags; what nowiki and pre hold is kept as literal characters.

    A tag that is never closed goes alone. So does a reference whose closing tag belongs to a later reference, which
    would swallow the sentences between.
    """
    closing = _Closing(text)
    pieces = []
    position = 0
    while tag := _OPEN.search(text, position):
        pieces.append(text[position : tag.start()])
        position = tag.end()
        if tag.lastgroup == "whole":
            pieces.append(DROPPED)
            continue
        name = (tag["name"] or _COMMENT).lower()
        if tag["name"] and tag["attributes"].endswith("/"):
            pieces.append(DROPPED)
        elif end := closing.after(name, position):
            shown, position = _content(text, name, tag, end)
            pieces.append(shown)
    pieces.append(text[position:])
    stripped = "".join(pieces)
    return _with_plain_tables(stripped) if "{{!}}" in stripped else stripped


def _with_plain_tables(text: str) -> str:
    """Tables that are written with {{!}} in the place of their bars, with the bars.

    >>> _with_plain_tables("{{a|\\n{{{!}} border=0\\n{{!}} b\\n{{!}}}\\n}} {{!}}")
    '{{a|\\n{| border=0\\n| b\\n|}\\n}} {{!}}'
    """
    lines = text.split("\n")
    open_tables = 0
    for number, line in enumerate(lines):
        if start := _TABLE_START.match(line):
            open_tables += 1
            line = f"{start.group(1)}{{|{line[start.end() :]}"
        elif line.startswith("="):
            open_tables = 0  # a heading, which no table reaches across
        if open_tables:
            if end := _TABLE_END.match(line):
                open_tables -= 1
                line = f"{end.group(1)}|}}{line[end.end() :]}"
            lines[number] = line.replace("{{!}}", "|")
    return "\n".join(lines)


def _content(text: str, name: str, tag: re.Match[str], end: re.Match[str]) -> tuple[str, int]:
    """What the tag shows, and where to go on reading."""
    if name == _COMMENT:
        # A comment alone on its line takes the line with it; otherwise it would part a paragraph.
        alone = text[tag.start() - 1 : tag.start()] in ("", "\n") and text[end.end() : end.end() + 1] == "\n"
        return "", end.end() + alone
    if name in _LITERAL or (name in ("source", "syntaxhighlight") and "inline" in tag["attributes"]):
        shown = protect(decode(text[tag.end() : end.start()]))
        return f"\n\n{shown}\n\n" if name == "pre" else shown, end.end()
    if name == "ref" and _OPEN_REF.search(text, tag.end(), end.start()):
        return DROPPED, tag.end()
    return DROPPED, end.end()


class _Closing:
    """Finds closing tags, searching no stretch of the text twice for the same tag."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next: dict[str, re.Match[str] | None] = {}

    def after(self, name: str, position: int) -> re.Match[str] | None:
        if name not in self._next or ((known := self._next[name]) and known.start() < position):
            self._next[name] = _CLOSE[name].search(self._text, position)
        return self._next[name]
