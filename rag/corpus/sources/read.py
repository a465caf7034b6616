"""Sources that are no MediaWiki dump, each a stream of articles, or of DPR's ready-made passages.

Whatever the format: text comes in NFC and without control characters, a row that cannot be used comes as such with
its place and reason, and a file that cannot be read to its end is a DataError, never a shorter corpus.
"""

from collections.abc import Iterator
from pathlib import Path

from rag.config import SourceFormat
from rag.corpus.sources.article import Article, SeenIds, Unreadable, unreadable
from rag.corpus.sources.documents import read_documents
from rag.corpus.sources.json import read_fever, read_jsonl, read_kilt
from rag.corpus.sources.parquet import read_hf_articles
from rag.corpus.sources.psgs import PsgsRow, read_psgs
from rag.errors import ConfigError

__all__ = ["Article", "PsgsRow", "Unreadable", "read_articles", "read_psgs"]

_READERS = {
    "hf-articles": read_hf_articles,
    "kilt": read_kilt,
    "fever": read_fever,
    "jsonl": read_jsonl,
    "documents": read_documents,
}


def read_articles(path: Path, format: SourceFormat) -> Iterator[Article | Unreadable]:
    """Every row of a source in the order of its files and rows: an article, or why there is none.

    An id that was there before is unreadable too. In memory are a batch of rows, or one document, and under 20 bytes
    for each id. Raises DataError for a file or folder that is missing, empty, cut off or of another format, and
    ConfigError for a format that holds no articles.
    """
    reader = _READERS.get(format)
    if reader is None:
        raise ConfigError(f"the format {format!r} holds no plain articles; those that do: {', '.join(_READERS)}")
    seen = SeenIds()
    for record in reader(path):
        if record.article is None:
            yield unreadable(record, record.problem)
        elif not seen.add(record.article.page_id):
            yield unreadable(record, f"the id {record.article.key[:100]!r} was there before")
        else:
            yield record.article
