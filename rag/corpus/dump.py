"""Pages of a MediaWiki XML dump, one at a time, in constant memory.

Reads the export format 0.3 to 0.11 (any 0.x namespace), plain, bz2 (one stream or many) or gzip. A dump that
does not end with its closing tag is an error wherever it was cut: half a Wikipedia never looks like a whole one.
Format: https://www.mediawiki.org/wiki/Help:Export#Export_format
"""

import bz2
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from lxml import etree

from rag.errors import DumpError
from rag.records import Page

_AGAIN = "download it again and compare it with the published checksum"
_ROOT = "mediawiki"
_PEEK_BYTES = 2048
_NOT_DUMPS = (
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first, for example with: 7z x FILE"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it first, for example with: zstd -d FILE"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"\xfd7zXZ\x00", "is compressed with xz; unpack it first, for example with: xz -dk FILE"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the dump itself; fetch it with: git lfs pull"),
)
_REDIRECT = re.compile(r"\s*#REDIRECT\s*:?\s*\[\[\s*:?([^\]|#\n]+)", re.IGNORECASE)
# Used where a dump has neither <ns> nor <siteinfo>.
_DEFAULT_NAMESPACES = {
    "Media": -2, "Special": -1, "Talk": 1, "User": 2, "User talk": 3, "Wikipedia": 4, "Wikipedia talk": 5,
    "File": 6, "Image": 6, "File talk": 7, "MediaWiki": 8, "MediaWiki talk": 9, "Template": 10,
    "Template talk": 11, "Help": 12, "Help talk": 13, "Category": 14, "Category talk": 15, "Portal": 100,
    "Portal talk": 101, "Draft": 118, "Module": 828,
}  # fmt: skip


class _Rooted:
    """A stream of bare <page> elements, read as if they stood inside one root element."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._head, self._tail = b"<mediawiki>", b"</mediawiki>"

    def read(self, size: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        if data := self._stream.read(size):
            return data
        tail, self._tail = self._tail, b""
        return tail


class _Revision(NamedTuple):
    revision_id: int
    timestamp: str
    wikitext: str


_NO_REVISION = _Revision(0, "", "")


def read_pages(path: Path) -> Iterator[Page]:
    """Every page of the dump at ``path``, in file order, each in its last revision.

    A page with deleted or empty text has ``wikitext`` "". The namespace comes from <ns>, or from the title's
    prefix where the dump is older than <ns>; the redirect from <redirect>, or from the wikitext's #REDIRECT.

    Raises DumpError, with the file and what to do, if the file is missing, empty, cut, corrupt, not a dump, or of
    a compression that is not read here. The error can come after pages were yielded: a cut shows at the end.
    """
    with _open(path) as stream:
        head = _peek(path, stream)
        _refuse_other_formats(path, head)
        # Samples cut out of dumps are often bare <page> elements without a root.
        source = _Rooted(stream) if head.lstrip().startswith((b"<page>", b"<page ")) else stream
        try:
            yield from _parse(path, source)
        except etree.XMLSyntaxError as error:
            raise _syntax_error(path, stream, error) from error
        except (EOFError, OSError, gzip.BadGzipFile) as error:
            raise DumpError(f"{path} is cut or corrupt: {error}; {_AGAIN}") from error


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """A stream of the decompressed bytes."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DumpError(f"cannot read the dump {path}: {error.strerror}; check the path in the study") from error
    with file, _decompressed(path, file) as stream:
        yield stream


def _decompressed(path: Path, file: BinaryIO) -> BinaryIO:
    head = file.read(32)
    file.seek(0)
    if not head:
        raise DumpError(f"{path} is empty; {_AGAIN}")
    _refuse_other_formats(path, head)
    if head.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(file))  # reads every stream of a multistream dump
    if head.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return file


def _peek(path: Path, stream: BinaryIO) -> bytes:
    try:
        return cast(io.BufferedReader, stream).peek(_PEEK_BYTES)[:_PEEK_BYTES]
    except (EOFError, OSError) as error:
        raise DumpError(f"{path} is cut or corrupt: {error}; {_AGAIN}") from error


