"""Tables as lines of text, for those who want what stands in them: a row a line, "header: cell; header: cell".

What comes in is the inside of a table whose templates, links and inner tables are rendered already; their "|" are
protected. Text that is repeated (headers, and cells that span rows) is bounded, so that no table grows under the hands.
Language: https://www.mediawiki.org/wiki/Help:Tables
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rag.corpus.wikitext.marks import DROPPED, protect
from rag.corpus.wikitext.numbers import LOST_AMOUNT

_MAX_REPEATED = 80  # characters of a header or a spanning cell that is worth repeating
_MAX_COLUMNS = 60
_MAX_SPAN = 1000
_SPAN = {name: re.compile(rf"\b{name}\s*=\s*[\"']?\s*(\d{{1,4}})", re.IGNORECASE) for name in ("rowspan", "colspan")}
_HTML_CELL = re.compile(r"<(/?)(tr|td|th|caption)(?![A-Za-z])([^<>]*)>", re.IGNORECASE)
_ITEM_TAG = re.compile(r"<(?:li|dd|dt)(?:[\s/][^<>]*)?>", re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"</?(?:br|p|div|ul|ol|dl|li|dd|dt|blockquote|center|poem|hr|h[1-6]|t[hrd]|tbody|thead|tfoot|table)(?:[\s/][^<>]*)?>",
    re.IGNORECASE,
)
_UNSEEN = f" '{DROPPED}{LOST_AMOUNT}"  # quotes around something that was left out
_LINE_MARKS = "*#:;|-"  # they mean something at the start of a line


class _Cell(NamedTuple):
    text: str
    header: bool
    columns: int = 1
    rows: int = 1


@dataclass
class _Table:
    caption: str = ""
    rows: list[list[_Cell]] = field(default_factory=list)


def table_text(content: str, html: bool) -> str:
    """The lines of a table as paragraphs; ``content`` stands between the marks that open and close it.

    >>> table_text("\\n! City !! People\\n|-\\n| Lima || 9,751,717\\n|-\\n| Callao || 994,494\\n", html=False)
    '\\n\\nCity: Lima; People: 9,751,717\\n\\nCity: Callao; People: 994,494\\n\\n'
    """
    table = _html_table(content) if html else _wiki_table(content)
    lines = [one_line(table.caption), *_lines(table.rows, len(content))]
    return paragraphs(line for line in lines if line)


def paragraphs(lines: Iterable[str]) -> str:
    """Each line as a paragraph that is not taken for anything else, whatever its first character."""
    marked = (protect(line[0]) + line[1:] if line[0] in _LINE_MARKS else line for line in lines)
    return "".join(f"\n\n{line}" for line in marked) + "\n\n"


def one_line(text: str) -> str:
    """The content of a cell or field on one line: list items and paragraphs parted by commas.

    The first line is no list item: what stands behind the "|" of a cell does not start a line.

    >>> one_line("\\n* red\\n* green\\n"), one_line("a<br/>b\\nc")
    ('red, green', 'a, b c')
    """
    if "<" in text:
        text = _BLOCK_TAG.sub("\n\n", _ITEM_TAG.sub("\n* ", text))
    shown = ""
    parted = False
    for number, line in enumerate(text.split("\n")):
        item = line.strip(f" \t{DROPPED}")
        is_item = number > 0 and item.startswith(("*", "#", ":", ";"))
        item = item.lstrip("*#:; \t") if is_item else item
        if not item.strip(_UNSEEN):
            parted = True
            continue
        # "Height<br>(m)" is one item.
        comma = (parted or is_item) and shown[-1:] not in (".", "!", "?", ":", ";", ",") and item[0] != "("
        joint = ", " if comma else " "
        shown += joint + item if shown else item
        parted = is_item
    return shown


def _wiki_table(content: str) -> _Table:
    table = _Table()
    raw: list[tuple[str, bool]] = []  # the cells of the row that is being read

    def end_row() -> None:
        if raw:
            table.rows.append([_wiki_cell(text, header) for text, header in raw])
            raw.clear()

    captions: list[str] = []
    for line in content.split("\n")[1:]:
        stripped = line.strip()
        if stripped.startswith("|-"):
            end_row()
        elif stripped.startswith("|+"):
            captions.append(stripped[2:])
        elif stripped.startswith(("|", "!")):
            raw += _split_cells(stripped)
        elif raw:
            raw[-1] = (f"{raw[-1][0]}\n{line}", raw[-1][1])
        elif captions and not table.rows:
            captions.append(line)
    end_row()
    table.caption = _without_attributes("\n".join(captions))[1]
    return table


def _split_cells(line: str) -> list[tuple[str, bool]]:
    header = line[0] == "!"
    cells = line[1:].replace("!!", "||") if header else line[1:]
    return [(cell, header) for cell in cells.split("||")]


def _without_attributes(raw: str) -> tuple[str, str]:
    """``style="..." | text``: the attributes and the text."""
    attributes, pipe, text = raw.partition("|")
    return (attributes, text) if pipe else ("", raw)


def _wiki_cell(raw: str, header: bool) -> _Cell:
    attributes, text = _without_attributes(raw)
    return _Cell(one_line(text), header, _span("colspan", attributes), _span("rowspan", attributes))


def _span(name: str, attributes: str) -> int:
    found = _SPAN[name].search(attributes)
    return max(1, min(int(found.group(1)), _MAX_SPAN)) if found else 1


def _html_table(content: str) -> _Table:
    """End tags may be left out, as in HTML: a cell ends where the next one starts."""
    table = _Table(rows=[[]])
    marks = list(_HTML_CELL.finditer(content))
    ends = [*(mark.start() for mark in marks), len(content)][1:]
    for mark, end in zip(marks, ends, strict=True):
        closing, name, attributes = mark.group(1), mark.group(2).lower(), mark.group(3)
        text = content[mark.end() : end]
        if name == "tr":
            table.rows.append([])
        elif closing:
            continue
        elif name == "caption":
            table.caption = text
        else:
            spans = _span("colspan", attributes), _span("rowspan", attributes)
            table.rows[-1].append(_Cell(one_line(text), name == "th", *spans))
    table.rows = [row for row in table.rows if row]
    return table


class _Placed(NamedTuple):
    column: int
    text: str
    columns: int


@dataclass
class _Spans:
    """Cells that reach down into the rows below, and how much of their text may still be repeated."""

    budget: int
    cells: dict[int, tuple[str, int]] = field(default_factory=dict)  # column -> text, rows left

    def add(self, column: int, cell: _Cell) -> None:
        for offset in range(min(cell.columns, max(_MAX_COLUMNS - column, 0))):
            self.cells[column + offset] = ("" if offset else cell.text, cell.rows - 1)

    def take(self, column: int) -> _Placed:
        text, rows = self.cells.pop(column)
        if rows > 1:
            self.cells[column] = (text, rows - 1)
        if len(text) > min(_MAX_REPEATED, self.budget):
            text = ""
        self.budget -= len(text)
        return _Placed(column, text, 1)


def _lines(rows: list[list[_Cell]], budget: int) -> Iterator[str]:
    headers: dict[int, str] = {}
    waiting: list[str] = []  # header rows that no row of cells has followed yet
    spans = _Spans(budget)
    for row in rows:
        placed = _placed(row, spans)
        if len(row) == 1 and row[0].header:
            yield row[0].text  # a title across the table
        elif all(cell.header for cell in row):
            headers = _headers(placed, headers if waiting else {})
            waiting.append("; ".join(filter(None, (text for _, text, _ in placed))))
        else:
            yield _data_line(placed, row, headers)
            waiting.clear()
    yield from waiting


def _placed(row: list[_Cell], spans: _Spans) -> list[_Placed]:
    """The cells of a row by column, with those that reach into it from above."""
    placed: list[_Placed] = []
    reaching: list[tuple[int, _Cell]] = []
    column = 0
    for cell in row:
        while column in spans.cells:
            placed.append(spans.take(column))
            column += 1
        placed.append(_Placed(column, cell.text, cell.columns))
        if cell.rows > 1:
            reaching.append((column, cell))
        column += cell.columns
    placed += [spans.take(right) for right in sorted(spans.cells) if right >= column]
    for column, cell in reaching:
        spans.add(column, cell)
    return placed


def _headers(placed: list[_Placed], above: dict[int, str]) -> dict[int, str]:
    """The header of each column; a header row right below another one makes its headers more precise."""
    headers = dict(above)
    for cell in placed:
        text = cell.text.rstrip(": ")
        for column in range(cell.column, min(cell.column + cell.columns, _MAX_COLUMNS)):
            upper = above.get(column, "")
            joined = text if upper in ("", text) else f"{upper} {text}".rstrip()
            headers[column] = joined if len(joined) <= _MAX_REPEATED else text[:_MAX_REPEATED]
    return headers


def _data_line(placed: list[_Placed], row: list[_Cell], headers: dict[int, str]) -> str:
    parts = []
    for column, text, _ in placed:
        header = headers.get(column, "")
        parts.append(f"{header}: {text}" if text and header not in ("", text) else text)
    if not headers and row[0].header:
        label, *parts = parts
        return f"{label.rstrip(': ')}: {'; '.join(filter(None, parts))}" if any(parts) else ""
    return "; ".join(filter(None, parts))
