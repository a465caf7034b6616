"""What reading a dump will cost, from its size and from a measured stretch of work on this machine.

Counts for a dump that nobody has read yet come from English Wikipedia: DPR cut 21,015,324 passages from the 5.8
million articles of December 2018 (Karpukhin et al. 2020, section 4.1), and a dump of about 24 GB of bz2 holds 100 GB
of XML and 7 million articles. Other wikis differ; the numbers say how large the work is, not how it ends.
"""

from pathlib import Path
from typing import NamedTuple

_XML_PER_BYTE = {".bz2": 4.2, ".gz": 3.3, ".zst": 3.6, ".xz": 5.0}  # how far pages-articles files expand
_XML_PER_ARTICLE = 100e9 / 7e6  # bytes
_PASSAGES_PER_ARTICLE = 21_015_324 / 5.8e6
_LEDGER_BYTES = 40  # a page of the dump, compressed
_PAGES_PER_ARTICLE = 3.2  # pages of every namespace, redirects too
_SKETCH_BYTES = 160  # a passage, while duplicates are looked for
_PROCESS_BYTES = 500_000_000  # the most that one process takes
_SHA1_BYTES_PER_SECOND = 400e6
_CHECK_SECONDS = 10e-6  # a passage; what the suites take on shards of 100,000 (tests/benchmarks/ingest.py)


class IngestRates(NamedTuple):
    """What was measured on this machine."""

    xml_bytes_per_second: float  # of one process, from the compressed dump to passages on disk
    bytes_per_passage: float  # on disk
    workers: int


class StageEstimate(NamedTuple):
    """One stage before it starts."""

    stage: str
    rows: int
    memory_bytes: int
    disk_bytes: int
    seconds: float | None  # None: depends on what nobody here knows, such as a network


def xml_bytes(name: str, size: int) -> int:
    """How much XML a dump file holds, by its ending.

    >>> xml_bytes("enwiki-pages-articles.xml.bz2", 24_000_000_000)
    100800000000
    """
    return round(size * _XML_PER_BYTE.get(Path(name).suffix, 1.0))


def estimate_ingest(dump_bytes: int, xml: int, rates: IngestRates, *, fetched: bool) -> list[StageEstimate]:
    """The stages from the dump to checked passages. ``fetched``: the files are on this machine already.

    Seconds of reading are those of one process, divided by the processes with a loss of a tenth.
    """
    articles = xml / _XML_PER_ARTICLE
    passages = round(articles * _PASSAGES_PER_ARTICLE)
    processes = 1 + 0.9 * (rates.workers - 1)
    reading = xml / rates.xml_bytes_per_second / processes + dump_bytes / _SHA1_BYTES_PER_SECOND
    table = passages * rates.bytes_per_passage + articles * _PAGES_PER_ARTICLE * _LEDGER_BYTES
    memory = _PROCESS_BYTES * (rates.workers + (rates.workers > 1))
    return [
        StageEstimate("dump", 0, 100_000_000, 0 if fetched else dump_bytes, 0.0 if fetched else None),
        StageEstimate("passages", passages, memory, round(table + passages * _SKETCH_BYTES), reading),
        StageEstimate("passage-checks", passages, 2 * _PROCESS_BYTES, 0, passages * _CHECK_SECONDS),
    ]
