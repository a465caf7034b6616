"""A folder of one's own documents: plain text, Markdown, HTML and PDF."""

import codecs
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from rag.corpus.sources.article import Record, make_article, one_line, printable
from rag.corpus.sources.files import check_head
from rag.corpus.sources.html import Document, html_document, markdown_document
from rag.corpus.sources.pdf import pdf_document
from rag.errors import DataError

_MAX_BYTES = 512 << 20
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DECLARED = re.compile(rb"<meta[^>]{1,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_DECLARED_WITHIN = 4096


def read_documents(path: Path) -> Iterator[Record]:
    """Every document of a folder and the folders in it, in the order of their paths, or the one document of a path.

    The key is the path in the folder, with "/". The title is the first heading of Markdown, the <title> of HTML or that
    of a PDF's metadata, or else the name of the file; other headings stay in the text, a line each. Hidden files and
    folders are passed over; whatever else cannot be read is a record without an article: other kinds of file, files
    that are encrypted, scanned, empty or damaged, links that leave the folder. A PDF of which some pages are images
    without text gives its article and a record for each such page.
    Raises DataError where there is no such path, or no file in it.
    """
    if not path.exists():
        raise DataError(f"there is no folder {path}; check the path of the source in the study")
    root, names = (path, _names(path)) if path.is_dir() else (path.parent, [path.name])
    if not names:
        raise DataError(f"the folder {path} holds no files; put documents into it ({', '.join(_READERS)})")
    for name in names:
        yield from _records(root, name)


def _names(root: Path) -> list[str]:
    """Paths below the root, sorted: files, links, and the folders that cannot be opened."""
    names: list[str] = []
    unopened: list[str] = []
    for folder, folders, files in os.walk(root, onerror=lambda error: unopened.append(str(error.filename))):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (name for name in (*files, *links) if not name.startswith("."))
        names.extend(os.path.relpath(os.path.join(folder, name), root) for name in visible)
    names.extend(os.path.relpath(folder, root) for folder in unopened)
    return sorted(name.replace(os.sep, "/") for name in names)


def _records(root: Path, name: str) -> Iterator[Record]:
    key = one_line(printable(name))
    try:
        data = _content(root, name)
        document, image_pages = _READERS[_kind(name)](data)
        article = make_article(key, document.title.strip() or Path(key).stem, document.text)
    except DataError as error:
        yield Record(key, 0, "", None, str(error))
        return
    yield Record(key, 0, document.text, article)
    for page in image_pages:
        yield Record(key, page, "", None, "a page of images without text; run text recognition (OCR) first")


def _content(root: Path, name: str) -> bytes:
    path = root / name
    if problem := _problem(root, path):
        raise DataError(problem)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataError(f"larger than {_MAX_BYTES >> 20} MB; split it")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}") from error
    check_head("the file", data[:256], refuse=b"")
    return data


def _problem(root: Path, path: Path) -> str:
    """Why a path cannot be a document, as far as that can be told without opening it."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return "a link that leads nowhere"
    if path.is_symlink() and not target.is_relative_to(root.resolve()):
        return "a link that leaves the folder"
    if target.is_dir():
        return "a link to a folder, or one that cannot be opened"
    if not target.is_file():
        return "no regular file"
    if _kind(path.name) not in _READERS:
        return (
            f"{_kind(path.name) or 'a name without an ending'}: no such documents are read, only {', '.join(_READERS)}"
        )
    return ""


def _kind(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _decoded(data: bytes, declared: str = "") -> str:
    """The text of bytes in the encoding of their byte order mark, in UTF-8, or as declared, whichever fits first."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), "")
    try:
        return data.decode(marked or "utf-8")
    except UnicodeDecodeError as error:
        problem = f"not {marked or 'UTF-8'} at byte {error.start}; save it as UTF-8"
    if declared and not marked:
        try:
            return data.decode(declared)
        except (LookupError, ValueError):
            problem = f"neither UTF-8 nor {declared}, which it declares; save it as UTF-8"
    raise DataError(problem)


def _text(data: bytes) -> tuple[Document, tuple[int, ...]]:
    return Document("", _decoded(data)), ()


def _markdown(data: bytes) -> tuple[Document, tuple[int, ...]]:
    return markdown_document(_decoded(data)), ()


def _html(data: bytes) -> tuple[Document, tuple[int, ...]]:
    declared = _DECLARED.search(data[:_DECLARED_WITHIN])
    return html_document(_decoded(data, declared[1].decode() if declared else "")), ()


def _pdf(data: bytes) -> tuple[Document, tuple[int, ...]]:
    document = pdf_document(data)
    return Document(document.title, document.text), document.image_pages


_READERS: dict[str, Callable[[bytes], tuple[Document, tuple[int, ...]]]] = {
    ".txt": _text,
    ".text": _text,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
}
