"""A wiki of made-up pages of every kind, cut into small blocks, and what is needed to ingest it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from rag.config import PassageConfig
from rag.corpus.dump import dump_blocks
from rag.corpus.ingest import batches as ingest_batches
from rag.corpus.ingest import shards
from rag.corpus.ingest.ledger import ledger_files
from rag.corpus.ingest.source import REJECTS_FILE, IngestReport, SourceSpec, ingest
from rag.corpus.passages import passage_files
from tests.support.dump_fixtures import Revision, dump_xml, page_xml, text_xml


def article(number: int, words: int, revision: int = 0, title: str = "") -> str:
    """The XML of an article of so many words, all its own."""
    text = f"'''Page {number}''' " + " ".join(f"w{number}x{revision}x{n}" for n in range(words - 2)) + " {{odd}}"
    return page_xml(number, title or f"Page {number}", Revision(number * 10 + revision, text=text_xml(text)))


def redirect(number: int, target: str) -> str:
    xml = page_xml(number, f"Redirect {number}", extra=f'<ns>0</ns><redirect title="{target}" />')
    return xml.replace("Hello", f"#REDIRECT [[{target}]]")


def titled(number: int, title: str, text: str, namespace: int = 0) -> str:
    return page_xml(number, title, Revision(number * 10, text=text_xml(text)), extra=f"<ns>{namespace}</ns>")


def wiki_pages(pages: int = 40) -> list[str]:
    """Articles of different lengths, and every fifth page something else."""
    others = [
        lambda number: redirect(number, "Page 1"),
        lambda number: titled(number, f"Talk:Page {number}", "Talk", 1),
        lambda number: titled(number, f"Word {number}", "* [[Page 1]]\n{{disambiguation}}"),
        lambda number: titled(number, f"List of pages {number}", "* [[Page 1]] is the first of the pages."),
        lambda number: titled(number, f"Box {number}", "{{Infobox x\n|a=b\n}}"),
    ]
    return [
        others[number // 5 % 5](number) if number % 5 == 4 else article(number, 20 + number * 37 % 400)
        for number in range(1, pages + 1)
    ]


def write_dump(path: Path, pages: list[str]) -> Path:
    path.write_bytes(dump_xml(*pages))
    return path


@contextmanager
def small_pieces(block_bytes: int = 8_000, shard_rows: int = 20) -> Iterator[None]:
    """Blocks and shards so small that a small wiki has many of both."""
    with (
        mock.patch.object(ingest_batches, "dump_blocks", partial(dump_blocks, block_bytes=block_bytes)),
        mock.patch.object(shards, "SHARD_ROWS", shard_rows),
    ):
        yield


def ingest_file(dump: Path, out: Path, options: PassageConfig | None = None, workers: int = 1) -> IngestReport:
    """One dump under the name "test"."""
    return ingest(SourceSpec("test", (dump,)), options or PassageConfig(), out, workers)


def contents(folder: Path) -> Mapping[str, bytes]:
    """The bytes of every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def passages_in(folder: Path) -> pa.Table:
    """All passages of an ingested source."""
    return pa.concat_tables([pq.read_table(path) for path in passage_files(folder)])


def ledger_in(folder: Path) -> pa.Table:
    """Its ledger."""
    return pa.concat_tables([pq.read_table(path) for path in ledger_files(folder)])


def rejects_in(folder: Path) -> list[dict[str, object]]:
    """Its rejects."""
    return [json.loads(line) for line in (folder / REJECTS_FILE).read_text().split("\n") if line]
