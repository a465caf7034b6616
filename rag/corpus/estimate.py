"""What reading a dump will cost, from its size and from a measured stretch of work on this machine.

Counts for a dump that nobody has read yet come from English Wikipedia: DPR cut 21,015,324 passages from the 5.8
million articles of December 2018 (Karpukhin et al. 2020, section 4.1), and a dump of about 24 GB of bz2 holds 100 GB
of XML and 7 million articles. Other wikis differ; the numbers say how large the work is, not how it ends. Of other
formats, the bytes that a passage takes were counted on real articles, and for KILT are those of the published file.
"""

from pathlib import Path
from typing import NamedTuple

from rag.config import SourceFormat
from rag.records import StageEstimate

_XML_PER_BYTE = {".bz2": 4.2, ".gz": 3.3, ".zst": 3.6, ".xz": 5.0}  # how far pages-articles files expand
_XML_PER_ARTICLE = 100e9 / 7e6  # bytes
_PASSAGES_PER_ARTICLE = 21_015_324 / 5.8e6
_LEDGER_BYTES = 40  # a page of the dump, compressed
_PAGES_PER_ARTICLE = 3.2  # pages of every namespace, redirects too
_SKETCH_BYTES = 160  # a passage, while duplicates are looked for
_PROCESS_BYTES = 500_000_000  # the most that one process takes
_SHA1_BYTES_PER_SECOND = 400e6
_UNPACKED_PER_BYTE = {".gz": 2.7, ".zip": 2.7, ".parquet": 1.75}  # of the other formats; measured on articles of 2019
_CHECK_SECONDS = 10e-6  # a passage; what the suites take on shards of 100,000 (tests/benchmarks/ingest.py)


class _Kind(NamedTuple):
    """A source that is no dump: what its bytes hold, measured on real articles, and how fast it is read."""

    bytes_per_passage: float  # unpacked
    passages_per_page: float
    speed: float  # unpacked bytes a second, as a multiple of the XML of a dump (tests/benchmarks/ingest.py)


_ARTICLES = _Kind(620, _PASSAGES_PER_ARTICLE, 1.6)  # 100 words of text
_KINDS: dict[SourceFormat, _Kind] = {
    "psgs": _Kind(635, _PASSAGES_PER_ARTICLE, 2.2),
    "hf-articles": _ARTICLES,
    "kilt": _Kind(1680, _PASSAGES_PER_ARTICLE, 3.0),  # 37 GB of JSON with every anchor, 22,220,793 passages
    "fever": _Kind(1130, 2.0, 2.5),  # introductions, each sentence twice
    "jsonl": _Kind(640, _PASSAGES_PER_ARTICLE, 1.6),
    "documents": _ARTICLES,  # as if all were plain text; PDF and HTML hold less
}


class IngestRates(NamedTuple):
    """What was measured on this machine."""

    xml_bytes_per_second: float  # of one process, from the compressed dump to passages on disk
    bytes_per_passage: float  # on disk
    workers: int


def xml_bytes(name: str, size: int) -> int:
    """How much XML a dump file holds, by its ending.

    >>> xml_bytes("enwiki-pages-articles.xml.bz2", 24_000_000_000)
    100800000000
    """
    return round(size * _XML_PER_BYTE.get(Path(name).suffix, 1.0))


def unpacked_bytes(name: str, size: int, format: SourceFormat = "mediawiki") -> int:
    """How much text a file of a source holds, by its ending: of a dump, the XML.

    >>> unpacked_bytes("train-00000-of-00041.parquet", 400_000_000, "hf-articles")
    700000000
    """
    if format == "mediawiki":
        return xml_bytes(name, size)
    return round(size * _UNPACKED_PER_BYTE.get(Path(name).suffix, 1.0))


def expected_passages(unpacked: int, format: SourceFormat = "mediawiki") -> int:
    """How many passages a source holds, from what ``unpacked_bytes`` gives for its files.

    >>> expected_passages(635_000, "psgs")
    1000
    """
    return _work(unpacked, format).passages


def estimate_ingest(
    dump_bytes: int,
    xml: int,
    rates: IngestRates,
    *,
    fetched: bool,
    format: SourceFormat = "mediawiki",
    rows: int | None = None,
) -> list[StageEstimate]:
    """The stages from the files of a source to checked passages. ``fetched``: they are on this machine already.

    ``xml`` is what ``unpacked_bytes`` gives for the files, ``rows`` the passages where their number is known. Seconds
    of reading are those of one process, divided by the processes with a loss of a tenth.
    """
    work = _work(xml, format)
    if rows is not None:
        work = work._replace(passages=rows)
    processes = 1 + 0.9 * (rates.workers - 1)
    reading = work.xml_equivalent / rates.xml_bytes_per_second / processes + dump_bytes / _SHA1_BYTES_PER_SECOND
    table = work.passages * rates.bytes_per_passage + work.pages * _LEDGER_BYTES
    disk = round(table + work.passages * _SKETCH_BYTES)
    memory = _PROCESS_BYTES * (rates.workers + (rates.workers > 1))
    return [
        StageEstimate("dump", 0, 100_000_000, 0 if fetched else dump_bytes, 0.0 if fetched else None),
        StageEstimate("passages", work.passages, memory, disk, reading),
        StageEstimate("passage-checks", work.passages, 2 * _PROCESS_BYTES, 0, work.passages * _CHECK_SECONDS),
    ]


class _Work(NamedTuple):
    passages: int
    pages: float
    xml_equivalent: float  # bytes of a dump's XML that take as long to read


def _work(unpacked: int, format: SourceFormat) -> _Work:
    return _work_of_dump(unpacked) if format == "mediawiki" else _work_of(_KINDS[format], unpacked)


def _work_of_dump(xml: int) -> _Work:
    articles = xml / _XML_PER_ARTICLE
    return _Work(round(articles * _PASSAGES_PER_ARTICLE), articles * _PAGES_PER_ARTICLE, xml)


def _work_of(kind: _Kind, unpacked: int) -> _Work:
    passages = round(unpacked / kind.bytes_per_passage)
    return _Work(passages, passages / kind.passages_per_page, unpacked / kind.speed)
