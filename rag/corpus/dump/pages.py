"""Pages from the XML of a dump, in constant memory however many revisions a page has.

Reads the export schema 0.3 to 0.11 (any 0.x namespace).
Format: https://www.mediawiki.org/wiki/Help:Export#Export_format
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple, cast

from lxml import etree

from rag.corpus.dump.files import AGAIN
from rag.errors import DumpError
from rag.records import Page

ROOT = "mediawiki"
CLOSING_TAG = b"</mediawiki>"
_PARSED_BYTES = 1 << 16
_LONGEST_BYTES = 32 << 20  # of one revision; MediaWiki allows 2 MB of text, which escaping can make sixfold
_ONCE_IN_REVISION = frozenset({"id", "timestamp", "text"})
_ONCE_IN_PAGE = frozenset({"title", "ns", "id", "redirect"})
# The first word of a redirect page, where the dump has no <redirect> or it tells of a later revision.
_REDIRECT_WORDS = (
    "REDIRECT|WEITERLEITUNG|REDIRECTION|REDIRECCI[ÓO]N|RINVIA|DOORVERWIJZING|REDIRECIONAMENTO|PATRZ|"
    "OMDIRIGERING|OMDIRIGER|UUDELLEENOHJAUS|OHJAUS|ПЕРЕНАПРАВЛЕНИЕ|ПЕРЕНАПР|ПЕРЕНАПРАВЛЕННЯ|"
    "転送|リダイレクト|重定向|넘겨주기|تحويل|הפניה|تغییر_?مسیر|YÖNLENDİRME|YÖNLENDİR|ĐỔI|ALIH|PŘESMĚRUJ|ÁTIRÁNYÍTÁS"
)
_REDIRECT = re.compile(rf"\s*#(?:{_REDIRECT_WORDS})\s*:?\s*\[\[\s*:?([^\]|#\n]+)", re.IGNORECASE)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PLACE_IN_PIECE = re.compile(r",? line \d+(?:, column \d+)?")
_INTEGER = re.compile(r"\s*-?\d{1,19}\s*", re.ASCII)
_NAMESPACE_BITS = 32  # as the ledger of an ingest keeps it; ids have 64
# Used where a dump has neither <ns> nor <siteinfo>.
DEFAULT_NAMESPACES = {
    "Media": -2, "Special": -1, "": 0, "Talk": 1, "User": 2, "User talk": 3, "Wikipedia": 4, "Wikipedia talk": 5,
    "File": 6, "Image": 6, "File talk": 7, "MediaWiki": 8, "MediaWiki talk": 9, "Template": 10,
    "Template talk": 11, "Help": 12, "Help talk": 13, "Category": 14, "Category talk": 15, "Portal": 100,
    "Portal talk": 101, "Draft": 118, "Module": 828,
}  # fmt: skip


class _Revision(NamedTuple):
    timestamp: str  # first, so that revisions compare by time, and by id where the times are equal
    revision_id: int
    wikitext: str


class _History(NamedTuple):
    """What is kept of the revisions of a page while they stream by."""

    chosen: _Revision | None = None
    newest: tuple[str, int] = ("", 0)


class ParsedPage(NamedTuple):
    page: Page
    exists: bool  # False where it has no revision at or before the day asked for, and so no text


def parse_pages(where: str, pieces: Iterable[bytes], until: date | None = None) -> Iterator[ParsedPage]:
    """Every page of an XML document that comes in pieces, whole: <mediawiki>, perhaps <siteinfo>, and pages.

    ``where`` names the document in errors. Raises DumpError if it is not well formed, not closed, or holds
    something else than pages.
    """
    source = _Pieces(filter(None, pieces))
    events = etree.iterparse(
        source,
        events=("end",),
        tag=("{*}revision", "{*}page", "{*}siteinfo"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    namespaces, history, element = DEFAULT_NAMESPACES, _History(), None
    try:
        for _, element in events:
            source.unfinished = 0
            match _local(element):
                case "revision":
                    history = _with_revision(where, history, element, until)
                    _forget(element)
                case "page":
                    yield _page(where, element, history, namespaces, until)
                    history = _History()
                    _check_place(where, element)
                    _forget(element)
                case _:
                    namespaces = local_names(element) or namespaces
    except etree.XMLSyntaxError as error:
        raise syntax_error(where, error, at_end=source.ended) from error
    except _TooLong as error:
        raise _too_long(where, source.unfinished, element) from error
    _check_rest(where, events.root)


class _TooLong(Exception):
    """A revision is longer than this reader takes; never leaves this module."""


class _Pieces:
    """An iterator of bytes as the file that a parser reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece, self._at = b"", 0
        self.unfinished = 0  # bytes since the last end of a revision or page
        self.ended = False

    def read(self, _size: int = -1) -> bytes:
        if self._at >= len(self._piece):
            self._piece, self._at = next(self._pieces, b""), 0
            self.ended = not self._piece
        if self.unfinished > _LONGEST_BYTES:
            raise _TooLong
        # The parser holds all the elements of what it is given, so it is given little.
        part = self._piece[self._at : self._at + _PARSED_BYTES]
        self._at += len(part)
        self.unfinished += len(part)
        return part


