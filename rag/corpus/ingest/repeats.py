"""Pages that stand in a dump more than once: the first is kept, every later one is a reject."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag.corpus.ingest.ledger import LedgerRow, ledger_table
from rag.corpus.ingest.pages import Made, repeated_page, repeated_reject

_BITS = 10  # of a page id that are counted within one number of 1024 bits


class SeenPages:
    """The page ids that were there: one bit for each where ids are dense, as those of a wiki are; 250 bytes at most."""

    def __init__(self) -> None:
        self._bits: defaultdict[int, int] = defaultdict(int)

    @classmethod
    def of_ledgers(cls, ledgers: Iterable[Path]) -> "SeenPages":
        """All pages of these files."""
        seen = cls()
        for path in ledgers:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                seen.add(file.read(columns=["page_id"]).column(0).to_pylist())
        return seen

    def add(self, page_ids: Iterable[int]) -> set[int]:
        """Put ids in; those that were there before this call.

        >>> seen = SeenPages()
        >>> seen.add([5, 7]), seen.add([7, 8])
        (set(), {7})
        """
        found = set()
        for page_id in set(page_ids):
            high, bit = page_id >> _BITS, 1 << (page_id & ((1 << _BITS) - 1))
            if self._bits[high] & bit:
                found.add(page_id)
            self._bits[high] |= bit
        return found

    def first_only(self, made: Made, source: str) -> Made:
        """A batch without the passages of pages that an earlier batch has; in the ledger they are "repeated"."""
        repeated = self.add(made.ledger.column("page_id").to_pylist())
        if not repeated:
            return made
        rows = [LedgerRow(**row) for row in made.ledger.to_pylist()]
        ledger = [repeated_page(row) if row.page_id in repeated else row for row in rows]
        rejects = [reject for reject in made.rejects if reject.get("page_id") not in repeated]
        rejects += [repeated_reject(source, row) for row in ledger if row.page_id in repeated]
        gone = pc.is_in(made.passages.column("page_id"), pa.array(sorted(repeated), pa.int64()))
        passages = made.passages.filter(pc.invert(gone))
        return made._replace(passages=passages, ledger=ledger_table(ledger), rejects=rejects)