def _refuse_other_formats(path: Path, head: bytes) -> None:
    for magic, problem in _NOT_DUMPS:
        if head.startswith(magic):
            raise DumpError(f"{path} {problem}")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise DumpError(f"{path} is an HTML page, perhaps a server's error message, not a dump; {_AGAIN}")
    if start and not start.startswith((b"<", b"bzh", b"\x1f\x8b", b"\xfe\xff", b"\xff\xfe")):
        raise DumpError(f"{path} is not a MediaWiki XML dump: it starts with {head[:24]!r}; {_AGAIN}")


def _syntax_error(path: Path, stream: BinaryIO, error: etree.XMLSyntaxError) -> DumpError:
    """A cut file and a damaged one read alike to the parser; the end of the stream tells them apart."""
    try:
        at_end = not stream.read(1)
    except (EOFError, OSError):
        at_end = True
    what = "ends before its closing tag or is damaged near its end" if at_end else "is not well-formed XML"
    return DumpError(f"{path} {what} ({error.msg}); {_AGAIN}")


def _parse(path: Path, stream: BinaryIO | _Rooted) -> Iterator[Page]:
    # iterparse raises at the end of the stream unless the root element was closed.
    events = etree.iterparse(
        stream, events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    namespaces = _DEFAULT_NAMESPACES
    latest = _NO_REVISION
    root: Any = None
    for event, element in events:
        if event == "start":
            if root is None:
                root = element
                _check_root(path, root)
            continue
        match _local(element):
            case "revision":
                latest = _revision(path, element)
                _forget(element)
            case "page":
                yield _page(path, element, latest, namespaces)
                latest = _NO_REVISION
                _forget(element)
            case "siteinfo":
                namespaces = _namespaces(element) or namespaces


def _check_root(path: Path, root: Any) -> None:
    if root.getroottree().docinfo.doctype:
        raise DumpError(f"{path} declares a document type, which no MediaWiki dump does; {_AGAIN}")
    if _local(root) != _ROOT:
        raise DumpError(f"{path} is XML but no MediaWiki dump: its root is <{_local(root)}>, not <{_ROOT}>; {_AGAIN}")


def _local(element: Any) -> str:
    """The tag without its namespace, which differs between schema versions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _forget(element: Any) -> None:
    """Free a finished element and its earlier siblings, so that memory does not grow with the file."""
    element.clear()
    parent = element.getparent()
    if parent is None:
        return
    while (previous := element.getprevious()) is not None and _local(previous) == _local(element):
        parent.remove(previous)


def _fields(element: Any) -> dict[str, Any]:
    return {_local(child): child for child in element}


def _revision(path: Path, element: Any) -> _Revision:
    fields = _fields(element)
    text = fields.get("text")
    return _Revision(
        revision_id=_integer(path, "revision id", fields.get("id")),
        timestamp=_text(fields.get("timestamp")),
        wikitext=_text(text),
    )


def _page(path: Path, element: Any, revision: _Revision, namespaces: dict[str, int]) -> Page:
    fields = _fields(element)
    title = _text(fields.get("title"))
    if not title:
        raise DumpError(f"{path} has a <page> without a title (line {element.sourceline}); {_AGAIN}")
    namespace = fields.get("ns")
    redirect = fields.get("redirect")
    return Page(
        page_id=_integer(path, f"page id of {title!r}", fields.get("id")),
        title=title,
        namespace=_of_title(title, namespaces) if namespace is None else _integer(path, "namespace", namespace),
        redirect=_redirect(revision.wikitext) if redirect is None else redirect.get("title", ""),
        revision_id=revision.revision_id,
        timestamp=revision.timestamp,
        wikitext=revision.wikitext,
    )


def _text(element: Any) -> str:
    return "" if element is None else cast(str, element.text or "")


def _integer(path: Path, what: str, element: Any) -> int:
    text = _text(element).strip()
    try:
        return int(text)
    except ValueError as error:
        raise DumpError(f"{path} has a {what} that is no number: {text!r}; {_AGAIN}") from error


def _redirect(wikitext: str) -> str | None:
    found = _REDIRECT.match(wikitext)
    return found.group(1).strip() if found else None


def _namespaces(siteinfo: Any) -> dict[str, int]:
    return {
        element.text: int(element.get("key"))
        for element in siteinfo.iter("{*}namespace")
        if element.text and element.get("key")
    }


def _of_title(title: str, namespaces: dict[str, int]) -> int:
    prefix, colon, _ = title.partition(":")
    return namespaces.get(prefix, 0) if colon else 0