def _too_long(where: str, length: int, last: Any) -> DumpError:
    """``last`` is the last revision, page or <siteinfo> that ended; the page that goes on is around or behind it."""
    page = None if last is None else last.getparent() if _local(last) == "revision" else last.getnext()
    title = None if page is None else page.findtext("{*}title")
    of_page = f" of the page {title!r}" if title else ""
    return DumpError(
        f"{where} has {length} bytes without the end of a revision{of_page}: more than the {_LONGEST_BYTES >> 20} MB "
        "that this reader takes, and MediaWiki itself allows 2 MB of text; leave this page out of the dump"
    )


def syntax_error(where: str, error: etree.XMLSyntaxError, at_end: bool) -> DumpError:
    """A cut file and a damaged one read alike to the parser; the end of the stream tells them apart."""
    if error.code == etree.ErrorTypes.ERR_DOCUMENT_END and not at_end:
        return DumpError(f"{where} goes on after its closing tag: if it is two dumps, put each in a file of its own")
    what = "ends before its closing tag or is damaged near its end" if at_end else "is not well-formed XML"
    message = _PLACE_IN_PIECE.sub("", error.msg.splitlines()[0])
    return DumpError(f"{where} {what} ({message}); {AGAIN}")


def local_names(siteinfo: Any) -> dict[str, int]:
    """The numbers of the namespaces by their local names, of a <siteinfo>."""
    return {
        element.text or "": int(element.get("key"))
        for element in siteinfo.iter("{*}namespace")
        if _INTEGER.fullmatch(element.get("key", "")) and _fits(int(element.get("key")), _NAMESPACE_BITS)
    }


