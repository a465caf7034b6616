"""Which opening mark belongs to which closing mark: templates, links and tables of one page, matched in one walk."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["template", "parameter", "link", "table", "heading", "nothing"]

# Every alternative begins with a character, and not with a group: so the search can skip to those characters.
_WHOLE = r"\{(\{(?:[^{}\[\]<\n]++|\n(?!=))*+\}\})|\[(\[[^{}\[\]<\n]*+\]\])"  # a pair with no mark inside
_MARK = (
    r"\{\{+|\}\}+|\[\[|\]\]"
    r"|\n[ \t:*#]*\{\||\n[ \t]*\|\}"  # a table starts and ends at the start of a line
    r"|\n=[^\n]*=[ \t]*(?=\n|$)"  # a heading
    r"|<table|<TABLE|</table|</TABLE"
)
_TOKEN = re.compile(f"{_WHOLE}|{_MARK}")
# The first line of an infobox that is never closed; the lines of its arguments begin with "|" and go later.
_NAME_LINE = re.compile(r"[^\n|{}\[\]<>]{1,80}(?=\n[ \t]*\|)")
_BRACES, _LINK, _TABLE, _HTML_TABLE = "{", "[", "|", "<"


class Construct(NamedTuple):
    """A matched pair; or a heading; or, as kind "nothing", a mark without a partner."""

    start: int
    body: int  # where the content begins
    close: int  # where the closing mark begins
    end: int
    kind: Kind


@dataclass(slots=True)
class _Open:
    """An opening mark that still waits for its partner."""

    kind: str
    start: int
    width: int  # for braces: how many are left


def match_constructs(text: str) -> list[Construct]:
    """All constructs of ``text`` by position. ``text`` begins with a newline.

    A closing mark pairs with the nearest opening mark of its kind; marks opened inside and still open are unmatched
    then, for no link reaches out of a template and no template out of a table cell. Headings end everything.
    """
    matcher = _Matcher(text)
    position: int | None = 0
    while position is not None:
        position = matcher.take_from(position)
    matcher.give_up(0)
    return sorted(matcher.found)


class _Matcher:
    def __init__(self, text: str) -> None:
        self.found: list[Construct] = []
        self._link_starts: dict[int, int] = {}  # of the closed links, by where they end
        self._text = text
        self._open: list[_Open] = []
        self._waiting = {_BRACES: 0, _LINK: 0, _TABLE: 0, _HTML_TABLE: 0}

    def take_from(self, position: int) -> int | None:
        """Account for the marks from ``position`` on; where to go on if it is not after the last one, else None."""
        for token in _TOKEN.finditer(self._text, position):
            start, end = token.span()
            if token.lastindex:
                self.take_pair(start, end)
            elif (position := self.take(token.group(), start, end)) != end:
                return position
        return None

    def take_pair(self, start: int, end: int) -> None:
        """Account for a template or link with no mark inside: what ``take`` would do with its two marks."""
        if self._text[start] == "{":
            self.found.append(Construct(start, start + 2, end - 2, end, "template"))
        else:
            self.found.append(Construct(start, start + 2, end - 2, end, "link"))
            self._link_starts[end] = start

    def take(self, mark: str, start: int, end: int) -> int:
        """Account for one mark; where to go on reading."""
        match mark[0]:
            case "{":
                self._push(_BRACES, start, end - start)
            case "[":
                self._push(_LINK, start, 2)
            case "}":
                self._close_braces(start, end)
            case "]":
                return self._close_link(start, end)
            case "<":
                return self._html_table(mark, start, end)
            case _ if mark.endswith("{|"):
                return self._open_table(start, end)
            case _ if mark.endswith("|}"):
                return self._close_table(start, end)
            case _:
                self.give_up(0)
                self.found.append(Construct(start, start, start, end, "heading"))
        return end

    def give_up(self, depth: int) -> None:
        """Unmatched are all open marks from ``depth`` up: they vanish, their content stays."""
        while len(self._open) > depth:
            mark = self._open.pop()
            self._waiting[mark.kind] -= 1
            if mark.width > 1:  # a single brace left of a longer run is a character like any other
                name = _NAME_LINE.match(self._text, mark.start + mark.width) if mark.kind == _BRACES else None
                self._show_nothing(mark.start, name.end() if name else mark.start + mark.width)

    def _push(self, kind: str, start: int, width: int) -> None:
        self._open.append(_Open(kind, start, width))
        self._waiting[kind] += 1

    def _show_nothing(self, start: int, end: int) -> None:
        self.found.append(Construct(start, start, start, end, "nothing"))

    def _nearest(self, kind: str) -> _Open | None:
        """The innermost open mark of ``kind``, after giving up on what was opened inside it."""
        if not self._waiting[kind]:
            return None
        depth = len(self._open)
        while self._open[depth - 1].kind != kind:
            depth -= 1
        self.give_up(depth)
        return self._open[-1]

    def _pop(self) -> None:
        self._waiting[self._open.pop().kind] -= 1

    def _close_braces(self, start: int, end: int) -> None:
        while end - start >= 2 and (opening := self._nearest(_BRACES)):
            width = 3 if opening.width >= 3 and end - start >= 3 else 2
            opening.width -= width
            outer = opening.start + opening.width
            kind: Kind = "parameter" if width == 3 else "template"
            self.found.append(Construct(outer, outer + width, start, start + width, kind))
            start += width
            if opening.width < 2:
                self._pop()
        if end - start >= 2:
            self._show_nothing(start, end)

    def _close_link(self, start: int, end: int) -> int:
        opening = self._open[-1] if self._open else None
        if opening is None or opening.kind != _LINK:
            return end  # it may end the label of an external link, as in "[http://x y [z]]"; else ``inline`` removes it
        if self._text.startswith("]", end) and self._in_external_link(opening.start + 2, start):
            return start + 1  # "[[File:x|[http://y z]]]": the first of the three brackets ends the inner link
        self.found.append(Construct(opening.start, opening.start + 2, start, end, "link"))
        self._link_starts[end] = opening.start
        self._pop()
        return end

    def _in_external_link(self, start: int, end: int) -> bool:
        """Whether the last bracket between ``start`` and ``end``, apart from whole links, is an opening one."""
        inner: int | None = end
        while inner is not None:
            end = inner
            closing = self._text.rfind("]", start, end)
            if self._text.find("[", max(start, closing), end) >= 0:
                return True
            inner = self._link_starts.get(closing + 1)
        return False

    def _open_table(self, start: int, end: int) -> int:
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end
        self._push(_TABLE, start, line_end - start)  # if it is never closed, its attributes go with it
        return end

    def _close_table(self, start: int, end: int) -> int:
        """At "|}}" the braces may as well end a template whose last argument is empty."""
        ends_template = self._text.startswith("}", end) and self._open and self._open[-1].kind == _BRACES
        if ends_template or not (opening := self._nearest(_TABLE)):
            return end - 1
        self.found.append(Construct(opening.start, end, start, end, "table"))
        self._pop()
        return end

    def _html_table(self, mark: str, start: int, end: int) -> int:
        if mark[1] != "/":
            self._push(_HTML_TABLE, start, 0)
        elif opening := self._nearest(_HTML_TABLE):
            tag_end = self._text.find(">", end, end + 20) + 1 or end
            self.found.append(Construct(opening.start, end, start, tag_end, "table"))
            self._pop()
        return end
