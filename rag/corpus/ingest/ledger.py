"""The ledger of an ingested source: one row a page, saying what became of it."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from rag.corpus.columns import make_table
from rag.errors import DataError

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),  # 0 where the source has none
        pa.field("namespace", pa.int32(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),  # the source's own id of the page
        pa.field("url", pa.string(), nullable=False),  # of this very revision, where the source has one
        pa.field("timestamp", pa.string(), nullable=False),  # of the revision, ISO 8601
        # articles, empty_articles, redirects, disambiguation, lists, other_namespaces, not_yet (no revision by the day
        # asked for) or repeated (a page with this id was there before)
        pa.field("kind", pa.string(), nullable=False),
        pa.field("passages", pa.int32(), nullable=False),  # before duplicates are dropped
        pa.field("left_out_by_cap", pa.int32(), nullable=False),
        pa.field("wikitext_chars", pa.int32(), nullable=False),
        pa.field("wikitext_hash", pa.string(), nullable=False),  # of an article of a dump; else ""
        pa.field("text_chars", pa.int32(), nullable=False),
        # Templates whose text the passages lack, most frequent first.
        pa.field(
            "unrendered",
            pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("count", pa.int32())])),
            nullable=False,
        ),
    ]
)
LEDGERS = "pages-*.parquet"
SETTINGS = b"openbook.settings"  # the key in a ledger's metadata that tells what its pages were made with


class LedgerRow(NamedTuple):
    """One row of LEDGER_SCHEMA."""

    page_id: int
    revision_id: int
    namespace: int
    title: str
    key: str
    url: str
    timestamp: str
    kind: str
    passages: int
    left_out_by_cap: int
    wikitext_chars: int
    wikitext_hash: str
    text_chars: int
    unrendered: list[dict[str, object]]


def revision_url(site_base: str, revision_id: int) -> str:
    """The address of one revision on its wiki, from the <base> of the dump; "" where either is missing.

    >>> revision_url("https://en.wikipedia.org/wiki/Main_Page", 717923110)
    'https://en.wikipedia.org/w/index.php?oldid=717923110'
    """
    base = urlsplit(site_base)
    if not base.netloc or not revision_id:
        return ""
    return f"{base.scheme or 'https'}://{base.netloc}/w/index.php?oldid={revision_id}"


def hash_wikitext(wikitext: str) -> str:
    """What tells two texts of one revision id apart; "" for no text.

    >>> hash_wikitext("'''Lima'''")
    'a5889e41817f515ee145d162bb893871'
    """
    return blake2b(wikitext.encode(), digest_size=16).hexdigest() if wikitext else ""


def ledger_table(rows: Sequence[LedgerRow]) -> pa.Table:
    """``rows`` as an Arrow table of LEDGER_SCHEMA."""
    return make_table(rows, LEDGER_SCHEMA)


def by_frequency(counts: Counter[str]) -> list[tuple[str, int]]:
    """Names with their counts, the most frequent first, equal counts by name.

    >>> by_frequency(Counter({"b": 1, "a": 1, "c": 2}))
    [('c', 2), ('a', 1), ('b', 1)]
    """
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def ledger_files(folder: Path) -> list[Path]:
    """The shards of a ledger, in page order; raises DataError where the folder has none."""
    files = sorted(folder.glob(LEDGERS), key=lambda path: (len(path.name), path.name))
    if not files:
        raise DataError(f"there is no ledger ({LEDGERS}) in {folder}; run the ingest stage of this source first")
    return files


def ledger_settings(folder: Path) -> bytes:
    """What the ledger says its pages were made with; b"" if nothing. Raises DataError where it cannot be read."""
    path = ledger_files(folder)[0]
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as a ledger: {error}; ingest the source again") from error
    return metadata.get(SETTINGS, b"")