def _local(element: Any) -> str:
    """The tag without its namespace, which differs between schema versions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _forget(element: Any) -> None:
    """Free a finished element and its earlier siblings, so that memory does not grow with the file."""
    element.clear(keep_tail=True)
    parent = element.getparent()
    if parent is None:
        return
    while (previous := element.getprevious()) is not None and _local(previous) == _local(element):
        parent.remove(previous)


def _check_place(where: str, page: Any) -> None:
    """Only <siteinfo> and pages, with nothing but space between them, stand in a dump."""
    root, previous = page.getparent(), page.getprevious()
    if root is None or root.getparent() is not None or _local(root) != ROOT:
        raise DumpError(f"{where} has a <page> that does not stand directly in <{ROOT}>; {AGAIN}")
    if previous is not None:
        _check_sibling(where, previous)


def _check_rest(where: str, root: Any) -> None:
    before = (root.text or "").strip("\ufeff \t\r\n")
    if before:
        raise DumpError(f"{where} has text before its first page: {before[:40]!r}; {AGAIN}")
    for element in root:
        _check_sibling(where, element)


def _check_sibling(where: str, element: Any) -> None:
    if _local(element) not in ("page", "siteinfo"):
        raise DumpError(f"{where} has a <{_local(element)}> where only pages belong; {AGAIN}")
    if (element.tail or "").strip():
        raise DumpError(f"{where} has text between two pages: {element.tail.strip()[:40]!r}; {AGAIN}")


def _fields(where: str, element: Any, names: frozenset[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for child in element:
        name = _local(child)
        if name in fields and name in names:
            raise DumpError(f"{where} has a <{_local(element)}> with two <{name}>; {AGAIN}")
        fields[name] = child
    return fields


def _with_revision(where: str, history: _History, element: Any, until: date | None) -> _History:
    fields = _fields(where, element, _ONCE_IN_REVISION)
    number = _integer(where, "revision id", fields.get("id"))
    timestamp = _text(where, fields.get("timestamp")).strip()
    order = (timestamp, number)
    if until is None or _is_later(where, order, history.chosen, until):
        chosen: _Revision | None = _Revision(timestamp, number, _wikitext(where, fields.get("text")))
    else:
        chosen = history.chosen
    return _History(chosen, max(history.newest, order))


def _is_later(where: str, order: tuple[str, int], chosen: _Revision | None, until: date) -> bool:
    """Whether a revision is of the asked time and not before the one chosen so far."""
    if not _TIMESTAMP.fullmatch(order[0]):
        raise DumpError(
            f"{where} has revision {order[1]} with the timestamp {order[0]!r}, so what stood until {until} is unknown; "
            "read the dump without `until`, or repair it"
        )
    return order[0][:10] <= until.isoformat() and (chosen is None or order >= chosen[:2])


def _page(where: str, element: Any, history: _History, namespaces: dict[str, int], until: date | None) -> ParsedPage:
    fields = _fields(where, element, _ONCE_IN_PAGE)
    title = _text(where, fields.get("title"))
    if not title.strip():
        raise DumpError(f"{where} has a <page> without a title; {AGAIN}")
    number = _integer(where, f"page id of {title!r}", fields.get("id"))
    revision = history.chosen or _Revision("", 0, "")
    namespace = fields.get("ns")
    page = Page(
        page_id=number,
        title=title,
        namespace=_of_title(title, namespaces) if namespace is None else _namespace(where, namespace),
        redirect=_redirect(fields.get("redirect"), revision, history),
        revision_id=revision.revision_id,
        timestamp=revision.timestamp,
        wikitext=revision.wikitext,
    )
    return ParsedPage(page, until is None or history.chosen is not None)


def _wikitext(where: str, element: Any) -> str:
    text = _text(where, element)
    if not text and element is not None and {"id", "location"} & set(element.keys()) and not element.get("deleted"):
        what = "is a stub dump, which says where the texts are stored instead of what they are"
        raise DumpError(f"{where} {what}; take the pages-articles dump")
    return text


def _text(where: str, element: Any) -> str:
    if element is None:
        return ""
    if len(element):
        raise DumpError(f"{where} has markup inside a <{_local(element)}>; {AGAIN}")
    return cast(str, element.text or "")


def _integer(where: str, what: str, element: Any, bits: int = 64) -> int:
    text = _text(where, element)
    if not _INTEGER.fullmatch(text):
        raise DumpError(f"{where} has a {what} that is no number: {text[:40]!r}; {AGAIN}")
    if not _fits(int(text), bits):
        raise DumpError(f"{where} has a {what} of more than {bits} bits: {text[:40]!r}; {AGAIN}")
    return int(text)


def _namespace(where: str, element: Any) -> int:
    return _integer(where, "namespace", element, _NAMESPACE_BITS)


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


def _redirect(element: Any, revision: _Revision, history: _History) -> str | None:
    """<redirect> tells of the newest revision only, and has no target before schema 0.6."""
    found = _REDIRECT.match(revision.wikitext)
    in_text = found.group(1).strip() if found else None
    if element is None or revision[:2] < history.newest:
        return in_text
    return cast(str, element.get("title") or in_text or "")


def _of_title(title: str, namespaces: dict[str, int]) -> int:
    prefix, colon, _ = title.partition(":")
    return namespaces.get(prefix, 0) if colon else 0
