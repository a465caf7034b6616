"""The text of web pages and of Markdown, as a reader sees it: a block a line, without scripts and navigation."""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from lxml import etree, html
from markdown_it import MarkdownIt

from rag.errors import DataError

_BLOCK_NAMES = """
address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure footer
form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main ol option p pre section summary table tbody tfoot thead tr ul
"""
_UNSEEN_NAMES = """
audio button canvas datalist head iframe math nav noscript object script select style svg template textarea video
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNSEEN = frozenset(_UNSEEN_NAMES.split())
_CELLS = frozenset({"td", "th"})
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_WHITESPACE = re.compile(r"\s+")


class Document(NamedTuple):
    """What a document says: its title, "" where it names none, and its text."""

    title: str
    text: str


def html_document(markup: str) -> Document:
    """A web page: its <title>, or else its first heading, and what its body shows.

    Raises DataError where the page is nested deeper than can be read.

    >>> html_document("<title>Lima</title><nav>Home</nav><p>Lima is<br>a <b>capital</b>.<script>x()</script>").text
    'Lima is\\na capital.'
    """
    root = _parsed(markup)
    title = " ".join((root.findtext(".//head/title") or "").split())
    return Document(title, _text(root, None)) if title else _headed(root)


def markdown_document(markup: str) -> Document:
    """A Markdown text (CommonMark and tables): its first heading, and the rest as text; a YAML head is left out."""
    return _headed(_parsed(_markdown().render(_FRONT_MATTER.sub("", markup.replace("\r\n", "\n"), count=1))))


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _parsed(markup: str) -> html.HtmlElement:
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
    # Encoded, because lxml refuses a str that declares an encoding; NUL ends the text for libxml2.
    data = markup.replace("\x00", "").encode("utf-8", errors="replace")
    try:
        root = html.document_fromstring(data or b"<html/>", parser=parser)
    except etree.ParserError as error:
        raise DataError("no text in it") from error
    if any("depth" in entry.message for entry in parser.error_log):
        raise DataError("elements are nested deeper than 2,048 levels; what lies deeper would be lost")
    return root


def _headed(root: html.HtmlElement) -> Document:
    """A document whose first heading is its title, and stands in front of every passage instead of in the text."""
    heading = next(root.iter(*_HEADINGS), None)
    title = "" if heading is None else " ".join("".join(heading.itertext()).split())
    return Document(title, _text(root, heading if title else None))


def _text(root: html.HtmlElement, left_out: html.HtmlElement | None) -> str:
    lines = (" ".join(line.split()) for line in "".join(_pieces(root, left_out)).split("\n"))
    return "\n".join(line for line in lines if line)


def _pieces(root: html.HtmlElement, left_out: html.HtmlElement | None) -> Iterator[str]:
    """Text and line ends in their order; without recursion, as untrusted pages nest as deep as they like."""
    walk = etree.iterwalk(root, events=("start", "end"))
    preformatted = 0
    for event, element in walk:
        tag = element.tag
        unseen = tag in _UNSEEN or element is left_out or "hidden" in element.attrib
        if event == "start" and unseen:
            walk.skip_subtree()
            continue
        preformatted += (tag == "pre") * (1 if event == "start" else -1) * (not unseen)
        if not unseen:
            yield "\n" if tag in _BLOCKS else " " if tag in _CELLS else ""
        text = (element.text if event == "start" else element.tail) or ""
        yield text if preformatted else _WHITESPACE.sub(" ", text)
