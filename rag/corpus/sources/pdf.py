"""The text layer of PDF documents."""

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import regex
from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError

from rag.errors import DataError

_HYPHENATED = regex.compile(r"(?<=\p{Ll})-\n(?=\p{Ll})")  # a word divided at the end of a line
_PARAGRAPH = re.compile(r"\n\s*\n")


class PdfDocument(NamedTuple):
    """What a PDF says, and which of its pages, from 1, show images but have no text."""

    title: str
    text: str
    image_pages: tuple[int, ...]


def pdf_document(data: bytes) -> PdfDocument:
    """The text of a PDF page by page, each paragraph a line; words divided at line ends are joined.

    Raises DataError for a PDF that is damaged, needs a password or has no text, as scans have none.
    """
    try:
        with _quiet():
            return _document(PdfReader(io.BytesIO(data)))
    except DataError:
        raise
    except DependencyError as error:
        raise DataError(f"encrypted in a way that needs another package: {error}") from error
    except Exception as error:  # a damaged PDF breaks the parser in any way it likes
        raise DataError(f"a damaged PDF: {type(error).__name__}: {error}") from error


def _document(reader: PdfReader) -> PdfDocument:
    if reader.is_encrypted and not reader.decrypt(""):
        raise DataError("encrypted with a password; save it without one")
    texts = [page.extract_text() for page in reader.pages]
    text = "\n".join(filter(None, map(_paragraphs, texts)))
    blank = [number for number, found in enumerate(texts) if not found.strip()]
    if not text:
        raise DataError(
            f"no text on any of its {len(texts)} pages; if they are scans, run text recognition (OCR) first"
        )
    title = reader.metadata.title if reader.metadata else None
    images = tuple(number + 1 for number in blank if _shows_images(reader.pages[number]))
    return PdfDocument(title if isinstance(title, str) else "", text, images)


def _paragraphs(text: str) -> str:
    joined = _HYPHENATED.sub("", text)
    return "\n".join(" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(joined)).strip()


def _shows_images(page: PageObject) -> bool:
    return any(True for _ in page.images.keys())  # noqa: SIM118  iterating the images themselves would decode them


@contextmanager
def _quiet() -> Iterator[None]:
    """Without pypdf's remarks on every oddity of a file: what cannot be read is said in the reason."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
